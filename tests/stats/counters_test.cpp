#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>

#include "netchannel/stats.hpp"

namespace netchannel {
namespace {

Counter nth(std::size_t i) { return static_cast<Counter>(i); }

TEST(Counters, EachHasANameAMeaningAndSomethingToDoAboutIt) {
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const CounterDescription& description = describe(nth(i));
    EXPECT_FALSE(description.name.empty()) << i;
    EXPECT_FALSE(description.meaning.empty()) << description.name;
    EXPECT_FALSE(description.action.empty()) << description.name;
  }
}

TEST(Counters, NamesAreUniqueAndFitForJson) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const std::string_view name = describe(nth(i)).name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos)
        << name;
  }
}

TEST(Counters, ADropReasonIsTheCounterOfTheSameValueAndName) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(DropReason::kCount); ++i) {
    EXPECT_EQ(describe(nth(i)).name, to_string(static_cast<DropReason>(i)));
  }
  EXPECT_EQ(static_cast<std::size_t>(Counter::udp_bad_checksum),
            static_cast<std::size_t>(DropReason::udp_bad_checksum));
  EXPECT_GE(static_cast<std::size_t>(Counter::device_rx_frames),
            static_cast<std::size_t>(DropReason::kCount));
}

TEST(CounterPage, StartsAtZeroAndAddsUp) {
  const auto page = std::make_unique<CounterPage>();
  for (std::size_t i = 0; i < kCounterCount; ++i) EXPECT_EQ(page->read(nth(i)), 0u);
  page->add(Counter::udp_sent);
  page->add(Counter::udp_sent, 41);
  EXPECT_EQ(page->read(Counter::udp_sent), 42u);
  EXPECT_EQ(page->read(Counter::udp_received), 0u);
  page->set(Counter::udp_sent, 7);
  EXPECT_EQ(page->read(Counter::udp_sent), 7u);
}

TEST(CounterPage, CountsADropUnderItsReason) {
  const auto page = std::make_unique<CounterPage>();
  page->drop(DropReason::udp_bad_length);
  page->drop(DropReason::udp_bad_length, 2);
  EXPECT_EQ(page->read(DropReason::udp_bad_length), 3u);
  EXPECT_EQ(page->read(Counter::udp_bad_length), 3u);
}

TEST(CounterPage, LastAndFirstCounterHaveCells) {
  const auto page = std::make_unique<CounterPage>();
  page->add(nth(0));
  page->add(nth(kCounterCount - 1));
  EXPECT_EQ(page->read(nth(0)), 1u);
  EXPECT_EQ(page->read(nth(kCounterCount - 1)), 1u);
}

TEST(CounterPage, CanBeReadWhileItsOwnerCounts) {
  const auto page = std::make_unique<CounterPage>();
  constexpr std::uint64_t kCount = 200'000;
  std::thread owner([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) page->add(Counter::host_polls);
  });
  std::uint64_t last = 0;
  while (last < kCount) {
    const std::uint64_t now = page->read(Counter::host_polls);
    EXPECT_GE(now, last);
    last = now;
  }
  owner.join();
  EXPECT_EQ(page->read(Counter::host_polls), kCount);
}

TEST(CounterPage, SharesItsFirstLineWithNobody) { EXPECT_EQ(alignof(CounterPage), 64u); }

}  // namespace
}  // namespace netchannel
