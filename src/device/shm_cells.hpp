// One direction of a shared-memory link: a ring of cells of 256 bytes, each with a frame's descriptor and, if
// the frame is small, the frame. A cell says itself when it is full: its `turn` is written last, so that the
// reader finds descriptor and bytes in the lines that it was looking at, and a frame costs one transfer of
// those lines and none of an index's. The reader's index goes back once a burst, and the writer looks at it
// once a round.
//
//   memory: | consumed (reader's line) | asleep (reader's line) | cell | cell | ... 128
//   cell:   | turn | length | slot | offset | segment size | flags | l4 offset | up to 236 bytes of frame |
//
// Both ends may be written by a stranger at any time. The reader copies a cell's header once and judges the
// copy; an index that cannot be marks the writer's end broken. Whether the frame lies in the sender's memory
// is for the device to judge.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

#include "netchannel/bytes.hpp"

namespace netchannel::device {

inline constexpr std::uint32_t kCells = 128;
inline constexpr std::uint32_t kCellSize = 256;

struct CellHeader {
  static constexpr std::uint32_t kInline = 0xffffffff;
  std::uint32_t turn = 0;          // the frame's number + 1
  std::uint32_t length = 0;        // bytes of frame
  std::uint32_t slot = kInline;    // of the sender's shown memory, or kInline: the frame is in the cell
  std::uint16_t offset = 0;        // within that slot
  std::uint16_t segment_size = 0;  // as in FrameDesc
  std::uint16_t flags = 0;
  std::uint16_t l4_offset = 0;
};
static_assert(sizeof(CellHeader) == 20);
inline constexpr std::uint32_t kInlineBytes = kCellSize - sizeof(CellHeader);

// Why the reader wants to be woken, as bits of `asleep`.
inline constexpr std::uint32_t kAsleepForFrames = 1;
inline constexpr std::uint32_t kAsleepForSlots = 2;

struct CellControl {
  alignas(64) std::atomic<std::uint32_t> consumed;
  alignas(64) std::atomic<std::uint32_t> asleep;
};
static_assert(sizeof(CellControl) == 128 && std::atomic<std::uint32_t>::is_always_lock_free);

inline constexpr std::size_t kCellRingSize = sizeof(CellControl) + std::size_t{kCells} * kCellSize;

// What both ends know. `memory` is kCellRingSize bytes, zeroed before either end exists, 64-byte aligned.
class CellEnd {
 public:
  CellEnd() = default;
  explicit CellEnd(MutableBytes memory)
      : control_(std::launder(reinterpret_cast<CellControl*>(memory.data()))),
        cells_(memory.data() + sizeof(CellControl)) {}
  std::atomic<std::uint32_t>& asleep() const { return control_->asleep; }

 protected:
  std::byte* cell(std::uint32_t number) const { return cells_ + std::size_t{number % kCells} * kCellSize; }
  static std::atomic_ref<std::uint32_t> turn_of(std::byte* cell) {
    return std::atomic_ref<std::uint32_t>(*std::launder(reinterpret_cast<std::uint32_t*>(cell)));
  }
  CellControl* control_ = nullptr;
  std::byte* cells_ = nullptr;
  std::uint32_t next_ = 0;
};

class CellWriter : public CellEnd {
 public:
  using CellEnd::CellEnd;
  // A cell is free. False for ever once the reader's index makes no sense.
  bool room() {
    if (next_ - consumed_ < kCells) return true;
    if (broken_) return false;
    const std::uint32_t seen = control_->consumed.load(std::memory_order_acquire);
    broken_ = next_ - seen > kCells;
    if (!broken_) consumed_ = seen;
    return next_ - consumed_ < kCells;
  }
  bool broken() const { return broken_; }
  // There is room. `in_cell`: the frame if header.slot is kInline, at most kInlineBytes.
  void put(CellHeader header, Bytes in_cell) {
    std::byte* const to = cell(next_);
    constexpr std::size_t kTurn = sizeof header.turn;
    std::memcpy(to + kTurn, reinterpret_cast<const std::byte*>(&header) + kTurn, sizeof header - kTurn);
    if (!in_cell.empty()) std::memcpy(to + sizeof header, in_cell.data(), in_cell.size());
    turn_of(to).store(++next_, std::memory_order_release);
  }

 private:
  std::uint32_t consumed_ = 0;  // by the reader, as seen last
  bool broken_ = false;
};

class CellReader : public CellEnd {
 public:
  using CellEnd::CellEnd;
  bool empty() const { return turn_of(cell(next_)).load(std::memory_order_acquire) != next_ + 1; }
  // Not empty: a copy of the header, and where a frame in the cell would stand (kInlineBytes).
  CellHeader header() const {
    CellHeader out;
    std::memcpy(&out, cell(next_), sizeof out);
    return out;
  }
  Bytes in_cell() const { return {cell(next_) + sizeof(CellHeader), kInlineBytes}; }
  void take() { ++next_; }
  // Gives all cells taken back to the writer.
  void publish() { control_->consumed.store(next_, std::memory_order_release); }
};

}  // namespace netchannel::device
