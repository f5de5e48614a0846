// Sequence numbers (RFC 9293 section 3.4): points on a circle of 2^32. "Before" and "after" have a meaning
// only for points less than 2^31 apart, which windows of at most 2^30 guarantee for all that a connection
// compares.
//
//      a < b       b lies in the half circle after a
//      b - a       the signed way from a to b
//      a + n       n bytes further
#pragma once

#include <cstdint>

namespace netchannel::tcp {

struct Seq {
  std::uint32_t value = 0;

  friend constexpr bool operator==(Seq, Seq) = default;
  friend constexpr bool operator<(Seq a, Seq b) { return static_cast<std::int32_t>(a.value - b.value) < 0; }
  friend constexpr bool operator>(Seq a, Seq b) { return b < a; }
  friend constexpr bool operator<=(Seq a, Seq b) { return !(b < a); }
  friend constexpr bool operator>=(Seq a, Seq b) { return !(a < b); }
  friend constexpr Seq operator+(Seq a, std::uint32_t n) { return {a.value + n}; }
  friend constexpr Seq operator-(Seq a, std::uint32_t n) { return {a.value - n}; }
  friend constexpr std::int32_t operator-(Seq a, Seq b) {
    return static_cast<std::int32_t>(a.value - b.value);
  }
  constexpr Seq& operator+=(std::uint32_t n) { return value += n, *this; }
};

// Bytes from `from` up to `to`, which is not before it.
constexpr std::uint32_t distance(Seq from, Seq to) { return to.value - from.value; }
// True if x is one of the `size` points that begin with `left`.
constexpr bool in_window(Seq x, Seq left, std::uint32_t size) { return x.value - left.value < size; }
constexpr Seq earlier(Seq a, Seq b) { return a < b ? a : b; }
constexpr Seq later(Seq a, Seq b) { return a < b ? b : a; }

}  // namespace netchannel::tcp
