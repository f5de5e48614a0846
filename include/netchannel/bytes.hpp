// Views of packet memory, and the only two ways to read or write a number in it: big-endian, at an offset the
// caller has already compared with the size. No casts over packet bytes anywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace netchannel {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

constexpr std::uint8_t load_u8(Bytes from, std::size_t at) { return std::to_integer<std::uint8_t>(from[at]); }
constexpr std::uint16_t load_be16(Bytes from, std::size_t at) {
  return static_cast<std::uint16_t>(load_u8(from, at) << 8 | load_u8(from, at + 1));
}
constexpr std::uint32_t load_be32(Bytes from, std::size_t at) {
  return std::uint32_t{load_be16(from, at)} << 16 | load_be16(from, at + 2);
}
constexpr void store_u8(MutableBytes to, std::size_t at, std::uint8_t value) { to[at] = std::byte{value}; }
constexpr void store_be16(MutableBytes to, std::size_t at, std::uint16_t value) {
  store_u8(to, at, static_cast<std::uint8_t>(value >> 8));
  store_u8(to, at + 1, static_cast<std::uint8_t>(value & 0xff));
}
constexpr void store_be32(MutableBytes to, std::size_t at, std::uint32_t value) {
  store_be16(to, at, static_cast<std::uint16_t>(value >> 16));
  store_be16(to, at + 2, static_cast<std::uint16_t>(value & 0xffff));
}

}  // namespace netchannel
