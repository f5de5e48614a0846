#include "netchannel/address.hpp"

#include <gtest/gtest.h>

#include <set>

#include "netchannel/flow.hpp"

namespace netchannel {
namespace {

IpAddress ip(std::string_view text) {
  const auto address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(IpAddress());
}

TEST(IpAddress, ParsesAndPrintsTheCanonicalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"0.0.0.0", "0.0.0.0"},
      {"10.1.2.3", "10.1.2.3"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"fe80::0001", "fe80::1"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
      {"::ffff:10.1.2.3", "10.1.2.3"},  // IPv4-mapped is IPv4 here
  };
  for (const auto& [text, printed] : cases) {
    EXPECT_EQ(ip(text).to_string(), printed);
    EXPECT_EQ(ip(printed), ip(text));
  }
}

TEST(IpAddress, RefusesWhatIsNoAddress) {
  using namespace std::string_view_literals;
  for (const std::string_view bad :
       {"", " ", "10.1.2", "10.1.2.3.4", "10.1.2.256", "10.1.2.-3", "010.1.2.3", "10.1.2.3 ", " 10.1.2.3",
        "10.1.2.3/8", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "fe80::1%eth0",
        "12345::", "g::", "[::1]", "localhost"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << '"' << bad << '"';
  }
  EXPECT_FALSE(IpAddress::parse("10.1.2.3\0.example"sv)) << "a zero byte ends nothing";
  EXPECT_FALSE(IpAddress::parse("::1\0"sv));
}

TEST(IpAddress, KnowsItsFamily) {
  EXPECT_TRUE(ip("1.2.3.4").is_v4());
  EXPECT_FALSE(ip("1.2.3.4").is_v6());
  EXPECT_TRUE(ip("::1").is_v6());
  EXPECT_TRUE(ip("::").is_v6());
  EXPECT_TRUE(ip("::1.2.3.4").is_v6()) << "IPv4-compatible is not IPv4-mapped";
  EXPECT_TRUE(IpAddress().is_v6());
  EXPECT_NE(ip("0.0.0.0"), ip("::"));
}

TEST(IpAddress, ConvertsToAndFromNetworkOrder) {
  EXPECT_EQ(ip("10.1.2.3").v4_value(), 0x0a010203u);
  EXPECT_EQ(IpAddress::v4(0x0a010203u), ip("10.1.2.3"));
  EXPECT_EQ(IpAddress::v4(10, 1, 2, 3), ip("10.1.2.3"));
  for (const char* text : {"10.1.2.3", "2001:db8::1", "0.0.0.0"}) {
    const IpAddress address = ip(text);
    EXPECT_EQ(address.network_bytes().size(), address.is_v4() ? 4u : 16u);
    EXPECT_EQ(IpAddress::from_network(address.network_bytes()), address);
  }
  EXPECT_EQ(ip("10.1.2.3").network_bytes()[0], std::byte{10});
  EXPECT_EQ(ip("2001:db8::1").network_bytes()[1], std::byte{1});
  EXPECT_EQ(IpAddress::v6(ip("2001:db8::1").bytes()), ip("2001:db8::1"));
}

enum Class : unsigned { kUnspecified = 1, kLoopback = 2, kMulticast = 4, kBroadcast = 8, kLinkLocal = 16 };

unsigned class_of(const IpAddress& address) {
  return (address.is_unspecified() ? kUnspecified : 0u) | (address.is_loopback() ? kLoopback : 0u) |
         (address.is_multicast() ? kMulticast : 0u) | (address.is_limited_broadcast() ? kBroadcast : 0u) |
         (address.is_link_local() ? kLinkLocal : 0u);
}

TEST(IpAddress, ClassifiesAtTheEdgesOfEachRange) {
  const std::pair<const char*, unsigned> cases[] = {
      {"0.0.0.0", kUnspecified},
      {"0.0.0.1", 0},
      {"126.255.255.255", 0},
      {"127.0.0.0", kLoopback},
      {"127.255.255.255", kLoopback},
      {"128.0.0.0", 0},
      {"169.253.255.255", 0},
      {"169.254.0.0", kLinkLocal},
      {"169.254.255.255", kLinkLocal},
      {"169.255.0.0", 0},
      {"223.255.255.255", 0},
      {"224.0.0.0", kMulticast},
      {"239.255.255.255", kMulticast},
      {"240.0.0.0", 0},
      {"255.255.255.254", 0},
      {"255.255.255.255", kBroadcast},
      {"::", kUnspecified},
      {"::1", kLoopback},
      {"::2", 0},
      {"100::1", 0},
      {"fe7f:ffff::", 0},
      {"fe80::", kLinkLocal},
      {"febf:ffff::1", kLinkLocal},
      {"fec0::", 0},
      {"feff::1", 0},
      {"ff00::", kMulticast},
      {"ff02::1", kMulticast},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", kMulticast},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(class_of(ip(text)), expected) << text;
}

TEST(Prefix, ContainsWhatSharesItsNetworkPart) {
  struct {
    const char* prefix;
    const char* address;
    bool inside;
  } const cases[] = {
      {"10.0.0.1/24", "10.0.0.255", true},
      {"10.0.0.1/24", "10.0.1.0", false},
      {"10.0.0.128/25", "10.0.0.127", false},
      {"10.0.0.128/25", "10.0.0.129", true},
      {"10.0.0.1/32", "10.0.0.1", true},
      {"10.0.0.1/32", "10.0.0.0", false},
      {"10.0.0.1/31", "10.0.0.0", true},
      {"0.0.0.0/0", "255.1.2.3", true},
      {"128.0.0.0/1", "127.255.255.255", false},
      {"128.0.0.0/1", "200.0.0.0", true},
      {"0.0.0.0/0", "::1", false},
      {"::/0", "10.0.0.1", false},
      {"::/0", "2001:db8::1", true},
      {"2001:db8::/33", "2001:db8:7fff::", true},
      {"2001:db8::/33", "2001:db8:8000::", false},
      {"2001:db8::1/128", "2001:db8::1", true},
      {"2001:db8::1/128", "2001:db8::", false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Prefix::parse(c.prefix)->contains(ip(c.address)), c.inside) << c.prefix << " " << c.address;
  }
}

TEST(Prefix, AnImpossibleLengthContainsNothing) {
  EXPECT_FALSE((Prefix{ip("10.0.0.1"), 33}).contains(ip("10.0.0.1")));
  EXPECT_FALSE((Prefix{ip("10.0.0.1"), 40}).contains(ip("10.0.0.1")));
  EXPECT_FALSE((Prefix{ip("::1"), 255}).contains(ip("::1")));
}

TEST(Prefix, ParsesAndPrints) {
  for (const char* text : {"10.0.0.1/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::1/64", "::/0", "::1/128"}) {
    const auto prefix = Prefix::parse(text);
    ASSERT_TRUE(prefix) << text;
    EXPECT_EQ(prefix->to_string(), text);
  }
  for (const char* bad : {"10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "::1/129", "10.0.0.1/-1", "10.0.0.1/ 8",
                          "10.0.0.1/8x", "/8", "10.0.0/8", "10.0.0.1/8/8"}) {
    EXPECT_FALSE(Prefix::parse(bad)) << bad;
  }
}

TEST(Endpoint, ParsesAndPrints) {
  for (const char* text : {"1.2.3.4:80", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:1"}) {
    const auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->to_string(), text);
  }
  EXPECT_EQ(Endpoint::parse("1.2.3.4:80")->port, 80);
  for (const char* bad :
       {"", ":", "80", ":80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:8x", "::1:80",
        "[::1]", "[::1]:", "[::1]80", "[1.2.3.4]:80", "[]:80", "[::1:80", "::1]:80"}) {
    EXPECT_FALSE(Endpoint::parse(bad)) << bad;
  }
}

TEST(Endpoint, WhatIsPrintedCanBeParsed) {
  for (const char* address : {"1.2.3.4", "::", "::ffff:1.2.3.4", "2001:db8::1"}) {
    const Endpoint endpoint{ip(address), 7};
    EXPECT_EQ(Endpoint::parse(endpoint.to_string()), endpoint);
  }
}

TEST(MacAddress, ParsesAndPrints) {
  const auto mac = parse_mac("02:00:5E:ff:0a:99");
  ASSERT_TRUE(mac);
  EXPECT_EQ(*mac, (MacAddress{{0x02, 0x00, 0x5e, 0xff, 0x0a, 0x99}}));
  EXPECT_EQ(to_string(*mac), "02:00:5e:ff:0a:99");
  for (const char* bad : {"", "02:00:5e:ff:0a", "02:00:5e:ff:0a:9", "02:00:5e:ff:0a:999", "02-00-5e-ff-0a-99",
                          "02:00:5e:ff:0a:9g", "0x:00:5e:ff:0a:99", "02:00:5e:ff:0a: 9", "-2:00:5e:ff:0a:99",
                          "02:00:5e:ff:0a:99:"}) {
    EXPECT_FALSE(parse_mac(bad)) << bad;
  }
}

TEST(MacAddress, KnowsItsKind) {
  EXPECT_TRUE(parse_mac("ff:ff:ff:ff:ff:ff")->is_broadcast());
  EXPECT_TRUE(parse_mac("ff:ff:ff:ff:ff:ff")->is_multicast());
  EXPECT_TRUE(parse_mac("33:33:00:00:00:01")->is_multicast());
  EXPECT_FALSE(parse_mac("33:33:00:00:00:01")->is_broadcast());
  EXPECT_FALSE(parse_mac("02:00:00:00:00:01")->is_multicast());
  EXPECT_TRUE(MacAddress{}.is_zero());
  EXPECT_FALSE(parse_mac("00:00:00:00:00:01")->is_zero());
}

TEST(FlowKey, IsAWildcardOnlyWithoutAnyPeer) {
  const Endpoint local{ip("10.0.0.1"), 7}, peer{ip("10.0.0.2"), 9};
  EXPECT_TRUE((FlowKey{Protocol::udp, local, {}}).is_wildcard());
  EXPECT_FALSE((FlowKey{Protocol::udp, local, peer}).is_wildcard());
  EXPECT_EQ((FlowKey{Protocol::udp, local, peer}).wildcard(), (FlowKey{Protocol::udp, local, {}}));
  EXPECT_NE((FlowKey{Protocol::udp, local, peer}), (FlowKey{Protocol::tcp, local, peer}));
}

}  // namespace
}  // namespace netchannel
