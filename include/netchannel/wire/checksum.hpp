// The Internet checksum (RFC 1071) as sums that can be put together: header, payload and pseudo-header are
// summed where they are touched (the payload while it is copied), added in any order, and folded once at the
// end.
//
//   PartialSum sum = pseudo_header(source, destination, Protocol::udp, length);
//   sum.add(copy_and_checksum(to, payload));     // at an even offset; else sum.add(s, offset)
//   store_be16(header, 6, checksum(sum));
//
// checksum_scalar() is the reference: two bytes at a time, usable in constant expressions. checksum_fast()
// agrees with it for every length and alignment and is what the packet path uses.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::wire {

// A sum of big-endian 16-bit words that has not been folded. 64 bits hold the sum of more than 2^47 words.
struct PartialSum {
  std::uint64_t words = 0;

  // Adds a sum over bytes that begin `offset` bytes after the beginning of this one. At an odd offset each
  // byte stands in the other half of its word, which is a byte swap of the folded sum (RFC 1071 section 2
  // (B)).
  constexpr void add(PartialSum other, std::size_t offset = 0);
  constexpr void add_word(std::uint16_t word) { words += word; }
};

// The 16-bit ones' complement sum. 0 only if every word was 0: a receiver's sum over data and checksum is
// 0xffff.
constexpr std::uint16_t fold(PartialSum sum) {
  std::uint64_t value = (sum.words >> 32) + (sum.words & 0xffffffff);
  value = (value >> 16) + (value & 0xffff);
  value = (value >> 16) + (value & 0xffff);
  value = (value >> 16) + (value & 0xffff);
  return static_cast<std::uint16_t>(value);
}

// What goes into a checksum field: the complement of the folded sum.
constexpr std::uint16_t checksum(PartialSum sum) { return static_cast<std::uint16_t>(~fold(sum)); }

constexpr void PartialSum::add(PartialSum other, std::size_t offset) {
  if (offset % 2 == 0) {
    words += other.words;
    return;
  }
  const std::uint16_t folded = fold(other);
  words += static_cast<std::uint16_t>(folded << 8 | folded >> 8);
}

// An odd last byte counts as the high half of a word.
constexpr PartialSum checksum_scalar(Bytes bytes) {
  PartialSum sum;
  std::size_t at = 0;
  for (; at + 1 < bytes.size(); at += 2) sum.add_word(load_be16(bytes, at));
  if (at < bytes.size()) sum.add_word(static_cast<std::uint16_t>(load_u8(bytes, at) << 8));
  return sum;
}

// The same sum, 64 bytes a step.
PartialSum checksum_fast(Bytes bytes);

// Copies all of `from` to the beginning of `to` and returns the sum of the bytes copied. `to` is at least as
// long and does not overlap.
PartialSum copy_and_checksum(MutableBytes to, Bytes from);

namespace detail {

// Two native 64-bit words (in memory order) as a sum of big-endian words: ones' complement addition commutes
// with the byte swap (RFC 1071 section 2 (B)), so it is done once, on the folded sum.
constexpr PartialSum from_native(std::uint64_t native_sum) {
  const std::uint16_t folded = fold(PartialSum{native_sum});
  if constexpr (std::endian::native == std::endian::big) return PartialSum{folded};
  return PartialSum{static_cast<std::uint16_t>(folded << 8 | folded >> 8)};
}

constexpr std::uint64_t halves(std::uint64_t word) { return (word >> 32) + (word & 0xffffffff); }

constexpr std::uint64_t native_sum(const IpAddress& address) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(address.bytes());
  return halves(words[0]) + halves(words[1]);
}

}  // namespace detail

// The pseudo-header of RFC 768, RFC 9293 section 3.1 and RFC 8200 section 8.1 for both versions. An IPv4
// address is summed in its mapped form: ::ffff:0:0/96 adds one word of 0xffff, which is zero in ones'
// complement, so no branch is needed. `length` is that of the transport header and its data.
constexpr PartialSum pseudo_header(const IpAddress& source, const IpAddress& destination, Protocol protocol,
                                   std::size_t length) {
  PartialSum sum = detail::from_native(detail::native_sum(source) + detail::native_sum(destination));
  sum.words += (length >> 16) + (length & 0xffff) + static_cast<std::uint8_t>(protocol);
  return sum;
}

// A sender that left the checksum to its device (CHECKSUM_PARTIAL) has put only the folded pseudo-header sum
// there. Such a packet says nothing about its integrity: accept it only from a device that cannot damage it.
constexpr bool is_partial_checksum(std::uint16_t field, PartialSum pseudo) { return field == fold(pseudo); }

// RFC 1624, equation 3: the checksum after one 16-bit word that it covers has changed.
constexpr std::uint16_t update_checksum(std::uint16_t old_checksum, std::uint16_t old_word,
                                        std::uint16_t new_word) {
  PartialSum sum;
  sum.add_word(static_cast<std::uint16_t>(~old_checksum));
  sum.add_word(static_cast<std::uint16_t>(~old_word));
  sum.add_word(new_word);
  return checksum(sum);
}

}  // namespace netchannel::wire
