#include "device/wrap_fault.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "device/link.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {
namespace {

using testkit::Packet;
using testkit::pattern;
using testkit::Port;

// Near end with faults, far end without, a perfect wire between them.
struct Lab {
  explicit Lab(const FaultOptions& faults, const LinkOptions& options = {}) {
    link = *LinkPair::open(options, near.home(), far.home());
    device = *FaultDevice::open(faults, link->take_a(), near.region());
    near.attach(*device);
    far.attach(link->b());
  }
  // Everything the far end sends, received until nothing more comes.
  std::vector<Packet> sent_from_far(std::uint8_t count) {
    std::vector<Packet> out;
    for (std::uint8_t i = 0; i < count; ++i) {
      EXPECT_TRUE(far.send(pattern(60, i)));
      if (i % 7 == 6 || i + 1 == count) {
        for (auto& packet : near.receive()) out.push_back(std::move(packet));
      }
    }
    return out;
  }
  Port near;
  Port far;
  std::unique_ptr<LinkPair> link;
  std::unique_ptr<FaultDevice> device;
};

TEST(FaultDevice, WithoutFaultsIsTheDeviceItself) {
  Lab lab({});
  EXPECT_EQ(lab.device->info().name, "link");
  std::vector<Packet> expected;
  for (std::uint8_t i = 0; i < 50; ++i) expected.push_back(pattern(60, i));
  EXPECT_EQ(lab.sent_from_far(50), expected);
  ASSERT_TRUE(lab.near.send(pattern(99)));
  EXPECT_EQ(lab.far.receive(), std::vector<Packet>{pattern(99)});
  EXPECT_TRUE(lab.near.slots_home());
  EXPECT_TRUE(lab.device->prepare_sleep());
}

TEST(FaultDevice, LosesPacketsButNotTheirSlots) {
  Lab lab({.loss = 0.5});
  std::size_t got = 0;
  for (int round = 0; round < 20; ++round)
    got += lab.sent_from_far(100).size();  // far more than there are slots
  EXPECT_EQ(got + lab.device->stats().lost, 2000u);
  EXPECT_NEAR(static_cast<double>(got), 1000, 90);
  EXPECT_EQ(lab.near.rx_slots_here(), 0u);
}

TEST(FaultDevice, LosesAPacketOfSeveralPartsWhole) {
  Lab lab({.loss = 0.5}, {.mtu = 9000, .multi_buffer = true});
  std::size_t got = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(lab.far.send(pattern(9000)));
    for (const auto& packet : lab.near.receive()) {
      EXPECT_EQ(packet, pattern(9000));
      ++got;
    }
  }
  EXPECT_EQ(got + lab.device->stats().lost, 100u);
  EXPECT_GT(got, 0u);
  EXPECT_GT(lab.device->stats().lost, 0u);
}

TEST(FaultDevice, DoublesPacketsIntoSlotsOfItsOwn) {
  Lab lab({.duplicate = 1});
  EXPECT_EQ(lab.sent_from_far(3), (std::vector<Packet>{pattern(60, 0), pattern(60, 0), pattern(60, 1),
                                                       pattern(60, 1), pattern(60, 2), pattern(60, 2)}));
  std::size_t got = 0;
  for (int round = 0; round < 20; ++round) got += lab.sent_from_far(100).size();
  EXPECT_EQ(got + 6, 2003 + lab.device->stats().duplicated) << "a copy is seen or was not made";
  EXPECT_EQ(lab.near.rx_slots_here(), 0u);
}

TEST(FaultDevice, FlipsOneBit) {
  Lab lab({.corrupt = 1});
  const auto got = lab.sent_from_far(1);
  ASSERT_EQ(got.size(), 1u);
  int flipped = 0;
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    flipped += std::popcount(std::to_integer<unsigned>(got[0][i] ^ pattern(60, 0)[i]));
  }
  EXPECT_EQ(flipped, 1);
}

TEST(FaultDevice, HoldsAPacketBackUntilOthersHaveOvertakenIt) {
  Lab lab({.reorder = 0.2, .reorder_behind = 2});
  const auto got = lab.sent_from_far(100);
  ASSERT_EQ(got.size(), 100u) << "reordered is not lost";
  std::size_t out_of_order = 0;
  for (std::uint8_t i = 0; i < 100; ++i) {
    const auto position = static_cast<std::size_t>(std::ranges::find(got, pattern(60, i)) - got.begin());
    ASSERT_LT(position, got.size()) << "packet " << int{i} << " is there";
    if (position > i) ++out_of_order;
    EXPECT_LE(position, i + 2u) << "overtaken by two at most";
  }
  EXPECT_GT(out_of_order, 0u);
  EXPECT_GT(lab.device->stats().reordered, 0u);
}

TEST(FaultDevice, APacketHeldBackComesWhenNothingElseDoes) {
  Lab lab({.reorder = 1});
  ASSERT_TRUE(lab.far.send(pattern(60, 1)));
  std::array<FrameDesc, 8> out;
  EXPECT_EQ(lab.device->rx_burst(out), 0u) << "held back";
  EXPECT_FALSE(lab.device->prepare_sleep()) << "nobody may sleep on it";
  EXPECT_EQ(lab.device->rx_burst(out), 1u);
  EXPECT_TRUE(lab.device->prepare_sleep());
}

TEST(FaultDevice, ShortBurstsTakeTheFrontAndLoseNothing) {
  Lab lab({.short_burst = 1});
  std::vector<FrameDesc> burst;
  for (std::uint32_t i = 0; i < 32; ++i) burst.push_back({.slot = 128 + i, .length = 60 + i});
  std::size_t taken = 0;
  int calls = 0;
  while (taken < burst.size() - 1 && ++calls < 10'000) {
    const std::size_t n = lab.device->tx_burst(std::span(burst).subspan(taken));
    ASSERT_LT(n, burst.size() - taken) << "never the whole";
    taken += n;
  }
  const auto got = lab.far.receive();
  ASSERT_EQ(got.size(), taken);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].size(), 60 + i);
  EXPECT_EQ(lab.device->stats().short_bursts, static_cast<std::uint64_t>(calls));
}

TEST(FaultDevice, LosesSentPacketsButReturnsTheirSlots) {
  Lab lab({.tx_loss = 0.5}, {.mtu = 9000, .multi_buffer = true});
  std::size_t got = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(lab.near.send(pattern(i % 2 == 0 ? 60 : 9000)));
    for (const auto& packet : lab.far.receive()) {
      EXPECT_TRUE(packet == pattern(60) || packet == pattern(9000)) << "whole or not at all";
      ++got;
    }
  }
  EXPECT_EQ(got + lab.device->stats().tx_lost, 200u);
  EXPECT_GT(got, 50u);
  EXPECT_GT(lab.device->stats().tx_lost, 50u);
  EXPECT_TRUE(lab.near.slots_home());
}

TEST(FaultDevice, LeavesAnUnfinishedPacketToTheDevice) {
  Lab lab({.tx_loss = 0.5}, {.mtu = 9000});
  EXPECT_EQ(lab.device->tx_burst(std::array{FrameDesc{.slot = 128, .length = 60, .flags = kContinues}}), 0u);
  const std::vector<FrameDesc> endless(40, FrameDesc{.slot = 128, .length = 10, .flags = kContinues});
  EXPECT_EQ(lab.device->tx_burst(endless), 40u);
  EXPECT_EQ(lab.near.counters().read(DropReason::device_chain_too_long), 1u);
}

TEST(FaultDevice, TheSameSeedGivesTheSameFaults) {
  const FaultOptions faults{.loss = 0.2, .duplicate = 0.2, .corrupt = 0.2, .reorder = 0.2, .seed = 3};
  auto other = faults;
  other.seed = 4;
  const auto first = Lab(faults).sent_from_far(100);
  EXPECT_EQ(first, Lab(faults).sent_from_far(100));
  EXPECT_NE(first, Lab(other).sent_from_far(100));
}

TEST(FaultDevice, RefusesImpossibleProbabilities) {
  Port a, b;
  auto link = *LinkPair::open({}, a.home(), b.home());
  const auto device = FaultDevice::open({.loss = 2}, link->take_a(), a.region());
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace netchannel::device
