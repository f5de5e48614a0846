#include "device/af_xdp/tx_path.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "device/af_xdp/uapi.hpp"

namespace netchannel::device {
namespace {
constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kMaxDescriptors = 18;  // of one frame, in copy mode (MAX_SKB_FRAGS and its head)
constexpr std::size_t kMaxRefused = 256;
}  // namespace

TxPath::TxPath(XskSockets& sockets, FrameRegion& region, CounterPage& counters, std::uint32_t max_frame)
    : queue_(*sockets.queues[0]),
      region_(region),
      counters_(counters),
      chunk_size_(sockets.chunk_size),
      chunk_shift_(std::countr_zero(chunk_size_)),
      slot_shift_(std::countr_zero(region.slot_size())),
      max_frame_(max_frame),
      zero_copy_(sockets.zero_copy),
      need_wakeup_(sockets.need_wakeup) {
  if (sockets.multi_buffer) ledger_.emplace(region.slot_count());
  refused_.reserve(kMaxRefused);
}

std::size_t TxPath::burst(std::span<const FrameDesc> frames) noexcept {
  if (pending() > 0) kick();
  // What a dead link holds would be sent late when it is back: take no more.
  if (stuck_on_link_ && pending() > 0) {
    counters_.add(Counter::device_tx_busy);
    return 0;
  }
  std::uint32_t left = room();
  std::uint32_t used = 0;
  std::size_t taken = 0;
  std::size_t sent = 0;
  for (; taken < frames.size(); ++taken) {
    const FrameDesc& frame = frames[taken];
    if (const Verdict verdict = judge(frame); verdict != Verdict::good) {
      if (refused_.size() == kMaxRefused) break;
      refuse(frame, verdict);
      continue;
    }
    const std::uint32_t descriptors = descriptors_of(frame);
    if (descriptors > left) break;
    enqueue(frame, queue_.tx.cached_prod + used, descriptors);
    left -= descriptors;
    used += descriptors;
    ++sent;
  }
  if (taken < frames.size()) counters_.add(Counter::device_tx_busy);
  if (used == 0) return taken;
  std::uint32_t at = 0;
  xsk_ring_prod__reserve(&queue_.tx, used, &at);
  xsk_ring_prod__submit(&queue_.tx, used);
  out_ += used;
  counters_.add(Counter::device_tx_frames, sent);
  kick();
  return taken;
}

TxPath::Verdict TxPath::judge(const FrameDesc& frame) const {
  if (!region_.holds(frame) || frame.length < kEthernetHeader) return Verdict::bad_descriptor;
  if (frame.length > max_frame_) return Verdict::too_large;
  const std::uint32_t descriptors = descriptors_of(frame);
  const std::uint32_t limit = ledger_ ? kMaxDescriptors : 1;
  return descriptors > limit ? Verdict::too_large : Verdict::good;
}

void TxPath::refuse(const FrameDesc& frame, Verdict verdict) {
  counters_.drop(verdict == Verdict::too_large ? DropReason::device_frame_too_large
                                               : DropReason::device_bad_descriptor);
  if (frame.slot < region_.slot_count()) refused_.push_back(frame.slot);
}

std::uint32_t TxPath::descriptors_of(const FrameDesc& frame) const {
  return ((frame.offset + frame.length - 1) >> chunk_shift_) - (std::uint32_t{frame.offset} >> chunk_shift_) +
         1;
}

void TxPath::enqueue(const FrameDesc& frame, std::uint32_t at, std::uint32_t descriptors) {
  std::uint64_t address = (std::uint64_t{frame.slot} << slot_shift_) + frame.offset;
  std::uint32_t left = frame.length;
  for (std::uint32_t i = 0; i < descriptors; ++i) {
    const auto to_boundary = chunk_size_ - static_cast<std::uint32_t>(address & (chunk_size_ - 1));
    xdp_desc& desc = *xsk_ring_prod__tx_desc(&queue_.tx, at + i);
    desc.addr = address;
    desc.len = std::min(left, to_boundary);
    desc.options = i + 1 < descriptors ? XDP_PKT_CONTD : 0;
    address += desc.len;
    left -= desc.len;
  }
  if (ledger_) ledger_->sent(frame.slot, descriptors);
}

// The completion ring bounds what may be out, not only the TX ring: the kernel sends nothing, and does not
// say so, when it finds no room there.
std::uint32_t TxPath::room() noexcept {
  const std::uint32_t in_ring = xsk_prod_nb_free(&queue_.tx, queue_.tx.size);
  return std::min(in_ring, queue_.completion.size - out_);
}

std::uint32_t TxPath::pending() const noexcept {
  return queue_.tx.cached_prod - __atomic_load_n(queue_.tx.consumer, __ATOMIC_ACQUIRE);
}

void TxPath::kick() noexcept {
  if (zero_copy_) {
    if (pending() > 0 && (!need_wakeup_ || xsk_ring_prod__needs_wakeup(&queue_.tx))) send_some();
    return;
  }
  constexpr std::uint32_t kFewestPerCall = 16;  // older kernels' budget
  std::uint32_t before = pending();
  std::uint32_t calls = before / kFewestPerCall + 4;
  while (before > 0 && calls-- > 0) {
    const bool go_on = send_some();
    const std::uint32_t now = pending();
    if (!go_on || now == before) return;
    before = now;
  }
}

// One system call. False: another one would not help now.
bool TxPath::send_some() noexcept {
  counters_.add(Counter::device_tx_kicks);
  const bool failed = ::sendto(queue_.fd, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0;
  const int error = failed ? errno : 0;
  stuck_on_link_ = error == ENETDOWN || error == ENXIO;
  switch (error) {
    case 0:
    case EAGAIN:  // the budget is used up, or the send buffer is full: progress tells which
    case EINTR:
      return true;
    case EBUSY:
      // Copy mode: the interface dropped a frame; it counts as completed. Zero-copy: the driver is busy.
      if (!zero_copy_) counters_.add(Counter::device_tx_failed);
      return true;
    default:
      return false;
  }
}

bool TxPath::settle() noexcept {
  if (pending() == 0) return true;
  kick();
  return zero_copy_ || stuck_on_link_ || pending() == 0;
}

bool TxPath::has_completions() const noexcept {
  return !refused_.empty() ||
         __atomic_load_n(queue_.completion.producer, __ATOMIC_ACQUIRE) != queue_.completion.cached_cons;
}

std::size_t TxPath::reclaim(std::span<FrameDesc> out) noexcept {
  std::size_t reported = 0;
  while (reported < out.size() && !refused_.empty()) {
    out[reported++] = FrameDesc{.slot = refused_.back()};
    refused_.pop_back();
  }
  if (pending() > 0) kick();
  std::uint32_t at = 0;
  const auto wanted =
      static_cast<std::uint32_t>(std::min<std::size_t>(out.size() - reported, queue_.completion.size));
  const std::uint32_t done = xsk_ring_cons__peek(&queue_.completion, wanted, &at);
  for (std::uint32_t i = 0; i < done; ++i) {
    const std::uint64_t address = *xsk_ring_cons__comp_addr(&queue_.completion, at + i);
    if (address >= region_.memory().size()) {
      counters_.drop(DropReason::device_bad_descriptor);
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(address >> slot_shift_);
    if (!ledger_ || ledger_->completed(slot)) out[reported++] = FrameDesc{.slot = slot};
  }
  if (done > 0) xsk_ring_cons__release(&queue_.completion, done);
  out_ -= std::min(done, out_);
  return reported;
}

}  // namespace netchannel::device
