// Nodes of one type for all connections of a stack, so that a connection's queues cost nothing while they are
// empty and nothing on the packet path allocates: the memory is reserved when the stack is made and when
// connections are added, and touched when it is used for the first time. Nodes are named by 32-bit indices;
// chunks never move.
//
// A promise can be kept: reserve(n) makes sure that n nodes stay free for take_reserved(), whatever take()
// has given away. One thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netchannel::tcp {

inline constexpr std::uint32_t kNoNode = 0xffffffff;

template <class T>
class Slab {
 public:
  explicit Slab(std::size_t capacity = 0) { grow_to(capacity); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    for (std::uint32_t i = 0; i < untouched_; ++i) std::destroy_at(&cell(i));
  }

  T& operator[](std::uint32_t index) { return cell(index).value; }
  const T& operator[](std::uint32_t index) const {
    return chunks_[index >> kChunkBits][index & kChunkMask].cell.value;
  }

  // kNoNode if none is free beyond the reserved ones. The node holds whatever its last user left in it.
  std::uint32_t take() { return free_ > reserved_ ? pop() : kNoNode; }
  // One of the reserved nodes; the caller had reserved it.
  std::uint32_t take_reserved() {
    --reserved_;
    return pop();
  }
  void give_back(std::uint32_t index) {
    cell(index).next_free = first_free_;
    first_free_ = index;
    ++free_;
  }
  void give_back_reserved(std::uint32_t index) {
    give_back(index);
    ++reserved_;
  }

  // Not on the packet path: may allocate. One more or one fewer node that must stay free.
  void reserve_one() {
    if (free_ <= reserved_) grow_to(capacity_ + 1);
    ++reserved_;
  }
  void unreserve_one() { --reserved_; }

  std::size_t capacity() const { return capacity_; }
  std::size_t free_count() const { return free_; }
  std::size_t used() const { return capacity_ - free_; }
  // Nodes with an index below this were taken at least once; the others must not be looked at.
  std::uint32_t touched() const { return untouched_; }
  // What take() could give.
  std::size_t available() const { return free_ - reserved_; }

 private:
  static constexpr std::uint32_t kChunkBits = 10;
  static constexpr std::uint32_t kChunkMask = (1U << kChunkBits) - 1;
  struct Cell {
    T value{};
    std::uint32_t next_free = kNoNode;
  };

  // Begins its life when it is taken for the first time, so that a reserve costs no resident memory.
  union Storage {
    Storage() {}
    ~Storage() {}
    Cell cell;
  };

  Cell& cell(std::uint32_t index) { return chunks_[index >> kChunkBits][index & kChunkMask].cell; }
  std::uint32_t pop() {
    --free_;
    if (first_free_ == kNoNode) {
      std::construct_at(&cell(untouched_));
      return untouched_++;
    }
    const std::uint32_t index = first_free_;
    first_free_ = cell(index).next_free;
    return index;
  }
  void grow_to(std::size_t capacity) {
    while (capacity_ < capacity) {
      chunks_.push_back(std::make_unique_for_overwrite<Storage[]>(std::size_t{1} << kChunkBits));
      capacity_ += std::size_t{1} << kChunkBits;
      free_ += std::size_t{1} << kChunkBits;
    }
  }

  std::vector<std::unique_ptr<Storage[]>> chunks_;
  std::size_t capacity_ = 0;
  std::size_t free_ = 0;
  std::size_t reserved_ = 0;
  std::uint32_t first_free_ = kNoNode;
  std::uint32_t untouched_ = 0;  // indices from here on were never taken
};

}  // namespace netchannel::tcp
