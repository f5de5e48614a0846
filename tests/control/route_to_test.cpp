// The kernel's choice of a way to a peer, asked for one address.
#include "control/route_to.hpp"

#include "namespace_pair.hpp"

namespace netchannel::control {
namespace {

class RouteToTest : public NamespacePair {
 protected:
  static RouteTo ask(const char* peer) {
    const auto answer = interface_for(ip(peer));
    EXPECT_TRUE(answer.has_value()) << peer << ": " << describe(answer.error());
    return answer.value();
  }
  static ErrorCode refusal(const char* peer) {
    const auto answer = interface_for(ip(peer));
    EXPECT_FALSE(answer.has_value()) << peer;
    return answer.has_value() ? ErrorCode::system : answer.error().code;
  }
};

TEST_F(RouteToTest, APeerOnTheLink) {
  const RouteTo v4 = ask("10.9.0.2");
  EXPECT_EQ(v4.interface_name, "eth0");
  EXPECT_EQ(v4.source, ip("10.9.0.1"));
  EXPECT_TRUE(v4.gateway.is_unspecified());
  EXPECT_FALSE(v4.local);
  const RouteTo v6 = ask("fd09::2");
  EXPECT_EQ(v6.interface_name, "eth0");
  EXPECT_EQ(v6.source, ip("fd09::1"));
  EXPECT_TRUE(v6.gateway.is_unspecified());
}

TEST_F(RouteToTest, APeerBehindAGateway) {
  must("ip route add default via 10.9.0.2 mtu 1280 && ip -6 route add default via fd09::2");
  const RouteTo v4 = ask("192.0.2.1");
  EXPECT_EQ(v4.gateway, ip("10.9.0.2"));
  EXPECT_EQ(v4.source, ip("10.9.0.1"));
  EXPECT_EQ(v4.mtu, 1280u);
  EXPECT_EQ(ask("2001:db8::1").gateway, ip("fd09::2"));
}

TEST_F(RouteToTest, AnAddressOfThisMachineIsLocal) {
  for (const char* own : {"10.9.0.1", "fd09::1", "127.0.0.1", "::1"}) {
    const RouteTo answer = ask(own);
    EXPECT_TRUE(answer.local) << own;
    EXPECT_EQ(answer.interface_name, "lo") << own;
  }
}

TEST_F(RouteToTest, APolicyRuleIsObeyed) {
  must(
      "ip link add other type veth peer name far && ip addr add 10.8.0.1/24 dev other && ip link set far up "
      "&& "
      "ip link set other up && ip route add default via 10.9.0.2");
  if (shell("ip rule add to 192.0.2.0/24 table 100 2>/dev/null") != 0) {
    GTEST_SKIP() << "SKIPPED: this kernel has no policy routing";
  }
  must("ip route add default via 10.8.0.2 table 100");
  EXPECT_EQ(ask("192.0.2.1").interface_name, "other");
  EXPECT_EQ(ask("198.51.100.1").interface_name, "eth0");
}

TEST_F(RouteToTest, NoRouteIsUnreachable) {
  EXPECT_EQ(refusal("192.0.2.1"), ErrorCode::unreachable);
  EXPECT_EQ(refusal("2001:db8::1"), ErrorCode::unreachable);
  must(
      "ip route add unreachable 10.31.0.0/16 && ip route add blackhole 10.32.0.0/16 && "
      "ip route add prohibit 10.33.0.0/16 && ip -6 route add unreachable fd31::/16 && "
      "ip -6 route add blackhole fd32::/16 && ip -6 route add prohibit fd33::/16");
  for (const char* peer : {"10.31.0.1", "10.32.0.1", "10.33.0.1", "fd31::1", "fd32::1", "fd33::1"}) {
    EXPECT_EQ(refusal(peer), ErrorCode::unreachable) << peer;
  }
}

TEST_F(RouteToTest, NoRouteLeadsToNowhere) {
  EXPECT_EQ(refusal("0.0.0.0"), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal("::"), ErrorCode::invalid_argument);
}

TEST_F(RouteToTest, WithoutADefaultRouteTheOnlyInterfaceThatIsUpIsMeant) {
  EXPECT_EQ(default_interface().value_or(""), "eth0");
  must("ip link add other type veth peer name another && ip link set other up && ip link set another up");
  const auto several = default_interface();
  ASSERT_FALSE(several) << *several;
  EXPECT_EQ(several.error().code, ErrorCode::no_such_device);
  must("ip addr add 10.8.0.1/24 dev other && ip route add default via 10.8.0.2");
  EXPECT_EQ(default_interface().value_or(""), "other");
}

}  // namespace
}  // namespace netchannel::control
