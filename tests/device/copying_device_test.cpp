// What is alike in the devices that copy: checked through a link, whose wire is perfect.
#include "device/copying_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "device/link.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {
namespace {

using testkit::Packet;
using testkit::pattern;
using testkit::Port;

constexpr std::uint32_t kSlots = 64;

// A's side by hand, b's with a port.
class CopyingDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    region_ = *FrameRegion::open({.slot_size = 2048, .slot_count = kSlots});
    counters_ = std::make_unique<CounterPage>();
    link_ = *LinkPair::open({.mtu = 9000, .multi_buffer = true}, {*region_, *counters_}, port_.home());
    port_.attach(link_->b());
  }
  std::size_t send(const std::vector<FrameDesc>& frames) { return link_->a().tx_burst(frames); }
  std::vector<std::uint32_t> reclaimed() {
    std::array<FrameDesc, kSlots> out;
    std::vector<std::uint32_t> slots;
    const std::size_t n = link_->a().reclaim(out);
    for (std::size_t i = 0; i < n; ++i) slots.push_back(out[i].slot);
    std::ranges::sort(slots);
    return slots;
  }
  std::uint64_t dropped(DropReason reason) const { return counters_->read(reason); }

  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<CounterPage> counters_;
  Port port_;
  std::unique_ptr<LinkPair> link_;
};

using Slots = std::vector<std::uint32_t>;

TEST_F(CopyingDeviceTest, RefusesDescriptorsOutsideTheRegionAndNeverReadsThere) {
  const std::vector<FrameDesc> hostile = {
      {.slot = kSlots, .length = 60},
      {.slot = 0xffffffff, .length = 60},
      {.slot = 1, .length = 2049},
      {.slot = 2, .length = 2000, .offset = 100},
      {.slot = 3, .length = 0xffffffff, .offset = 1},
  };
  EXPECT_EQ(send(hostile), hostile.size()) << "consumed: they would never become better";
  EXPECT_EQ(dropped(DropReason::device_bad_descriptor), hostile.size());
  EXPECT_TRUE(port_.receive().empty());
  EXPECT_EQ(reclaimed(), (Slots{1, 2, 3})) << "slots that exist come home";
}

TEST_F(CopyingDeviceTest, OneBadPartSpoilsThePacketAndNotTheNext) {
  EXPECT_EQ(send({{.slot = 0, .length = 60, .flags = kContinues},
                  {.slot = kSlots, .length = 60, .flags = kContinues},
                  {.slot = 1, .length = 60},
                  {.slot = 2, .length = 77}}),
            4u);
  EXPECT_EQ(dropped(DropReason::device_bad_descriptor), 1u);
  const auto got = port_.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].size(), 77u);
  EXPECT_EQ(reclaimed(), (Slots{0, 1, 2}));
}

TEST_F(CopyingDeviceTest, WaitsForTheRestOfAPacket) {
  EXPECT_EQ(send({{.slot = 0, .length = 60}, {.slot = 1, .length = 60, .flags = kContinues}}), 1u);
  EXPECT_EQ(port_.receive().size(), 1u);
  EXPECT_EQ(send({{.slot = 1, .length = 60, .flags = kContinues}, {.slot = 2, .length = 5}}), 2u);
  const auto got = port_.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].size(), 65u);
}

TEST_F(CopyingDeviceTest, TakesEighteenPartsAndDropsNineteen) {
  const auto chain = [](std::size_t parts) {
    std::vector<FrameDesc> out;
    for (std::uint32_t i = 0; i < parts; ++i) out.push_back({.slot = i, .length = 10, .flags = kContinues});
    out.back().flags = 0;
    return out;
  };
  EXPECT_EQ(send(chain(18)), 18u);
  EXPECT_EQ(port_.receive().size(), 1u);
  EXPECT_EQ(reclaimed().size(), 18u);
  EXPECT_EQ(send(chain(19)), 19u);
  EXPECT_TRUE(port_.receive().empty());
  EXPECT_EQ(dropped(DropReason::device_chain_too_long), 1u);
  EXPECT_EQ(reclaimed().size(), 19u);
}

TEST_F(CopyingDeviceTest, DropsAChainThatNeverEndsOnceAndWholeAndThenGoesOn) {
  const std::vector<FrameDesc> endless(20, FrameDesc{.slot = 0, .length = 10, .flags = kContinues});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(send(endless), 20u);
    EXPECT_EQ(reclaimed().size(), 20u);
  }
  EXPECT_EQ(dropped(DropReason::device_chain_too_long), 1u) << "one packet";
  EXPECT_EQ(send({{.slot = 0, .length = 10}, {.slot = 1, .length = 33}}), 2u) << "its end, and a good one";
  const auto got = port_.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].size(), 33u);
}

TEST_F(CopyingDeviceTest, LengthsThatWrapWhenAddedUpAreRefused) {
  EXPECT_EQ(send({{.slot = 0, .length = 0xffffffff, .flags = kContinues}, {.slot = 1, .length = 61}}), 2u);
  EXPECT_EQ(dropped(DropReason::device_bad_descriptor), 1u);
  EXPECT_TRUE(port_.receive().empty());
}

TEST_F(CopyingDeviceTest, AnEmptyFrameIsAFrame) {
  EXPECT_EQ(send({{.slot = 0, .length = 0, .offset = 2048}}), 1u);
  EXPECT_EQ(port_.receive(), (std::vector<Packet>{{}}));
}

TEST_F(CopyingDeviceTest, TakesNoMoreThanItCanReturn) {
  const std::vector<FrameDesc> burst(kSlots, FrameDesc{.slot = 5, .length = 10});
  EXPECT_EQ(send(burst), kSlots);
  EXPECT_EQ(send({{.slot = 6, .length = 10}}), 0u) << "as many slots are on their way home as there are";
  EXPECT_EQ(counters_->read(Counter::device_tx_busy), 1u);
  EXPECT_EQ(reclaimed().size(), kSlots);
  EXPECT_EQ(send({{.slot = 6, .length = 10}}), 1u);
}

TEST_F(CopyingDeviceTest, RefillTakesWhatExistsAndNoMoreThanThereIs) {
  const std::array<std::uint32_t, 3> hostile{0, kSlots, 0xffffffff};
  EXPECT_EQ(link_->a().refill(hostile), 3u);
  EXPECT_EQ(dropped(DropReason::device_bad_descriptor), 2u);
  std::vector<std::uint32_t> many(kSlots, 1);
  EXPECT_EQ(link_->a().refill(many), kSlots - 1);
  EXPECT_EQ(link_->a().refill(many), 0u);
}

TEST_F(CopyingDeviceTest, ReceivesNothingWithoutSlots) {
  ASSERT_TRUE(port_.send(pattern(60)));
  std::array<FrameDesc, 4> out;
  EXPECT_EQ(link_->a().rx_burst(out), 0u);
  EXPECT_EQ(link_->a().refill(std::array<std::uint32_t, 1>{9}), 1u);
  EXPECT_EQ(link_->a().rx_burst({}), 0u);
  ASSERT_EQ(link_->a().rx_burst(out), 1u);
  EXPECT_EQ(out[0], (FrameDesc{.slot = 9, .length = 60, .offset = 64}));
}

TEST_F(CopyingDeviceTest, APacketOfSeveralPartsIsNeverCutByTheEndOfABurst) {
  ASSERT_TRUE(port_.send(pattern(5000)));  // three parts
  const std::array<std::uint32_t, 4> slots{0, 1, 2, 3};
  ASSERT_EQ(link_->a().refill(slots), 4u);
  std::array<FrameDesc, 4> out;
  EXPECT_EQ(link_->a().rx_burst(std::span(out).first(2)), 0u);
  ASSERT_EQ(link_->a().rx_burst(out), 3u);
  EXPECT_EQ(out[0].flags, kContinues);
  EXPECT_EQ(out[1].flags, kContinues);
  EXPECT_EQ(out[2].flags, 0);
  EXPECT_EQ(out[0].length + out[1].length + out[2].length, 5000u);
}

}  // namespace
}  // namespace netchannel::device
