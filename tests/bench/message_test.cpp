#include "bench/message.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netchannel::bench {
namespace {

std::vector<std::byte> message(std::size_t size, std::uint32_t number, std::int64_t stamp = 1) {
  std::vector<std::byte> out(size);
  write_pattern(out);
  write_message(out, number, stamp);
  return out;
}

class Stream {
 public:
  explicit Stream(std::uint32_t size, std::uint32_t flows = 1) : size_(size), check_(size, flows) {}
  bool see(std::uint32_t number, std::uint16_t port = 1000) {
    return check_.see(message(size_, number), port);
  }
  const StreamCounts& counts() const { return check_.counts(); }
  StreamCheck& check() { return check_; }

 private:
  std::uint32_t size_;
  StreamCheck check_;
};

TEST(Message, CarriesNumberAndStampWhereItHasRoom) {
  EXPECT_EQ(read_number(message(12, 0xdeadbeef, 0x1234567890abcdef)), 0xdeadbeefu);
  EXPECT_EQ(read_stamp(message(12, 0xdeadbeef, 0x1234567890abcdef)), 0x1234567890abcdef);
  EXPECT_EQ(read_number(message(4, 77)), 77u);
  EXPECT_EQ(read_stamp(message(11, 77)), 0);
  EXPECT_EQ(read_number(message(1, 0x12345)), 0x45u);
  EXPECT_EQ(read_number(message(3, 0x12345678)), 0x345678u);
  EXPECT_EQ(read_number(message(0, 5)), 0u);
}

TEST(Message, NoticesEveryFlippedBitOfItsPattern) {
  auto bytes = message(100, 9);
  for (std::size_t i = kStampedBytes; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_FALSE(pattern_intact(bytes)) << i;
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_TRUE(pattern_intact(bytes));
}

TEST(Message, NoticesAShiftedPayload) {
  auto bytes = message(600, 9);
  std::copy(bytes.begin() + 212, bytes.begin() + 400, bytes.begin() + 212 - 64);
  EXPECT_FALSE(pattern_intact(bytes));
}

TEST(StreamCheck, CountsWholeMessagesInOrder) {
  Stream stream(100);
  for (std::uint32_t n = 0; n < 3000; ++n) EXPECT_TRUE(stream.see(n));
  EXPECT_EQ(stream.counts().received, 3000u);
  EXPECT_EQ(stream.counts().duplicates + stream.counts().reordered + stream.counts().corrupted, 0u);
  EXPECT_FALSE(stream.counts().wrong(3000));
}

TEST(StreamCheck, TakesLossForWhatItIs) {
  Stream stream(100);
  for (std::uint32_t n = 0; n < 100'000; n += 7) stream.see(n);
  stream.see(5'000'000);
  EXPECT_EQ(stream.counts().duplicates, 0u);
  EXPECT_EQ(stream.counts().reordered, 0u);
  EXPECT_FALSE(stream.counts().wrong(6'000'000));
}

TEST(StreamCheck, CallsAMessageThatComesTwiceADuplicate) {
  Stream stream(100);
  for (const std::uint32_t n : {10u, 11u, 11u, 12u, 10u}) stream.see(n);
  EXPECT_EQ(stream.counts().duplicates, 2u);
  EXPECT_TRUE(stream.counts().wrong(1000));
}

TEST(StreamCheck, CallsAMessageThatComesLateReordered) {
  Stream stream(100);
  for (const std::uint32_t n : {10u, 12u, 11u, 13u}) stream.see(n);
  EXPECT_EQ(stream.counts().reordered, 1u);
  EXPECT_EQ(stream.counts().duplicates, 0u);
  stream.see(11);
  EXPECT_EQ(stream.counts().duplicates, 1u);
}

TEST(StreamCheck, KeepsItsWindowAcrossTheWrapOfTheNumber) {
  Stream stream(100);
  for (const std::uint32_t n : {0xfffffffeu, 0xffffffffu, 0u, 1u, 0xffffffffu}) stream.see(n);
  EXPECT_EQ(stream.counts().received, 5u);
  EXPECT_EQ(stream.counts().duplicates, 1u);
  EXPECT_EQ(stream.counts().reordered, 0u);
}

TEST(StreamCheck, ForgetsOldNumbersWhenItJumpsAhead) {
  Stream stream(100);
  stream.see(0);
  stream.see(1024);  // the window's own place of 0
  stream.see(1025);
  stream.see(5000);
  stream.see(5000 - 1024 + 1);  // within the window, never seen
  EXPECT_EQ(stream.counts().duplicates, 0u);
  EXPECT_EQ(stream.counts().reordered, 1u);
}

TEST(StreamCheck, KeepsFlowsApartByTheirPort) {
  Stream stream(100, 2);
  stream.see(0, 1000);
  stream.see(0, 2000);
  EXPECT_EQ(stream.counts().duplicates, 0u);
  EXPECT_FALSE(stream.see(0, 3000));
  EXPECT_EQ(stream.counts().strangers, 1u);
  EXPECT_EQ(stream.counts().received, 2u);
}

TEST(StreamCheck, RefusesWrongLengthsAndContents) {
  Stream stream(100);
  EXPECT_FALSE(stream.check().see(message(99, 0), 1000));
  EXPECT_FALSE(stream.check().see(message(0, 0), 1000));
  auto bytes = message(100, 0);
  bytes[60] ^= std::byte{1};
  EXPECT_FALSE(stream.check().see(bytes, 1000));
  EXPECT_EQ(stream.counts().corrupted, 3u);
  EXPECT_EQ(stream.counts().received, 0u);
  EXPECT_TRUE(stream.counts().wrong(10));
}

TEST(StreamCheck, CallsMoreThanWereSentWrong) {
  Stream stream(0);
  for (std::uint32_t n = 0; n < 5; ++n) stream.see(n);
  EXPECT_FALSE(stream.counts().wrong(5));
  EXPECT_TRUE(stream.counts().wrong(4));
}

TEST(StreamCheck, StartsAnewAfterAReset) {
  Stream stream(100);
  stream.see(7);
  stream.check().reset();
  stream.see(7);
  EXPECT_EQ(stream.counts().duplicates, 0u);
  EXPECT_EQ(stream.counts().received, 1u);
}

}  // namespace
}  // namespace netchannel::bench
