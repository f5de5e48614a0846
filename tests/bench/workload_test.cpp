// The two workloads over a transport that echoes, and loses, repeats or alters what the test wants. Only what
// was counted is looked at, never how long anything took.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "bench/message.hpp"
#include "bench/rr_client.hpp"
#include "bench/signals.hpp"
#include "bench/stream_sender.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

using namespace std::chrono_literals;

enum class Fate { pass, lose, twice, alter, cut };

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(std::size_t ports) : ports_(ports) {}
  std::function<Fate(std::uint64_t)> fate = [](std::uint64_t) {
    return Fate::pass;
  };  // by the count of sends
  std::size_t room = SIZE_MAX;  // messages that a call takes at most
  std::function<void(std::size_t port, Bytes message)> on_send = [](std::size_t, Bytes) {};
  bool is_reliable = false;
  std::size_t full_port = kAnyPort;  // takes nothing
  Instant held_until;                // nothing is received before

  Result<void> connect_to(const Far&, std::uint32_t) override { return {}; }
  bool reliable() const override { return is_reliable; }

  Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool) noexcept override {
    ++calls;
    const std::size_t n = port == full_port ? 0 : std::min(messages.size(), room);
    for (const Bytes message : messages.first(n)) {
      on_send(port, message);
      std::vector<std::byte> copy(message.begin(), message.end());
      const Fate what = fate(sends++);
      if (what == Fate::alter && !copy.empty()) copy.back() ^= std::byte{1};
      if (what == Fate::cut) copy.pop_back();
      if (what != Fate::lose) queue_.push_back({port, copy});
      if (what == Fate::twice) queue_.push_back({port, copy});
    }
    return Sent{n, 0};
  }
  Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most, Instant) noexcept override {
    current_.clear();
    arrived_.clear();
    if (held_until != Instant{} && device::monotonic_now() < held_until) return std::span<const Arrived>{};
    for (auto it = queue_.begin(); it != queue_.end() && current_.size() < most;) {
      if (port != kAnyPort && it->port != port) {
        ++it;
        continue;
      }
      current_.push_back(std::move(*it));
      it = queue_.erase(it);
    }
    for (const Queued& queued : current_) arrived_.push_back({queued.bytes, 9, queued.port});
    return std::span<const Arrived>(arrived_);
  }
  std::size_t send_back() noexcept override { return 0; }
  void wait(Instant) noexcept override { room = SIZE_MAX; }
  std::vector<std::uint16_t> ports() const override { return std::vector<std::uint16_t>(ports_, 9); }
  std::uint64_t syscalls() const override { return calls; }
  std::string mode() const override { return "fake"; }
  std::vector<std::string> explain() const override { return {}; }
  bool gathers_ports() const override { return false; }

  std::uint64_t sends = 0;
  std::uint64_t calls = 0;

 private:
  struct Queued {
    std::size_t port;
    std::vector<std::byte> bytes;
  };
  std::size_t ports_;
  std::deque<Queued> queue_;
  std::vector<Queued> current_;
  std::vector<Arrived> arrived_;
};

BlockOptions rr(std::uint32_t size, std::uint32_t burst = 0, std::uint32_t flows = 1,
                std::uint32_t pairs = 1) {
  BlockOptions out;
  out.workload = Workload::udp_rr;
  out.lane = *parse_lane("xdp");
  out.size = size;
  out.burst = burst;
  out.flows = flows;
  out.pairs = pairs;
  return out;
}

RrResult run_rr(FakeTransport& transport, const BlockOptions& options, double seconds = 0.03) {
  return RrClient(transport, options).run(seconds);
}

TEST(RequestResponse, CompletesEveryTransactionOfAnySizeAndShape) {
  for (const std::uint32_t size : {0u, 1u, 2u, 3u, 4u, 11u, 12u, 100u, 1400u}) {
    for (const auto& [burst, flows, pairs] :
         {std::tuple{0u, 1u, 1u}, {0u, 8u, 1u}, {0u, 1u, 3u}, {15u, 4u, 2u}}) {
      if (size == 0 && burst != 0) continue;
      FakeTransport transport(std::size_t{flows} * pairs);
      const RrResult result = run_rr(transport, rr(size, burst, flows, pairs), 0.005);
      EXPECT_GT(result.completed, 100u) << size;
      EXPECT_EQ(result.sent, result.completed + result.in_flight) << size;
      EXPECT_EQ(result.latency.count(), result.completed);
      EXPECT_EQ(result.timeouts + result.duplicates + result.corrupted, 0u) << size;
      EXPECT_FALSE(result.wrong());
    }
  }
}

TEST(RequestResponse, KeepsOnePlusBurstRequestsInFlight) {
  FakeTransport transport(1);
  transport.fate = [](std::uint64_t) { return Fate::lose; };
  const RrResult result = run_rr(transport, rr(100, 15), 0.01);
  EXPECT_EQ(result.sent, 16u);
  EXPECT_EQ(result.in_flight, 16u);
}

TEST(RequestResponse, TakesFlowsInTurn) {
  FakeTransport transport(4);
  std::vector<std::size_t> ports;
  transport.on_send = [&](std::size_t port, Bytes) { ports.push_back(port); };
  run_rr(transport, rr(100, 0, 4), 0.005);
  ASSERT_GT(ports.size(), 8u);
  for (std::size_t i = 0; i < ports.size(); ++i) EXPECT_EQ(ports[i], i % 4);
}

TEST(RequestResponse, AsksAgainAfterALostDatagramAndGoesOn) {
  FakeTransport transport(1);
  transport.fate = [](std::uint64_t n) { return n == 5 ? Fate::lose : Fate::pass; };
  const RrResult result = run_rr(transport, rr(1), 0.25);
  EXPECT_EQ(result.timeouts, 1u);
  EXPECT_GT(result.completed, 6u);
  EXPECT_GE(result.latency.max(), kRequestTimeout.count());  // the wait is part of the sample
  EXPECT_FALSE(result.wrong());
}

TEST(RequestResponse, CallsAReplyThatNobodyWaitsForADuplicate) {
  FakeTransport transport(1);
  transport.fate = [](std::uint64_t n) { return n == 5 ? Fate::twice : Fate::pass; };
  const RrResult result = run_rr(transport, rr(100));
  EXPECT_EQ(result.duplicates, 1u);
  EXPECT_TRUE(result.wrong());
}

TEST(RequestResponse, NoticesAlteredAndCutReplies) {
  for (const Fate fate : {Fate::alter, Fate::cut}) {
    FakeTransport transport(1);
    transport.fate = [fate](std::uint64_t n) { return n == 5 ? fate : Fate::pass; };
    const RrResult result = run_rr(transport, rr(100), 0.01);
    EXPECT_EQ(result.corrupted, 1u);
    EXPECT_TRUE(result.wrong());
  }
}

TEST(RequestResponse, SendsWhatFoundNoRoomAgain) {
  FakeTransport transport(1);
  transport.room = 3;
  const RrResult result = run_rr(transport, rr(100, 15), 0.005);
  EXPECT_EQ(result.timeouts, 0u);
  EXPECT_GT(result.completed, 16u);
}

TEST(RequestResponse, FollowsItsPlanInAnOpenLoop) {
  FakeTransport transport(1);
  BlockOptions options = rr(100);
  options.rate = 10'000;
  const RrResult result = run_rr(transport, options, 0.05);
  EXPECT_EQ(result.planned, result.sent);
  EXPECT_LE(result.planned, 501u);
  EXPECT_GT(result.completed, 0u);
  EXPECT_EQ(result.service.count(), result.completed);
  EXPECT_EQ(result.send_lag.count(), result.sent);
}

TEST(RequestResponse, CountsAStallForEveryRequestThatItDelayed) {
  // Nothing comes back for 30 ms: in a closed loop one sample would know; in an open loop 300 do.
  FakeTransport transport(1);
  BlockOptions options = rr(100);
  options.rate = 10'000;
  bool stalled = false;
  transport.on_send = [&](std::size_t, Bytes) {
    if (std::exchange(stalled, true)) return;
    const timespec pause{0, 30'000'000};
    ::nanosleep(&pause, nullptr);
  };
  const RrResult result = run_rr(transport, options, 0.06);
  std::uint64_t slow = 0;
  for (const auto& [value, times] : result.latency.buckets()) slow += value > 5'000'000 ? times : 0;
  EXPECT_GT(slow, 100u);
}

TEST(RequestResponse, RunsAgainFromACleanStart) {
  FakeTransport transport(1);
  RrClient client(transport, rr(1, 7));
  const RrResult first = client.run(0.003), second = client.run(0.003);
  EXPECT_GT(first.completed, 0u);
  EXPECT_GT(second.completed, 0u);
  EXPECT_EQ(second.duplicates, 0u);
}

TEST(RequestResponse, NeverAsksTwiceOverAConnectionHoweverLongTheReplyTakes) {
  FakeTransport transport(1);
  transport.is_reliable = true;
  std::map<std::uint32_t, int> times;
  transport.on_send = [&](std::size_t, Bytes message) { ++times[read_number(message)]; };
  // The first reply stays away for longer than a datagram's would be waited for.
  transport.held_until = device::monotonic_now() + kRequestTimeout + 50ms;
  const RrResult result = run_rr(transport, rr(100), 0.3);
  EXPECT_GT(result.completed, 1u);
  EXPECT_EQ(result.timeouts, 0u);
  EXPECT_GE(result.latency.max(), kRequestTimeout.count());
  for (const auto& [number, sent] : times) EXPECT_EQ(sent, 1) << number;
}

TEST(RequestResponse, KeepsWhatAConnectionHasNoRoomForAndSendsItOnce) {
  FakeTransport transport(1);
  transport.is_reliable = true;
  transport.room = 3;
  BlockOptions options = rr(100, 15);
  std::map<std::uint32_t, int> times;
  transport.on_send = [&](std::size_t, Bytes message) { ++times[read_number(message)]; };
  const RrResult result = run_rr(transport, options, 0.003);
  EXPECT_GT(result.completed, 16u);
  EXPECT_EQ(result.completed + result.in_flight, result.sent);
  for (const auto& [number, sent] : times) EXPECT_EQ(sent, 1) << number;
  EXPECT_EQ(times.size(), result.sent);
}

BlockOptions stream(std::uint32_t size, std::uint32_t flows, std::uint32_t batch = 32,
                    std::uint32_t pairs = 1) {
  BlockOptions out = rr(size, 0, flows, pairs);
  out.workload = Workload::udp_stream;
  out.batch = batch;
  return out;
}

TEST(Stream, ArrivesWholeAndInOrderInEveryShape) {
  for (const std::uint32_t size : {0u, 1u, 4u, 12u, 100u, 1472u}) {
    for (const auto& [flows, batch, pairs] :
         {std::tuple{1u, 1u, 1u}, {1u, 32u, 1u}, {64u, 32u, 1u}, {3u, 7u, 2u}}) {
      FakeTransport transport(std::size_t{flows} * pairs);
      StreamCheck check(size, flows * pairs);
      transport.on_send = [&](std::size_t port, Bytes message) {
        check.see(message, static_cast<std::uint16_t>(1000 + port));
      };
      transport.fate = [](std::uint64_t) { return Fate::lose; };
      const StreamResult result = StreamSender(transport, stream(size, flows, batch, pairs)).run(0.003);
      EXPECT_GT(result.sent, 0u);
      EXPECT_EQ(check.counts().received, result.sent) << size;
      EXPECT_EQ(check.counts().reordered, 0u);
      EXPECT_FALSE(check.counts().wrong(result.sent));
    }
  }
}

TEST(Stream, SendsABatchOfOneFlowInOneCallAndOfManyInOneEach) {
  FakeTransport one(1), many(64);
  one.fate = many.fate = [](std::uint64_t) { return Fate::lose; };
  const StreamResult single = StreamSender(one, stream(100, 1)).run(0.003);
  EXPECT_EQ(single.sent, one.calls * 32);
  const StreamResult turns = StreamSender(many, stream(100, 64)).run(0.003);
  EXPECT_EQ(turns.sent, many.calls);
}

TEST(Stream, SendsWhatFoundNoRoomAgainUnderTheSameNumber) {
  FakeTransport transport(1);
  StreamCheck check(100, 1);
  std::uint64_t n = 0;
  transport.on_send = [&](std::size_t, Bytes message) {
    check.see(message, 1000);
    if (++n % 100 == 0) transport.room = 5;
  };
  transport.fate = [](std::uint64_t) { return Fate::lose; };
  const StreamResult result = StreamSender(transport, stream(100, 1)).run(0.005);
  EXPECT_GT(result.waits, 0u);
  EXPECT_EQ(check.counts().received, result.sent);
  EXPECT_EQ(check.counts().duplicates, 0u);
}

TEST(Stream, DoesNotLetAConnectionWithFullBuffersHoldUpTheOthers) {
  FakeTransport transport(3);
  transport.is_reliable = true;
  transport.fate = [](std::uint64_t) { return Fate::lose; };
  std::map<std::size_t, std::uint64_t> sent;
  transport.on_send = [&](std::size_t port, Bytes) {
    ++sent[port];
    transport.full_port = 1;
  };
  const StreamResult result = StreamSender(transport, stream(100, 3)).run(0.003);
  EXPECT_GT(result.sent, 0u);
  EXPECT_LE(sent[1], 1u);
  EXPECT_GT(sent[0] + sent[2], result.sent - 2);
  EXPECT_NEAR(static_cast<double>(sent[0]), static_cast<double>(sent[2]), 2);
}

TEST(Stream, KeepsToItsRate) {
  FakeTransport transport(1);
  transport.fate = [](std::uint64_t) { return Fate::lose; };
  BlockOptions options = stream(100, 1);
  options.rate = 20'000;
  const StreamResult result = StreamSender(transport, options).run(0.05);
  EXPECT_LE(result.sent, 1001u);
  EXPECT_GT(result.sent, 0u);
  EXPECT_EQ(result.sent, result.planned);
}

TEST(Stream, NumbersGoOnFromOneRunToTheNext) {
  FakeTransport transport(1);
  transport.fate = [](std::uint64_t) { return Fate::lose; };
  std::uint32_t last = 0;
  transport.on_send = [&](std::size_t, Bytes message) { last = read_number(message); };
  StreamSender sender(transport, stream(100, 1));
  const std::uint64_t first = sender.run(0.002).sent;
  const std::uint64_t second = sender.run(0.002).sent;
  EXPECT_EQ(last + 1, first + second);
}

}  // namespace
}  // namespace netchannel::bench
