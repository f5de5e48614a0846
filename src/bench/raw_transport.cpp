#include "bench/raw_transport.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "device/clock.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/udp.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kIpAt = wire::kEthernetHeaderSize;
constexpr std::size_t kUdpAt = kIpAt + wire::kIpv4MinHeaderSize;
constexpr std::size_t kPayloadAt = kUdpAt + wire::kUdpHeaderSize;
static_assert(kPayloadAt == 42);
constexpr std::size_t kNoPort = static_cast<std::size_t>(-1);
constexpr Duration kSpinTime = std::chrono::microseconds(100);  // as HostOptions::spin_time
constexpr std::size_t kMostLent = 2048;

// A kernel socket that holds a port of its choosing, so that nobody else gets it.
Result<std::pair<UniqueFd, std::uint16_t>> reserve_port(const IpAddress& near) {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(near.v4_value());
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!fd || ::bind(fd.get(), any, length) != 0 || ::getsockname(fd.get(), any, &length) != 0) {
    return fail(ErrorCode::address_not_available, "cannot reserve a UDP port at this end's address", errno);
  }
  return std::pair{std::move(fd), ntohs(address.sin_port)};
}

void swap_ranges(MutableBytes frame, std::size_t a, std::size_t b, std::size_t length) {
  std::swap_ranges(frame.begin() + static_cast<std::ptrdiff_t>(a),
                   frame.begin() + static_cast<std::ptrdiff_t>(a + length),
                   frame.begin() + static_cast<std::ptrdiff_t>(b));
}

}  // namespace

RawTransport::RawTransport(RawDevice opened, const BlockOptions& options, const IpAddress& near)
    : opened_(std::move(opened)),
      wait_(options.wait),
      near_(near),
      size_(options.size),
      index_of_port_(65536, kNoPort) {
  const std::uint32_t slots = opened_.rx_frames + opened_.tx_frames;
  free_.reserve(slots);
  for (std::uint32_t slot = slots; slot-- > 0;) free_.push_back(slot);
  held_.reserve(std::max<std::size_t>(kBurst, options.batch));
  current_.reserve(kBurst);
  arrived_.reserve(kBurst);
}

RawTransport::~RawTransport() = default;

Result<std::unique_ptr<RawTransport>> RawTransport::open(const BlockOptions& options, const IpAddress& near,
                                                         std::size_t ports) {
  if (near.is_v6())
    return fail(ErrorCode::not_supported, "raw measures over IPv4 only; give an IPv4 address");
  auto opened = open_raw_device(host_options(options));
  if (!opened) return tl::unexpected(opened.error());
  std::unique_ptr<RawTransport> transport(new RawTransport(std::move(*opened), options, near));
  if (auto claimed = transport->claim_ports(ports); !claimed) return tl::unexpected(claimed.error());
  transport->lend();
  return transport;
}

Result<void> RawTransport::claim_ports(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto reserved = reserve_port(near_);
    if (!reserved) return tl::unexpected(reserved.error());
    const std::uint16_t port = reserved->second;
    reservations_.push_back(std::move(reserved->first));
    ports_.push_back(port);
    index_of_port_[port] = i;
    if (Steering* steering = device().steering()) {
      if (auto claimed = steering->claim({Protocol::udp, {near_, port}, {}}); !claimed) return claimed;
    }
  }
  return {};
}

Result<void> RawTransport::connect_to(const Far& far, std::uint32_t flows) {
  if (far.mac.is_zero() || far.address.is_v6()) {
    return fail(ErrorCode::invalid_argument,
                "the far end told no MAC; run serve with the same raw path there");
  }
  headers_.resize(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const std::size_t pair = i / flows;
    if (pair >= far.ports.size())
      return fail(ErrorCode::invalid_argument, "the far end opened fewer ports than pairs");
    const auto udp_length = static_cast<std::uint16_t>(wire::kUdpHeaderSize + size_);
    const MutableBytes out = headers_[i];
    wire::EthernetRepr{far.mac, mac(), wire::EtherType::ipv4}.emit(out);
    wire::Ipv4Repr{
        .source = near_, .destination = far.address, .dont_fragment = true, .payload_length = udp_length}
        .emit(out.subspan(kIpAt));
    wire::UdpRepr{ports_[i], far.ports[pair], static_cast<std::uint16_t>(size_)}.emit(out.subspan(kUdpAt));
    store_be16(out, kUdpAt + 6, 0);
  }
  return {};
}

void RawTransport::lend() noexcept {
  while (lent_ < kMostLent && !free_.empty()) {
    const std::size_t n = std::min({free_.size(), kMostLent - lent_, kBurst});
    const std::size_t taken = device().refill(std::span<const std::uint32_t>(free_).last(n));
    // refill() takes the first ones: the rest of the range moves down over them.
    const auto first = free_.end() - static_cast<std::ptrdiff_t>(n);
    free_.erase(first, first + static_cast<std::ptrdiff_t>(taken));
    lent_ += taken;
    if (taken < n) break;
  }
}

void RawTransport::take_back() noexcept {
  std::array<FrameDesc, kBurst> done;
  for (std::size_t n = done.size(); n == done.size();) {
    n = device().reclaim(done);
    for (std::size_t i = 0; i < n; ++i) free_.push_back(done[i].slot);
  }
}

std::size_t RawTransport::flush(std::span<const FrameDesc> frames) noexcept {
  std::size_t sent = 0;
  // A device that stays full for long has stopped: the bound makes that a short count and not a hang.
  for (int tries = 0; sent < frames.size() && tries < 1000; ++tries) {
    sent += device().tx_burst(frames.subspan(sent));
    take_back();
  }
  for (const FrameDesc& frame : frames.subspan(sent)) free_.push_back(frame.slot);
  return sent;
}

Result<Sent> RawTransport::send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept {
  if (free_.size() < messages.size() + kBurst) take_back();
  Sent out;
  for (const Bytes message : messages) {
    if (free_.empty()) break;
    const FrameDesc desc{.slot = free_.back(),
                         .length = static_cast<std::uint32_t>(kPayloadAt + message.size())};
    free_.pop_back();
    const MutableBytes frame = opened_.region->bytes_of(desc);
    std::memcpy(frame.data(), headers_[port].data(), kPayloadAt);
    if (!message.empty()) std::memcpy(frame.data() + kPayloadAt, message.data(), message.size());
    held_.push_back(desc);
    ++out.taken;
  }
  if (!more || held_.size() >= kBurst) {
    out.failed = held_.size() - flush(held_);
    held_.clear();
  }
  return out;
}

bool RawTransport::take_in(const FrameDesc& desc) noexcept {
  const Bytes frame = opened_.region->bytes_of(desc);
  if (frame.size() < kPayloadAt) return false;
  const std::size_t port = index_of_port_[load_be16(frame, kUdpAt + 2)];
  const std::size_t udp_length = load_be16(frame, kUdpAt + 4);
  const bool plain = load_u8(frame, kIpAt) == 0x45 && load_u8(frame, kIpAt + 9) == 17;
  if (!plain || port == kNoPort || udp_length < wire::kUdpHeaderSize || udp_length > frame.size() - kUdpAt)
    return false;
  current_.push_back(desc);
  arrived_.push_back(
      {frame.subspan(kPayloadAt, udp_length - wire::kUdpHeaderSize), load_be16(frame, kUdpAt), port});
  return true;
}

Result<std::span<const Arrived>> RawTransport::receive(std::size_t, std::size_t most,
                                                       Instant deadline) noexcept {
  for (const FrameDesc& desc : current_) free_.push_back(desc.slot);
  current_.clear();
  arrived_.clear();
  for (;;) {
    take_back();
    lend();
    std::array<FrameDesc, kBurst> burst;
    const std::size_t n = device().rx_burst(std::span(burst).first(std::min(most, burst.size())));
    lent_ -= n;
    for (std::size_t i = 0; i < n; ++i) {
      if (!take_in(burst[i])) free_.push_back(burst[i].slot);
    }
    if (!arrived_.empty()) {
      idle_since_ = {};
      return std::span<const Arrived>(arrived_);
    }
    if (device::monotonic_now() >= deadline) return std::span<const Arrived>{};
    if (n == 0) wait(deadline);
  }
}

std::size_t RawTransport::send_back() noexcept {
  for (const FrameDesc& desc : current_) {
    const MutableBytes frame = opened_.region->bytes_of(desc);
    swap_ranges(frame, 0, 6, 6);                    // MAC addresses
    swap_ranges(frame, kIpAt + 12, kIpAt + 16, 4);  // their sum, and so the checksum, stays
    swap_ranges(frame, kUdpAt, kUdpAt + 2, 2);
    store_be16(frame, kUdpAt + 6, 0);
  }
  const std::size_t sent = flush(current_);
  current_.clear();
  return sent;
}

void RawTransport::wait(Instant deadline) noexcept {
  if (wait_ == WaitMode::spin || device().info().sleep_fd < 0) return;
  const Instant now = device::monotonic_now();
  if (idle_since_ == Instant{}) idle_since_ = now;
  if (wait_ == WaitMode::adaptive && now - idle_since_ < kSpinTime) return;
  if (now >= deadline || !device().prepare_sleep()) return;
  pollfd fd{device().info().sleep_fd, POLLIN, 0};
  const Duration left = deadline - now;
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  ++sleeps_;
  (void)::ppoll(&fd, 1, deadline == kForever ? nullptr : &timeout, nullptr);
}

std::uint64_t RawTransport::syscalls() const {
  return opened_.counters->read(Counter::device_tx_kicks) +
         opened_.counters->read(Counter::device_rx_wakeups) + sleeps_;
}

std::vector<std::string> RawTransport::explain() const {
  const DeviceInfo& info = device().info();
  std::vector<std::string> out{"the device alone, " + info.name + " in mode " + info.mode};
  if (!info.why_not_better.empty()) out.push_back(info.why_not_better);
  return out;
}

}  // namespace netchannel::bench
