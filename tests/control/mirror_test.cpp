// The mirror against the kernel it mirrors: each test changes something with ip(8) and looks for it in the
// snapshot.
#include "control/mirror.hpp"

#include <algorithm>

#include "namespace_pair.hpp"

namespace netchannel::control {
namespace {

class MirrorTest : public NamespacePair {
 protected:
  static Mirror open(const char* name = "eth0", const MirrorOptions& options = {}) {
    auto mirror = Mirror::open(name, options);
    EXPECT_TRUE(mirror.has_value()) << describe(mirror.error());
    return std::move(mirror.value());
  }
  static bool has_address(const Snapshot& now, const char* prefix) {
    return std::any_of(now.addresses.begin(), now.addresses.end(),
                       [&](const auto& a) { return a.prefix == *Prefix::parse(prefix); });
  }
  static bool has_route(const Snapshot& now, const char* prefix) {
    return std::any_of(now.routes.begin(), now.routes.end(),
                       [&](const auto& r) { return r.destination == *Prefix::parse(prefix); });
  }
  static NeighbourState state_of(const Snapshot& now, const char* address) {
    const Neighbour* neighbour = find_neighbour(now, ip(address));
    return neighbour == nullptr ? NeighbourState::none : neighbour->state;
  }
};

TEST_F(MirrorTest, RefusesAnInterfaceThatIsNotThere) {
  for (const char* name : {"nonesuch", "", "a-name-longer-than-the-kernel-takes"}) {
    const auto mirror = Mirror::open(name);
    ASSERT_FALSE(mirror.has_value()) << name;
    EXPECT_EQ(mirror.error().code, ErrorCode::no_such_device) << name;
  }
}

TEST_F(MirrorTest, ReadsTheLink) {
  const Mirror mirror = open();
  const Link& link = mirror.snapshot().link;
  EXPECT_EQ(link.name, "eth0");
  EXPECT_EQ(link.kind, "veth");
  EXPECT_EQ(link.mtu, 1500u);
  EXPECT_EQ(link.rx_queues, 1u);
  EXPECT_TRUE(link.up);
  EXPECT_TRUE(link.running);
  EXPECT_TRUE(link.ethernet);
  EXPECT_FALSE(link.loopback);
  EXPECT_FALSE(link.mac.is_zero());
  EXPECT_EQ(shell("ip link show dev eth0 | grep -q " + to_string(link.mac)), 0);
}

TEST_F(MirrorTest, ReadsAddressesOfBothFamiliesAndNoOtherInterface) {
  must("ip link add other type veth peer name far && ip addr add 10.8.0.1/24 dev other");
  const Mirror mirror = open();
  const Snapshot& now = mirror.snapshot();
  EXPECT_TRUE(has_address(now, "10.9.0.1/24"));
  EXPECT_TRUE(has_address(now, "fd09::1/64"));
  EXPECT_FALSE(has_address(now, "10.8.0.1/24"));
  EXPECT_TRUE(std::is_sorted(now.addresses.begin(), now.addresses.end()));
  const auto v4 = std::find_if(now.addresses.begin(), now.addresses.end(),
                               [](const auto& a) { return a.prefix.address == ip("10.9.0.1"); });
  ASSERT_NE(v4, now.addresses.end());
  EXPECT_EQ(v4->broadcast, ip("10.9.0.255"));
}

TEST_F(MirrorTest, NothingChangedIsSaidOfAQuietInterface) {
  Mirror mirror = open();
  EXPECT_TRUE(follow(mirror, [](const Changes& changes) { return !changes; }));
  const Changes& changes = mirror.refresh();
  EXPECT_FALSE(changes) << changes.mask;
  EXPECT_TRUE(changes.neighbours.empty());
}

TEST_F(MirrorTest, FollowsMtuNameAndUpDown) {
  Mirror mirror = open();
  must("ip link set eth0 mtu 1400");
  EXPECT_TRUE(follow(mirror, [](const Changes& changes) { return changes.has(kLinkChanged); }));
  EXPECT_EQ(mirror.snapshot().link.mtu, 1400u);
  must("ip link set eth0 down");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return !now.link.up; }));
  must("ip link set eth0 name wan0");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return now.link.name == "wan0"; }));
  must("ip link set wan0 up");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return now.link.up && now.link.running; }));
}

TEST_F(MirrorTest, SeesTheCarrierGoWithThePeer) {
  Mirror mirror = open();
  in_b([] { must("ip link set eth0 down"); });
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return now.link.up && !now.link.running; }));
}

TEST_F(MirrorTest, FollowsAddresses) {
  Mirror mirror = open();
  must("ip addr add 10.9.1.1/24 dev eth0 && ip addr add fd0a::1/64 dev eth0 nodad");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) {
    return has_address(now, "10.9.1.1/24") && has_address(now, "fd0a::1/64");
  }));
  must("ip addr del 10.9.1.1/24 dev eth0");
  EXPECT_TRUE(follow(mirror, [](const Changes& changes) { return changes.has(kAddressesChanged); }));
  EXPECT_FALSE(has_address(mirror.snapshot(), "10.9.1.1/24"));
}

TEST_F(MirrorTest, LeavesOutATentativeAddressUntilItIsUsable) {
  must("echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_dad; echo 1 > /proc/sys/net/ipv6/conf/all/accept_dad");
  Mirror mirror = open();
  must("ip addr add fd0b::1/64 dev eth0");
  mirror.refresh();
  EXPECT_EQ(shell("ip -6 addr show dev eth0 tentative | grep -q fd0b::1"), 0)
      << "not tentative: proves nothing";
  EXPECT_FALSE(has_address(mirror.snapshot(), "fd0b::1/64"));
  EXPECT_FALSE(has_address(open().snapshot(), "fd0b::1/64"));
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return has_address(now, "fd0b::1/64"); }));
}

TEST_F(MirrorTest, LeavesOutADuplicateAddress) {
  wait_for_carrier();
  must("echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_dad; echo 1 > /proc/sys/net/ipv6/conf/all/accept_dad");
  Mirror mirror = open();
  must("ip addr add fd09::2/64 dev eth0");  // the peer's
  EXPECT_EQ(
      shell(
          "for i in $(seq 50); do ip -6 addr show dev eth0 dadfailed | grep -q fd09::2 && exit 0; sleep 0.1; "
          "done; exit 1"),
      0);
  mirror.refresh();
  EXPECT_FALSE(has_address(mirror.snapshot(), "fd09::2/64"));
  EXPECT_FALSE(has_address(open().snapshot(), "fd09::2/64"));
}

TEST_F(MirrorTest, ReadsRoutesWithGatewayMetricSourceAndMtu) {
  must("ip route add 10.20.0.0/16 via 10.9.0.2 dev eth0 metric 7 src 10.9.0.1 mtu 1300");
  must("ip -6 route add fd20::/32 via fd09::2 dev eth0 metric 9");
  must("ip route add 10.21.0.0/16 via inet6 fd09::2 dev eth0");
  const Mirror mirror = open();
  const Route* v4 = find_route(mirror.snapshot(), ip("10.20.1.1"));
  ASSERT_NE(v4, nullptr);
  EXPECT_EQ(v4->gateway, ip("10.9.0.2"));
  EXPECT_EQ(v4->metric, 7u);
  EXPECT_EQ(v4->preferred_source, ip("10.9.0.1"));
  EXPECT_EQ(v4->mtu, 1300u);
  EXPECT_EQ(v4->interface_index, mirror.snapshot().link.index);
  EXPECT_EQ(v4->table, RouteTable::main);
  const Route* v6 = find_route(mirror.snapshot(), ip("fd20::5"));
  ASSERT_NE(v6, nullptr);
  EXPECT_EQ(v6->gateway, ip("fd09::2"));
  EXPECT_EQ(v6->metric, 9u);
  const Route* mixed = find_route(mirror.snapshot(), ip("10.21.0.1"));
  ASSERT_NE(mixed, nullptr);
  EXPECT_EQ(mixed->gateway, ip("fd09::2"));
}

TEST_F(MirrorTest, FindsWhatTheKernelWouldChoose) {
  must(
      "ip link add other type veth peer name far && ip addr add 10.8.0.1/24 dev other && ip link set far up "
      "&& ip link set other up");
  must("ip route add default via 10.9.0.2 metric 20 && ip route add default via 10.8.0.2 metric 10");
  must("ip route add 10.30.0.0/16 via 10.9.0.2 && ip route add 10.30.1.0/24 via 10.8.0.2");
  must("ip route add unreachable 10.31.0.0/16 && ip route add blackhole 10.32.0.0/16");
  must("ip -6 route add default via fd09::2 && ip -6 route add unreachable fd31::/16");
  const Mirror mirror = open();
  const Snapshot& now = mirror.snapshot();
  const auto gateway = [&](const char* to) { return find_route(now, ip(to))->gateway; };
  const auto type = [&](const char* to) { return find_route(now, ip(to))->type; };
  EXPECT_EQ(gateway("1.1.1.1"), ip("10.8.0.2")) << "the smaller metric";
  EXPECT_NE(find_route(now, ip("1.1.1.1"))->interface_index, now.link.index)
      << "another interface's, and said so";
  EXPECT_EQ(gateway("10.30.2.1"), ip("10.9.0.2"));
  EXPECT_EQ(gateway("10.30.1.1"), ip("10.8.0.2")) << "the longer prefix";
  EXPECT_EQ(gateway("10.9.0.77"), IpAddress{}) << "on the link";
  EXPECT_EQ(gateway("2001:db8::1"), ip("fd09::2"));
  EXPECT_EQ(type("10.31.0.1"), RouteType::unreachable);
  EXPECT_EQ(type("10.32.0.1"), RouteType::blackhole);
  EXPECT_EQ(type("fd31::1"), RouteType::unreachable);
  EXPECT_EQ(type("10.9.0.1"), RouteType::local);
  EXPECT_EQ(type("fd09::1"), RouteType::local);
  EXPECT_EQ(type("10.9.0.255"), RouteType::broadcast);
}

TEST_F(MirrorTest, ExpandsAMultipathRoute) {
  must("ip route add 10.40.0.0/16 nexthop via 10.9.0.2 weight 1 nexthop via 10.9.0.3 weight 1");
  const Mirror mirror = open();
  std::vector<IpAddress> gateways;
  for (const Route& route : mirror.snapshot().routes) {
    if (route.destination == *Prefix::parse("10.40.0.0/16")) gateways.push_back(route.gateway);
  }
  EXPECT_EQ(gateways, (std::vector{ip("10.9.0.2"), ip("10.9.0.3")}));
}

TEST_F(MirrorTest, FollowsRoutes) {
  Mirror mirror = open();
  must("ip route add 10.50.0.0/16 via 10.9.0.2 && ip -6 route add fd50::/32 via fd09::2");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) {
    return has_route(now, "10.50.0.0/16") && has_route(now, "fd50::/32");
  }));
  must("ip route replace 10.50.0.0/16 via 10.9.0.3");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) {
    return find_route(now, ip("10.50.0.1"))->gateway == ip("10.9.0.3");
  }));
  must("ip route del 10.50.0.0/16 && ip -6 route del fd50::/32");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) {
    return !has_route(now, "10.50.0.0/16") && !has_route(now, "fd50::/32");
  }));
}

// The kernel sends no RTM_DELROUTE for these.
TEST_F(MirrorTest, ForgetsRoutesThatVanishInSilence) {
  must(
      "ip link add other type veth peer name far && ip addr add 10.8.0.1/24 dev other && ip link set far up "
      "&& ip link set other up");
  must("ip route add 10.60.0.0/16 via 10.8.0.2 && ip addr add 10.9.2.1/24 dev eth0");
  must("ip route add 10.61.0.0/16 via 10.9.0.2 src 10.9.2.1 && ip route add 10.62.0.0/16 via 10.9.0.2");
  Mirror mirror = open();
  ASSERT_TRUE(has_route(mirror.snapshot(), "10.60.0.0/16") && has_route(mirror.snapshot(), "10.61.0.0/16"));
  must("ip link set other down");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return !has_route(now, "10.60.0.0/16"); }));
  must("ip addr del 10.9.2.1/24 dev eth0");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return !has_route(now, "10.61.0.0/16"); }));
  must("ip link set eth0 down");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return !has_route(now, "10.62.0.0/16"); }));
}

TEST_F(MirrorTest, ResolvesANeighbourByAskingTheKernel) {
  wait_for_carrier();
  Mirror mirror = open();
  for (const char* peer : {"10.9.0.2", "fd09::2"}) {
    ASSERT_FALSE(is_usable(state_of(mirror.snapshot(), peer))) << peer;
    const auto asked = mirror.resolve(ip(peer));
    ASSERT_TRUE(asked.has_value()) << describe(asked.error());
    Neighbour last;
    EXPECT_TRUE(follow(mirror, [&](const Changes& changes) {
      for (const Neighbour& update : changes.neighbours) {
        if (update.address == ip(peer)) last = update;
      }
      return last.state == NeighbourState::reachable;
    })) << peer;
    EXPECT_EQ(*find_neighbour(mirror.snapshot(), ip(peer)), last);
    in_b([&] {
      EXPECT_EQ(shell("ip link show dev eth0 | grep -q " + to_string(last.mac)), 0) << to_string(last.mac);
    });
  }
}

TEST_F(MirrorTest, SaysThatANeighbourDoesNotAnswer) {
  wait_for_carrier();
  Mirror mirror = open();
  for (const char* nobody : {"10.9.0.99", "fd09::99"}) {
    ASSERT_TRUE(mirror.resolve(ip(nobody)).has_value());
    EXPECT_TRUE(follow(mirror, [&](const Changes& changes) {
      return std::any_of(changes.neighbours.begin(), changes.neighbours.end(), [&](const Neighbour& update) {
        return update.address == ip(nobody) && update.state == NeighbourState::failed;
      });
    })) << nobody;
    EXPECT_FALSE(is_usable(state_of(mirror.snapshot(), nobody)));
  }
}

TEST_F(MirrorTest, FollowsANeighbourThatChangesItsMacAndOneThatIsForgotten) {
  must("ip neigh add 10.9.0.50 lladdr 02:00:00:00:00:01 dev eth0");
  Mirror mirror = open();
  EXPECT_EQ(state_of(mirror.snapshot(), "10.9.0.50"), NeighbourState::permanent);
  must("ip neigh replace 10.9.0.50 lladdr 02:00:00:00:00:02 dev eth0");
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) {
    return find_neighbour(now, ip("10.9.0.50"))->mac == *parse_mac("02:00:00:00:00:02");
  }));
  must("ip neigh del 10.9.0.50 dev eth0");
  EXPECT_TRUE(follow(mirror, [](const Changes& changes) {
    return std::any_of(changes.neighbours.begin(), changes.neighbours.end(), [](const Neighbour& update) {
      return update.address == ip("10.9.0.50") && !is_usable(update.state);
    });
  }));
}

TEST_F(MirrorTest, SeesNoNeighbourOfAnotherInterface) {
  must("ip link add other type veth peer name far && ip link set other up");
  must("ip neigh add 10.8.0.50 lladdr 02:00:00:00:00:01 dev other");
  EXPECT_EQ(find_neighbour(open().snapshot(), ip("10.8.0.50")), nullptr);
}

TEST_F(MirrorTest, RefusesToResolveWhatHasNoNeighbour) {
  Mirror mirror = open();
  for (const char* what : {"0.0.0.0", "::", "224.0.0.1", "ff02::1"}) {
    EXPECT_EQ(mirror.resolve(ip(what)).error().code, ErrorCode::invalid_argument) << what;
  }
  must("ip link set eth0 down");
  ASSERT_TRUE(settles(mirror, [](const Snapshot& now) { return !now.link.up; }));
  EXPECT_EQ(mirror.resolve(ip("10.9.0.2")).error().code, ErrorCode::device_down);
}

TEST_F(MirrorTest, ResolvingWithoutPrivilegeIsToldAsSuch) {
  Mirror mirror = open();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    // A netlink socket remembers who opened it, so the privilege that counts is also that of a new one.
    auto unprivileged = Mirror::open("eth0");
    if (!unprivileged) ::_exit(3);
    const auto asked = unprivileged->resolve(ip("10.9.0.2"));
    ::_exit(!asked && asked.error().code == ErrorCode::not_permitted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MirrorTest, DumpsAgainAfterAnOverrun) {
  Mirror mirror = open("eth0", {.receive_buffer = 4096});
  must(
      "for i in $(seq 200); do echo addr add 10.70.0.$i/32 dev eth0; echo neigh add 10.9.0.$((i % 200 + 20)) "
      "lladdr "
      "02:00:00:00:00:01 dev eth0; done | ip -batch -");
  const Changes& changes = mirror.refresh();
  EXPECT_TRUE(changes.has(kResync));
  EXPECT_TRUE(changes.has(kAddressesChanged) && changes.has(kNeighboursChanged) &&
              changes.has(kRoutesChanged));
  EXPECT_EQ(changes.neighbours.size(), 200u);
  EXPECT_TRUE(has_address(mirror.snapshot(), "10.70.0.200/32"));
  EXPECT_EQ(mirror.snapshot().neighbours.size(), open().snapshot().neighbours.size());
  EXPECT_EQ(mirror.snapshot().addresses, open().snapshot().addresses);
  EXPECT_EQ(mirror.snapshot().routes, open().snapshot().routes);
}

TEST_F(MirrorTest, AnOverrunDoesNotHideThatTheInterfaceIsGone) {
  must("ip link add short type veth peer name far && ip link set short up");
  Mirror mirror = open("short", {.receive_buffer = 4096});
  must(
      "for i in $(seq 200); do echo addr add 10.70.0.$i/32 dev eth0; done | ip -batch - && ip link del "
      "short");
  EXPECT_TRUE(mirror.refresh().has(kGone));
  EXPECT_TRUE(mirror.snapshot().gone);
}

TEST_F(MirrorTest, SaysThatTheInterfaceIsGone) {
  Mirror mirror = open();
  must("ip link del eth0");
  EXPECT_TRUE(follow(mirror, [](const Changes& changes) { return changes.has(kGone); }));
  EXPECT_TRUE(mirror.snapshot().gone);
  EXPECT_FALSE(mirror.snapshot().link.up);
  EXPECT_TRUE(mirror.snapshot().addresses.empty());
  EXPECT_EQ(mirror.resolve(ip("10.9.0.2")).error().code, ErrorCode::no_such_device);
  must("ip link add eth0 type veth peer name far && ip link set eth0 up");
  mirror.refresh();
  EXPECT_TRUE(mirror.snapshot().gone) << "another interface of the same name is another interface";
}

TEST_F(MirrorTest, AnInterfaceMovedAwayIsGone) {
  Mirror mirror = open();
  must("ip link set eth0 name moved netns " + path_of_b());
  EXPECT_TRUE(settles(mirror, [](const Snapshot& now) { return now.gone; }));
}

TEST_F(MirrorTest, ListsTheInterfacesOfTheNamespace) {
  const auto all = links();
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "lo");
  EXPECT_TRUE((*all)[0].loopback);
  EXPECT_EQ((*all)[1].name, "eth0");
}

}  // namespace
}  // namespace netchannel::control
