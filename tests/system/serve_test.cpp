// `netchannel serve` on xdp and on bulk beside everything else on its interface: foreign clients get right
// answers, the kernel's services go on, and nothing is left when it is killed.
#include <gtest/gtest.h>

#include <sstream>

#include "testkit/veth_pair.hpp"
#include "tests/system/program.hpp"

namespace netchannel {
namespace {

using testkit::shell;

const std::string kClient = "python3 " NETCHANNEL_SOURCE_DIR "/tests/system/echo_client.py ";
const std::string kSizes = " 7 0 1 17 18 100 1400 1472 1473 3000 8900 8972 8973 20000 65507";
const std::string kSizesV6 = " 7 0 1 17 18 100 1400 1452 1453 3000 8900 8952 8953 20000 65507";

class ServeTest : public testkit::VethPair {
 protected:
  std::vector<std::string> command(std::vector<std::string> more = {}) {
    std::vector<std::string> out{NETCHANNEL_PROGRAM, "serve", "--device", "eth0"};
    if (std::find(more.begin(), more.end(), "--path") == more.end()) out.insert(out.end(), {"--path", "xdp"});
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  Program serve(std::vector<std::string> more = {}) {
    Program program(command(std::move(more)));
    EXPECT_TRUE(program.wait_for("netchannel serve: ")) << program.output();
    return program;
  }
  void in_b_must(const std::string& text) {
    in_b([&] { must(text); });
  }
};

struct Wire {
  const char* name;
  std::vector<std::string> path;
  std::uint32_t mtu;
  bool offloads;
};

std::ostream& operator<<(std::ostream& out, const Wire& wire) { return out << wire.name; }

class ServeOnEveryWire : public ServeTest, public ::testing::WithParamInterface<Wire> {};

TEST_P(ServeOnEveryWire, AForeignClientGetsEveryDatagramBackWhole) {
  if (IsSkipped()) return;
  build({.mtu = GetParam().mtu, .offloads = GetParam().offloads});
  auto program = serve(GetParam().path);
  EXPECT_NE(program.output().find(GetParam().path.back()), std::string::npos) << program.output();
  in_b_must(kClient + "10.77.0.1" + kSizes);
  in_b_must(kClient + "fd77::1" + kSizesV6);
}

INSTANTIATE_TEST_SUITE_P(
    Wires, ServeOnEveryWire,
    ::testing::Values(Wire{"native_1500", {"--xdp-mode", "native"}, 1500, true},
                      Wire{"native_1500_peer_offloads_off", {"--xdp-mode", "native"}, 1500, false},
                      Wire{"native_9000", {"--xdp-mode", "native"}, 9000, true},
                      Wire{"generic_1500", {"--xdp-mode", "generic"}, 1500, true},
                      Wire{"generic_1500_peer_offloads_off", {"--xdp-mode", "generic"}, 1500, false},
                      Wire{"generic_9000", {"--xdp-mode", "generic"}, 9000, true},
                      Wire{"bulk_1500", {"--path", "bulk"}, 1500, true},
                      Wire{"bulk_1500_peer_offloads_off", {"--path", "bulk"}, 1500, false},
                      Wire{"bulk_9000", {"--path", "bulk"}, 9000, true}),
    [](const auto& wire) { return std::string(wire.param.name); });

class ServeOnEveryPath : public ServeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Program serve(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--path", GetParam()});
    return ServeTest::serve(std::move(more));
  }
  // What a path puts on an interface.
  static constexpr const char* kProgram = "ip -d link show dev eth0 | grep -q prog/xdp";
  static constexpr const char* kTap = "ip -o link show | grep -q ncbulk";
  const char* trace() const { return GetParam() == std::string("bulk") ? kTap : kProgram; }
};

INSTANTIATE_TEST_SUITE_P(Paths, ServeOnEveryPath, ::testing::Values("xdp", "bulk"),
                         [](const auto& path) { return std::string(path.param); });

TEST_P(ServeOnEveryPath, SocatGetsItsLineBack) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  in_b_must("test \"$(echo hello | socat -t2 - UDP:10.77.0.1:7)\" = hello");
  in_b_must("test \"$(echo hello | socat -t2 - 'UDP6:[fd77::1]:7')\" = hello");
}

TEST_P(ServeOnEveryPath, PingAndTheKernelsServicesOnTheSameInterfaceGoOn) {
  if (IsSkipped()) return;
  build();
  Program tcp({"socat", "TCP-LISTEN:8080,fork,reuseaddr", "EXEC:cat"});
  Program udp({"socat", "UDP-RECVFROM:8081,fork", "EXEC:cat"});
  auto program = serve();
  in_b_must("ping -c 3 -i 0.2 -W 5 -q 10.77.0.1 >/dev/null");
  in_b_must("ping -c 3 -i 0.2 -W 5 -q fd77::1 >/dev/null");
  in_b_must("test \"$(echo tcp | socat -t2 - TCP:10.77.0.1:8080,retry=20,interval=0.1)\" = tcp");
  in_b_must("test \"$(echo udp | socat -t2 - UDP:10.77.0.1:8081)\" = udp");
  in_b_must(kClient + "10.77.0.1 7 100");
}

TEST_P(ServeOnEveryPath, KilledItLeavesNothingAndServesAgainAtOnce) {
  if (IsSkipped()) return;
  build();
  for (int round = 0; round < 3; ++round) {
    auto program = serve();
    in_b_must(kClient + "10.77.0.1 7 100");
    EXPECT_EQ(shell(trace()), 0) << "no program while it serves";
    program.kill_now(SIGKILL);
    // Within a second the interface is the kernel's alone.
    EXPECT_EQ(
        shell(std::string("for i in $(seq 20); do ") + trace() + " || exit 0; sleep 0.05; done; exit 1"), 0);
    Program udp({"socat", "UDP-RECVFROM:7,fork", "EXEC:cat"});
    in_b_must(
        "for i in $(seq 20); do test \"$(echo kernel | socat -t1 - UDP:10.77.0.1:7)\" = kernel && exit 0; "
        "sleep 0.05; "
        "done; exit 1");
    udp.kill_now();
  }
}

TEST_P(ServeOnEveryPath, InterruptedItEndsWellAndLeavesNothing) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  EXPECT_EQ(shell(trace()), 0);
  ::kill(program.pid(), SIGINT);
  EXPECT_EQ(program.finish(), 0) << program.output();
  EXPECT_NE(shell(trace()), 0);
}

TEST_P(ServeOnEveryPath, AnIdleServerIsSmallAndUsesNoCpu) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  ::usleep(200'000);
  const long before = program.cpu_ticks();
  ::sleep(2);
  EXPECT_LE(program.cpu_ticks() - before, 2) << "hundredths of a second of CPU in two seconds of idleness";
  const long resident = program.status_kib("VmRSS");
  EXPECT_GT(resident, 0);
  EXPECT_LT(resident, 32 * 1024) << "KiB resident";
  RecordProperty("resident_kib", static_cast<int>(resident));
}

TEST_F(ServeTest, OnTwoInterfacesEachServesItsWayAndOneOutlivesTheOther) {
  if (IsSkipped()) return;
  build();
  must("ip link add eth1 type veth peer name eth1 netns " + path_of_b());
  must("ip addr add 10.78.0.1/24 dev eth1 && ip link set eth1 up");
  in_b_must("ip addr add 10.78.0.2/24 dev eth1 && ip link set eth1 up");
  auto xdp = serve({"--bind", "10.77.0.1"});
  Program bulk({NETCHANNEL_PROGRAM, "serve", "--path", "bulk", "--device", "eth1", "--bind", "10.78.0.1"});
  ASSERT_TRUE(bulk.wait_for("netchannel serve: ")) << bulk.output();
  const std::string over_xdp = kClient + "10.77.0.1" + kSizes, over_bulk = kClient + "10.78.0.1" + kSizes;
  in_b_must(over_xdp + " & x=$!; " + over_bulk + "; b=$?; wait $x && exit $b");
  bulk.kill_now(SIGKILL);
  in_b_must(over_xdp);
}

// Each refusal is one line on standard error that names the cause, and exit status 1.
class RefusalTest : public ServeTest {
 protected:
  void expect_refused(Program program, const std::string& cause) {
    const int status = program.finish();
    EXPECT_EQ(status, 1) << program.output();
    EXPECT_NE(program.output().find(cause), std::string::npos)
        << "no \"" << cause << "\" in: " << program.output();
    EXPECT_EQ(std::count(program.output().begin(), program.output().end(), '\n'), 1) << program.output();
  }
};

TEST_F(RefusalTest, NoSuchInterface) {
  if (IsSkipped()) return;
  build();
  expect_refused(Program({NETCHANNEL_PROGRAM, "serve", "--path", "xdp", "--device", "nosuch0"}), "interface");
}

TEST_F(RefusalTest, AnInterfaceThatIsDown) {
  if (IsSkipped()) return;
  build();
  must("ip link set eth0 down");
  expect_refused(Program(command()), "down");
}

TEST_F(RefusalTest, AnInterfaceThatAnotherProgramHolds) {
  if (IsSkipped()) return;
  build();
  auto first = serve();
  expect_refused(Program(command({"--port", "1007", "--discard-port", "1009", "--mirror-port", "1010",
                                  "--control-port", "1011"})),
                 "attached");
}

TEST_F(RefusalTest, APortThatIsTaken) {
  if (IsSkipped()) return;
  build();
  Program udp({"socat", "UDP-RECVFROM:7,fork", "EXEC:cat"});
  must("for i in $(seq 40); do ss -lun | grep -q ':7 ' && exit 0; sleep 0.05; done; exit 1");
  expect_refused(Program(command()), "port");
}

TEST_F(RefusalTest, NoPrivileges) {
  if (IsSkipped()) return;
  build();
  std::vector<std::string> unprivileged{"setpriv",        "--reuid=65534",       "--regid=65534",
                                        "--clear-groups", "--bounding-set=-all", "--"};
  for (const auto& word : command({"--port", "1007", "--discard-port", "1009"})) unprivileged.push_back(word);
  expect_refused(Program(unprivileged), "CAP_");
}

TEST_F(RefusalTest, TooLittleLockableMemory) {
  if (IsSkipped()) return;
  build();
  std::string text = "ulimit -l 64; exec setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock --";
  for (const auto& word : command()) text += " " + word;
  expect_refused(Program({"sh", "-c", text}), "memlock");
}

}  // namespace
}  // namespace netchannel
