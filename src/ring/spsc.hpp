// The single-producer, single-consumer ring, in private or shared memory. It moves trivially copyable values
// and knows no frame. The two ends are different move-only types; each keeps its own index and a copy of the
// other's on its own cache line, so that a transfer in a batch costs one shared line in each direction, not
// one an item.
//
//   memory:  | header | producer index (own line) | consumer index (own line) | slots ... |
//
//   producer:  reserve(n) -> how many slots may be written; operator[] style write(i, value); submit(n)
//   consumer:  peek(n) -> how many items may be read; read(i); release(n)
//
// Indices run freely (32 bits, masked on use). What the other end writes is untrusted: it is read once, and a
// distance larger than the capacity marks the ring broken, after which it yields nothing.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"

namespace netchannel::ring {

inline constexpr std::size_t kCacheLine = 64;

// What both ends share. Lives at the start of the ring's memory.
struct Header {
  // Written once, before either end exists; not trusted afterwards.
  alignas(kCacheLine) std::uint32_t capacity;
  std::uint32_t item_size;
  alignas(kCacheLine) std::atomic<std::uint32_t> produced;
  alignas(kCacheLine) std::atomic<std::uint32_t> consumed;
};
static_assert(sizeof(Header) == 3 * kCacheLine && std::atomic<std::uint32_t>::is_always_lock_free);

// Bytes of memory for a ring of that many items of T.
template <class T>
constexpr std::size_t memory_size(std::uint32_t capacity) {
  return sizeof(Header) + (sizeof(T) * capacity + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// Writes the header. `memory` is 64-byte aligned, zeroed and at least memory_size<T>(capacity) long.
template <class T>
Result<void> format(MutableBytes memory, std::uint32_t capacity) {
  if (!std::has_single_bit(capacity) || memory.size() < memory_size<T>(capacity)) {
    return fail(ErrorCode::invalid_argument, "a ring's capacity must be a power of two that fits its memory");
  }
  auto* header = new (memory.data()) Header{};
  header->capacity = capacity;
  header->item_size = sizeof(T);
  return {};
}

// What is alike in both ends: where the ring is, and this end's index.
template <class T>
class End {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  End() = default;
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  // The other end wrote an impossible index. The ring yields nothing any more.
  bool broken() const { return broken_; }
  std::uint32_t capacity() const { return mask_ + 1; }

 protected:
  // `capacity` comes from the opener, not from shared memory.
  End(MutableBytes memory, std::uint32_t capacity)
      : header_(std::launder(reinterpret_cast<Header*>(memory.data()))),
        slots_(memory.data() + sizeof(Header)),
        mask_(capacity - 1) {}
  End(End&& other) noexcept { *this = std::move(other); }
  End& operator=(End&& other) noexcept {
    header_ = std::exchange(other.header_, nullptr);
    slots_ = std::exchange(other.slots_, nullptr);
    mask_ = other.mask_;
    mine_ = other.mine_;
    theirs_ = other.theirs_;
    broken_ = other.broken_;
    return *this;
  }
  std::byte* slot(std::uint32_t index) const { return slots_ + std::size_t{index & mask_} * sizeof(T); }

  Header* header_ = nullptr;
  std::byte* slots_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint32_t mine_ = 0;    // this end's index
  std::uint32_t theirs_ = 0;  // the other's, as last read
  bool broken_ = false;
};

template <class T>
class Producer : public End<T> {
 public:
  Producer() = default;
  Producer(MutableBytes memory, std::uint32_t capacity) : End<T>(memory, capacity) {}
  Producer(Producer&&) noexcept = default;
  Producer& operator=(Producer&&) noexcept = default;

  // How many of `wanted` items may be written now. Reads the consumer's index only when the cached one says
  // full.
  std::uint32_t reserve(std::uint32_t wanted) {
    std::uint32_t room = this->capacity() - (this->mine_ - this->theirs_);
    if (room < wanted) room = refresh();
    return room < wanted ? room : wanted;
  }
  // Item i of those reserved.
  void write(std::uint32_t i, const T& value) { std::memcpy(this->slot(this->mine_ + i), &value, sizeof(T)); }
  // Makes the first n written items visible, all at once.
  void submit(std::uint32_t n) {
    this->mine_ += n;
    this->header_->produced.store(this->mine_, std::memory_order_release);
  }
  bool push(const T& value) {
    if (reserve(1) == 0) return false;
    write(0, value);
    submit(1);
    return true;
  }
  // Writes and submits as many as fit; returns how many.
  std::size_t push_all(std::span<const T> values) {
    const std::uint32_t n = reserve(static_cast<std::uint32_t>(values.size()));
    for (std::uint32_t i = 0; i < n; ++i) write(i, values[i]);
    if (n != 0) submit(n);
    return n;
  }

 private:
  std::uint32_t refresh() {
    if (this->broken_) return 0;
    const std::uint32_t seen = this->header_->consumed.load(std::memory_order_acquire);
    const std::uint32_t used = this->mine_ - seen;
    if (used > this->capacity()) {
      this->broken_ = true;
      this->theirs_ = this->mine_ - this->capacity();  // full for ever
      return 0;
    }
    this->theirs_ = seen;
    return this->capacity() - used;
  }
};

template <class T>
class Consumer : public End<T> {
 public:
  Consumer() = default;
  Consumer(MutableBytes memory, std::uint32_t capacity) : End<T>(memory, capacity) {}
  Consumer(Consumer&&) noexcept = default;
  Consumer& operator=(Consumer&&) noexcept = default;

  // How many of `wanted` items may be read now. Reads the producer's index only when the cached one says too
  // few.
  std::uint32_t peek(std::uint32_t wanted) {
    std::uint32_t there = this->theirs_ - this->mine_;
    if (there < wanted) there = refresh();
    return there < wanted ? there : wanted;
  }
  // A copy of item i of those peeked: the other side may write the slot at any time, so it is read once.
  T read(std::uint32_t i) const {
    T value;
    std::memcpy(&value, this->slot(this->mine_ + i), sizeof(T));
    return value;
  }
  // Gives the first n peeked slots back to the producer, all at once.
  void release(std::uint32_t n) {
    this->mine_ += n;
    this->header_->consumed.store(this->mine_, std::memory_order_release);
  }
  // Reads and releases up to out.size(); returns how many.
  std::size_t pop_all(std::span<T> out) {
    const std::uint32_t n = peek(static_cast<std::uint32_t>(out.size()));
    for (std::uint32_t i = 0; i < n; ++i) out[i] = read(i);
    if (n != 0) release(n);
    return n;
  }
  // Nothing to read at this moment.
  bool empty() { return peek(1) == 0; }

 private:
  std::uint32_t refresh() {
    if (this->broken_) return 0;
    const std::uint32_t seen = this->header_->produced.load(std::memory_order_acquire);
    const std::uint32_t there = seen - this->mine_;
    if (there > this->capacity()) {
      this->broken_ = true;
      this->theirs_ = this->mine_;  // empty for ever
      return 0;
    }
    this->theirs_ = seen;
    return there;
  }
};

}  // namespace netchannel::ring
