// TCP on every path that this machine has, each against a plain kernel socket at the other end of a wire.
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/api/every_path.hpp"
#include "tests/api/kernel_stream.hpp"

namespace netchannel {
namespace {

using testkit::bytes;
using testkit::pattern;

class TcpOnEveryPath : public OnEveryPath {
 protected:
  TcpListener listen(std::uint16_t port, bool v6 = false, ListenOptions options = {}) {
    auto listener = host->listen({ours(v6), port}, options);
    EXPECT_TRUE(listener) << describe(listener.error());
    return std::move(*listener);
  }
  KernelStream kernel_listener(std::uint16_t port, bool v6 = false) {
    std::optional<KernelStream> made;
    at_the_other_end([&] { made.emplace(KernelStream::listening({theirs(v6), port})); });
    return std::move(*made);
  }
  KernelStream kernel_connect(std::uint16_t port, bool v6 = false) {
    std::optional<KernelStream> made;
    at_the_other_end([&] { made.emplace(KernelStream::connecting({ours(v6), port})); });
    return std::move(*made);
  }
  // Turns the host until `done`, for a while at most.
  template <class Done>
  bool until(Done&& done, Duration patience = 5s) {
    const Instant end = soon(patience);
    while (!done()) {
      if (host->now() > end) return false;
      if (!host->poll()) host->wait(host->now() + 200us);
    }
    return true;
  }
  struct Both {
    TcpSocket ours;
    KernelStream theirs;
  };
  Both accepted(std::uint16_t port, bool v6 = false, ListenOptions options = {}) {
    auto listener = listen(port, v6, options);
    KernelStream other = kernel_connect(port, v6);
    auto socket = listener.accept(soon());
    EXPECT_TRUE(socket) << describe(socket.error());
    return {std::move(*socket), std::move(other)};
  }
  Both connected(std::uint16_t port, bool v6 = false, ConnectOptions options = {}) {
    KernelStream listener = kernel_listener(port, v6);
    options.deadline = soon();
    auto socket = host->connect({theirs(v6), port}, options);
    EXPECT_TRUE(socket) << describe(socket.error());
    std::optional<KernelStream> other;
    EXPECT_TRUE(until([&] { return (other = listener.accept()).has_value(); }));
    return {std::move(*socket), std::move(*other)};
  }
  std::string heard(KernelStream& other, std::size_t size) {
    std::string got;
    std::array<std::byte, 65536> buffer;
    EXPECT_TRUE(until([&] {
      const ssize_t n = other.receive(buffer);
      if (n > 0) got.append(reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(n));
      return got.size() >= size || n == 0;
    }));
    return got;
  }
  // `size` bytes each way at once, every one compared.
  void exchange(TcpSocket& mine, KernelStream& other, std::size_t size) {
    const auto there = pattern(size, 1), back = pattern(size, 2);
    std::size_t sent = 0, heard_there = 0, sent_back = 0, heard_back = 0;
    std::vector<std::byte> buffer(256 << 10);
    const auto take = [&](std::size_t n, const std::vector<std::byte>& of, std::size_t& at) {
      if (!std::equal(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n),
                      of.begin() + static_cast<std::ptrdiff_t>(at)))
        ADD_FAILURE() << "wrong bytes after " << at;
      at += n;
    };
    const bool done = until(
        [&] {
          if (const auto n = mine.write(Bytes(there).subspan(sent), More::no, kNow)) sent += *n;
          const ssize_t k = other.receive(buffer);
          if (k > 0) take(static_cast<std::size_t>(k), there, heard_there);
          const ssize_t m = sent_back < size ? other.send(Bytes(back).subspan(sent_back)) : 0;
          if (m > 0) sent_back += static_cast<std::size_t>(m);
          if (const auto n = mine.read(buffer, kNow)) take(*n, back, heard_back);
          return HasFailure() || (heard_there == size && heard_back == size);
        },
        20s);
    EXPECT_TRUE(done) << heard_there << " there and " << heard_back << " back of " << size;
  }
};

TEST_P(TcpOnEveryPath, AKernelClientIsAcceptedAndServed) {
  for (const bool v6 : {false, true}) {
    auto [mine, other] = accepted(7000, v6);
    ASSERT_EQ(other.send(bytes("ping")), 4);
    std::array<std::byte, 16> got;
    const auto n = mine.read(got, soon());
    ASSERT_TRUE(n) << describe(n.error());
    EXPECT_EQ(*n, 4u);
    ASSERT_TRUE(mine.write(bytes("pong!"), More::no, soon()));
    EXPECT_EQ(heard(other, 5), "pong!");
    EXPECT_EQ(mine.accelerated(), !by_kernel());
  }
}

TEST_P(TcpOnEveryPath, AKernelServerIsConnectedTo) {
  for (const bool v6 : {false, true}) {
    auto [mine, other] = connected(7001, v6);
    ASSERT_TRUE(mine.write(bytes("hello"), More::no, soon()));
    EXPECT_EQ(heard(other, 5), "hello");
    EXPECT_EQ(mine.peer(), (Endpoint{theirs(v6), 7001}));
    EXPECT_EQ(mine.info().state, TcpConnectionState::established);
  }
}

TEST_P(TcpOnEveryPath, MegabytesGoBothWaysAtOnce) {
  if (GetParam().mode == XdpOptions::Mode::generic)
    GTEST_SKIP() << "generic XDP drops a veth peer's super-frames; `netchannel doctor` names the mend";
  for (const bool v6 : {false, true}) {
    auto [mine, other] = connected(7002, v6);
    exchange(mine, other, 4 << 20);
  }
}

TEST_P(TcpOnEveryPath, ViewsShowTheBytesWithoutACopy) {
  auto [mine, other] = accepted(7003);
  ASSERT_EQ(other.send(bytes("abcdef")), 6);
  std::array<Bytes, 4> views;
  const auto n = mine.receive(views, soon());
  ASSERT_TRUE(n);
  EXPECT_EQ(*n, 6u);
  mine.consume(2);
  const auto rest = mine.receive(views, soon());
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, 4u);
  EXPECT_EQ(std::to_integer<char>(views[0][0]), 'c');
}

TEST_P(TcpOnEveryPath, ScatteredAndGatheredBytesKeepTheirOrder) {
  auto [mine, other] = accepted(7004);
  const auto one = bytes("one "), two = bytes("two");
  ASSERT_TRUE(mine.write(std::array<Bytes, 2>{Bytes(one), Bytes(two)}, More::no, soon()));
  EXPECT_EQ(heard(other, 7), "one two");
  ASSERT_EQ(other.send(bytes("threefour")), 9);
  std::array<std::byte, 5> three;
  std::array<std::byte, 4> four;
  std::size_t got = 0;
  ASSERT_TRUE(until([&] { return (got = mine.readable()) >= 9 || !mine.accelerated(); }));
  const auto n = mine.read(std::array<MutableBytes, 2>{MutableBytes(three), MutableBytes(four)}, soon());
  ASSERT_TRUE(n);
  EXPECT_EQ(*n, 9u);
  EXPECT_EQ(std::to_integer<char>(four[0]), 'f');
}

TEST_P(TcpOnEveryPath, AHalfClosedConnectionStillCarriesTheOtherWay) {
  auto [mine, other] = accepted(7005);
  ASSERT_TRUE(mine.shutdown_write());
  std::array<std::byte, 8> buffer;
  EXPECT_TRUE(until([&] { return other.receive(buffer) == 0; }));
  ASSERT_EQ(other.send(bytes("late")), 4);
  const auto n = mine.read(buffer, soon());
  ASSERT_TRUE(n) << describe(n.error());
  EXPECT_EQ(*n, 4u);
  const auto refused = mine.write(bytes("x"), More::no, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, EPIPE);
}

TEST_P(TcpOnEveryPath, TheEndOfTheStreamIsZeroBytes) {
  auto [mine, other] = accepted(7006);
  ASSERT_EQ(other.send(bytes("last")), 4);
  other.close();
  std::array<std::byte, 8> buffer;
  ASSERT_EQ(mine.read(buffer, soon()).value_or(99), 4u);
  EXPECT_EQ(mine.read(buffer, soon()).value_or(99), 0u);
  EXPECT_EQ(mine.read(buffer, soon()).value_or(99), 0u);
}

TEST_P(TcpOnEveryPath, AResetIsToldOnceAndThenTheStreamIsOver) {
  auto [mine, other] = accepted(7007);
  other.reset_on_close();
  other.close();
  std::array<std::byte, 8> buffer;
  const auto n = mine.read(buffer, soon());
  ASSERT_FALSE(n);
  EXPECT_EQ(n.error().code, ErrorCode::reset);
  EXPECT_EQ(n.error().sys_errno, ECONNRESET);
  EXPECT_EQ(mine.read(buffer, soon()).value_or(99), 0u);
  EXPECT_FALSE(mine.write(bytes("x"), More::no, soon()));
}

TEST_P(TcpOnEveryPath, AbortResetsThePeer) {
  auto [mine, other] = accepted(7008);
  mine.abort();
  std::array<std::byte, 8> buffer;
  EXPECT_TRUE(until([&] { return other.receive(buffer) < 0 && errno == ECONNRESET; }));
}

TEST_P(TcpOnEveryPath, ConnectingToAClosedPortIsRefused) {
  const auto socket = host->connect({theirs(), 9}, {.local = {}, .deadline = soon()});
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::refused);
  EXPECT_EQ(socket.error().sys_errno, ECONNREFUSED);
}

TEST_P(TcpOnEveryPath, AClientOfAClosedPortIsRefused) {
  {
    auto listener = listen(7009);
  }
  KernelStream other = kernel_connect(7009);
  EXPECT_TRUE(until([&] {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(other.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error == ECONNREFUSED;
  }));
}

TEST_P(TcpOnEveryPath, DeadlinesAreKept) {
  auto [mine, other] = accepted(7010);
  std::array<std::byte, 8> buffer;
  const auto now = mine.read(buffer, kNow);
  ASSERT_FALSE(now);
  EXPECT_EQ(now.error().code, ErrorCode::would_block);
  const Instant before = host->now();
  const auto later = mine.read(buffer, before + 20ms);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::timed_out);
  EXPECT_GE(host->now(), before + 20ms);
  auto listener = listen(7011);
  EXPECT_EQ(listener.accept(kNow).error().code, ErrorCode::would_block);
  EXPECT_EQ(listener.accept(host->now() + 1ms).error().code, ErrorCode::timed_out);
}

TEST_P(TcpOnEveryPath, ClosingGracefullyWaitsUntilAllIsAcknowledged) {
  auto [mine, other] = accepted(7012);
  ASSERT_TRUE(mine.write(pattern(30'000), More::no, soon()));
  const auto closed = mine.close_gracefully(soon());
  EXPECT_TRUE(closed) << describe(closed.error());
  std::vector<std::byte> buffer(60'000);
  std::size_t got = 0;
  EXPECT_TRUE(until([&] {
    const ssize_t n = other.receive(MutableBytes(buffer).subspan(got));
    if (n > 0) got += static_cast<std::size_t>(n);
    return n == 0;
  }));
  EXPECT_EQ(got, 30'000u);
}

TEST_P(TcpOnEveryPath, APollerServesManyConnections) {
  constexpr std::size_t kMany = 100;
  auto listener = listen(7013);
  std::vector<KernelStream> others;
  std::vector<TcpSocket> sockets;
  for (std::size_t i = 0; i < kMany; ++i) {
    others.push_back(kernel_connect(7013));
    auto socket = listener.accept(soon());
    ASSERT_TRUE(socket) << describe(socket.error());
    sockets.push_back(std::move(*socket));
  }
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_TRUE(host->poller().add(sockets[i], i));
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(others[i].send(bytes("x")), 1);
  std::vector<bool> seen(kMany);
  std::array<Event, 16> events;
  while (std::count(seen.begin(), seen.end(), true) < static_cast<std::ptrdiff_t>(kMany)) {
    const auto n = host->poller().wait(events, soon());
    ASSERT_TRUE(n);
    ASSERT_NE(*n, 0u) << "nothing came any more";
    for (const Event& event : std::span(events).first(*n)) {
      std::array<std::byte, 4> buffer;
      ASSERT_EQ(sockets[event.token].read(buffer, kNow).value_or(0), 1u);
      seen[event.token] = true;
    }
  }
}

TEST_P(TcpOnEveryPath, APollerTellsOfAConnectionToAccept) {
  auto listener = listen(7014);
  ASSERT_TRUE(host->poller().add(listener, 42));
  std::array<Event, 4> events;
  EXPECT_EQ(host->poller().wait(events, host->now() + 1ms).value_or(99), 0u);
  KernelStream other = kernel_connect(7014);
  const auto n = host->poller().wait(events, soon());
  ASSERT_TRUE(n);
  ASSERT_EQ(*n, 1u);
  EXPECT_EQ(events[0].token, 42u);
  EXPECT_TRUE(listener.accept(kNow));
}

TEST_P(TcpOnEveryPath, AConnectionIsMadeWithoutWaitingAndTheListenerAnswersLater) {
  KernelStream other = kernel_listener(7015);
  auto socket = host->connect({theirs(), 7015}, {.local = {}, .deadline = kNow});
  ASSERT_TRUE(socket) << describe(socket.error());
  ASSERT_TRUE(host->poller().add(*socket, 1, kWritable));
  std::array<Event, 4> events;
  const auto n = host->poller().wait(events, soon());
  ASSERT_TRUE(n);
  ASSERT_EQ(*n, 1u);
  EXPECT_TRUE(socket->finish_connect(kNow));
}

TEST_P(TcpOnEveryPath, APortCanBeListenedOnAgainAtOnce) {
  for (int i = 0; i < 3; ++i) {
    auto [mine, other] = accepted(7016);
    ASSERT_EQ(other.send(bytes("x")), 1);
    std::array<std::byte, 4> buffer;
    ASSERT_EQ(mine.read(buffer, soon()).value_or(0), 1u);
  }
}

TEST_P(TcpOnEveryPath, HundredsOfConnectionsOneAfterTheOther) {
  KernelStream listener = kernel_listener(7017);
  for (int i = 0; i < 300; ++i) {
    auto socket = host->connect({theirs(), 7017}, {.local = {}, .deadline = soon()});
    ASSERT_TRUE(socket) << describe(socket.error());
    std::optional<KernelStream> other;
    ASSERT_TRUE(until([&] { return (other = listener.accept()).has_value(); })) << i;
    ASSERT_TRUE(socket->write(bytes("x"), More::no, soon()));
    ASSERT_EQ(heard(*other, 1), "x");
    other->close();
  }
}

// Linux's word on what has not been acknowledged to it.
std::uint32_t unacknowledged(const KernelStream& other) {
  tcp_info info{};
  socklen_t length = sizeof info;
  ::getsockopt(other.fd(), IPPROTO_TCP, TCP_INFO, &info, &length);
  return info.tcpi_unacked;
}

class TcpWithAKeeper : public TcpOnEveryPath {};

TEST_P(TcpWithAKeeper, AcknowledgesAndAcceptsWhileItsOwnerComputes) {
  auto [mine, other] = accepted(7018);
  ASSERT_EQ(other.send(pattern(60'000)), 60'000);
  const auto give_up = std::chrono::steady_clock::now() + 5s;
  while (unacknowledged(other) != 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(unacknowledged(other), 0u);
  EXPECT_GT(host->counter(Counter::host_keeper_turns), 0u);
  EXPECT_EQ(mine.readable(), 60'000u);
  // The handshake of a newcomer, too.
  auto listener = listen(7019);
  KernelStream late = kernel_connect(7019);
  pollfd connected{late.fd(), POLLOUT, 0};
  EXPECT_EQ(::poll(&connected, 1, 5000), 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpOnEveryPath, ::testing::ValuesIn(kWays), name_of_way);
INSTANTIATE_TEST_SUITE_P(Ways, TcpWithAKeeper, ::testing::Values(kKeeperWay), name_of_way);

}  // namespace
}  // namespace netchannel
