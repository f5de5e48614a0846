// Longest prefix match and source address selection.
#include "proto/route.hpp"

#include <gtest/gtest.h>

namespace netchannel::proto {
namespace {

IpAddress ip(const char* text) { return *IpAddress::parse(text); }
Prefix net(const char* text) { return *Prefix::parse(text); }

Route via(const char* prefix, const char* gateway, std::uint32_t metric = 0) {
  return {.destination = net(prefix), .gateway = ip(gateway), .metric = metric};
}

TEST(RouteTable, TheLongestPrefixWins) {
  RouteTable table;
  const std::vector<Route> routes = {via("0.0.0.0/0", "10.0.0.1"), via("192.168.0.0/16", "10.0.0.2"),
                                     via("192.168.5.0/24", "10.0.0.3"), via("192.168.5.77/32", "10.0.0.4")};
  table.set(routes);
  EXPECT_EQ(table.lookup(ip("8.8.8.8"))->gateway, ip("10.0.0.1"));
  EXPECT_EQ(table.lookup(ip("192.168.1.1"))->gateway, ip("10.0.0.2"));
  EXPECT_EQ(table.lookup(ip("192.168.5.1"))->gateway, ip("10.0.0.3"));
  EXPECT_EQ(table.lookup(ip("192.168.5.77"))->gateway, ip("10.0.0.4"));
}

TEST(RouteTable, OfEqualPrefixesTheLowestMetricWins) {
  RouteTable table;
  const std::vector<Route> routes = {via("0.0.0.0/0", "10.0.0.1", 100), via("0.0.0.0/0", "10.0.0.2", 50)};
  table.set(routes);
  EXPECT_EQ(table.lookup(ip("8.8.8.8"))->gateway, ip("10.0.0.2"));
  EXPECT_EQ(table.size(), 1u);
}

TEST(RouteTable, FamiliesDoNotMix) {
  RouteTable table;
  const std::vector<Route> routes = {via("0.0.0.0/0", "10.0.0.1")};
  table.set(routes);
  EXPECT_EQ(table.lookup(ip("2001:db8::1")), nullptr);
  const std::vector<Route> six = {via("::/0", "fe80::1")};
  table.set(six);
  EXPECT_EQ(table.lookup(ip("10.0.0.1")), nullptr);
  EXPECT_EQ(table.lookup(ip("2001:db8::1"))->gateway, ip("fe80::1"));
}

TEST(RouteTable, HostBitsOfADestinationAreIgnored) {
  RouteTable table;
  const std::vector<Route> routes = {{.destination = net("10.1.2.3/20")},
                                     {.destination = net("2001:db8::77/61")}};
  table.set(routes);
  EXPECT_NE(table.lookup(ip("10.1.15.255")), nullptr);
  EXPECT_EQ(table.lookup(ip("10.1.16.0")), nullptr);
  EXPECT_NE(table.lookup(ip("2001:db8:0:7::1")), nullptr);
  EXPECT_EQ(table.lookup(ip("2001:db8:0:8::1")), nullptr);
}

TEST(RouteTable, AnswersAsALinearSearchDoes) {
  std::vector<Route> routes;
  std::uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525 + 1013904223; };
  for (std::uint32_t i = 0; i < 500; ++i) {
    const auto length = static_cast<std::uint8_t>(next() >> 16 & 31);
    routes.push_back({.destination = {IpAddress::v4(next() & 0x0fffffff), length}, .metric = i});
  }
  RouteTable table;
  table.set(routes);
  for (int i = 0; i < 2000; ++i) {
    const IpAddress address = IpAddress::v4(next() & 0x0fffffff);
    int longest = -1;
    for (const Route& route : routes) {
      if (route.destination.contains(address)) longest = std::max(longest, int{route.destination.length});
    }
    const Route* found = table.lookup(address);
    EXPECT_EQ(found == nullptr ? -1 : int{found->destination.length}, longest) << address.to_string();
    EXPECT_TRUE(found == nullptr || found->destination.contains(address));
  }
}

TEST(ChooseSource, ThePreferredOneIfItIsOurs) {
  const std::vector<Prefix> ours = {net("10.0.0.1/24"), net("10.0.0.9/24")};
  Route route{.destination = net("10.0.0.0/24"), .preferred_source = ip("10.0.0.9")};
  EXPECT_EQ(choose_source(ip("10.0.0.5"), route, ours), ip("10.0.0.9"));
  route.preferred_source = ip("10.0.0.10");
  EXPECT_EQ(choose_source(ip("10.0.0.5"), route, ours), ip("10.0.0.1"));
}

TEST(ChooseSource, TheOneInTheNextHopsNetwork) {
  const std::vector<Prefix> ours = {net("10.0.0.1/24"), net("172.16.0.1/24")};
  EXPECT_EQ(choose_source(ip("8.8.8.8"), via("0.0.0.0/0", "172.16.0.254"), ours), ip("172.16.0.1"));
  EXPECT_EQ(choose_source(ip("8.8.8.8"), via("0.0.0.0/0", "10.0.0.254"), ours), ip("10.0.0.1"));
}

TEST(ChooseSource, LinkLocalForLinkLocalAndGlobalForGlobal) {
  const std::vector<Prefix> ours = {net("fe80::1/64"), net("2001:db8::1/64")};
  EXPECT_EQ(choose_source(ip("fe80::2"), {.destination = net("fe80::/64")}, ours), ip("fe80::1"));
  EXPECT_EQ(choose_source(ip("2001:db8::2"), {.destination = net("2001:db8::/64")}, ours), ip("2001:db8::1"));
  // Through a link-local gateway, as routers announce themselves.
  EXPECT_EQ(choose_source(ip("2600::1"), via("::/0", "fe80::99"), ours), ip("2001:db8::1"));
  EXPECT_EQ(choose_source(ip("ff02::1"), {}, ours), ip("fe80::1"));
}

TEST(ChooseSource, NoneOfTheFamilyIsNone) {
  const std::vector<Prefix> ours = {net("10.0.0.1/24")};
  EXPECT_EQ(choose_source(ip("2001:db8::2"), via("::/0", "fe80::1"), ours), std::nullopt);
}

TEST(SubnetBroadcast, IsTheLastAddressOfANetworkThatHasOne) {
  EXPECT_EQ(subnet_broadcast(net("10.0.0.1/24")), ip("10.0.0.255"));
  EXPECT_EQ(subnet_broadcast(net("10.0.0.1/30")), ip("10.0.0.3"));
  EXPECT_EQ(subnet_broadcast(net("10.0.0.1/31")), std::nullopt);
  EXPECT_EQ(subnet_broadcast(net("10.0.0.1/32")), std::nullopt);
  EXPECT_EQ(subnet_broadcast(net("2001:db8::1/64")), std::nullopt);
}

}  // namespace
}  // namespace netchannel::proto
