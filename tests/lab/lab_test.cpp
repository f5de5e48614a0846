// Labs made, used, made again and removed, as ip(8) and the sockets within see them.
#include "lab/lab.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "lab_fixture.hpp"

namespace netchannel::lab {
namespace {

using LabTest = LabFixture;

bool has_netem() {
  return shell(
             "ip netns add probe && ip -n probe link set lo up && tc -n probe qdisc add dev lo root netem "
             "delay 1ms "
             "2>/dev/null; s=$?; ip netns delete probe; exit $s") == 0;
}

TEST_F(LabTest, TheSidesReachEachOtherAtOnce) {
  const std::string name = lab();
  const Plan plan(name);
  EXPECT_TRUE(sides_reach_each_other(name, plan.v4(Side::a).address, plan.v4(Side::b).address));
  EXPECT_TRUE(sides_reach_each_other(name, plan.v6(Side::a).address, plan.v6(Side::b).address));
}

TEST_F(LabTest, LoopbackWorksInEachSide) {
  const std::string name = lab();
  for (const Side side : {Side::a, Side::b}) {
    auto one = socket_in(name, side, *IpAddress::parse("127.0.0.1"));
    auto two = socket_in(name, side, *IpAddress::parse("127.0.0.1"));
    ASSERT_TRUE(one && two);
    EXPECT_TRUE(reaches(*one, *two));
  }
}

// Whatever the system's default is; a connection has it from its route as soon as it begins.
TEST_F(LabTest, TcpOverTheLinkAndTheLoopbackIsCubic) {
  const std::string name = lab();
  const Plan plan(name);
  for (const std::string& peer : {plan.v4(Side::b).address.to_string(), plan.v6(Side::b).address.to_string(),
                                  std::string("127.0.0.1")}) {
    EXPECT_EQ(shell("ip netns exec " + plan.namespace_name(Side::a) + " python3 -c '" +
                    "from socket import *\n" + "s = socket(AF_INET6 if \":\" in \"" + peer +
                    "\" else AF_INET, SOCK_STREAM)\n" + "s.setblocking(False)\n" + "s.connect_ex((\"" + peer +
                    "\", 9))\n" + "used = s.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b\"\\0\")\n" +
                    "exit(used != b\"cubic\")'"),
              0)
        << peer;
  }
}

TEST_F(LabTest, ItIsWhatItWasAskedToBe) {
  const std::string name = lab({.name = "shape", .mtu = 9000, .queues = 3});
  EXPECT_EQ(shell("ip netns list | grep -q '^ncshape-a'"), 0);
  EXPECT_EQ(shell("ip netns list | grep -q '^ncshape-b'"), 0);
  const LabStatus now = look(name);
  EXPECT_TRUE(now.exists && now.whole);
  EXPECT_EQ(now.made_as, "mtu 9000, queues 3");
  for (const SideStatus* side : {&now.a, &now.b}) {
    ASSERT_TRUE(side->link.has_value());
    EXPECT_EQ(side->link->name, "eth0");
    EXPECT_EQ(side->link->mtu, 9000u);
    EXPECT_EQ(side->link->rx_queues, 3u);
    EXPECT_EQ(side->link->tx_queues, 3u);
    EXPECT_TRUE(side->processes.empty());
  }
  const auto has = [](const SideStatus& side, const Prefix& prefix) {
    return std::any_of(side.addresses.begin(), side.addresses.end(),
                       [&](const auto& a) { return a.prefix == prefix; });
  };
  const Plan plan(name);
  EXPECT_TRUE(has(now.a, plan.v4(Side::a)) && has(now.a, plan.v6(Side::a)));
  EXPECT_TRUE(has(now.b, plan.v4(Side::b)) && has(now.b, plan.v6(Side::b)));
  auto a = socket_in(name, Side::a, plan.v4(Side::a).address);
  auto b = socket_in(name, Side::b, plan.v4(Side::b).address);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(reaches(*a, *b, 8900));
}

TEST_F(LabTest, UpAgainWithTheSameOptionsChangesNothing) {
  const std::string name = lab();
  const LabStatus before = look(name);
  const Sleeper inside(name, Side::a);
  lab();
  const LabStatus after = look(name);
  EXPECT_EQ(after.a.link, before.a.link);
  EXPECT_EQ(after.b.link, before.b.link);
}

TEST_F(LabTest, UpAgainWithOtherOptionsMakesItAnewUnlessSomebodyIsInside) {
  const std::string name = lab({.mtu = 1500});
  {
    const Sleeper inside(name, Side::b);
    const auto refused = up({.name = name, .mtu = 4000});
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().text.find(std::to_string(inside.pid())), std::string::npos)
        << refused.error().text;
    EXPECT_EQ(look(name).a.link->mtu, 1500u);
  }
  lab({.mtu = 4000});
  EXPECT_EQ(look(name).a.link->mtu, 4000u);
  EXPECT_EQ(look(name).b.link->mtu, 4000u);
}

TEST_F(LabTest, TwoLabsStandSideBySide) {
  const std::string left = lab({.name = "left"}), right = lab({.name = "right"});
  for (const std::string& name : {left, right}) {
    EXPECT_TRUE(look(name).whole);
    EXPECT_TRUE(sides_reach_each_other(name, Plan(name).v4(Side::a).address, Plan(name).v4(Side::b).address));
  }
  ASSERT_TRUE(down(left).has_value());
  EXPECT_FALSE(look(left).exists);
  EXPECT_TRUE(look(right).whole);
  EXPECT_TRUE(
      sides_reach_each_other(right, Plan(right).v4(Side::a).address, Plan(right).v4(Side::b).address));
}

TEST_F(LabTest, DownLeavesNothingAndIsContentWithNothing) {
  const std::string name = lab();
  const auto first = down(name);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->existed);
  EXPECT_TRUE(first->still_running.empty());
  EXPECT_FALSE(look(name).exists);
  EXPECT_EQ(shell("ip netns list | grep -q ."), 1);
  const auto second = down(name);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->existed);
}

TEST_F(LabTest, DownKillsNobodyButTakesTheVethAway) {
  const std::string name = lab();
  const Sleeper inside(name, Side::a);
  const auto kept = open_namespace(name, Side::a);
  const auto removed = down(name);
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->still_running, std::vector{inside.pid()});
  EXPECT_TRUE(inside.alive());
  ASSERT_TRUE(call_in(*kept, []() -> LabResult<void> {
    const auto left = control::links();
    EXPECT_EQ(left->size(), 1u) << "only lo";
    return {};
  }));
}

TEST_F(LabTest, AHalfMadeLabIsCleanedByUp) {
  const std::vector<std::string> breakages = {
      "ip netns add ncdefault-a",
      "ip netns add ncdefault-b",
      "ip netns add ncdefault-a && ip netns add ncdefault-b",
      "ip netns add ncdefault-a && ip netns add ncdefault-b && "
      "ip -n ncdefault-a link add eth0 type veth peer name eth0 netns ncdefault-b",
      "mkdir -p /run/netns && touch /run/netns/ncdefault-a",  // what a killed `ip netns add` leaves
  };
  for (const std::string& breakage : breakages) {
    SCOPED_TRACE(breakage);
    ASSERT_EQ(shell(breakage), 0);
    EXPECT_TRUE(look().exists);
    EXPECT_FALSE(look().whole);
    const std::string name = lab();
    EXPECT_TRUE(look().whole);
    EXPECT_TRUE(sides_reach_each_other(name, Plan(name).v4(Side::a).address, Plan(name).v4(Side::b).address));
    ASSERT_TRUE(down(name).has_value());
  }
}

TEST_F(LabTest, AHalfMadeLabIsRemovedByDown) {
  for (const char* breakage :
       {"ip netns add ncdefault-b", "mkdir -p /run/netns && touch /run/netns/ncdefault-a"}) {
    ASSERT_EQ(shell(breakage), 0);
    const auto removed = down("default");
    ASSERT_TRUE(removed.has_value()) << removed.error().text;
    EXPECT_TRUE(removed->existed);
    EXPECT_FALSE(look().exists);
  }
}

TEST_F(LabTest, ALabThatLostASideIsRepairedByUp) {
  lab();
  ASSERT_EQ(shell("ip netns delete ncdefault-b"), 0);
  EXPECT_FALSE(look().whole);
  lab();
  EXPECT_TRUE(look().whole);
}

TEST_F(LabTest, DelayAndLossAreAppliedOrRefusedInOneLine) {
  const LabOptions options{.delay = std::chrono::milliseconds(2), .loss_percent = 0.5};
  also_remove(options.name);
  const bool can = has_netem();
  const auto made = up(options);
  EXPECT_EQ(made.has_value(), can);
  if (can) {
    for (const char* side : {"a", "b"}) {
      EXPECT_EQ(shell("tc -n ncdefault-" + std::string(side) +
                      " qdisc show dev eth0 | grep netem | grep 'delay 2ms' | "
                      "grep -q 'loss 0.5%'"),
                0);
    }
    EXPECT_EQ(look().made_as, "mtu 1500, queues 1, delay 2000us, loss 0.5%");
    return;
  }
  EXPECT_NE(made.error().text.find("sch_netem"), std::string::npos) << made.error().text;
  EXPECT_EQ(made.error().text.find('\n'), std::string::npos);
  EXPECT_FALSE(look().exists) << "a failure leaves nothing";
}

TEST_F(LabTest, BadOptionsAreRefusedBeforeAnythingIsMade) {
  const std::vector<LabOptions> bad = {{.name = ""},
                                       {.name = "a/b"},
                                       {.name = ".."},
                                       {.name = std::string(33, 'x')},
                                       {.name = "a b"},
                                       {.mtu = 1279},
                                       {.mtu = 65536},
                                       {.queues = 0},
                                       {.queues = 65},
                                       {.delay = Duration{-1}},
                                       {.loss_percent = -1},
                                       {.loss_percent = 101},
                                       {.loss_percent = std::nan("")}};
  for (const LabOptions& options : bad) {
    const auto made = up(options);
    ASSERT_FALSE(made.has_value()) << options.name;
    EXPECT_FALSE(made.error().text.empty());
  }
  EXPECT_FALSE(down("../default").has_value());
  EXPECT_FALSE(status("").has_value());
}

TEST_F(LabTest, WithoutRootItSaysSo) {
  EXPECT_EQ(in_child([] {
              if (!become_nobody()) return 2;
              const auto made = up({});
              return !made && made.error().text.find("root") != std::string::npos ? 0 : 1;
            }),
            0);
}

// ---- entering
// -----------------------------------------------------------------------------------------------------

TEST_F(LabTest, APlaceThatIsNotThereIsToldWithItsRemedy) {
  const auto missing = spawn("default", Side::a, {"true"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().text.find("netchannel lab up"), std::string::npos) << missing.error().text;
  EXPECT_FALSE(run_in("default", Side::a, [] { return 0; }).has_value());
  EXPECT_FALSE(enter("default", Side::b).has_value());
  EXPECT_FALSE(exec("default", Side::b, {"true"}).text.empty());
}

TEST_F(LabTest, ASpawnedProgramStandsInItsSideAndSeesItsInterfaces) {
  const std::string name = lab();
  const auto ends_with = [&](Side side, const std::string& script) {
    const auto child = spawn(name, side, {"sh", "-c", script});
    EXPECT_TRUE(child.has_value()) << child.error().text;
    int status = 0;
    ::waitpid(*child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  };
  EXPECT_EQ(ends_with(Side::a, "ip -o -4 address | grep -q 10.77.1.1/24"), 0);
  EXPECT_EQ(ends_with(Side::b, "ip -o -4 address | grep -q 10.77.1.2/24"), 0);
  EXPECT_EQ(ends_with(Side::b, "exit 7"), 7);
  EXPECT_EQ(ends_with(Side::a, "test \"$(echo /sys/class/net/*)\" = '/sys/class/net/eth0 /sys/class/net/lo'"),
            0);
}

TEST_F(LabTest, AProgramThatIsNotThereIsToldByName) {
  const std::string name = lab();
  const auto child = spawn(name, Side::a, {"no-such-program"});
  ASSERT_FALSE(child.has_value());
  EXPECT_NE(child.error().text.find("no-such-program"), std::string::npos);
  EXPECT_FALSE(spawn(name, Side::a, {}).has_value());
  EXPECT_EQ(in_child([&] { return exec(name, Side::a, {"no-such-program"}).text.empty() ? 1 : 42; }), 42);
}

TEST_F(LabTest, ExecBecomesTheProgram) {
  const std::string name = lab();
  EXPECT_EQ(in_child([&] {
              (void)exec(name, Side::b, {"sh", "-c", "ip -o -4 address | grep -q 10.77.1.2/24 && exit 33"});
              return 1;
            }),
            33);
}

TEST_F(LabTest, AFunctionRunsInItsSideAndItsResultComesBack) {
  const std::string name = lab();
  const auto own = std::filesystem::read_symlink("/proc/self/ns/net");
  EXPECT_EQ(run_in(name, Side::a, [] { return 5; }).value(), 5);
  EXPECT_EQ(run_in(name, Side::a,
                   [&] { return std::filesystem::read_symlink("/proc/self/ns/net") != own ? 0 : 1; }),
            0);
  EXPECT_EQ(run_in(name, Side::a, []() -> int { ::_exit(::raise(SIGKILL)); }).value(), 128 + SIGKILL);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/self/ns/net"), own) << "the caller stays where it is";
  EXPECT_EQ(in_child([&] {
              if (!enter(name, Side::b)) return 1;
              return std::filesystem::read_symlink("/proc/self/ns/net") != own ? 0 : 1;
            }),
            0);
}

TEST_F(LabTest, StatusTellsWhoIsInside) {
  const std::string name = lab();
  const Sleeper a(name, Side::a), b(name, Side::b);
  const LabStatus now = look(name);
  EXPECT_EQ(now.a.processes, std::vector{a.pid()});
  EXPECT_EQ(now.b.processes, std::vector{b.pid()});
}

}  // namespace
}  // namespace netchannel::lab
