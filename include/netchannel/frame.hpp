// Packet memory. A FrameRegion is memory cut into slots of one size. A FrameDesc names a packet in it and is
// what crosses threads, processes and devices: trivially copyable, worthless to whoever does not map the
// region. A Frame is what one thread holds of a slot: a counted reference, move-only, never sent anywhere.
//
//   slot:  |<- headroom ->|<-------- length -------->|<- tailroom ->|
//          0              offset                                    slot_size
//
// A FramePool is the home of a range of slots within one thread: transmit slots are allocated from it,
// received slots are adopted into it and, when the last reference goes, gathered for the way back to the
// driver. A sent slot is free when the device has returned it *and* the protocol has released it: lend() adds
// the device's reference, reclaim() takes it back. Counts are plain integers, since all of this happens in
// the consumer's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"

namespace netchannel {

// Bits of FrameDesc::flags.
enum FrameFlag : std::uint16_t {
  kChecksumVerified = 1 << 0,  // received: the device has checked the transport checksum
  kChecksumPartial = 1 << 1,   // the transport checksum field holds the pseudo-header sum only; l4_offset is
                               // set. received: never on a wire, trust it; sent: the device must complete it
  kContinues = 1 << 2,         // the packet goes on in the next descriptor of the burst
  kSlowPath = 1 << 3,          // came through the kernel's socket, not from the ring
};

struct FrameDesc {
  std::uint32_t slot = 0;
  std::uint32_t length = 0;  // bytes of packet in this slot
  std::uint16_t offset = 0;  // of the first byte within the slot
  std::uint16_t segment_size =
      0;  // super-frame: transport payload bytes of each segment but the last; 0: one packet
  std::uint16_t flags = 0;      // FrameFlag
  std::uint16_t l4_offset = 0;  // of the transport header from the first byte; 0: not known
  friend bool operator==(const FrameDesc&, const FrameDesc&) = default;
};
static_assert(sizeof(FrameDesc) == 16);
// What `offset` can say. Bytes beyond it can be in a packet, but nothing can begin there: who takes packets
// apart from the front, byte by byte, must not let them reach further.
inline constexpr std::uint32_t kFrameReach = 0xffff;

struct RegionOptions {
  std::uint32_t slot_size = 2048;  // bytes, a power of two
  std::uint32_t slot_count = 8192;
  bool shareable = false;  // in a sealed memfd, so that another process can map it
  // The first so many slots are in a sealed memfd of their own (fd()) that others can map and never write.
  std::uint32_t shown_slots = 0;
};

// Memory is reserved at open() and costs only where it is touched (or pinned by a device). Page-aligned.
class FrameRegion {
 public:
  // Errors: invalid_argument, no_memory.
  static Result<std::unique_ptr<FrameRegion>> open(const RegionOptions& options);
  ~FrameRegion();
  FrameRegion(const FrameRegion&) = delete;
  FrameRegion& operator=(const FrameRegion&) = delete;

  MutableBytes memory() const { return memory_; }
  MutableBytes slot(std::uint32_t index) const {
    return memory_.subspan(std::size_t{index} << slot_shift_, std::size_t{1} << slot_shift_);
  }
  std::uint32_t slot_size() const { return std::uint32_t{1} << slot_shift_; }
  std::uint32_t slot_count() const { return slot_count_; }
  int fd() const;  // of the memfd, or -1
  // True if the descriptor lies within one slot of this region. What comes from outside must pass this before
  // use.
  bool holds(const FrameDesc& desc) const {
    return desc.slot < slot_count_ && desc.offset <= slot_size() && desc.length <= slot_size() - desc.offset;
  }
  MutableBytes bytes_of(const FrameDesc& desc) const {
    return slot(desc.slot).subspan(desc.offset, desc.length);
  }

 private:
  FrameRegion();
  struct Backing;
  std::unique_ptr<Backing> backing_;
  MutableBytes memory_;
  std::uint32_t slot_shift_ = 0;
  std::uint32_t slot_count_ = 0;
};

class FramePool;

class Frame {
 public:
  Frame() = default;
  Frame(Frame&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), desc_(other.desc_) {}
  Frame& operator=(Frame&& other) noexcept {
    if (this != &other) {
      drop();
      pool_ = std::exchange(other.pool_, nullptr);
      desc_ = other.desc_;
    }
    return *this;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { drop(); }

  explicit operator bool() const { return pool_ != nullptr; }
  Bytes bytes() const;
  MutableBytes mutable_bytes();
  std::size_t size() const { return desc_.length; }
  std::size_t headroom() const { return desc_.offset; }
  std::size_t tailroom() const;

  // Grows the packet by n bytes at its front or back and returns them; empty if there is no room.
  MutableBytes prepend(std::size_t n);
  MutableBytes append(std::size_t n);
  // Shrinks; n is at most size(), and the first byte stays within kFrameReach.
  void drop_front(std::size_t n);
  void drop_back(std::size_t n);

  const FrameDesc& desc() const { return desc_; }
  void set_flags(std::uint16_t flags, std::uint16_t l4_offset) {
    desc_.flags = flags, desc_.l4_offset = l4_offset;
  }
  void set_segment_size(std::uint16_t size) { desc_.segment_size = size; }

  // A second reference to the same bytes, with offset and length of its own. The slot goes home with the last
  // one.
  Frame share() const;
  // Gives this reference to the device that the descriptor goes to; FramePool::reclaim() takes it back.
  FrameDesc release() &&;

 private:
  friend class FramePool;
  Frame(FramePool* pool, const FrameDesc& desc) : pool_(pool), desc_(desc) {}
  inline void drop();
  FramePool* pool_ = nullptr;
  FrameDesc desc_;
};

// One thread's. Must outlive its Frames; the region must outlive it.
class FramePool {
 public:
  enum class Start : std::uint8_t { all_free, all_lent };  // transmit slots | slots that are out at a device
  FramePool(FrameRegion& region, std::uint32_t first, std::uint32_t count, Start start);
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // An empty frame whose first byte will stand at `headroom`; no value if no slot is free or headroom is past
  // it.
  std::optional<Frame> allocate(std::uint16_t headroom);
  // Takes in a received descriptor that the region holds() and that is out at the device; no value (and the
  // caller counts device_bad_descriptor) if the slot is not of this pool or is not out.
  std::optional<Frame> adopt(const FrameDesc& desc);
  // Another reference, held by whoever gets the descriptor, until reclaim().
  FrameDesc lend(const Frame& frame);
  // The device has returned a slot. False (nothing done) if it is not of this pool or was not lent.
  bool reclaim(std::uint32_t slot);

  bool owns(const Frame& frame) const { return frame.pool_ == this; }
  bool owns(std::uint32_t slot) const { return slot - first_ < count_; }
  std::uint32_t first() const { return first_; }
  std::uint32_t count() const { return count_; }
  std::size_t free_count() const { return free_.size(); }
  // Slots that are neither free nor out at a device as receive slots.
  std::uint32_t held() const { return held_; }
  // Nobody else holds the frame's slot, no device and no other Frame: all of the slot may be written to.
  bool exclusive(const Frame& frame) const {
    return frame.pool_ == this && states_[frame.desc_.slot - first_].references == 1;
  }
  // Moves up to out.size() free slots out, to be lent to a device again (received slots on their way home).
  std::size_t take_free(std::span<std::uint32_t> out);
  FrameRegion& region() const { return region_; }

 private:
  friend class Frame;
  struct SlotState {
    std::uint32_t references = 0;  // of Frames and of the device
    std::uint32_t lent = 0;        // those of them that are the device's, so that it cannot return a Frame's
  };
  SlotState& state_of(std::uint32_t slot) { return states_[slot - first_]; }
  void release_slot(std::uint32_t slot) {
    if (--state_of(slot).references != 0) return;
    --held_;
    free_.push_back(slot);
  }
  FrameRegion& region_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t held_ = 0;
  static constexpr std::uint32_t kAtDevice = 0xffffffff;  // a receive slot that is out, held by nobody here
  std::vector<SlotState> states_;
  std::vector<std::uint32_t> free_;  // capacity for all from the start: no allocation later
};

inline void Frame::drop() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->release_slot(desc_.slot);
}
inline Bytes Frame::bytes() const { return pool_->region().bytes_of(desc_); }
inline MutableBytes Frame::mutable_bytes() { return pool_->region().bytes_of(desc_); }
inline std::size_t Frame::tailroom() const {
  return pool_->region().slot_size() - desc_.offset - desc_.length;
}

}  // namespace netchannel
