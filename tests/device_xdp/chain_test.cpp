// What the kernel's descriptors may and may not do to us, without a kernel (bad-input rows "Device
// descriptor" and "Multi-buffer chain").
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "device/af_xdp/af_xdp.hpp"
#include "device/af_xdp/rx_chain.hpp"
#include "device/af_xdp/tx_ledger.hpp"
#include "device/af_xdp/uapi.hpp"
#include "testkit/frames.hpp"

namespace netchannel::device {
namespace {

constexpr std::uint32_t kChunk = 4096;
constexpr std::uint32_t kSlotSize = 16384;
constexpr std::uint32_t kSlots = 32;
constexpr std::uint32_t kMore = XDP_PKT_CONTD;

class Chain : public ::testing::Test {
 protected:
  std::unique_ptr<FrameRegion> region_ =
      std::move(*FrameRegion::open({.slot_size = kSlotSize, .slot_count = kSlots}));
  CounterPage counters_;
  RxChain chain_{*region_, kChunk, counters_};
  FrameDesc frame_;
  SlotList home_;

  bool take(std::uint64_t address, std::uint32_t length, std::uint32_t options = 0) {
    return chain_.take({address, length, options}, frame_, home_);
  }
  static std::uint64_t at(std::uint32_t slot, std::uint32_t offset = 256) {
    return std::uint64_t{slot} * kSlotSize + offset;
  }
  void write(std::uint32_t slot, Bytes bytes, std::uint32_t offset = 256) {
    std::copy(bytes.begin(), bytes.end(), region_->slot(slot).subspan(offset).begin());
  }
  std::vector<std::uint32_t> home() const { return {home_.slots.begin(), home_.slots.begin() + home_.size}; }
};

TEST_F(Chain, APacketInOnePartIsItsOwnFrame) {
  ASSERT_TRUE(take(at(3), 100));
  EXPECT_EQ(frame_, (FrameDesc{.slot = 3, .length = 100, .offset = 256}));
  EXPECT_TRUE(home().empty());
}

TEST_F(Chain, PartsAreJoinedInTheFirstSlotAndTheOthersGoBack) {
  const auto packet = testkit::pattern(8914);
  const Bytes bytes(packet);
  write(1, bytes.first(3840));
  write(2, bytes.subspan(3840, 3840));
  write(3, bytes.subspan(7680));
  EXPECT_FALSE(take(at(1), 3840, kMore));
  EXPECT_FALSE(take(at(2), 3840, kMore));
  ASSERT_TRUE(take(at(3), 1234));
  EXPECT_EQ(frame_, (FrameDesc{.slot = 1, .length = 8914, .offset = 256}));
  EXPECT_TRUE(std::ranges::equal(region_->bytes_of(frame_), bytes));
  EXPECT_EQ(home(), (std::vector<std::uint32_t>{2, 3}));
}

TEST_F(Chain, TwoPacketsDoNotMix) {
  EXPECT_FALSE(take(at(1), 10, kMore));
  ASSERT_TRUE(take(at(2), 10));
  EXPECT_EQ(frame_.length, 20u);
  ASSERT_TRUE(take(at(4), 5));
  EXPECT_EQ(frame_, (FrameDesc{.slot = 4, .length = 5, .offset = 256}));
}

TEST_F(Chain, AnAddressOutsideTheRegionIsRejected) {
  for (const std::uint64_t address :
       {at(kSlots), at(kSlots) - 256, ~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 32}) {
    EXPECT_FALSE(take(address, 100)) << address;
  }
  EXPECT_EQ(counters_.read(DropReason::device_bad_descriptor), 5u);
  EXPECT_TRUE(home().empty());
}

TEST_F(Chain, APartThatIsNotInTheFirstChunkIsRejectedAndItsSlotNotLentAgain) {
  EXPECT_FALSE(take(at(2, kChunk), 100));
  EXPECT_FALSE(take(at(2, kSlotSize - 1), 1));
  EXPECT_EQ(counters_.read(DropReason::device_bad_descriptor), 2u);
  EXPECT_TRUE(home().empty());
}

TEST_F(Chain, ALengthPastTheChunkOrOfZeroIsRejected) {
  EXPECT_TRUE(take(at(2), kChunk - 256));
  for (const std::uint32_t length : {kChunk - 255, kSlotSize, 0xffffffffu, 0u})
    EXPECT_FALSE(take(at(2), length));
  EXPECT_EQ(counters_.read(DropReason::device_bad_descriptor), 4u);
  EXPECT_EQ(home(), std::vector<std::uint32_t>(4, 2));
}

TEST_F(Chain, UnknownOptionBitsAreRejected) {
  EXPECT_FALSE(take(at(2), 100, 2));
  EXPECT_FALSE(take(at(2), 100, 0x80000000));
  EXPECT_EQ(counters_.read(DropReason::device_bad_descriptor), 2u);
}

TEST_F(Chain, OneBadPartDropsTheWholePacketAndNoMore) {
  EXPECT_FALSE(take(at(1), 100, kMore));
  EXPECT_FALSE(take(at(kSlots), 100, kMore));
  EXPECT_FALSE(take(at(2), 100, kMore));
  EXPECT_FALSE(take(at(3), 100));
  EXPECT_EQ(counters_.read(DropReason::device_bad_descriptor), 1u);
  EXPECT_EQ(home(), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_TRUE(take(at(4), 100));
}

TEST_F(Chain, APacketLargerThanItsSlotIsDroppedWhole) {
  for (std::uint32_t slot = 0; slot < 4; ++slot) EXPECT_FALSE(take(at(slot), 3840, kMore));
  EXPECT_FALSE(take(at(4), 16384 - 256 - 4 * 3840 + 1));
  EXPECT_EQ(counters_.read(DropReason::device_frame_too_large), 1u);
  EXPECT_EQ(home(), (std::vector<std::uint32_t>{1, 2, 3, 0, 4}));
}

TEST_F(Chain, APacketThatFillsItsSlotIsWhole) {
  for (std::uint32_t slot = 0; slot < 4; ++slot) EXPECT_FALSE(take(at(slot), 3840, kMore));
  EXPECT_TRUE(take(at(4), 16384 - 256 - 4 * 3840));
  EXPECT_EQ(frame_.length, kSlotSize - 256);
}

TEST_F(Chain, AChainThatNeverEndsIsDroppedOnceAndEverySlotGoesBack) {
  constexpr std::uint32_t kParts = 30;
  for (std::uint32_t slot = 0; slot < kParts; ++slot) EXPECT_FALSE(take(at(slot), 1, kMore));
  EXPECT_EQ(counters_.read(DropReason::device_chain_too_long), 1u);
  auto slots = home();
  std::ranges::sort(slots);
  ASSERT_EQ(slots.size(), kParts);
  for (std::uint32_t slot = 0; slot < kParts; ++slot) EXPECT_EQ(slots[slot], slot);
  EXPECT_FALSE(take(at(30), 1));  // its last part, at last
  EXPECT_TRUE(take(at(31), 1));
}

TEST_F(Chain, AsManyPartsAsTheKernelMakesAreWhole) {
  for (std::uint32_t slot = 0; slot + 1 < RxChain::kMaxParts; ++slot) EXPECT_FALSE(take(at(slot), 1, kMore));
  EXPECT_TRUE(take(at(20), 1));
  EXPECT_EQ(frame_.length, RxChain::kMaxParts);
}

TEST(TxLedger, AFrameOfOneDescriptorComesHomeAtOnce) {
  TxLedger ledger(4);
  ledger.sent(2, 1);
  EXPECT_TRUE(ledger.completed(2));
  EXPECT_FALSE(ledger.completed(2));
}

TEST(TxLedger, AFrameOfSeveralComesHomeWithItsLast) {
  TxLedger ledger(4);
  ledger.sent(2, 3);
  EXPECT_FALSE(ledger.completed(2));
  EXPECT_FALSE(ledger.completed(2));
  EXPECT_TRUE(ledger.completed(2));
}

TEST(TxLedger, ASlotOutTwiceComesHomeTwiceAndFullyOnlyAtTheEnd) {
  TxLedger ledger(4);
  ledger.sent(1, 3);
  ledger.sent(1, 2);
  std::vector<bool> reports;
  for (int i = 0; i < 5; ++i) reports.push_back(ledger.completed(1));
  EXPECT_EQ(std::ranges::count(reports, true), 2);
  EXPECT_TRUE(reports.back());
  EXPECT_FALSE(reports[0] || reports[1]);
}

TEST(TxLedger, ACompletionOfWhatWasNotSentIsNothing) {
  TxLedger ledger(4);
  EXPECT_FALSE(ledger.completed(0));
  ledger.sent(0, 2);
  EXPECT_FALSE(ledger.completed(0));
  EXPECT_TRUE(ledger.completed(0));
}

TEST(SlotSize, FitsTheFrameAndTheKernelsHeadroom) {
  EXPECT_EQ(AfXdpDevice::slot_size_for(1500), 2048u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(1778), 2048u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(1779), 4096u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(3826), 4096u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(3827), 8192u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(9000), 16384u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(65535), 131072u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(65536), 0u);
  EXPECT_EQ(AfXdpDevice::slot_size_for(0), 0u);
}

}  // namespace
}  // namespace netchannel::device
