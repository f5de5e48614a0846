// The neighbour cache as a dialogue: who uses, who answers, and what time does. Each deadline just before and
// at.
#include "proto/neighbour.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netchannel::proto {
namespace {

using namespace std::chrono_literals;
using Kind = NeighbourAction::Kind;
using State = NeighbourState;

const IpAddress kHost = IpAddress::v4(10, 0, 0, 2);
const MacAddress kMac{{2, 0, 0, 0, 0, 2}}, kOther{{2, 0, 0, 0, 0, 3}};

IpAddress host(std::uint32_t i) { return IpAddress::v4(0x0a000000 + i); }

class Neighbour : public ::testing::Test {
 protected:
  NeighbourCache cache{{.capacity = 4, .resolved_outside = false, .key = {1, 2}}};
  Instant now{5'000'000'000};

  std::vector<Kind> poll() {
    std::array<NeighbourAction, 8> actions;
    const std::size_t n = cache.poll(now, actions);
    std::vector<Kind> kinds;
    for (std::size_t i = 0; i < n; ++i) kinds.push_back(actions[i].kind);
    return kinds;
  }
  std::vector<Kind> advance(Duration by) {
    now = now + by;
    return poll();
  }
  NeighbourCache::Effect answer(const MacAddress& mac, bool solicited = true) {
    return cache.on_answer(kHost, {.mac = mac, .solicited = solicited}, now);
  }
  void make_reachable() {
    cache.use(kHost, now);
    answer(kMac);
  }
};

TEST_F(Neighbour, TheFirstUseAsksAtOnceAndWaits) {
  const auto first = cache.use(kHost, now);
  EXPECT_FALSE(first.usable);
  EXPECT_TRUE(first.act_now);
  EXPECT_EQ(first.action.kind, Kind::ask_all);
  EXPECT_EQ(first.action.address, kHost);
  const auto second = cache.use(kHost, now);
  EXPECT_FALSE(second.usable);
  EXPECT_FALSE(second.act_now);  // one question a second, whoever sends how much
  EXPECT_EQ(second.index, first.index);
}

TEST_F(Neighbour, AsksThreeTimesASecondApartThenFails) {
  cache.use(kHost, now);
  EXPECT_TRUE(advance(1s - 1ns).empty());
  EXPECT_EQ(advance(1ns), std::vector{Kind::ask_all});
  EXPECT_EQ(advance(1s), std::vector{Kind::ask_all});
  EXPECT_TRUE(advance(1s - 1ns).empty());
  EXPECT_EQ(advance(1ns), std::vector{Kind::failed});
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.next_deadline(), kForever);
}

TEST_F(Neighbour, AnAnswerMakesItReachableForThirtySeconds) {
  cache.use(kHost, now);
  const auto effect = answer(kMac);
  EXPECT_TRUE(effect.resolved);
  EXPECT_TRUE(effect.changed);
  EXPECT_EQ(effect.mac, kMac);
  const auto use = cache.use(kHost, now);
  EXPECT_TRUE(use.usable);
  EXPECT_EQ(use.mac, kMac);
  EXPECT_EQ(use.valid_until, now + kReachableTime);
  now = now + kReachableTime - 1ns;
  cache.use(kHost, now);
  EXPECT_EQ(cache.state(kHost), State::reachable);
  now = now + 1ns;
  EXPECT_TRUE(cache.use(kHost, now).usable);  // stale is used, and verified
  EXPECT_EQ(cache.state(kHost), State::delay);
}

TEST_F(Neighbour, AStaleOneIsProbedFiveSecondsAfterUseAndForgottenWithoutAnswer) {
  make_reachable();
  now = now + kReachableTime;
  cache.use(kHost, now);
  EXPECT_TRUE(advance(5s - 1ns).empty());
  EXPECT_EQ(advance(1ns), std::vector{Kind::ask_one});
  EXPECT_TRUE(cache.use(kHost, now).usable);
  EXPECT_EQ(advance(1s), std::vector{Kind::ask_one});
  EXPECT_EQ(advance(1s), std::vector{Kind::ask_one});
  EXPECT_EQ(advance(1s), std::vector{Kind::failed});
  EXPECT_FALSE(cache.state(kHost));
}

TEST_F(Neighbour, AnAnswerToAProbeMakesItReachableAgain) {
  make_reachable();
  now = now + kReachableTime;
  cache.use(kHost, now);
  advance(5s);
  const auto effect = answer(kMac);
  EXPECT_TRUE(effect.changed);  // prebuilt headers must learn the new time
  EXPECT_EQ(cache.state(kHost), State::reachable);
  EXPECT_EQ(cache.next_deadline(), kForever);
}

TEST_F(Neighbour, WhatNobodyAskedForMakesNoEntry) {
  EXPECT_FALSE(answer(kMac, true).changed);
  EXPECT_FALSE(answer(kMac, false).changed);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(Neighbour, AnUnsolicitedChangeIsTakenAsStaleAndVerifiedOnUse) {
  make_reachable();
  EXPECT_TRUE(answer(kOther, false).changed);
  EXPECT_EQ(cache.state(kHost), State::stale);
  EXPECT_EQ(cache.use(kHost, now).mac, kOther);
  EXPECT_EQ(cache.state(kHost), State::delay);
}

TEST_F(Neighbour, AClaimedSolicitedFlagDoesNotRefreshWhatWasNotAsked) {
  make_reachable();
  EXPECT_TRUE(answer(kOther, true).changed);
  EXPECT_EQ(cache.state(kHost), State::stale);
}

TEST_F(Neighbour, WithoutOverrideAnotherMacOnlyMakesItStale) {
  make_reachable();
  cache.on_answer(kHost, {.mac = kOther, .solicited = true, .overrides = false}, now);
  EXPECT_EQ(cache.state(kHost), State::stale);
  EXPECT_EQ(cache.use(kHost, now).mac, kMac);
}

TEST_F(Neighbour, AnAdvertisementWithoutAddressDoesNotResolve) {
  cache.use(kHost, now);
  EXPECT_FALSE(cache.on_answer(kHost, {.mac = std::nullopt, .solicited = true}, now).resolved);
  EXPECT_EQ(cache.state(kHost), State::incomplete);
}

TEST_F(Neighbour, AQuestionForUsMakesAStaleEntry) {
  cache.on_question(kHost, kMac, now);
  EXPECT_EQ(cache.state(kHost), State::stale);
  EXPECT_TRUE(cache.use(kHost, now).usable);
}

TEST_F(Neighbour, AQuestionResolvesWhatWaits) {
  cache.use(kHost, now);
  const auto effect = cache.on_question(kHost, kMac, now);
  EXPECT_TRUE(effect.resolved);
  EXPECT_EQ(cache.state(kHost), State::stale);
}

TEST_F(Neighbour, TheLeastRecentlyUsedMakesRoom) {
  for (std::uint32_t i = 1; i <= 4; ++i) cache.on_question(host(i), kMac, now);
  cache.use(host(1), now);
  const auto effect = cache.on_question(host(5), kMac, now);
  EXPECT_TRUE(effect.evicted);
  EXPECT_FALSE(cache.state(host(2)));
  EXPECT_TRUE(cache.state(host(1)));
  EXPECT_EQ(cache.size(), 4u);
}

TEST_F(Neighbour, OneThatIsWaitedForMakesRoomLast) {
  const auto waited = cache.use(host(1), now);
  for (std::uint32_t i = 2; i <= 4; ++i) cache.on_question(host(i), kMac, now);
  cache.on_question(host(5), kMac, now);
  EXPECT_EQ(cache.state(host(1)), State::incomplete);
  for (std::uint32_t i = 6; i <= 9; ++i) cache.use(host(i), now);
  EXPECT_FALSE(cache.state(host(1)));
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_EQ(waited.index < cache.capacity(), true);
}

TEST_F(Neighbour, MoreDueThanFitStaysDue) {
  for (std::uint32_t i = 1; i <= 4; ++i) cache.use(host(i), now);
  now = now + 1s;
  std::array<NeighbourAction, 3> actions;
  EXPECT_EQ(cache.poll(now, actions), 3u);
  EXPECT_LE(cache.next_deadline(), now);
  EXPECT_EQ(cache.poll(now, actions), 1u);
  EXPECT_EQ(cache.next_deadline(), now + 1s);
}

TEST(NeighbourOutside, AsksForResolutionAndUsesWhatItIsGiven) {
  NeighbourCache cache({.capacity = 4, .resolved_outside = true, .key = {}});
  Instant now{1};
  const auto first = cache.use(kHost, now);
  EXPECT_EQ(first.action.kind, Kind::resolve);
  EXPECT_TRUE(cache.set(kHost, kMac, now).resolved);
  now = now + 3600s;
  const auto use = cache.use(kHost, now);
  EXPECT_TRUE(use.usable);  // as given, however old
  EXPECT_EQ(use.valid_until, kForever);
  EXPECT_EQ(cache.next_deadline(), kForever);
  EXPECT_FALSE(cache.set(kHost, kMac, now).changed);
  EXPECT_TRUE(cache.set(kHost, kOther, now).changed);
  EXPECT_TRUE(cache.forget(kHost));
  EXPECT_FALSE(cache.forget(kHost));
  EXPECT_FALSE(cache.use(kHost, now).usable);
}

TEST(NeighbourOutside, MessagesFromTheWireChangeNothing) {
  NeighbourCache cache({.capacity = 4, .resolved_outside = true, .key = {}});
  const Instant now{1};
  cache.set(kHost, kMac, now);
  EXPECT_FALSE(cache.on_answer(kHost, {.mac = kOther, .solicited = true}, now).changed);
  EXPECT_FALSE(cache.on_question(kHost, kOther, now).changed);
  EXPECT_EQ(cache.use(kHost, now).mac, kMac);
}

TEST(NeighbourTable, StaysConsistentUnderARandomRun) {
  NeighbourCache cache({.capacity = 16, .resolved_outside = false, .key = {3, 4}});
  Instant now{1};
  std::uint32_t random = 7;
  const auto next = [&random](std::uint32_t below) {
    return (random = random * 1664525 + 1013904223) / 65536 % below;
  };
  std::array<NeighbourAction, 4> actions;
  for (int i = 0; i < 20000; ++i) {
    const IpAddress address = host(next(40));
    const MacAddress mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(next(3))}};
    switch (next(6)) {
      case 0:
        cache.use(address, now);
        break;
      case 1:
        cache.on_question(address, mac, now);
        break;
      case 2:
        cache.on_answer(address, {.mac = mac, .solicited = next(2) == 0, .overrides = next(2) == 0}, now);
        break;
      case 3:
        cache.forget(address);
        break;
      case 4:
        cache.poll(now, actions);
        break;
      default:
        now = now + std::chrono::milliseconds(next(2000));
        break;
    }
    ASSERT_LE(cache.size(), 16u);
  }
  for (int i = 0; i < 200 && cache.next_deadline() != kForever; ++i) {
    now = std::max(now, cache.next_deadline());
    cache.poll(now, actions);
  }
  EXPECT_EQ(cache.next_deadline(), kForever);  // nothing asks for ever
}

}  // namespace
}  // namespace netchannel::proto
