// The UDP socket on every path that this machine has, each against a plain kernel socket at the other end of
// a wire.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <thread>

#include "tests/api/every_path.hpp"
#include "tests/api/kernel_peer.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;
using testkit::VethOptions;

class UdpOnEveryPath : public OnEveryPath {
 protected:
  // A kernel socket at the other end of the wire.
  KernelPeer peer(std::uint16_t port = 0, bool v6 = false) {
    std::optional<KernelPeer> made;
    at_the_other_end([&] { made.emplace(Endpoint{theirs(v6), port}); });
    return std::move(*made);
  }
  UdpSocket open(const Endpoint& local, UdpOptions options = {}) {
    auto socket = host->udp(local, options);
    EXPECT_TRUE(socket) << describe(socket.error());
    return std::move(*socket);
  }
  // The peer's next datagram, while our host goes on turning: the first may wait for the neighbour's address,
  // and nobody but us polls.
  std::optional<KernelPeer::Received> heard_by(KernelPeer& other) {
    const Instant end = soon();
    while (host->now() < end) {
      host->poll();
      if (auto got = other.receive(1ms)) return got;
    }
    return std::nullopt;
  }
};

// Receives one datagram and checks it whole.
void expect_received(UdpSocket& socket, Bytes payload, const Endpoint& from, Instant deadline) {
  Datagram got;
  const auto n = socket.receive({&got, 1}, {.deadline = deadline});
  ASSERT_TRUE(n) << describe(n.error());
  ASSERT_EQ(*n, 1u) << "nothing of " << payload.size() << " bytes arrived";
  EXPECT_TRUE(std::ranges::equal(got.payload, payload)) << "of " << payload.size() << " bytes";
  EXPECT_EQ(got.peer, from);
  EXPECT_FALSE(got.truncated);
}

TEST_P(UdpOnEveryPath, ADatagramOfAnySizeComesAndGoesWhole) {
  for (const bool v6 : {false, true}) {
    auto socket = open({ours(v6), 7000});
    auto other = peer(0, v6);
    ASSERT_TRUE(other.bound());
    for (const std::size_t size : {0, 1, 2, 100, 1451, 1452, 1453, 1472, 1473, 3000, 8900, 20000, 65507}) {
      const auto payload = pattern(size, v6);
      ASSERT_TRUE(other.send_to({ours(v6), 7000}, payload)) << size;
      expect_received(socket, payload, other.local(), soon());
      if (HasFailure()) return;
      const auto sent = socket.send_to(payload, other.local());
      ASSERT_TRUE(sent) << size << ": " << describe(sent.error());
      const auto back = other.receive();
      ASSERT_TRUE(back) << size << " bytes did not arrive at the peer";
      ASSERT_TRUE(back->payload == payload) << size;
      EXPECT_EQ(back->from, (Endpoint{ours(v6), 7000}));
    }
  }
}

TEST_P(UdpOnEveryPath, AnAnySocketOfBothFamiliesHearsBothAndKnowsWhereTheyWereSent) {
  auto socket = open({IpAddress::any_v6(), 7001});
  for (const bool v6 : {false, true}) {
    auto other = peer(0, v6);
    const auto payload = pattern(33);
    ASSERT_TRUE(other.send_to({ours(v6), 7001}, payload));
    Datagram got;
    ASSERT_EQ(socket.receive({&got, 1}, {.deadline = soon()}).value_or(0), 1u);
    EXPECT_EQ(got.local, (Endpoint{ours(v6), 7001}));
    EXPECT_EQ(got.peer, other.local());
    ASSERT_TRUE(socket.send_to(payload, got.peer));
    EXPECT_TRUE(other.receive());
  }
}

TEST_P(UdpOnEveryPath, ABatchArrivesInOrderWithOneCall) {
  auto socket = open({ours(), 7002});
  auto other = peer();
  for (unsigned i = 0; i < 32; ++i) ASSERT_TRUE(other.send_to({ours(), 7002}, pattern(100, i)));
  std::vector<Datagram> got(64);
  std::size_t n = 0;
  // A plain kernel socket gives one a call; the others give what is there.
  while (n < 32) {
    const auto more = socket.receive(std::span(got).subspan(n), {.least = 32 - n, .deadline = soon()});
    ASSERT_TRUE(more && *more != 0) << n;
    n += *more;
  }
  for (unsigned i = 0; i < 32; ++i) EXPECT_TRUE(std::ranges::equal(got[i].payload, pattern(100, i))) << i;
}

TEST_P(UdpOnEveryPath, ABatchIsSentInOrderWithAStatusEach) {
  auto socket = open({ours(), 7003});
  auto other = peer();
  std::vector<std::vector<std::byte>> payloads;
  std::vector<OutDatagram> out;
  for (unsigned i = 0; i < 100; ++i) payloads.push_back(pattern(200 + i, i));
  for (const auto& payload : payloads) out.push_back({payload, other.local()});
  std::vector<SendStatus> statuses(out.size(), SendStatus::failed);
  std::size_t n = 0;
  for (int tries = 0; n < out.size() && tries < 1000; ++tries) {
    n += socket.send(std::span(out).subspan(n), std::span(statuses).subspan(n)).value_or(0);
    host->poll();
  }
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), SendStatus::queued), 100);
  for (unsigned i = 0; i < 100; ++i) {
    const auto got = heard_by(other);
    ASSERT_TRUE(got) << i;
    ASSERT_TRUE(got->payload == payloads[i]) << i;
  }
}

TEST_P(UdpOnEveryPath, OnePayloadGoesToManyPeers) {
  auto socket = open({ours(), 7004});
  std::vector<KernelPeer> others;
  std::vector<Endpoint> peers;
  for (int i = 0; i < 20; ++i) {
    others.push_back(peer());
    peers.push_back(others.back().local());
  }
  // The first datagram to a new neighbour may wait for its address; none is lost.
  const auto payload = pattern(500);
  EXPECT_EQ(socket.send_to_all(payload, peers).value_or(0), 20u);
  for (auto& other : others) {
    const auto got = heard_by(other);
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->payload == payload);
  }
}

TEST_P(UdpOnEveryPath, ADeadlineIsKeptThoughNothingEverComes) {
  auto socket = open({ours(), 7005});
  std::vector<Datagram> got(4);
  const Instant deadline = host->now() + 50ms;
  const auto n = socket.receive(got, {.least = 2, .deadline = deadline});
  ASSERT_TRUE(n) << describe(n.error());
  EXPECT_EQ(*n, 0u);
  EXPECT_GE(host->now(), deadline);
}

TEST_P(UdpOnEveryPath, ADeadlineReturnsWhatIsThereThoughItIsLessThanAskedFor) {
  auto socket = open({ours(), 7006});
  auto other = peer();
  ASSERT_TRUE(other.send_to({ours(), 7006}, pattern(10)));
  std::vector<Datagram> got(4);
  EXPECT_EQ(socket.receive(got, {.least = 2, .deadline = host->now() + 300ms}).value_or(9), 1u);
}

TEST_P(UdpOnEveryPath, AFragmentedDatagramEndsTheSleepOfWhoeverWaitsForIt) {
  auto socket = open({ours(), 7020});
  auto other = peer();
  const auto payload = pattern(20000);
  // Whatever else happens on the interface wakes a sleeper too, but not four times in time.
  for (int i = 0; i < 4; ++i) {
    std::thread late([&] {
      std::this_thread::sleep_for(50ms);  // until the host sleeps
      other.send_to({ours(), 7020}, payload);
    });
    // At its deadline it finds everything, so it must be earlier.
    const Instant deadline = soon(2s);
    expect_received(socket, payload, other.local(), deadline);
    EXPECT_LT(host->now(), deadline);
    late.join();
  }
}

TEST_P(UdpOnEveryPath, NothingIsWaitedForWhenNothingIsAskedFor) {
  auto socket = open({ours(), 7007});
  std::vector<Datagram> got(4);
  EXPECT_EQ(socket.receive(got, {.least = 0}).value_or(9), 0u);
}

TEST_P(UdpOnEveryPath, AConnectedSocketHearsItsPeerOnly) {
  auto socket = open({ours(), 7008});
  auto friendly = peer(), stranger = peer();
  ASSERT_TRUE(socket.connect(friendly.local()));
  EXPECT_EQ(socket.peer(), friendly.local());
  ASSERT_TRUE(stranger.send_to({ours(), 7008}, pattern(5, 1)));
  ASSERT_TRUE(friendly.send_to({ours(), 7008}, pattern(5, 2)));
  expect_received(socket, pattern(5, 2), friendly.local(), soon());
  Datagram got;
  EXPECT_EQ(socket.receive({&got, 1}, {.deadline = host->now() + 50ms}).value_or(9), 0u);
  ASSERT_TRUE(socket.send_to(pattern(6)));
  EXPECT_TRUE(friendly.receive());
}

TEST_P(UdpOnEveryPath, ADisconnectedSocketHearsEverybodyAgain) {
  auto socket = open({ours(), 7009});
  auto friendly = peer(), stranger = peer();
  ASSERT_TRUE(socket.connect(friendly.local()));
  ASSERT_TRUE(socket.connect({}));
  EXPECT_EQ(socket.peer(), Endpoint{});
  ASSERT_TRUE(stranger.send_to({ours(), 7009}, pattern(5, 1)));
  expect_received(socket, pattern(5, 1), stranger.local(), soon());
}

TEST_P(UdpOnEveryPath, AClosedPortAtThePeerIsToldOnce) {
  auto socket = open({ours(), 7010});
  ASSERT_TRUE(socket.connect({theirs(), 9}));
  ASSERT_TRUE(socket.send_to(pattern(5)));
  Datagram got;
  const auto told = socket.receive({&got, 1}, {.deadline = soon()});
  ASSERT_FALSE(told) << *told;
  EXPECT_EQ(told.error().code, ErrorCode::refused);
  EXPECT_EQ(told.error().sys_errno, ECONNREFUSED);
  EXPECT_EQ(socket.receive({&got, 1}, {.deadline = host->now() + 50ms}).value_or(9), 0u);
}

TEST_P(UdpOnEveryPath, APortIsGivenOnceUnlessBothShareIt) {
  auto first = open({ours(), 7011});
  const auto second = host->udp({ours(), 7011});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::address_in_use);
  auto third = open({ours(), 7012}, {.reuse_port = true});
  auto fourth = open({ours(), 7012}, {.reuse_port = true});
}

TEST_P(UdpOnEveryPath, APortIsFreeAgainAfterItsSocketIsGone) {
  {
    auto first = open({ours(), 7013});
  }
  auto second = open({ours(), 7013});
  auto other = peer();
  ASSERT_TRUE(other.send_to({ours(), 7013}, pattern(4)));
  expect_received(second, pattern(4), other.local(), soon());
}

TEST_P(UdpOnEveryPath, APortOfZeroGetsOneThatWorks) {
  auto socket = open({ours(), 0});
  ASSERT_NE(socket.local().port, 0);
  auto other = peer();
  ASSERT_TRUE(other.send_to(socket.local(), pattern(4)));
  expect_received(socket, pattern(4), other.local(), soon());
}

TEST_P(UdpOnEveryPath, AnAddressThatIsNotOursIsRefused) {
  const auto socket = host->udp({*IpAddress::parse("10.99.0.1"), 7014});
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::address_not_available);
}

TEST_P(UdpOnEveryPath, ADatagramThatNoNetworkCarriesIsRefusedAsTooLong) {
  auto socket = open({ours(), 7015});
  const auto sent = socket.send_to(pattern(65508), {theirs(), 9});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::message_too_long);
}

TEST_P(UdpOnEveryPath, SendingWithoutAPeerIsRefused) {
  auto socket = open({ours(), 7016});
  const auto sent = socket.send_to(pattern(1));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::invalid_argument);
}

TEST_P(UdpOnEveryPath, ASignalInterruptsAWait) {
  struct sigaction act{}, before{};
  act.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &act, &before);
  const itimerval in{{0, 0}, {0, 100'000}};
  auto socket = open({ours(), 7017});
  ::setitimer(ITIMER_REAL, &in, nullptr);
  Datagram got;
  const auto n = socket.receive({&got, 1}, {.deadline = soon(10s)});
  ::sigaction(SIGALRM, &before, nullptr);
  ASSERT_FALSE(n) << *n;
  EXPECT_EQ(n.error().code, ErrorCode::interrupted);
}

TEST_P(UdpOnEveryPath, ThePollerWakesForASocketAndForAForeignDescriptor) {
  auto socket = open({ours(), 7018});
  auto other = peer();
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd in(pipe_ends[0]), out(pipe_ends[1]);
  Poller& poller = host->poller();
  ASSERT_TRUE(poller.add(socket, 1));
  ASSERT_TRUE(poller.add(in.get(), 2));
  EXPECT_FALSE(poller.add(socket, 1)) << "added twice";
  std::array<Event, 8> events;
  EXPECT_EQ(poller.wait(events, host->now() + 20ms).value_or(9), 0u);

  ASSERT_TRUE(other.send_to({ours(), 7018}, pattern(4)));
  ASSERT_EQ(poller.wait(events, soon()).value_or(0), 1u);
  EXPECT_EQ(events[0].token, 1u);
  EXPECT_EQ(events[0].readiness & kReadable, std::uint32_t{kReadable});
  // Level-triggered: it stays ready, and the pipe is seen beside it.
  ASSERT_EQ(::write(out.get(), "x", 1), 1);
  bool saw_socket = false, saw_pipe = false;
  for (int i = 0; i < 1000 && !(saw_socket && saw_pipe); ++i) {
    const auto n = poller.wait(events, soon());
    ASSERT_TRUE(n);
    for (const Event& event : std::span(events).first(*n)) (event.token == 1 ? saw_socket : saw_pipe) = true;
  }
  EXPECT_TRUE(saw_socket && saw_pipe);

  expect_received(socket, pattern(4), other.local(), soon());
  char byte;
  ASSERT_EQ(::read(in.get(), &byte, 1), 1);
  EXPECT_EQ(poller.wait(events, host->now() + 20ms).value_or(9), 0u);
  ASSERT_TRUE(poller.remove(socket));
  ASSERT_TRUE(poller.remove(in.get()));
}

TEST_P(UdpOnEveryPath, AnIdleWaitSleepsInsteadOfSpinning) {
  auto socket = open({ours(), 7019});
  Datagram got;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(socket.receive({&got, 1}, {.deadline = host->now() + 1s}).value_or(9), 0u);
  ::getrusage(RUSAGE_SELF, &after);
  const auto cpu = [](const rusage& r) {
    return std::chrono::seconds(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           std::chrono::microseconds(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  };
  EXPECT_LT(cpu(after) - cpu(before), 100ms) << "a second of waiting used a tenth of a second of CPU";
}

INSTANTIATE_TEST_SUITE_P(Ways, UdpOnEveryPath, ::testing::ValuesIn(kWays), name_of_way);

}  // namespace
}  // namespace netchannel
