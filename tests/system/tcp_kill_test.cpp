// Processes that die in the middle of a stream, on either side. The kernel path runs the same tests: what
// others see of our end must be what they would see of the kernel's.
//
// The path between is slow enough that nothing is over before somebody dies, and there is always something
// under way when that happens.
#include "tests/system/tcp_fixture.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEndless = "1000000000000";

class TcpKill : public TcpPeers, public ::testing::WithParamInterface<Way> {
 protected:
  void slow_path() {
    const device::LinkDirection slow{.delay = 5ms, .rate = 100'000'000, .queue_bytes = 200'000};
    path(GetParam(), {.a_to_b = slow, .b_to_a = slow});
  }
  // Until the path has carried so many bytes, each way counted.
  void in_the_middle(std::uint64_t bytes = 500'000) {
    const auto carried = [&] {
      const auto s = wan().stats();
      return s.to_left.bytes_delivered + s.to_right.bytes_delivered;
    };
    const std::uint64_t goal = carried() + bytes;
    for (int i = 0; i < 1000 && carried() < goal; ++i) ::usleep(5000);
    ASSERT_GE(carried(), goal);
  }
  // Nothing is left of the connections of that port in b.
  void none_left(const std::string& port) {
    in_b([&] {
      must("for i in $(seq 400); do test -z \"$(ss -Htn state established '( sport = :" + port +
           " or dport = :" + port + " )')\" && exit 0; sleep 0.02; done; exit 1");
    });
  }
  // Our client's server did: a reset, or its kernel still had an end of the stream to send.
  static bool died(const std::string& said) {
    return said.find("failed: reset") != said.npos || said.find("failed: ended") != said.npos;
  }
  void still_serves() {
    EXPECT_EQ(run({"curl", "-sSg", "-o", "/dev/null", "-w", "%{http_code}", "http://" + ours() + "/1000"}),
              "200");
  }
  Command curl(const std::string& target) {
    return {"curl", "-sS", "-o", "/dev/null", "--max-time", "30", "http://" + ours() + target};
  }
};

TEST_P(TcpKill, AClientKilledWhileItHearsUsIsNoticedAndOthersAreServed) {
  NEEDS("curl");
  slow_path();
  Program us = serve();
  Program client = start(curl(std::string("/") + kEndless));
  in_the_middle();
  client.kill_now(SIGKILL);
  EXPECT_TRUE(us.wait_for(" ended: ")) << us.output();
  still_serves();
}

TEST_P(TcpKill, AClientKilledWhileItSpeaksIsNoticedAndOthersAreServed) {
  NEEDS("curl");
  slow_path();
  write_pattern_file(folder / "file", 100'000'000);
  Program us = serve();
  Program client = start({"curl", "-sS", "-T", folder / "file", "http://" + ours() + "/x"});
  in_the_middle();
  client.kill_now(SIGKILL);
  none_left("80");
  still_serves();
}

TEST_P(TcpKill, AServerKilledWhileWeHearItEndsOurTransfer) {
  NEEDS("nginx");
  slow_path();
  write_pattern_file(folder / "file", 100'000'000);
  Program server = nginx();
  Program us = start_ours({"get", "http://" + theirs() + ":8000/file", "--timeout", "30"});
  in_the_middle();
  server.kill_now(SIGKILL);
  EXPECT_EQ(us.finish(), 1);
  EXPECT_TRUE(died(us.output())) << us.output();
}

TEST_P(TcpKill, AServerKilledWhileWeSpeakEndsOurTransfer) {
  NEEDS("nginx");
  slow_path();
  Program server = nginx();
  Program us =
      start_ours({"put", "http://" + theirs() + ":8000/in/x", "--size", kEndless, "--timeout", "30"});
  in_the_middle();
  server.kill_now(SIGKILL);
  EXPECT_EQ(us.finish(), 1);
  EXPECT_TRUE(died(us.output())) << us.output();
}

// Who hears our server learns of its death with what was under way, and a new one serves at once.
TEST_P(TcpKill, OurServerKilledWhileItSpeaksIsNoticedAndServesAgain) {
  NEEDS("curl");
  slow_path();
  for (int round = 0; round < 2; ++round) {
    Program us = serve();
    Program client = start(curl(std::string("/") + kEndless));
    in_the_middle();
    us.kill_now(SIGKILL);
    const int status = client.finish();
    EXPECT_TRUE(status == 56 || status == 18) << "curl: receive error or partial file, not " << status;
    none_left("80");
    Program again = serve();
    still_serves();
  }
}

TEST_P(TcpKill, OurServerKilledWhileItHearsIsNoticedAndServesAgain) {
  NEEDS("curl");
  slow_path();
  write_pattern_file(folder / "file", 100'000'000);
  Program us = serve();
  Program client =
      start({"curl", "-sS", "--max-time", "30", "-T", folder / "file", "http://" + ours() + "/x"});
  in_the_middle();
  us.kill_now(SIGKILL);
  const int status = client.finish();
  EXPECT_TRUE(status == 55 || status == 56 || status == 52) << "curl: send or receive error, not " << status;
  Program again = serve();
  still_serves();
}

TEST_P(TcpKill, OurClientKilledInTheMiddleLeavesNoConnectionAtTheServer) {
  NEEDS("nginx");
  slow_path();
  write_pattern_file(folder / "file", 100'000'000);
  Program server = nginx();
  for (const Command& task : {Command{"get", "http://" + theirs() + ":8000/file"},
                              Command{"put", "http://" + theirs() + ":8000/in/x", "--size", kEndless}}) {
    Program us = start_ours(task);
    in_the_middle();
    us.kill_now(SIGKILL);
    none_left("8000");
  }
  run_ours({"get", "http://" + theirs() + ":8000/nginx.conf"});
}

// A kernel ends the connections of a killed process at once. Nobody is there to do so in our place; the
// peer's next bytes are answered with a reset.
TEST_P(TcpKill, WhoIsSilentLearnsOfOurDeathWithItsNextBytes) {
  NEEDS("python3");
  slow_path();
  Program us = serve();
  std::optional<Program> peer;
  const std::string go = folder / "go";
  must("mkfifo " + go);
  in_b([&] {
    peer.emplace(Command{
        "sh", "-c",
        "exec python3 " NETCHANNEL_SOURCE_DIR "/tests/system/tcp_peer.py wait " + ours() + " 7 < " + go});
  });
  std::ofstream tell(go);  // waits until the other side has opened it
  ASSERT_TRUE(peer->wait_for("heard b'one")) << peer->output();
  us.kill_now(SIGKILL);
  ::usleep(100'000);
  tell << "go on" << std::endl;
  ASSERT_EQ(peer->finish(), 0);
  const bool told = peer->output().find("failed ConnectionResetError") != std::string::npos ||
                    peer->output().find("failed BrokenPipeError") != std::string::npos ||
                    peer->output().find("heard b''") != std::string::npos;
  EXPECT_TRUE(told) << peer->output();
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpKill, ::testing::Values(kKernel, kXdp, kBulk), name_of_way);

// With a TAP our whole host dies: the peer's segments are answered by nobody, as after a power cut, until the
// next one is there, which knows nothing of the old connections.
class TcpKillOnTap : public TcpKill {};

TEST_P(TcpKillOnTap, AHostThatIsBackAtOnceServesAndResetsWhatWasBefore) {
  NEEDS("curl");
  slow_path();
  write_pattern_file(folder / "file", 100'000'000);
  Program us = serve();
  Program client =
      start({"curl", "-sS", "--max-time", "30", "-T", folder / "file", "http://" + ours() + "/x"});
  in_the_middle();
  us.kill_now(SIGKILL);
  Program again = serve();
  // It is at another MAC address.
  in_b([] { must("ip neigh flush dev eth0"); });
  const int status = client.finish();
  EXPECT_TRUE(status == 55 || status == 56 || status == 52) << "curl: send or receive error, not " << status;
  still_serves();
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpKillOnTap, ::testing::Values(kTap), name_of_way);

}  // namespace
}  // namespace netchannel
