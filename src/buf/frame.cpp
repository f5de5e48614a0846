#include "netchannel/frame.hpp"

#include <bit>

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

namespace netchannel {

struct FrameRegion::Backing {
  Mapping mapping;
  UniqueFd fd;

  Result<void> show(std::size_t size) {
    auto memory = open_memfd_to_show("netchannel-frames", size);
    if (!memory) return tl::unexpected(memory.error());
    fd.reset(*memory);
    if (auto laid = mapping.lay_over(mapping.bytes().first(size), *memory); !laid) return laid;
    return seal_against_writers(*memory);
  }
};

FrameRegion::FrameRegion() : backing_(std::make_unique<Backing>()) {}
FrameRegion::~FrameRegion() = default;
int FrameRegion::fd() const { return backing_->fd.get(); }

Result<std::unique_ptr<FrameRegion>> FrameRegion::open(const RegionOptions& options) {
  if (!std::has_single_bit(options.slot_size) || options.slot_size < 256 || options.slot_count == 0) {
    return fail(ErrorCode::invalid_argument,
                "frame slots must be a power of two of at least 256 bytes, and at least one");
  }
  if (options.shown_slots > options.slot_count || (options.shown_slots != 0 && options.slot_size < 4096)) {
    return fail(ErrorCode::invalid_argument, "only whole pages that are there can be shown to others");
  }
  std::unique_ptr<FrameRegion> region(new FrameRegion);
  const std::size_t size = std::size_t{options.slot_size} * options.slot_count;
  if (options.shareable) {
    auto fd = open_memfd("netchannel-frames", size);
    if (!fd) return tl::unexpected(fd.error());
    region->backing_->fd.reset(*fd);
  }
  auto mapping = options.shareable ? Mapping::of_fd(region->fd(), size) : Mapping::anonymous(size);
  if (!mapping) return tl::unexpected(mapping.error());
  region->backing_->mapping = std::move(*mapping);
  if (options.shown_slots != 0) {
    if (auto shown = region->backing_->show(std::size_t{options.slot_size} * options.shown_slots); !shown)
      return tl::unexpected(shown.error());
  }
  region->memory_ = region->backing_->mapping.bytes();
  region->slot_shift_ = static_cast<std::uint32_t>(std::countr_zero(options.slot_size));
  region->slot_count_ = options.slot_count;
  return region;
}

MutableBytes Frame::prepend(std::size_t n) {
  if (n > headroom()) return {};
  desc_.offset = static_cast<std::uint16_t>(desc_.offset - n);
  desc_.length += static_cast<std::uint32_t>(n);
  return mutable_bytes().first(n);
}

MutableBytes Frame::append(std::size_t n) {
  if (n > tailroom()) return {};
  desc_.length += static_cast<std::uint32_t>(n);
  return mutable_bytes().last(n);
}

void Frame::drop_front(std::size_t n) {
  desc_.offset = static_cast<std::uint16_t>(desc_.offset + n);
  desc_.length -= static_cast<std::uint32_t>(n);
}

void Frame::drop_back(std::size_t n) { desc_.length -= static_cast<std::uint32_t>(n); }

Frame Frame::share() const {
  ++pool_->state_of(desc_.slot).references;
  return Frame(pool_, desc_);
}

FrameDesc Frame::release() && {
  ++std::exchange(pool_, nullptr)->state_of(desc_.slot).lent;
  return desc_;
}

FramePool::FramePool(FrameRegion& region, std::uint32_t first, std::uint32_t count, Start start)
    : region_(region),
      first_(first),
      count_(count),
      states_(count, SlotState{.references = start == Start::all_lent ? kAtDevice : 0}) {
  free_.reserve(count);
  if (start == Start::all_lent) return;
  // The lowest slot last, so that it is taken first: a quiet host keeps to few, warm slots.
  for (std::uint32_t i = count; i-- > 0;) free_.push_back(first + i);
}

std::optional<Frame> FramePool::allocate(std::uint16_t headroom) {
  if (free_.empty() || headroom > region_.slot_size()) return std::nullopt;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  state_of(slot).references = 1;
  ++held_;
  FrameDesc desc;
  desc.slot = slot;
  desc.offset = headroom;
  return Frame(this, desc);
}

std::optional<Frame> FramePool::adopt(const FrameDesc& desc) {
  if (!owns(desc.slot) || !region_.holds(desc)) return std::nullopt;
  SlotState& state = state_of(desc.slot);
  if (state.references != kAtDevice) return std::nullopt;
  state.references = 1;
  ++held_;
  return Frame(this, desc);
}

FrameDesc FramePool::lend(const Frame& frame) {
  SlotState& state = state_of(frame.desc().slot);
  ++state.references;
  ++state.lent;
  return frame.desc();
}

bool FramePool::reclaim(std::uint32_t slot) {
  if (!owns(slot) || state_of(slot).lent == 0) return false;
  --state_of(slot).lent;
  release_slot(slot);
  return true;
}

std::size_t FramePool::take_free(std::span<std::uint32_t> out) {
  std::size_t taken = 0;
  while (taken < out.size() && !free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    state_of(slot).references = kAtDevice;
    out[taken++] = slot;
  }
  return taken;
}

}  // namespace netchannel
