#include "base/siphash.hpp"

#include <gtest/gtest.h>

namespace netchannel {
namespace {

template <std::size_t N>
std::array<std::uint64_t, N> words() {
  std::array<std::uint64_t, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = (i + 1) * 0x0123456789abcdef;
  return out;
}

// The values of two implementations of SipHash-1-3 that know nothing of this one.
TEST(SipHash, AgreesWithKnownValues) {
  EXPECT_EQ(siphash(SipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}, words<0>()), 0xabac0158050fc4dcu);
  EXPECT_EQ(siphash(SipKey{}, words<1>()), 0x8662046e52264db8u);
  EXPECT_EQ(siphash(SipKey{}, words<2>()), 0xe75bff64b89e365bu);
  EXPECT_EQ(siphash(SipKey{}, words<5>()), 0x76ff678c5751c56au);
}

TEST(SipHash, DependsOnBothHalvesOfTheKey) {
  const auto plain = siphash(SipKey{}, words<2>());
  EXPECT_NE(siphash(SipKey{1, 0}, words<2>()), plain);
  EXPECT_NE(siphash(SipKey{0, 1}, words<2>()), plain);
}

TEST(SipKey, TakesAllSixteenBytes) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 16; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const SipKey key = SipKey::from(bytes);
  EXPECT_EQ(key.k0, 0x0706050403020100u);
  EXPECT_EQ(key.k1, 0x0f0e0d0c0b0a0908u);
}

}  // namespace
}  // namespace netchannel
