#include "device/af_xdp/af_xdp.hpp"

#include <sys/socket.h>
#include <xdp/libxdp.h>

#include <algorithm>
#include <bit>

#include "device/af_xdp/sockets.hpp"
#include "device/af_xdp/tx_path.hpp"
#include "device/af_xdp/uapi.hpp"

namespace netchannel::device {
namespace {

constexpr std::uint32_t kMaxQueues = 64;
constexpr std::uint32_t kKernelHeadroom = 256;
constexpr std::uint32_t kEthernetHeader = 14;

// libbpf and libxdp print to stderr what our errors say in one line.
class QuietLibraries {
 public:
  explicit QuietLibraries(bool verbose) : verbose_(verbose) {
    if (verbose_) return;
    bpf_ = libbpf_set_print(nullptr);
    xdp_ = libxdp_set_print(nullptr);
  }
  ~QuietLibraries() {
    if (verbose_) return;
    libbpf_set_print(bpf_);
    libxdp_set_print(xdp_);
  }
  QuietLibraries(const QuietLibraries&) = delete;
  QuietLibraries& operator=(const QuietLibraries&) = delete;

 private:
  bool verbose_;
  libbpf_print_fn_t bpf_ = nullptr;
  libxdp_print_fn_t xdp_ = nullptr;
};

Result<void> check(const AfXdpOptions& options, const XdpCapabilities& interface, const FrameRegion& region) {
  for (const std::uint32_t size :
       {options.rx_ring, options.fill_ring, options.tx_ring, options.completion_ring}) {
    if (!std::has_single_bit(size) || size < kBurst) {
      return fail(ErrorCode::invalid_argument, "AF_XDP ring sizes must be powers of two of at least 64");
    }
  }
  if (!interface.up) {
    return fail(ErrorCode::device_down, "the interface is down: ip link set dev <interface> up");
  }
  const std::uint32_t needed = AfXdpDevice::slot_size_for(interface.mtu);
  if (needed == 0) return fail(ErrorCode::not_supported, "the interface's MTU is above 65535: lower it");
  if (region.slot_size() < kKernelHeadroom + kEthernetHeader + interface.mtu || region.slot_size() < 2048) {
    return fail(ErrorCode::invalid_argument,
                "the frame slots are too small for the interface's MTU: use slot_size_for()");
  }
  if (interface.rx_queues > kMaxQueues) {
    return fail(
        ErrorCode::not_supported,
        "the interface has more than 64 receive queues: lower them with ethtool -L <interface> combined <n>");
  }
  return {};
}

}  // namespace

AfXdpDevice::AfXdpDevice(FrameRegion& region, CounterPage& counters) : region_(region), counters_(counters) {}
AfXdpDevice::~AfXdpDevice() = default;

Result<std::unique_ptr<AfXdpDevice>> AfXdpDevice::open(const AfXdpOptions& options, FrameRegion& region,
                                                       CounterPage& counters) {
  const QuietLibraries quiet(options.verbose);
  auto interface = xdp_capabilities(options.interface);
  if (!interface) return tl::unexpected(interface.error());
  if (auto checked = check(options, *interface, region); !checked) return tl::unexpected(checked.error());

  std::unique_ptr<AfXdpDevice> device(new AfXdpDevice(region, counters));
  auto program = XdpProgram::attach(*interface, {.mode = options.mode, .max_claims = options.max_claims});
  if (!program) return tl::unexpected(program.error());
  device->program_ = std::move(*program);

  // A socket without native XDP has nobody to put frames into it without copying.
  AfXdpOptions wanted = options;
  if (!device->program_->native()) {
    if (options.copy == XdpCopy::zero_copy) {
      return fail(ErrorCode::not_supported,
                  "zero-copy needs native XDP, which the driver refused: use copy or automatic");
    }
    wanted.copy = XdpCopy::copy;
  }
  auto sockets = XskSockets::open(*interface, wanted, region, counters);
  if (!sockets) return tl::unexpected(sockets.error());
  device->sockets_ = std::move(*sockets);
  for (std::uint32_t queue = 0; queue < device->sockets_->queues.size(); ++queue) {
    auto served = device->program_->serve(queue, device->sockets_->queues[queue]->fd);
    if (!served) return tl::unexpected(served.error());
  }
  device->describe(*interface);
  device->tx_ = std::make_unique<TxPath>(*device->sockets_, region, counters, device->info_.max_tx_frame);
  return device;
}

void AfXdpDevice::describe(const XdpCapabilities& interface) {
  const bool native = program_->native();
  info_.name = interface.interface;
  info_.mode = std::string(native ? "native " : "generic ") + (sockets_->zero_copy ? "zero-copy" : "copy");
  info_.mac = interface.mac;
  info_.mtu = interface.mtu;
  info_.max_tx_frame = interface.mtu + kEthernetHeader;
  info_.virtual_link = interface.virtual_driver;
  info_.sleep_fd = sockets_->sleep_fd();
  info_.why_not_better = program_->why_not_native();
  if (!sockets_->why_not_zero_copy.empty()) {
    info_.why_not_better += (info_.why_not_better.empty() ? "" : "; ") + sockets_->why_not_zero_copy;
  }
}

std::size_t AfXdpDevice::lend(XskQueue& queue, std::span<const std::uint32_t> slots) noexcept {
  const auto count =
      static_cast<std::uint32_t>(std::min<std::size_t>(slots.size(), queue.fill.size - queue.lent));
  std::uint32_t at = 0;
  if (count == 0 || xsk_ring_prod__reserve(&queue.fill, count, &at) != count) return 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    *xsk_ring_prod__fill_addr(&queue.fill, at + i) = std::uint64_t{slots[i]} * region_.slot_size();
  }
  xsk_ring_prod__submit(&queue.fill, count);
  queue.lent += count;
  if (sockets_->need_wakeup && xsk_ring_prod__needs_wakeup(&queue.fill)) wake(queue);
  return count;
}

// Zero-copy drivers stop taking frames in when they found the fill ring empty, and say so in its flag.
void AfXdpDevice::wake(XskQueue& queue) noexcept {
  counters_.add(Counter::device_rx_wakeups);
  ::recvfrom(queue.fd, nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

std::size_t AfXdpDevice::refill(std::span<const std::uint32_t> slots) noexcept {
  // In small helpings, each to the queue that has least.
  constexpr std::size_t kHelping = 16;
  auto& queues = sockets_->queues;
  const auto valid = [this](std::uint32_t slot) { return slot < region_.slot_count(); };
  slots = slots.first(static_cast<std::size_t>(std::ranges::find_if_not(slots, valid) - slots.begin()));
  if (queues.size() == 1) return lend(*queues[0], slots);
  std::size_t taken = 0;
  while (taken < slots.size()) {
    auto& poorest = *std::ranges::min_element(queues, {}, [](const auto& queue) { return queue->lent; });
    const std::size_t helping = std::min(kHelping, slots.size() - taken);
    const std::size_t lent = lend(*poorest, slots.subspan(taken, helping));
    if (lent == 0) break;
    taken += lent;
  }
  return taken;
}

std::size_t AfXdpDevice::receive(XskQueue& queue, std::span<FrameDesc> out) noexcept {
  std::uint32_t at = 0;
  const auto wanted = static_cast<std::uint32_t>(std::min(out.size(), kBurst));
  const std::uint32_t parts = xsk_ring_cons__peek(&queue.rx, wanted, &at);
  if (parts == 0) return 0;
  SlotList home;
  std::size_t frames = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const xdp_desc desc = *xsk_ring_cons__rx_desc(&queue.rx, at + i);
    frames += queue.chain.take({desc.addr, desc.len, desc.options}, out[frames], home) ? 1 : 0;
  }
  xsk_ring_cons__release(&queue.rx, parts);
  queue.lent -= std::min(queue.lent, static_cast<std::uint32_t>(frames + home.size));
  if (home.size > 0) lend(queue, std::span(home.slots).first(home.size));
  return frames;
}

std::size_t AfXdpDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  auto& queues = sockets_->queues;
  std::size_t got = 0;
  // Each call begins with the next queue, so that a busy one cannot keep the others' frames waiting.
  std::size_t index = next_queue_;
  for (std::size_t i = 0; i < queues.size() && got < out.size(); ++i) {
    got += receive(*queues[index], out.subspan(got));
    index = index + 1 == queues.size() ? 0 : index + 1;
  }
  next_queue_ = next_queue_ + 1 == queues.size() ? 0 : next_queue_ + 1;
  if (got > 0) {
    counters_.add(Counter::device_rx_frames, got);
    return got;
  }
  for (auto& queue : queues) {
    if (sockets_->busy_poll || (sockets_->need_wakeup && xsk_ring_prod__needs_wakeup(&queue->fill)))
      wake(*queue);
  }
  return 0;
}

std::size_t AfXdpDevice::tx_burst(std::span<const FrameDesc> frames) noexcept { return tx_->burst(frames); }
std::size_t AfXdpDevice::reclaim(std::span<FrameDesc> out) noexcept { return tx_->reclaim(out); }

bool AfXdpDevice::prepare_sleep() noexcept {
  if (!tx_->settle() || tx_->has_completions()) return false;
  for (auto& queue : sockets_->queues) {
    if (sockets_->need_wakeup && xsk_ring_prod__needs_wakeup(&queue->fill)) wake(*queue);
    if (__atomic_load_n(queue->rx.producer, __ATOMIC_ACQUIRE) != queue->rx.cached_cons) return false;
  }
  return true;
}

void AfXdpDevice::refresh_counters() noexcept {
  xdp_statistics total{};
  for (auto& queue : sockets_->queues) {
    xdp_statistics one{};
    socklen_t size = sizeof(one);
    if (::getsockopt(queue->fd, SOL_XDP, XDP_STATISTICS, &one, &size) != 0) return;
    total.rx_dropped += one.rx_dropped;
    total.rx_invalid_descs += one.rx_invalid_descs;
    total.tx_invalid_descs += one.tx_invalid_descs;
    total.rx_ring_full += one.rx_ring_full;
    total.rx_fill_ring_empty_descs += one.rx_fill_ring_empty_descs;
    total.tx_ring_empty_descs += one.tx_ring_empty_descs;
  }
  counters_.set(Counter::xdp_rx_dropped, total.rx_dropped);
  counters_.set(Counter::xdp_rx_invalid, total.rx_invalid_descs);
  counters_.set(Counter::xdp_tx_invalid, total.tx_invalid_descs);
  counters_.set(Counter::xdp_rx_ring_full, total.rx_ring_full);
  counters_.set(Counter::xdp_fill_ring_empty, total.rx_fill_ring_empty_descs);
  counters_.set(Counter::xdp_tx_ring_empty, total.tx_ring_empty_descs);
}

}  // namespace netchannel::device
