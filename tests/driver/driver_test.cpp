#include "driver/driver.hpp"

#include <gtest/gtest.h>

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/udp.hpp"
#include "tests/driver/fake_device.hpp"

namespace netchannel::driver {
namespace {

const IpAddress kUs = IpAddress::v4(10, 0, 0, 1);
const IpAddress kPeer = IpAddress::v4(10, 0, 0, 2);

// An Ethernet, IPv4 and UDP header without payload or checksums: what the driver looks at.
std::vector<std::byte> udp_frame(Endpoint from, Endpoint to) {
  std::vector<std::byte> frame(14 + 20 + 8);
  const MutableBytes bytes(frame);
  store_be16(bytes, 12, 0x0800);
  store_u8(bytes, 14, 0x45);
  store_be16(bytes, 16, 28);
  store_u8(bytes, 22, 64);
  store_u8(bytes, 23, 17);
  store_be32(bytes, 26, from.address.v4_value());
  store_be32(bytes, 30, to.address.v4_value());
  store_be16(bytes, 34, from.port);
  store_be16(bytes, 36, to.port);
  store_be16(bytes, 38, 8);
  return frame;
}

std::vector<std::byte> arp_frame() {
  std::vector<std::byte> frame(14 + 28);
  store_be16(MutableBytes(frame), 12, 0x0806);
  return frame;
}

constexpr std::uint32_t kRxSlots = 256;
constexpr std::uint32_t kTxSlots = 64;

class DriverTest : public ::testing::Test {
 protected:
  DriverTest()
      : region(*FrameRegion::open({.slot_size = 2048, .slot_count = kRxSlots + 2 * kTxSlots})),
        device(*region),
        driver(device, *region, {0, kRxSlots}, counters) {}

  struct Consumer {
    std::unique_ptr<Channel> channel;
    ConsumerEnd end;
    ChannelId id = 0;
    SlotRange tx;

    std::vector<FrameDesc> received() {
      std::vector<FrameDesc> out(kBurst);
      out.resize(end.rx.pop_all(out));
      return out;
    }
  };

  Consumer attach(std::uint32_t rx_ring = 128) {
    Consumer consumer;
    consumer.channel =
        *Channel::open({.rx_ring = rx_ring, .tx_ring = 128, .rx_slots = kRxSlots, .tx_slots = kTxSlots});
    consumer.end = consumer.channel->take_consumer();
    consumer.tx = {kRxSlots + attached++ * kTxSlots, kTxSlots};
    consumer.id = *driver.attach(consumer.channel->take_driver(), consumer.tx);
    return consumer;
  }

  FlowReply command(Consumer& consumer, FlowCommand::Kind kind, const FlowKey& flow) {
    consumer.end.commands.push({.kind = kind, .tag = 7, .flow = flow});
    driver.poll();
    FlowReply reply;
    EXPECT_EQ(consumer.end.replies.pop_all({&reply, 1}), 1u);
    EXPECT_EQ(reply.tag, 7u);
    return reply;
  }
  FlowReply claim(Consumer& consumer, const FlowKey& flow) {
    return command(consumer, FlowCommand::Kind::claim, flow);
  }

  CounterPage counters;
  std::unique_ptr<FrameRegion> region;
  FakeDevice device;
  Driver driver;
  std::uint32_t attached = 0;
};

const FlowKey kWildcard{Protocol::udp, {kUs, 53}, {}};
const FlowKey kExact{Protocol::udp, {kUs, 53}, {kPeer, 4000}};

TEST_F(DriverTest, LendsEveryReceiveSlotToTheDeviceAtOnce) { EXPECT_EQ(device.lent.size(), kRxSlots); }

TEST_F(DriverTest, LendsTheRestLaterWhenTheDeviceTakesOnlyPart) {
  FakeDevice small(*region);
  small.capacity = 10;
  Driver other(small, *region, {0, kRxSlots}, counters);
  EXPECT_EQ(small.lent.size(), 10u);
  small.capacity = kRxSlots;
  other.poll();
  EXPECT_EQ(small.lent.size(), kRxSlots);
  EXPECT_EQ(std::set<std::uint32_t>(small.lent.begin(), small.lent.end()).size(), kRxSlots);
}

TEST_F(DriverTest, ALoneConsumerGetsEverything) {
  auto only = attach();
  device.deliver(arp_frame());
  device.deliver(udp_frame({kPeer, 1}, {kUs, 2}));
  EXPECT_TRUE(driver.poll());
  EXPECT_EQ(only.received().size(), 2u);
}

TEST_F(DriverTest, SendsAFlowToTheChannelThatClaimedIt) {
  auto first = attach(), second = attach();
  EXPECT_TRUE(claim(second, kWildcard).ok);
  device.deliver(udp_frame({kPeer, 4000}, {kUs, 53}));
  driver.poll();
  EXPECT_TRUE(first.received().empty());
  EXPECT_EQ(second.received().size(), 1u);
}

TEST_F(DriverTest, AnExactFlowOutranksAWildcard) {
  auto first = attach(), second = attach();
  EXPECT_TRUE(claim(first, kWildcard).ok);
  EXPECT_TRUE(claim(second, kExact).ok);
  device.deliver(udp_frame({kPeer, 4000}, {kUs, 53}));
  device.deliver(udp_frame({kPeer, 4001}, {kUs, 53}));
  driver.poll();
  EXPECT_EQ(first.received().size(), 1u);
  EXPECT_EQ(second.received().size(), 1u);
}

TEST_F(DriverTest, WhatBelongsToNoFlowGoesToTheFirstChannel) {
  auto first = attach(), second = attach();
  device.deliver(arp_frame());
  driver.poll();
  EXPECT_EQ(first.received().size(), 1u);
  EXPECT_TRUE(second.received().empty());
}

TEST_F(DriverTest, AFlowWithoutAChannelIsCountedAndItsSlotLentAgain) {
  auto first = attach(), second = attach();
  device.deliver(udp_frame({kPeer, 4000}, {kUs, 99}));
  driver.poll();
  EXPECT_EQ(counters.read(DropReason::no_channel), 1u);
  EXPECT_EQ(device.lent.size(), kRxSlots);
}

TEST_F(DriverTest, AMalformedFrameIsCountedByItsReasonAndItsSlotLentAgain) {
  auto first = attach(), second = attach();
  device.deliver(std::vector<std::byte>(5));
  driver.poll();
  EXPECT_EQ(counters.read(DropReason::eth_truncated), 1u);
  EXPECT_EQ(device.lent.size(), kRxSlots);
}

TEST_F(DriverTest, ABurstIsReleasedOnceForEachChannel) {
  auto first = attach(), second = attach();
  claim(first, kWildcard);
  claim(second, kExact);
  for (int i = 0; i < 10; ++i) {
    device.deliver(udp_frame({kPeer, 4000}, {kUs, 53}));
    device.deliver(udp_frame({kPeer, 4001}, {kUs, 53}));
  }
  driver.poll();
  EXPECT_EQ(counters.read(Counter::channel_rx_pushed), 20u);
  EXPECT_EQ(counters.read(Counter::channel_rx_batches), 2u);
  EXPECT_EQ(counters.read(Counter::channel_doorbells), 0u);
}

TEST_F(DriverTest, ASleepingConsumerIsRungOnce) {
  auto only = attach();
  only.end.bell->announce_sleep();
  for (int i = 0; i < 3; ++i) {
    device.deliver(arp_frame());
    driver.poll();
  }
  EXPECT_EQ(counters.read(Counter::channel_doorbells), 1u);
}

TEST_F(DriverTest, AFullChannelDropsTheRestCountsItAndLosesNoSlot) {
  auto only = attach(4);
  for (int i = 0; i < 10; ++i) device.deliver(arp_frame());
  driver.poll();
  EXPECT_EQ(counters.read(DropReason::channel_full), 6u);
  EXPECT_EQ(device.lent.size(), kRxSlots - 4);
}

TEST_F(DriverTest, ReceiveSlotsComeHomeAndAreLentAgain) {
  auto only = attach();
  device.deliver(arp_frame());
  driver.poll();
  const auto got = only.received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(device.lent.size(), kRxSlots - 1);
  only.end.recycle.push(got[0].slot);
  driver.poll();
  EXPECT_EQ(device.lent.size(), kRxSlots);
}

TEST_F(DriverTest, ASlotThatAConsumerDoesNotHoldIsRefusedWhenItRecyclesIt) {
  auto first = attach(), second = attach();
  device.deliver(arp_frame());
  driver.poll();
  const std::uint32_t slot = first.received().at(0).slot;
  second.end.recycle.push(slot);         // another's
  first.end.recycle.push(0xffffffff);    // no slot at all
  first.end.recycle.push(kRxSlots + 1);  // a transmit slot
  first.end.recycle.push(slot);
  first.end.recycle.push(slot);  // twice
  driver.poll();
  EXPECT_EQ(counters.read(Counter::channel_hostile), 4u);
  EXPECT_EQ(device.lent.size(), kRxSlots);
}

TEST_F(DriverTest, ADescriptorOutsideTheRegionFromTheDeviceIsNeverPassedOn) {
  auto only = attach();
  device.arrived.push_back(FrameDesc{.slot = kRxSlots + 3, .length = 60});
  FrameDesc too_long{.slot = device.lent.back(), .length = 4000};
  device.lent.pop_back();
  device.arrived.push_back(too_long);
  driver.poll();
  EXPECT_TRUE(only.received().empty());
  EXPECT_EQ(counters.read(DropReason::device_bad_descriptor), 2u);
  EXPECT_EQ(device.lent.size(), kRxSlots);
}

TEST_F(DriverTest, SendsABurstWithOneDeviceCall) {
  auto only = attach();
  for (std::uint32_t i = 0; i < 10; ++i) only.end.tx.push(FrameDesc{.slot = only.tx.first + i, .length = 60});
  EXPECT_TRUE(driver.transmit());
  EXPECT_EQ(device.sent.size(), 10u);
  EXPECT_EQ(device.tx_calls, 1);
}

TEST_F(DriverTest, WhatTheDeviceDoesNotTakeStaysInOrder) {
  auto only = attach();
  for (std::uint32_t i = 0; i < 10; ++i) only.end.tx.push(FrameDesc{.slot = only.tx.first + i, .length = 60});
  device.tx_room = 4;
  driver.transmit();
  driver.transmit();
  driver.transmit();
  ASSERT_EQ(device.sent.size(), 10u);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(device.sent[i].slot, only.tx.first + i);
}

TEST_F(DriverTest, ATransmitDescriptorOutsideTheConsumersRangeIsCountedAndNotSent) {
  auto first = attach(), second = attach();
  first.end.tx.push(FrameDesc{.slot = first.tx.first, .length = 60});
  first.end.tx.push(FrameDesc{.slot = second.tx.first, .length = 60});                // another's
  first.end.tx.push(FrameDesc{.slot = first.tx.first, .length = 2048, .offset = 1});  // past the slot
  first.end.tx.push(FrameDesc{.slot = 0, .length = 60});                              // a receive slot
  first.end.tx.push(FrameDesc{.slot = first.tx.first + 1, .length = 60});
  for (int i = 0; i < 6; ++i) driver.transmit();
  EXPECT_EQ(counters.read(Counter::channel_hostile), 3u);
  ASSERT_EQ(device.sent.size(), 2u);
  EXPECT_EQ(device.sent[1].slot, first.tx.first + 1);
}

TEST_F(DriverTest, CompletedSlotsGoToTheConsumerWhoseTheyAre) {
  auto first = attach(), second = attach();
  device.done.push_back(FrameDesc{.slot = second.tx.first + 5});
  EXPECT_TRUE(driver.poll());
  std::uint32_t slot = 0;
  EXPECT_EQ(first.end.reclaimed.pop_all({&slot, 1}), 0u);
  ASSERT_EQ(second.end.reclaimed.pop_all({&slot, 1}), 1u);
  EXPECT_EQ(slot, second.tx.first + 5);
}

TEST_F(DriverTest, AFlowCanBeClaimedOnce) {
  auto first = attach(), second = attach();
  EXPECT_TRUE(claim(first, kWildcard).ok);
  const auto again = claim(second, kWildcard);
  EXPECT_FALSE(again.ok);
  EXPECT_EQ(again.code, ErrorCode::address_in_use);
}

TEST_F(DriverTest, AClaimReachesTheDeviceAndIsUndoneWhenTheDeviceRefuses) {
  device.steers = true;
  auto only = attach();
  EXPECT_TRUE(claim(only, kExact).ok);
  EXPECT_EQ(device.claimed.count(kExact), 1u);
  device.refuse_claims = true;
  const auto refused = claim(only, kWildcard);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.code, ErrorCode::no_memory);
  EXPECT_EQ(refused.sys_errno, 12);
  EXPECT_EQ(driver.flows().size(), 1u);
}

TEST_F(DriverTest, OnlyTheOwnerCanUnclaim) {
  auto first = attach(), second = attach();
  claim(first, kWildcard);
  EXPECT_FALSE(command(second, FlowCommand::Kind::unclaim, kWildcard).ok);
  EXPECT_TRUE(command(first, FlowCommand::Kind::unclaim, kWildcard).ok);
  EXPECT_EQ(driver.flows().size(), 0u);
}

TEST_F(DriverTest, DetachUnclaimsAndTakesBackEverySlotOfADeadConsumer) {
  device.steers = true;
  auto first = attach(), second = attach();
  claim(second, kWildcard);
  for (int i = 0; i < 5; ++i) device.deliver(udp_frame({kPeer, 4000}, {kUs, 53}));
  driver.poll();
  EXPECT_EQ(device.lent.size(), kRxSlots - 5);
  driver.detach(second.id);
  EXPECT_EQ(device.lent.size(), kRxSlots);
  EXPECT_TRUE(device.claimed.empty());
  EXPECT_EQ(driver.flows().size(), 0u);
  // The other goes on, now alone.
  device.deliver(udp_frame({kPeer, 4000}, {kUs, 53}));
  driver.poll();
  EXPECT_EQ(first.received().size(), 1u);
}

TEST_F(DriverTest, DoesNotSleepWhileAConsumerHasSomethingToSend) {
  auto only = attach();
  EXPECT_TRUE(driver.prepare_sleep());
  only.end.tx.push(FrameDesc{.slot = only.tx.first, .length = 60});
  EXPECT_FALSE(driver.prepare_sleep());
}

}  // namespace
}  // namespace netchannel::driver
