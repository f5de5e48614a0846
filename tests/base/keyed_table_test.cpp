#include "base/keyed_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace netchannel {
namespace {

FlowKey flow(std::uint32_t i) {
  return {Protocol::udp, {IpAddress::v4(10, 0, 0, 1), 53}, {IpAddress::v4(i), static_cast<std::uint16_t>(i)}};
}

TEST(KeyedTable, FindsWhatWasInsertedAndNothingElse) {
  KeyedTable<FlowKey, int> table(random_hash_key());
  EXPECT_EQ(table.find(flow(1)), nullptr);
  EXPECT_TRUE(table.insert(flow(1), 11));
  ASSERT_NE(table.find(flow(1)), nullptr);
  EXPECT_EQ(*table.find(flow(1)), 11);
  EXPECT_EQ(table.find(flow(2)), nullptr);
}

TEST(KeyedTable, RefusesAKeyThatIsThere) {
  KeyedTable<FlowKey, int> table(random_hash_key());
  EXPECT_TRUE(table.insert(flow(1), 11));
  EXPECT_FALSE(table.insert(flow(1), 12));
  EXPECT_EQ(*table.find(flow(1)), 11);
}

TEST(KeyedTable, TellsKeysApartThatDifferInOneFieldOnly) {
  KeyedTable<FlowKey, int> table(random_hash_key());
  const FlowKey base = flow(1);
  FlowKey protocol = base, local = base, local_port = base, peer = base, peer_port = base;
  protocol.protocol = Protocol::tcp;
  local.local.address = IpAddress::v4(10, 0, 0, 2);
  local_port.local.port = 54;
  peer.peer.address = IpAddress::v4(7);
  peer_port.peer.port = 7;
  int value = 0;
  for (const FlowKey& key : {base, protocol, local, local_port, peer, peer_port}) {
    EXPECT_TRUE(table.insert(key, value++));
  }
  EXPECT_EQ(table.size(), 6u);
}

TEST(KeyedTable, AgreesWithAMapOverRandomInsertsAndErasures) {
  KeyedTable<FlowKey, int> table(SipKey{});
  std::map<FlowKey, int> reference;
  std::mt19937 random(1);
  for (int step = 0; step < 100'000; ++step) {
    const FlowKey key = flow(static_cast<std::uint32_t>(random() % 500));
    if (random() % 2 == 0) {
      EXPECT_EQ(table.insert(key, step), reference.emplace(key, step).second);
    } else {
      EXPECT_EQ(table.erase(key), reference.erase(key) == 1);
    }
    ASSERT_EQ(table.size(), reference.size());
  }
  for (std::uint32_t i = 0; i < 500; ++i) {
    const auto expected = reference.find(flow(i));
    const int* found = table.find(flow(i));
    ASSERT_EQ(found != nullptr, expected != reference.end());
    if (found != nullptr) {
      EXPECT_EQ(*found, expected->second);
    }
  }
  std::size_t visited = 0;
  table.for_each([&](const FlowKey& key, int value) {
    ++visited;
    EXPECT_EQ(reference.at(key), value);
  });
  EXPECT_EQ(visited, reference.size());
}

}  // namespace
}  // namespace netchannel
