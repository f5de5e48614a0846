#include "device/bulk/bulk.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "device/bulk/vnet_header.hpp"

namespace netchannel::device {
namespace {

// An IP packet of 65535 bytes in an Ethernet frame, and one byte more, since a TAP cuts without a word what
// does not fit.
constexpr std::size_t kLargestFrame = kEthernetHeader + 65535;
constexpr std::uint32_t kBurstsBetweenLooks = 32;
// What one burst hands out at most, about: it should still be in the core's cache when the stack gets to it,
// and the next burst is then read into the same slots, warm.
constexpr std::size_t kBurstBytes = 256 << 10;

Result<void> check(const BulkOptions& options, const LinkFacts& interface, const FrameRegion& region) {
  if (!interface.ethernet) {
    return fail(ErrorCode::not_supported, "bulk needs an Ethernet interface: this one is of another kind");
  }
  if (!interface.up) {
    return fail(ErrorCode::device_down, "the interface is down: ip link set dev <interface> up");
  }
  if (interface.mtu > 65535) {
    return fail(ErrorCode::not_supported, "the interface's MTU is above 65535: lower it");
  }
  if (options.rx_headroom < kVnetHeaderSize || region.slot_size() < options.rx_headroom + kLargestFrame + 1) {
    return fail(ErrorCode::invalid_argument,
                "bulk needs frame slots of BulkDevice::kSlotSize and a headroom of at least 12 bytes");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BulkDevice>> BulkDevice::open(const BulkOptions& options, DeviceHome home) {
  auto link = LinkWatch::open(options.interface);
  if (!link) return tl::unexpected(link.error());
  const LinkFacts interface = link->facts();
  if (auto checked = check(options, interface, home.region); !checked) return tl::unexpected(checked.error());
  auto tap = OwnTap::make(options.send_buffer);
  if (!tap) return tl::unexpected(tap.error());

  DeviceInfo info;
  info.name = options.interface;
  info.mode = "bulk";
  info.mac = interface.mac;
  info.mtu = interface.mtu;
  // The kernel cuts what is not below the interface's limit: rightly, but in software.
  info.max_tx_frame = std::max(std::clamp(interface.gso_max_size, 1U, 65536U) - 1,
                               interface.mtu + static_cast<std::uint32_t>(kEthernetHeader));
  info.tx_checksum = true;
  info.sleep_fd = tap->fd.get();
  const RedirectProgram::Options redirect{.interface_index = interface.index,
                                          .tap_index = tap->index,
                                          .max_claims = options.max_claims,
                                          .verbose = options.verbose};
  std::unique_ptr<BulkDevice> device(
      new BulkDevice(std::move(info), home, options, std::move(*link), std::move(*tap)));
  device->silence_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!device->silence_)
    return fail(ErrorCode::system, "cannot make an eventfd; raise the limit of open files", errno);
  auto program = RedirectProgram::attach(redirect);
  if (!program) return tl::unexpected(program.error());
  device->program_ = std::move(*program);
  return device;
}

BulkDevice::BulkDevice(DeviceInfo info, DeviceHome home, const BulkOptions& options, LinkWatch link,
                       OwnTap tap)
    : CopyingDevice(std::move(info), home, options.rx_headroom),
      link_(std::move(link)),
      tap_(std::move(tap)) {}

std::size_t BulkDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  if (!alive_) return 0;
  std::size_t filled = 0;
  std::size_t bytes = 0;
  // As many reads as frames are wanted, though some of them may be refused.
  for (std::size_t reads = 0; reads < out.size() && bytes < kBurstBytes && !lent_.empty(); ++reads) {
    const MutableBytes into = home_.region.slot(lent_.back()).subspan(rx_headroom_ - kVnetHeaderSize);
    const ssize_t got = ::read(tap_.fd.get(), into.data(), into.size());
    home_.counters.add(Counter::device_rx_wakeups);
    if (got < 0) {
      if (errno == EBADFD) bury("the bulk lane's TAP was deleted; open the device again");
      break;
    }
    if (!take_in(static_cast<std::size_t>(got), out[filled])) continue;
    lent_.pop_back();
    bytes += out[filled++].length;
  }
  if (filled > 0) home_.counters.add(Counter::device_rx_frames, filled);
  return filled;
}

// What the last read has put into the slot that is next: header and frame.
bool BulkDevice::take_in(std::size_t bytes, FrameDesc& out) noexcept {
  const std::uint32_t slot = lent_.back();
  const Bytes read = home_.region.slot(slot).subspan(rx_headroom_ - kVnetHeaderSize);
  if (bytes < kVnetHeaderSize + kEthernetHeader) {
    home_.counters.drop(DropReason::eth_truncated);
    return false;
  }
  if (bytes >= read.size()) {
    home_.counters.drop(DropReason::device_frame_too_large);
    return false;
  }
  const Bytes frame = read.first(bytes).subspan(kVnetHeaderSize);
  const auto offload = parse_vnet_header(read.first(kVnetHeaderSize), frame);
  if (!offload) {
    home_.counters.drop(offload.error());
    return false;
  }
  out = {.slot = slot,
         .length = static_cast<std::uint32_t>(frame.size()),
         .offset = rx_headroom_,
         .segment_size = offload->segment_size,
         .flags = offload->flags,
         .l4_offset = offload->l4_offset};
  return true;
}

std::size_t BulkDevice::tx_burst(std::span<const FrameDesc> frames) noexcept {
  if (++bursts_ % kBurstsBetweenLooks == 0) look_at_link();
  return CopyingDevice::tx_burst(frames);
}

CopyingDevice::Sent BulkDevice::send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept {
  if (!alive_ || !link_.usable()) return failed(Counter::device_link_down);
  const FrameDesc& first = parts.front();
  const auto header = make_vnet_header(
      {.front = home_.region.bytes_of(first),
       .bytes = bytes,
       .offload = {.flags = first.flags, .segment_size = first.segment_size, .l4_offset = first.l4_offset}},
      link_.facts().mtu);
  if (!header) {
    home_.counters.drop(header.error());
    return Sent::failed;
  }
  VnetHeader said = *header;
  std::array<iovec, kMaxParts + 1> pieces;
  pieces[0] = {said.data(), said.size()};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MutableBytes piece = home_.region.bytes_of(parts[i]);
    pieces[i + 1] = {piece.data(), piece.size()};
  }
  const ssize_t put = ::writev(tap_.fd.get(), pieces.data(), static_cast<int>(parts.size() + 1));
  home_.counters.add(Counter::device_tx_kicks);
  if (put >= 0) return Sent::yes;
  switch (errno) {
    case EAGAIN:
      return Sent::busy;
    case EBADFD:
      bury("the bulk lane's TAP was deleted; open the device again");
      return failed(Counter::device_link_down);
    case EIO:  // the TAP is down
      return failed(Counter::device_link_down);
    default:
      return failed(Counter::device_tx_failed);
  }
}

CopyingDevice::Sent BulkDevice::failed(Counter counter) noexcept {
  home_.counters.add(counter);
  return Sent::failed;
}

bool BulkDevice::prepare_sleep() noexcept {
  look_at_link();
  return true;
}

void BulkDevice::refresh_counters() noexcept {
  look_at_link();
  if (!alive_) return;
  if (const auto tap = LinkWatch::ask(tap_.index))
    home_.counters.set(Counter::bulk_rx_dropped, tap->tx_dropped);
}

void BulkDevice::look_at_link() noexcept {
  if (!alive_) return;
  link_.look();
  if (!link_.present()) bury("the interface was deleted; open the device again when it is back");
}

// Its descriptor would report an error for ever to whoever sleeps on it, so a silent one takes its number.
// With the TAP's descriptor the TAP goes, and with the links the claims.
void BulkDevice::bury(const char* what) noexcept {
  alive_ = false;
  info_.mode = "bulk (deleted)";
  info_.why_not_better = what;
  program_->detach();
  ::dup3(silence_.get(), tap_.fd.get(), O_CLOEXEC);
}

}  // namespace netchannel::device
