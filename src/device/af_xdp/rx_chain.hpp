// From received descriptors to linear frames. The kernel puts every packet, or every part of one larger than
// a chunk, at the start of a slot of its own; a part that is not the last says so (XDP_PKT_CONTD). The first
// part stays where it is and the later ones are copied behind it, into the rest of its slot:
//
//   slot a  | 256 | part 1            >|< part 2 >|< part 3 >|     |   the frame that leaves
//   slot b  | 256 | part 2 | ...                               back to the device
//   slot c  | 256 | part 3 | ...                               back to the device
//           |<------ chunk ----------->|<-- rest of the slot ----->|
//
// Nothing that the descriptors say is believed before it has been compared with the region. A packet with one
// bad part, too many parts or too many bytes is dropped whole and counted once; what is left of it is skipped
// up to its last part. No system call here, so that tests can feed it anything.
#pragma once

#include <array>
#include <cstdint>

#include "netchannel/device.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"

namespace netchannel::device {

// A descriptor as the kernel wrote it, copied out of the shared ring before it is looked at.
struct RxPart {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t options = 0;
};

// Slots that go straight back to the device: at most two for each descriptor of a burst.
struct SlotList {
  std::array<std::uint32_t, 2 * kBurst> slots;
  std::size_t size = 0;
  void push(std::uint32_t slot) { slots[size++] = slot; }
};

class RxChain {
 public:
  // As many as the kernel makes of one packet (MAX_SKB_FRAGS and its head).
  static constexpr std::uint32_t kMaxParts = 18;

  // `chunk_size`: what the kernel was told; a power of two that divides the slot size.
  RxChain(const FrameRegion& region, std::uint32_t chunk_size, CounterPage& counters);

  // True: the packet is complete and `frame` is it. False: there is more to come, or it was dropped.
  bool take(const RxPart& part, FrameDesc& frame, SlotList& home);

 private:
  bool append(const FrameDesc& part);
  void drop(DropReason reason, const RxPart& part, SlotList& home);
  bool names_slot(const RxPart& part) const;
  std::uint32_t slot_of(std::uint64_t address) const {
    return static_cast<std::uint32_t>(address >> slot_shift_);
  }
  std::uint32_t offset_of(std::uint64_t address) const {
    return static_cast<std::uint32_t>(address & (region_.slot_size() - 1));
  }

  const FrameRegion& region_;
  CounterPage& counters_;
  std::uint32_t chunk_size_;
  int slot_shift_;
  FrameDesc first_;          // what has been put together so far; meaningful if parts_ > 0
  std::uint32_t parts_ = 0;  // of the packet that is being put together
  bool skipping_ = false;    // the rest of a dropped packet
};

}  // namespace netchannel::device
