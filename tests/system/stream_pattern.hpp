// What streams carry in system tests: bytes that differ from place to place, however far apart, so that
// nothing can be lost, doubled or moved without changing the sum; and the sum, SHA-256.
#pragma once

#include <sodium.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "netchannel/bytes.hpp"

namespace netchannel {

// The eight bytes that stand at 8 * index of the stream (the finaliser of splitmix64 over the index).
constexpr std::uint64_t pattern_word(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The bytes that stand at `offset` and behind it. Little-endian on every machine that runs this.
inline void fill_pattern(MutableBytes out, std::uint64_t offset) {
  static_assert(std::endian::native == std::endian::little);
  std::size_t at = 0;
  while (at < out.size()) {
    const std::uint64_t word = pattern_word((offset + at) / 8);
    const std::size_t skip = (offset + at) % 8;
    const std::size_t n = std::min(8 - skip, out.size() - at);
    std::memcpy(out.data() + at, reinterpret_cast<const std::byte*>(&word) + skip, n);
    at += n;
  }
}

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(Bytes bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  // In hexadecimal. Nothing may be added afterwards.
  std::string finish() {
    std::array<unsigned char, crypto_hash_sha256_BYTES> sum;
    crypto_hash_sha256_final(&state_, sum.data());
    std::array<char, 2 * crypto_hash_sha256_BYTES + 1> text;
    return sodium_bin2hex(text.data(), text.size(), sum.data(), sum.size());
  }

 private:
  crypto_hash_sha256_state state_;
};

// Of the first `size` bytes of the pattern.
inline std::string pattern_sha256(std::uint64_t size) {
  Sha256 sum;
  std::array<std::byte, 65536> piece;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    const MutableBytes here = MutableBytes(piece).first(std::min<std::uint64_t>(piece.size(), size - at));
    fill_pattern(here, at);
    sum.add(here);
  }
  return sum.finish();
}

}  // namespace netchannel
