#include "device/af_xdp/rx_chain.hpp"

#include <algorithm>
#include <bit>

#include "device/af_xdp/uapi.hpp"

namespace netchannel::device {

RxChain::RxChain(const FrameRegion& region, std::uint32_t chunk_size, CounterPage& counters)
    : region_(region),
      counters_(counters),
      chunk_size_(chunk_size),
      slot_shift_(std::countr_zero(region.slot_size())) {}

bool RxChain::names_slot(const RxPart& part) const {
  return part.address < region_.memory().size() && offset_of(part.address) < chunk_size_;
}

bool RxChain::take(const RxPart& part, FrameDesc& frame, SlotList& home) {
  const bool last = (part.options & XDP_PKT_CONTD) == 0;
  if (skipping_) {
    if (names_slot(part)) home.push(slot_of(part.address));
    skipping_ = !last;
    return false;
  }
  const std::uint32_t offset = offset_of(part.address);
  const bool known_options = (part.options & ~std::uint32_t{XDP_PKT_CONTD}) == 0;
  if (!names_slot(part) || !known_options || part.length == 0 || part.length > chunk_size_ - offset) {
    drop(DropReason::device_bad_descriptor, part, home);
    return false;
  }
  FrameDesc desc;
  desc.slot = slot_of(part.address);
  desc.offset = static_cast<std::uint16_t>(offset);
  desc.length = part.length;
  if (parts_ == 0) {
    first_ = desc;
    parts_ = last ? 0 : 1;
    if (last) frame = desc;
    return last;
  }
  if (++parts_ > kMaxParts) {
    drop(DropReason::device_chain_too_long, part, home);
    return false;
  }
  if (!append(desc)) {
    drop(DropReason::device_frame_too_large, part, home);
    return false;
  }
  home.push(desc.slot);
  if (!last) return false;
  parts_ = 0;
  frame = first_;
  return true;
}

bool RxChain::append(const FrameDesc& part) {
  if (part.length > region_.slot_size() - first_.offset - first_.length) return false;
  const Bytes from = region_.bytes_of(part);
  const MutableBytes to = region_.slot(first_.slot).subspan(first_.offset + first_.length, part.length);
  std::copy(from.begin(), from.end(), to.begin());
  first_.length += part.length;
  return true;
}

void RxChain::drop(DropReason reason, const RxPart& part, SlotList& home) {
  counters_.drop(reason);
  if (parts_ > 0) home.push(first_.slot);
  // A slot that the descriptor does not name for sure is lost to the device rather than lent twice.
  if (names_slot(part)) home.push(slot_of(part.address));
  parts_ = 0;
  skipping_ = (part.options & XDP_PKT_CONTD) != 0;
}

}  // namespace netchannel::device
