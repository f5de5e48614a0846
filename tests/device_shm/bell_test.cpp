// Sleeping and waking: a wake is paid for only if somebody sleeps, none is missed, and none cuts a later
// sleep short.
#include <poll.h>

#include "tests/device_shm/shm_rig.hpp"

namespace netchannel::device {
namespace {

class ShmBell : public ShmTest {
 protected:
  static bool rings(ShmHost& host) {
    pollfd fd{host.device().info().sleep_fd, POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  }
};

TEST_F(ShmBell, ToWhoIsAwakeNobodyRings) {
  const Link link = join(a, b);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(a.send(link.at_a, pattern(20)));
  EXPECT_FALSE(rings(b));
  EXPECT_EQ(a.counter(Counter::device_tx_kicks), 0u);
}

TEST_F(ShmBell, WhoSleepsIsWokenOnce) {
  const Link link = join(a, b);
  ASSERT_TRUE(b.device().prepare_sleep());
  EXPECT_FALSE(rings(b));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(a.send(link.at_a, pattern(20)));
  EXPECT_TRUE(rings(b));
  EXPECT_EQ(a.counter(Counter::device_tx_kicks), 1u);
  EXPECT_EQ(b.receive().size(), 50u);
  EXPECT_FALSE(rings(b)) << "a ring that is left would cut the next sleep short";
}

TEST_F(ShmBell, ThereIsNoSleepWithSomethingToRead) {
  const Link link = join(a, b);
  ASSERT_TRUE(a.send(link.at_a, pattern(20)));
  EXPECT_FALSE(b.device().prepare_sleep());
  EXPECT_EQ(b.receive().size(), 1u);
  EXPECT_TRUE(b.device().prepare_sleep());
}

TEST_F(ShmBell, ASleepThatNobodyEndedLeavesNoTrace) {
  const Link link = join(a, b);
  ASSERT_TRUE(b.device().prepare_sleep());
  EXPECT_TRUE(b.receive().empty());  // woke up for another reason
  ASSERT_TRUE(a.send(link.at_a, pattern(20)));
  EXPECT_FALSE(rings(b));
  EXPECT_EQ(b.receive().size(), 1u);
}

TEST_F(ShmBell, WhoWaitsForItsSlotsIsWokenByThem) {
  const Link link = join(a, b);
  for (std::uint32_t i = 0; i < kSlots / 2 + 1; ++i) ASSERT_TRUE(a.send(link.at_a, pattern(1000)));
  ASSERT_TRUE(a.device().prepare_sleep());
  EXPECT_FALSE(rings(a));
  EXPECT_EQ(b.receive().size(), kSlots / 2 + 1);
  EXPECT_TRUE(rings(a));
  EXPECT_TRUE(a.receive().empty());
  EXPECT_EQ(a.slots_here(), kSlots);
}

TEST_F(ShmBell, APeerThatGoesAwayWakesAndIsNamedOnce) {
  const Link link = join(a, b);
  ASSERT_TRUE(b.device().prepare_sleep());
  a.device().remove(link.at_a);
  EXPECT_TRUE(rings(b));
  (void)b.device().look();
  EXPECT_EQ(b.gone(), std::vector{link.at_b});
  EXPECT_TRUE(b.gone().empty());
  EXPECT_FALSE(rings(b));
}

TEST_F(ShmBell, WhatWasSentBeforeTheSenderWentIsRead) {
  const Link link = join(a, b);
  ASSERT_TRUE(a.send(link.at_a, pattern(30)));
  ASSERT_TRUE(a.send(link.at_a, pattern(3000)));
  a.device().remove(link.at_a);
  (void)b.device().look();
  EXPECT_TRUE(b.device().has_frames(link.at_b));
  const auto got = b.receive();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].payload, pattern(3000));
  EXPECT_FALSE(b.device().has_frames(link.at_b));
}

TEST_F(ShmBell, SlotsThatAPeerHadComeHomeWhenItIsGone) {
  const Link link = join(a, b);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(a.send(link.at_a, pattern(1000)));
  EXPECT_EQ(a.slots_here(), kSlots - 10);
  a.device().remove(link.at_a);
  EXPECT_EQ(a.slots_here(), kSlots);
  EXPECT_TRUE(a.send(link.at_a, pattern(20)));
  EXPECT_EQ(a.counter(Counter::device_link_down), 1u) << "an address that is no more";
}

TEST_F(ShmBell, BeforeTheOtherMemoryIsKnownSmallFramesComeThroughAndLargeOnesWait) {
  auto memory = make_link_memory();
  ASSERT_TRUE(memory);
  auto theirs = *Mapping::of_stranger(memory->fd.get(), kLinkMemory, Mapping::Access::read_write);
  Bells bells;
  const auto at_a = *a.device().add(std::move(memory->mapping), LinkRole::connector, std::move(bells.a));
  const auto at_b = *b.device().add(std::move(theirs), LinkRole::acceptor, std::move(bells.b));
  ASSERT_TRUE(b.device().complete(at_b, a.show()));
  ASSERT_TRUE(b.send(at_b, pattern(20)));
  ASSERT_TRUE(b.send(at_b, pattern(2000)));
  EXPECT_EQ(a.receive().size(), 1u);
  EXPECT_TRUE(a.device().prepare_sleep()) << "waiting for it must not keep anybody awake";
  EXPECT_TRUE(a.receive().empty());
  ASSERT_TRUE(a.device().complete(at_a, b.show()));
  EXPECT_EQ(a.receive().size(), 1u);
}

}  // namespace
}  // namespace netchannel::device
