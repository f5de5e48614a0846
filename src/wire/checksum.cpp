// The fast sums. Words are read in the machine's own byte order and 32 bits at a time into 64-bit sums, so no
// carry is ever lost or looked at; the byte order is mended once, at the end (RFC 1071 section 2 (B)). Bytes
// are moved in and out with memcpy, so no alignment is asked for. The loop is written once, over vectors that
// the compiler makes of whatever the machine has; on x86-64 a second copy of it is made for AVX2 and taken
// where that is there.
#include "netchannel/wire/checksum.hpp"

#include <cassert>
#include <cstring>

namespace netchannel::wire {
namespace {

// Reads one value, and if kCopy writes it to `to`. (A vector may not be returned: its way back depends on the
// machine.)
template <bool kCopy, class T>
[[gnu::always_inline]] inline void take(T& value, std::byte* to, const std::byte* from) {
  std::memcpy(&value, from, sizeof value);
  if constexpr (kCopy) std::memcpy(to, &value, sizeof value);
}

// Reads a whole word of type T from `at` on, and moves `at` behind it.
template <bool kCopy, class T>
[[gnu::always_inline]] inline T next(std::byte* to, const std::byte* from, std::size_t& at) {
  T value;
  take<kCopy>(value, kCopy ? to + at : nullptr, from + at);
  at += sizeof value;
  return value;
}

// The bytes from `at` on. A word of 32 bits adds as the sum of its halves does.
template <bool kCopy>
[[gnu::always_inline]] inline std::uint64_t sum_tail(std::byte* to, const std::byte* from, std::size_t at,
                                                     std::size_t length) {
  std::uint64_t sum = 0;
  while (length - at >= 8) sum += detail::halves(next<kCopy, std::uint64_t>(to, from, at));
  if (length - at >= 4) sum += next<kCopy, std::uint32_t>(to, from, at);
  if (length - at >= 2) sum += next<kCopy, std::uint16_t>(to, from, at);
  if (length - at == 1) {
    // An odd last byte is the first of a word, the other being 0.
    const std::array<std::uint8_t, 2> word{next<kCopy, std::uint8_t>(to, from, at), 0};
    sum += std::bit_cast<std::uint16_t>(word);
  }
  return sum;
}

using Vector = std::uint64_t __attribute__((vector_size(32)));

template <bool kCopy>
[[gnu::always_inline]] inline std::uint64_t sum_vectors(std::byte* to, const std::byte* from,
                                                        std::size_t length) {
  constexpr std::size_t kStep = 2 * sizeof(Vector);
  Vector even{}, odd{};
  std::size_t at = 0;
  for (; length - at >= kStep; at += kStep) {
    Vector first, second;
    take<kCopy>(first, kCopy ? to + at : nullptr, from + at);
    take<kCopy>(second, kCopy ? to + at + sizeof first : nullptr, from + at + sizeof first);
    even += (first >> 32) + (first & 0xffffffff);
    odd += (second >> 32) + (second & 0xffffffff);
  }
  even += odd;
  return even[0] + even[1] + even[2] + even[3] + sum_tail<kCopy>(to, from, at, length);
}

template <bool kCopy>
std::uint64_t sum_anywhere(std::byte* to, const std::byte* from, std::size_t length) {
  return sum_vectors<kCopy>(to, from, length);
}

#if defined(__x86_64__)
template <bool kCopy>
[[gnu::target("avx2")]] std::uint64_t sum_avx2(std::byte* to, const std::byte* from, std::size_t length) {
  return sum_vectors<kCopy>(to, from, length);
}
const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;  // false until it is set, which is right too
#endif

template <bool kCopy>
PartialSum sum(std::byte* to, const std::byte* from, std::size_t length) {
  if (length < 2 * sizeof(Vector)) return detail::from_native(sum_tail<kCopy>(to, from, 0, length));
#if defined(__x86_64__)
  if (kHasAvx2) return detail::from_native(sum_avx2<kCopy>(to, from, length));
#endif
  return detail::from_native(sum_anywhere<kCopy>(to, from, length));
}

}  // namespace

PartialSum checksum_fast(Bytes bytes) { return sum<false>(nullptr, bytes.data(), bytes.size()); }

PartialSum copy_and_checksum(MutableBytes to, Bytes from) {
  assert(to.size() >= from.size());
  return sum<true>(to.data(), from.data(), from.size());
}

}  // namespace netchannel::wire
