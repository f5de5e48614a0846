// SipHash-1-3 (Aumasson and Bernstein) over whole 64-bit words: the keyed hash of every table whose keys come
// from the network, so that nobody who does not know the key can make them collide. Not for authentication.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace netchannel {

struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
  // Any 16 random bytes.
  static SipKey from(std::span<const std::uint8_t, 16> bytes) {
    SipKey key;
    std::memcpy(&key.k0, bytes.data(), 8);
    std::memcpy(&key.k1, bytes.data() + 8, 8);
    return key;
  }
};

template <std::size_t N>
constexpr std::uint64_t siphash(const SipKey& key, const std::array<std::uint64_t, N>& words) {
  std::uint64_t v0 = key.k0 ^ 0x736f6d6570736575, v1 = key.k1 ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key.k0 ^ 0x6c7967656e657261, v3 = key.k1 ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  };
  for (const std::uint64_t word : words) take(word);
  take(std::uint64_t{N * 8 % 256} << 56);
  v2 ^= 0xff;
  round(), round(), round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace netchannel
