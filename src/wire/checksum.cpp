// The fast sums. Words are read in the machine's own byte order and 32 bits at a time into 64-bit sums, so no
// carry is ever lost or looked at; the byte order is mended once, at the end (RFC 1071 section 2 (B)). Bytes
// are moved in and out with memcpy, so no alignment is asked for.
#include "netchannel/wire/checksum.hpp"

#include <cassert>
#include <cstring>

namespace netchannel::wire {
namespace {

std::uint64_t load_native(const std::byte* from, std::size_t length) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, length);
  return word;
}

// Sums `length` bytes; if kCopy, also writes them to `to`.
template <bool kCopy>
std::uint64_t sum_native(std::byte* to, const std::byte* from, std::size_t length) {
  std::uint64_t sums[4] = {0, 0, 0, 0};
  std::size_t at = 0;
  for (; length - at >= 32; at += 32) {
    std::uint64_t words[4];
    std::memcpy(words, from + at, 32);
    if constexpr (kCopy) std::memcpy(to + at, words, 32);
    for (int i = 0; i < 4; ++i) sums[i] += detail::halves(words[i]);
  }
  for (; length - at >= 8; at += 8) {
    const std::uint64_t word = load_native(from + at, 8);
    if constexpr (kCopy) std::memcpy(to + at, &word, 8);
    sums[0] += detail::halves(word);
  }
  if (const std::size_t rest = length - at; rest != 0) {
    const std::uint64_t word = load_native(from + at, rest);
    if constexpr (kCopy) std::memcpy(to + at, &word, rest);
    sums[1] += detail::halves(word);
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

PartialSum checksum_fast(Bytes bytes) {
  return detail::from_native(sum_native<false>(nullptr, bytes.data(), bytes.size()));
}

PartialSum copy_and_checksum(MutableBytes to, Bytes from) {
  assert(to.size() >= from.size());
  return detail::from_native(sum_native<true>(to.data(), from.data(), from.size()));
}

}  // namespace netchannel::wire
