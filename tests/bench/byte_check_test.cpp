#include "bench/byte_check.hpp"

#include <gtest/gtest.h>

#include <random>

#include "bench/message.hpp"

namespace netchannel::bench {
namespace {

// `count` messages as StreamSender writes them, one behind the other.
std::vector<std::byte> stream_of(std::uint32_t size, std::uint32_t count, std::uint32_t first = 0) {
  std::vector<std::byte> out(std::size_t{size} * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const MutableBytes message = std::span(out).subspan(std::size_t{i} * size, size);
    write_pattern(message);
    write_message(message, first + i, 1'000'000 + i);
  }
  return out;
}

constexpr std::uint32_t kSizes[] = {1,  2,  3,   4,   5,    11,   12,   13,    63,
                                    64, 65, 100, 128, 1000, 1024, 1448, 65536, 200'000};

TEST(ByteCheck, TakesAStreamHoweverItIsCut) {
  std::mt19937 random(7);
  for (const std::uint32_t size : kSizes) {
    const std::uint32_t count = size > 10'000 ? 40 : 600;
    const auto bytes = stream_of(size, count);
    for (const std::size_t most : {std::size_t{1}, std::size_t{7}, std::size_t{1448}, bytes.size()}) {
      if (most < 100 && bytes.size() > 1'000'000) continue;
      ByteCheck check(size, 1);
      for (Bytes left = bytes; !left.empty();) {
        const std::size_t n = std::min<std::size_t>(left.size(), 1 + random() % most);
        check.see(0, left.first(n));
        left = left.subspan(n);
      }
      EXPECT_EQ(check.received(), count) << size << " by " << most;
      EXPECT_EQ(check.corrupted(), 0u) << size << " by " << most;
    }
  }
}

TEST(ByteCheck, NoticesAByteThatIsMissingOrTwiceAnywhere) {
  std::mt19937 random(8);
  for (const std::uint32_t size : kSizes) {
    const std::uint32_t count = 40;
    for (int round = 0; round < 20; ++round) {
      auto bytes = stream_of(size, count);
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() - 2 * size));
      if (round % 2 == 0) {
        bytes.erase(at);
      } else {
        bytes.insert(at, *at);
      }
      ByteCheck check(size, 1);
      check.see(0, bytes);
      EXPECT_GT(check.corrupted(), 0u) << size << " " << round;
    }
  }
}

TEST(ByteCheck, NoticesMessagesThatChangePlacesOrComeTwice) {
  for (const std::uint32_t size : kSizes) {
    auto bytes = stream_of(size, 8);
    std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end());
    ByteCheck check(size, 1);
    check.see(0, bytes);
    EXPECT_EQ(check.corrupted(), 8u) << size;
  }
}

TEST(ByteCheck, LooksAtEveryPlaceOfAMessageWithinSixteenOfThem) {
  for (const std::uint32_t size : {100u, 1024u, 5000u}) {
    for (std::size_t place = kStampedBytes; place < size; ++place) {
      auto bytes = stream_of(size, 16);
      for (std::size_t i = place; i < bytes.size(); i += size) bytes[i] ^= std::byte{1};
      ByteCheck check(size, 1);
      check.see(0, bytes);
      EXPECT_GT(check.corrupted(), 0u) << size << " at " << place;
    }
  }
}

TEST(ByteCheck, CountsAMessageOnceHoweverMuchOfItIsWrong) {
  auto bytes = stream_of(100, 4);
  std::fill(bytes.begin() + 100, bytes.begin() + 200, std::byte{0});
  ByteCheck check(100, 1);
  for (const std::byte& byte : bytes) check.see(0, {&byte, 1});
  EXPECT_EQ(check.received(), 4u);
  EXPECT_EQ(check.corrupted(), 1u);
}

TEST(ByteCheck, KeepsConnectionsApartAndGoesOnAfterAReset) {
  ByteCheck check(100, 2);
  const auto first = stream_of(100, 3), second = stream_of(100, 3, 3);
  check.see(0, std::span(first).first(150));
  check.see(1, first);
  check.see(0, std::span(first).subspan(150));
  EXPECT_EQ(check.received(), 6u);
  check.reset();
  EXPECT_EQ(check.received(), 0u);
  check.see(0, second);
  check.see(1, second);
  EXPECT_EQ(check.received(), 6u);
  EXPECT_EQ(check.corrupted(), 0u);
}

}  // namespace
}  // namespace netchannel::bench
