// Both ends for real, over the kernel's sockets on the loopback address: the server in a process of its own,
// as always.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "bench/analysis.hpp"
#include "bench/client.hpp"
#include "bench/server.hpp"
#include "bench/signals.hpp"

namespace netchannel::bench {
namespace {

constexpr std::uint16_t kBasePort = 42170;

class Loopback : public ::testing::Test {
 protected:
  void start(const char* lane, WaitMode wait = WaitMode::block) {
    options_.lane = *parse_lane(lane);
    options_.wait = wait;
    options_.bind = {address_};
    options_.echo_port = port_;
    options_.discard_port = static_cast<std::uint16_t>(port_ + 1);
    options_.mirror_port = static_cast<std::uint16_t>(port_ + 2);
    options_.control_port = control_port();
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      catch_interrupts();
      auto server = Server::open(options_);
      if (!server) {
        std::fprintf(stderr, "%s\n", describe(server.error()).c_str());
        ::_exit(1);
      }
      (void)(*server)->run();
      server->reset();
      ::_exit(0);
    }
  }
  void TearDown() override { EXPECT_EQ(stop(), 0); }
  int stop() {
    if (server_ <= 0) return 0;
    ::kill(server_, SIGTERM);
    int status = 0;
    ::waitpid(server_, &status, 0);
    server_ = 0;
    return status;
  }
  ClientOptions client(Workload workload) {
    ClientOptions out;
    out.block.workload = workload;
    out.block.lane = options_.lane;
    out.block.wait = options_.wait;
    out.block.size = is_rr(workload) || workload == Workload::tcp_crr ? 1 : 100;
    out.block.seconds = 0.1;
    out.block.warmup = 0.02;
    out.control = {address_, control_port()};
    return out;
  }
  static Json measure(const ClientOptions& options) {
    auto block = run_block(options);
    EXPECT_TRUE(block.has_value()) << (block ? "" : describe(block.error()));
    return block ? *block : Json::object();
  }

  std::uint16_t control_port() const { return static_cast<std::uint16_t>(port_ + 3); }

  IpAddress address_ = IpAddress::v4(127, 0, 0, 1);
  std::uint16_t port_ = static_cast<std::uint16_t>(kBasePort + ::getpid() % 2000 * 4);
  ServeOptions options_;
  pid_t server_ = 0;
};

void expect_sound(const Json& block) {
  EXPECT_GT(get_number(block, "rate_per_s"), 0);
  EXPECT_FALSE(has_flag(block, "wrong stream"));
  EXPECT_EQ(get_count(block, "corrupted"), 0u);
  EXPECT_EQ(get_count(block, "duplicates"), 0u);
  EXPECT_TRUE(get_bool(block, "same_machine"));
  EXPECT_GT(get_number(get_part(block, "cpu_s"), "near"), 0);
  EXPECT_GT(get_number(get_part(block, "cpu_s"), "far"), 0);
}

TEST_F(Loopback, MeasuresRequestAndReply) {
  start("kernel");
  const Json block = measure(client(Workload::udp_rr));
  expect_sound(block);
  EXPECT_EQ(get_count(block, "received") + get_count(block, "in_flight"), get_count(block, "sent"));
  EXPECT_GT(get_number(get_part(block, "latency_us"), "p50"), 0);
  // recvfrom and sendto at each end, and nothing else.
  EXPECT_NEAR(get_number(block, "syscalls_per_message"), 4, 0.2);
}

TEST_F(Loopback, MeasuresAStream) {
  start("kernel-batched");
  const Json block = measure(client(Workload::udp_stream));
  expect_sound(block);
  EXPECT_LE(get_count(block, "received"), get_count(block, "sent"));
  EXPECT_LT(get_number(block, "syscalls_per_message"), 1);
}

TEST_F(Loopback, MeasuresRequestAndReplyOverAConnection) {
  start("kernel");
  const Json block = measure(client(Workload::tcp_rr));
  expect_sound(block);
  EXPECT_EQ(get_count(block, "received") + get_count(block, "in_flight"), get_count(block, "sent"));
  EXPECT_EQ(get_count(block, "timeouts"), 0u);
  EXPECT_TRUE(get_part(block, "loss_share").is_null());
  // recv and send at each end, and nothing else.
  EXPECT_NEAR(get_number(block, "syscalls_per_message"), 4, 0.2);
  EXPECT_EQ(get_text(get_part(block, "service_demand_us"), "per"), "transaction");
}

TEST_F(Loopback, MeasuresRequestsLargerThanBothBuffersWithManyInFlight) {
  for (const char* lane : {"kernel", "kernel-batched"}) {
    start(lane);
    ClientOptions options = client(Workload::tcp_rr);
    options.block.size = 300'000;
    options.block.burst = 63;
    const Json block = measure(options);
    expect_sound(block);
    EXPECT_GT(get_count(block, "received"), 64u);
    EXPECT_EQ(stop(), 0);
  }
}

TEST_F(Loopback, MeasuresRequestsOverManyConnectionsInTurn) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::spin}) {
    start("kernel", wait);
    ClientOptions options = client(Workload::tcp_rr);
    options.block.flows = 16;
    options.block.burst = 7;
    options.block.size = 1000;
    const Json block = measure(options);
    expect_sound(block);
    EXPECT_EQ(get_count(block, "received") + get_count(block, "in_flight"), get_count(block, "sent"));
    EXPECT_EQ(stop(), 0);
  }
}

TEST_F(Loopback, MeasuresAPacedConnection) {
  start("kernel", WaitMode::adaptive);
  ClientOptions options = client(Workload::tcp_rr);
  options.block.rate = 2000;
  const Json block = measure(options);
  expect_sound(block);
  EXPECT_LE(get_count(block, "sent"), 201u);
  EXPECT_GT(get_count(get_part(block, "send_lag_us"), "n"), 0u);
}

TEST_F(Loopback, MeasuresAByteStreamAndLosesNothing) {
  for (const char* lane : {"kernel", "kernel-batched"}) {
    start(lane);
    for (const std::uint32_t size : {1u, 128u, 65536u, 200'000u}) {
      ClientOptions options = client(Workload::tcp_stream);
      options.block.size = size;
      const Json block = measure(options);
      expect_sound(block);
      EXPECT_EQ(get_count(block, "received"), get_count(block, "sent")) << lane << " " << size;
      EXPECT_NEAR(get_number(block, "received_bps") / (get_number(block, "rate_per_s") * size * 8), 1, 1e-6);
      EXPECT_EQ(get_text(get_part(block, "service_demand_us"), "per"), "KB");
    }
    EXPECT_EQ(stop(), 0);
  }
}

TEST_F(Loopback, WritesMessagesOneByOneOnTheKernelPathAndTogetherOnTheBatchedOne) {
  start("kernel");
  ClientOptions options = client(Workload::tcp_stream);
  EXPECT_GE(get_number(measure(options), "syscalls_per_message"), 1);
  EXPECT_EQ(stop(), 0);
  start("kernel-batched");
  EXPECT_LT(get_number(measure(client(Workload::tcp_stream)), "syscalls_per_message"), 0.2);
}

TEST_F(Loopback, MeasuresByteStreamsOverManyConnections) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::spin, WaitMode::adaptive}) {
    start("kernel-batched", wait);
    ClientOptions options = client(Workload::tcp_stream);
    options.block.flows = 8;
    const Json block = measure(options);
    expect_sound(block);
    EXPECT_EQ(get_count(block, "received"), get_count(block, "sent"));
    EXPECT_EQ(stop(), 0);
  }
}

TEST_F(Loopback, MeasuresAConnectionForEachRequest) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::spin, WaitMode::adaptive}) {
    start("kernel", wait);
    const Json block = measure(client(Workload::tcp_crr));
    expect_sound(block);
    EXPECT_EQ(get_count(get_part(block, "latency_us"), "n"), get_count(block, "received"));
    EXPECT_EQ(stop(), 0);
    // socket, connect, send, recv twice, close; accept, recv, send, close.
    if (wait == WaitMode::block) {
      EXPECT_NEAR(get_number(block, "syscalls_per_message"), 10, 0.5);
    }
  }
}

TEST_F(Loopback, MeasuresConnectionsOfSeveralPairs) {
  start("kernel");
  for (const Workload workload : {Workload::tcp_rr, Workload::tcp_stream, Workload::tcp_crr}) {
    ClientOptions options = client(workload);
    options.block.pairs = 3;
    const Json block = measure(options);
    expect_sound(block);
    EXPECT_EQ(get_count(block, "pairs"), 3u);
  }
}

TEST_F(Loopback, MeasuresManyFlowsWithOneReceiver) {
  start("kernel");
  ClientOptions options = client(Workload::udp_stream);
  options.block.flows = 64;
  expect_sound(measure(options));
}

TEST_F(Loopback, MeasuresPairsInProcessesOfTheirOwn) {
  start("kernel");
  ClientOptions options = client(Workload::udp_rr);
  options.block.pairs = 3;
  const Json block = measure(options);
  expect_sound(block);
  EXPECT_EQ(get_count(block, "pairs"), 3u);
  EXPECT_EQ(get_count(block, "received") + get_count(block, "in_flight"), get_count(block, "sent"));
}

TEST_F(Loopback, MeasuresOverIpv6) {
  address_ = *IpAddress::parse("::1");
  start("kernel");
  expect_sound(measure(client(Workload::udp_rr)));
}

TEST_F(Loopback, ServesOneClientAfterAnother) {
  start("kernel");
  for (int i = 0; i < 3; ++i)
    expect_sound(measure(client(i % 2 == 0 ? Workload::udp_rr : Workload::udp_stream)));
}

TEST_F(Loopback, RefusesARawClientAndSaysWhatItServes) {
  start("kernel");
  auto control = Control::connect({address_, control_port()}, std::chrono::seconds(5));
  ASSERT_TRUE(control.has_value());
  Json hello = {{"protocol", kProtocol},
                {"version", "0.0.0-other"},
                {"block", to_json(client(Workload::udp_rr).block)}};
  EXPECT_FALSE(control->ask(hello, std::chrono::seconds(5)).has_value());
  EXPECT_NE(control->error_text().find("versions"), std::string::npos) << control->error_text();
}

TEST_F(Loopback, LivesOnWhenClientsTalkNonsense) {
  start("kernel");
  for (const char* nonsense : {"\n", "{}\n", "[1,2]\n", "GET / HTTP/1.0\r\n\r\n", "{\"protocol\":7}\n"}) {
    auto control = Control::connect({address_, control_port()}, std::chrono::seconds(5));
    ASSERT_TRUE(control.has_value());
    ASSERT_GT(::write(control->fd(), nonsense, std::strlen(nonsense)), 0);
  }
  expect_sound(measure(client(Workload::udp_rr)));
}

TEST_F(Loopback, TellsThatTheServerDied) {
  start("kernel");
  ClientOptions options = client(Workload::udp_rr);
  options.block.seconds = 0.4;
  const pid_t killer = ::fork();
  if (killer == 0) {
    ::usleep(200'000);
    ::kill(server_, SIGKILL);  // and its session with it
    ::_exit(0);
  }
  const auto block = run_block(options);
  ASSERT_FALSE(block.has_value());
  EXPECT_FALSE(describe(block.error()).empty());
  ::waitpid(killer, nullptr, 0);
  ::waitpid(server_, nullptr, 0);
  server_ = 0;
}

}  // namespace
}  // namespace netchannel::bench
