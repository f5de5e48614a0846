// Two hosts of one machine on the local path: TCP and UDP between them over shared memory, the kernel for
// everybody else, and what becomes of one when the other goes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <dirent.h>

#include <algorithm>
#include <thread>

#include "netchannel/host.hpp"
#include "testkit/frames.hpp"
#include "tests/api/kernel_peer.hpp"
#include "tests/api/kernel_stream.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;
using testkit::bytes;
const IpAddress kLoopback = IpAddress::v4(127, 0, 0, 1);

Host open_local(WaitMode wait = WaitMode::adaptive, bool keeper = false) {
  HostOptions options;
  options.path = Path::local;
  options.wait = wait;
  options.keeper = keeper;
  auto host = Host::open(options);
  EXPECT_TRUE(host) << describe(host.error());
  return std::move(*host);
}

bool says(const Host& host, std::string_view part) {
  return std::any_of(host.explain().begin(), host.explain().end(),
                     [&](const std::string& sentence) { return sentence.find(part) != std::string::npos; });
}

Endpoint local_of(const KernelStream& kernel) {
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ::getsockname(kernel.fd(), reinterpret_cast<sockaddr*>(&name), &length);
  return {IpAddress::v4(ntohl(name.sin_addr.s_addr)), ntohs(name.sin_port)};
}

// Both hosts in one thread: whoever waits for the other turns both.
class LocalPair : public ::testing::Test {
 protected:
  template <class Done>
  bool until(Done&& done, Duration patience = 5s) {
    const Instant end = a.now() + patience;
    while (!done()) {
      if (a.now() > end) return false;
      a.poll();
      b.poll();
    }
    return true;
  }
  TcpListener listen(Host& host, const Endpoint& at = {kLoopback, 0}, ListenOptions options = {}) {
    auto listener = host.listen(at, options);
    EXPECT_TRUE(listener) << describe(listener.error());
    return std::move(*listener);
  }
  struct Both {
    TcpSocket near, far;  // a's, b's
  };
  Both connect(TcpListener& listener, const Endpoint& to) {
    auto near = a.connect(to, {.deadline = kNow});
    EXPECT_TRUE(near) << describe(near.error());
    std::optional<TcpSocket> far;
    EXPECT_TRUE(until([&] {
      if (!far) {
        auto accepted = listener.accept(kNow);
        if (accepted) far.emplace(std::move(*accepted));
      }
      return far && near->finish_connect(kNow);
    }));
    return {std::move(*near), std::move(*far)};
  }
  Both connected() {
    auto listener = listen(b);
    return connect(listener, listener.local());
  }
  std::string read(TcpSocket& socket, std::size_t size) {
    std::string got;
    EXPECT_TRUE(until([&] {
      std::array<std::byte, 65536> buffer;
      const auto n = socket.read(buffer, kNow);
      if (n) got.append(reinterpret_cast<const char*>(buffer.data()), *n);
      return got.size() >= size || (n && *n == 0) || (!n && n.error().code != ErrorCode::would_block);
    }));
    return got;
  }

  Host a = open_local(), b = open_local();
};

TEST_F(LocalPair, TcpMeetsInSharedMemory) {
  for (const char* address : {"127.0.0.1", "127.5.6.7", "::1"}) {
    auto listener = listen(b, {*IpAddress::parse(address), 0});
    auto [near, far] = connect(listener, listener.local());
    EXPECT_TRUE(near.accelerated() && far.accelerated()) << address;
    ASSERT_TRUE(near.write(bytes("ping"), More::no, kNow));
    EXPECT_EQ(read(far, 4), "ping");
    ASSERT_TRUE(far.write(bytes("pong!"), More::no, kNow));
    EXPECT_EQ(read(near, 5), "pong!");
    EXPECT_EQ(near.peer(), listener.local());
    EXPECT_EQ(far.local(), listener.local());
    EXPECT_EQ(far.peer(), near.local());
  }
  EXPECT_GT(b.counter(Counter::device_rx_frames), 0u);
}

TEST_F(LocalPair, AListenerOnAnyAddressIsFoundUnderEachOfThem) {
  for (const bool v6 : {false, true}) {
    auto listener = listen(b, {v6 ? IpAddress::any_v6() : IpAddress::any_v4(), 0});
    auto [near, far] = connect(listener, {kLoopback, listener.local().port});
    EXPECT_TRUE(near.accelerated());
    EXPECT_EQ(far.local(), (Endpoint{kLoopback, listener.local().port}));
    if (!v6) continue;
    auto [near6, far6] = connect(listener, {*IpAddress::parse("::1"), listener.local().port});
    EXPECT_TRUE(near6.accelerated());
  }
}

TEST_F(LocalPair, EveryByteOfALongStreamArrivesBothWays) {
  auto [near, far] = connected();
  const auto there = pattern(3'000'000, 1), back = pattern(3'000'000, 2);
  std::vector<std::byte> buffer(1 << 18);
  std::size_t sent = 0, sent_back = 0, got = 0, got_back = 0;
  const auto take = [&](Result<std::size_t> n, const std::vector<std::byte>& of, std::size_t& at) {
    if (!n) return;
    ASSERT_TRUE(std::equal(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*n),
                           of.begin() + static_cast<std::ptrdiff_t>(at)));
    at += *n;
  };
  ASSERT_TRUE(until(
      [&] {
        if (const auto n = near.write(Bytes(there).subspan(sent), More::no, kNow)) sent += *n;
        if (const auto n = far.write(Bytes(back).subspan(sent_back), More::no, kNow)) sent_back += *n;
        take(far.read(buffer, kNow), there, got);
        take(near.read(buffer, kNow), back, got_back);
        return got == there.size() && got_back == back.size();
      },
      20s))
      << got << " and " << got_back;
  EXPECT_EQ(a.counter(Counter::tcp_retransmitted) + b.counter(Counter::tcp_retransmitted), 0u);
}

TEST_F(LocalPair, TheEndOfTheStreamAndTheEndOfTheConnectionAreSeen) {
  auto [near, far] = connected();
  ASSERT_TRUE(near.write(bytes("bye"), More::no, kNow));
  ASSERT_TRUE(near.shutdown_write());
  EXPECT_EQ(read(far, 4), "bye");
  ASSERT_TRUE(far.write(bytes("bye bye"), More::no, kNow));
  far.close();
  EXPECT_EQ(read(near, 8), "bye bye");
  near.close();
}

TEST_F(LocalPair, AClosedPortIsRefused) {
  const Endpoint nobody{kLoopback, 1};
  const auto refused = a.connect(nobody, {.deadline = a.now() + 2s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  EXPECT_EQ(refused.error().sys_errno, ECONNREFUSED);
}

TEST_F(LocalPair, AListenerThatHasGoneIsRefusedThoughTheLinkStaysAndAnotherMayTakeItsPort) {
  auto listener = std::optional(listen(b));
  const Endpoint at = listener->local();
  auto both = connect(*listener, at);
  listener.reset();
  auto again = a.connect(at, {.deadline = kNow});
  ASSERT_TRUE(again) << describe(again.error());
  Result<void> done;
  ASSERT_TRUE(until([&] {
    done = again->finish_connect(kNow);
    return done || done.error().code != ErrorCode::would_block;
  }));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused);
  // The port is the kernel's now, and a has an old link to where it was.
  auto kernel = KernelStream::listening(at);
  auto third = a.connect(at, {.deadline = a.now() + 2s});
  ASSERT_TRUE(third) << describe(third.error());
  EXPECT_FALSE(third->accelerated());
  EXPECT_TRUE(until([&] { return kernel.accept().has_value(); }));
  // What stood on the link stands.
  ASSERT_TRUE(both.near.write(bytes("still"), More::no, kNow));
  EXPECT_EQ(read(both.far, 5), "still");
}

TEST_F(LocalPair, WhoIsNoNetchannelHostIsReachedThroughTheKernelAndToldSo) {
  auto kernel = KernelStream::listening({kLoopback, 0});
  auto socket = a.connect(local_of(kernel), {.deadline = a.now() + 2s});
  ASSERT_TRUE(socket) << describe(socket.error());
  EXPECT_FALSE(socket->accelerated());
  EXPECT_TRUE(says(a, "through the kernel: no netchannel host has that port"));
  std::optional<KernelStream> other;
  ASSERT_TRUE(until([&] { return (other = kernel.accept()).has_value(); }));
  ASSERT_TRUE(socket->write(bytes("plain"), More::no, a.now() + 1s));
  std::array<std::byte, 16> got;
  ASSERT_TRUE(until([&] { return other->receive(got) == 5; }));
}

TEST_F(LocalPair, AKernelClientIsAcceptedBesideLocalOnes) {
  auto listener = listen(b);
  auto kernel = KernelStream::connecting(listener.local());
  auto accepted = listener.accept(b.now() + 2s);
  ASSERT_TRUE(accepted) << describe(accepted.error());
  EXPECT_FALSE(accepted->accelerated());
  ASSERT_EQ(kernel.send(bytes("hello")), 5);
  EXPECT_EQ(read(*accepted, 5), "hello");
  auto [near, far] = connect(listener, listener.local());
  EXPECT_TRUE(far.accelerated());
}

TEST_F(LocalPair, AHostReachesItsOwnListenerThroughTheKernel) {
  auto listener = listen(a);
  auto near = a.connect(listener.local(), {.deadline = a.now() + 2s});
  ASSERT_TRUE(near) << describe(near.error());
  auto far = listener.accept(a.now() + 2s);
  ASSERT_TRUE(far);
  ASSERT_TRUE(near->write(bytes("self"), More::no, a.now() + 1s));
  EXPECT_EQ(read(*far, 4), "self");
}

TEST_F(LocalPair, ThePollerOfAHostWatchesLocalAndKernelSocketsAlike) {
  auto listener = listen(b);
  Poller& poller = b.poller();
  ASSERT_TRUE(poller.add(listener, 1));
  std::array<Event, 8> events;
  EXPECT_EQ(poller.wait(events, b.now() + 10ms).value_or(9), 0u);
  auto near = a.connect(listener.local(), {.deadline = kNow});
  ASSERT_TRUE(near);
  ASSERT_TRUE(until([&] { return near->finish_connect(kNow) && listener.waiting() != 0; }));
  ASSERT_EQ(poller.wait(events, b.now() + 2s).value_or(0), 1u);
  auto far = listener.accept(kNow);
  ASSERT_TRUE(far);
  auto kernel = KernelStream::connecting(listener.local());
  ASSERT_EQ(poller.wait(events, b.now() + 2s).value_or(0), 1u);
  auto by_kernel = listener.accept(kNow);
  ASSERT_TRUE(by_kernel);
  ASSERT_TRUE(poller.add(*far, 2) && poller.add(*by_kernel, 3));
  ASSERT_TRUE(near->write(bytes("x"), More::no, kNow));
  ASSERT_EQ(kernel.send(bytes("y")), 1);
  bool saw_local = false, saw_kernel = false;
  for (int i = 0; i < 1000 && !(saw_local && saw_kernel); ++i) {
    const auto n = poller.wait(events, b.now() + 2s);
    ASSERT_TRUE(n);
    for (const Event& event : std::span(events).first(*n)) {
      saw_local |= event.token == 2;
      saw_kernel |= event.token == 3;
    }
  }
  EXPECT_TRUE(saw_local && saw_kernel);
}

TEST_F(LocalPair, UdpMeetsInSharedMemoryWithDatagramsOfAnySize) {
  auto server = *b.udp({kLoopback, 0});
  auto client = *a.udp({kLoopback, 0});
  for (const std::size_t size : {0, 1, 100, 1472, 9000, 65372, 65373, 65507}) {
    const auto payload = pattern(size);
    ASSERT_TRUE(client.send_to(payload, server.local())) << size;
    std::array<Datagram, 1> got;
    ASSERT_TRUE(until([&] { return server.receive(got, {.least = 0}).value_or(0) == 1; })) << size;
    EXPECT_TRUE(std::ranges::equal(got[0].payload, payload)) << size;
    EXPECT_EQ(got[0].peer, client.local());
    EXPECT_EQ(got[0].local, server.local());
    EXPECT_FALSE(got[0].slow_path) << size;
    ASSERT_TRUE(server.send_to(payload, got[0].peer));
    ASSERT_TRUE(until([&] { return client.receive(got, {.least = 0}).value_or(0) == 1; })) << size;
    EXPECT_TRUE(std::ranges::equal(got[0].payload, payload)) << size;
    EXPECT_FALSE(got[0].slow_path);
  }
}

TEST_F(LocalPair, AConnectedUdpSocketHearsItsPeerOnlyAndIsToldOfAClosedPort) {
  auto server = std::optional(*b.udp({IpAddress::any_v4(), 0}));
  auto client = *a.udp({IpAddress::any_v4(), 0});
  const Endpoint to{kLoopback, server->local().port};
  ASSERT_TRUE(client.connect(to));
  EXPECT_EQ(client.local().address, kLoopback);
  ASSERT_TRUE(client.send_to(pattern(7)));
  std::array<Datagram, 1> got;
  ASSERT_TRUE(until([&] { return server->receive(got, {.least = 0}).value_or(0) == 1; }));
  got = {};
  server.reset();
  ASSERT_TRUE(client.send_to(pattern(7)));
  Result<std::size_t> told;
  ASSERT_TRUE(until([&] { return !(told = client.receive(got, {.least = 0})); }));
  EXPECT_EQ(told.error().code, ErrorCode::refused);
  // And the kernel's socket that has the port then is found.
  KernelPeer kernel(to);
  ASSERT_TRUE(kernel.bound());
  ASSERT_TRUE(until([&] {
    (void)client.send_to(pattern(9));
    return kernel.receive(1ms).has_value();
  }));
}

TEST_F(LocalPair, UdpOfTheKernelsAndOfLocalHostsComesToOneSocket) {
  auto server = *b.udp({kLoopback, 0});
  auto client = *a.udp({kLoopback, 0});
  KernelPeer kernel({kLoopback, 0});
  ASSERT_TRUE(kernel.send_to(server.local(), pattern(3)));
  std::array<Datagram, 1> got;
  ASSERT_TRUE(until([&] { return server.receive(got, {.least = 0}).value_or(0) == 1; }));
  EXPECT_TRUE(got[0].slow_path);
  ASSERT_TRUE(server.send_to(pattern(5), got[0].peer));
  EXPECT_EQ(kernel.receive()->payload.size(), 5u);
  ASSERT_TRUE(client.send_to(pattern(4), server.local()));
  ASSERT_TRUE(until([&] { return server.receive(got, {.least = 0}).value_or(0) == 1; }));
  EXPECT_FALSE(got[0].slow_path);
}

// --- sleeping, and dying ---

TEST(LocalSleep, WhoSleepsIsWokenByASingleMessage) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::adaptive}) {
    Host server = open_local(wait);
    auto listener = *server.listen({kLoopback, 0});
    std::thread client([&, at = listener.local()] {
      Host host = open_local(wait);
      auto socket = host.connect(at, {.deadline = host.now() + 5s});
      ASSERT_TRUE(socket) << describe(socket.error());
      for (int i = 0; i < 200; ++i) {
        std::array<std::byte, 1> byte{static_cast<std::byte>(i)};
        if (i % 50 == 0) std::this_thread::sleep_for(5ms);
        ASSERT_TRUE(socket->write(byte, More::no, host.now() + 5s));
        const auto n = socket->read(byte, host.now() + 5s);
        ASSERT_TRUE(n) << i << ": " << describe(n.error());
        ASSERT_EQ(std::to_integer<int>(byte[0]), (i + 1) & 0xff);
      }
    });
    auto socket = listener.accept(server.now() + 5s);
    ASSERT_TRUE(socket) << describe(socket.error());
    EXPECT_TRUE(socket->accelerated());
    for (;;) {
      std::array<std::byte, 1> byte;
      const auto n = socket->read(byte, server.now() + 5s);
      ASSERT_TRUE(n) << describe(n.error());
      if (*n == 0) break;
      byte[0] = static_cast<std::byte>(std::to_integer<int>(byte[0]) + 1);
      ASSERT_TRUE(socket->write(byte, More::no, server.now() + 5s));
    }
    client.join();
  }
}

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++n;
  ::closedir(folder);
  return n;
}

// A child that connects, says one word and then does what it is told to; the parent is the server.
class LocalDeath : public ::testing::Test {
 protected:
  pid_t child_that(const std::function<void(Host&, TcpSocket&)>& what) {
    const Endpoint at = listener.local();
    const pid_t child = ::fork();
    if (child != 0) return child;
    {
      Host host = open_local();
      auto socket = host.connect(at, {.deadline = host.now() + 5s});
      if (!socket || !socket->accelerated() || !socket->write(bytes("word"), More::no, host.now() + 5s))
        ::_exit(1);
      what(host, *socket);
    }
    ::_exit(0);
  }
  TcpSocket accepted_with_word() {
    auto socket = listener.accept(server.now() + 5s);
    EXPECT_TRUE(socket) << describe(socket.error());
    std::array<std::byte, 4> word;
    EXPECT_EQ(socket->read(word, server.now() + 5s).value_or(0), 4u);
    return std::move(*socket);
  }
  static void sleep_until_killed(Host& host, TcpSocket&) {
    for (;;) host.wait(host.now() + 1s);
  }
  Host server = open_local();
  TcpListener listener = *server.listen({kLoopback, 0});
};

TEST_F(LocalDeath, AKilledPeerResetsWithinASecondAndLeavesNothing) {
  {
    const pid_t warm = child_that([](Host&, TcpSocket&) {});
    auto socket = accepted_with_word();
    std::array<std::byte, 4> byte;
    EXPECT_EQ(socket.read(byte, server.now() + 5s).value_or(9), 0u);
    ::waitpid(warm, nullptr, 0);
  }
  for (int i = 0; i < 200 && server.poll(); ++i) {
  }
  const std::size_t before = descriptors();
  for (int i = 0; i < 5; ++i) {
    const pid_t doomed = child_that(sleep_until_killed);
    const pid_t other = child_that(sleep_until_killed);
    auto first = accepted_with_word(), second = accepted_with_word();
    ::kill(doomed, SIGKILL);
    ::waitpid(doomed, nullptr, 0);
    const Instant killed = server.now();
    // One of the two is reset, and the other is well.
    std::array<std::byte, 4> byte;
    std::array<TcpSocket*, 2> sockets = {&first, &second};
    int reset = -1;
    while (reset < 0 && server.now() - killed < 2s) {
      for (int s = 0; s < 2; ++s) {
        const auto n = sockets[static_cast<std::size_t>(s)]->read(byte, kNow);
        if (!n && n.error().code == ErrorCode::reset) reset = s;
      }
      server.poll();
    }
    ASSERT_GE(reset, 0);
    EXPECT_LT(server.now() - killed, 1s);
    EXPECT_TRUE(
        sockets[static_cast<std::size_t>(1 - reset)]->write(bytes("well?"), More::no, server.now() + 1s));
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
    const auto gone = sockets[static_cast<std::size_t>(1 - reset)]->read(byte, server.now() + 5s);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, ErrorCode::reset);
  }
  for (int i = 0; i < 1000; ++i) server.poll();
  EXPECT_EQ(descriptors(), before);
}

TEST_F(LocalDeath, WhatAPeerSaidBeforeItLeftIsReadToItsEnd) {
  const pid_t child = child_that([](Host& host, TcpSocket& socket) {
    (void)socket.write(pattern(50'000), More::no, host.now() + 5s);
    (void)socket.close();
  });
  auto socket = accepted_with_word();
  ::waitpid(child, nullptr, 0);
  std::size_t got = 0;
  std::vector<std::byte> buffer(65536);
  for (;;) {
    const auto n = socket.read(buffer, server.now() + 5s);
    ASSERT_TRUE(n) << describe(n.error());
    if (*n == 0) break;
    got += *n;
  }
  EXPECT_EQ(got, 50'000u);
}

TEST_F(LocalDeath, AStoppedPeerDelaysNobodyAndGoesOn) {
  const pid_t stopped = child_that([](Host& host, TcpSocket& socket) {
    std::vector<std::byte> buffer(65536);
    for (;;) (void)socket.read(buffer, host.now() + 1s);
  });
  auto slow = accepted_with_word();
  const pid_t lively = child_that([](Host& host, TcpSocket& socket) {
    std::array<std::byte, 64> byte;
    for (;;) {
      const auto n = socket.read(byte, host.now() + 5s);
      if (!n || *n == 0) return;
      (void)socket.write(Bytes(byte).first(*n), More::no, host.now() + 5s);
    }
  });
  auto quick = accepted_with_word();
  ::kill(stopped, SIGSTOP);
  std::size_t written = 0;
  const auto chunk = pattern(10'000);
  for (int i = 0; i < 2000; ++i) {
    if (const auto n = slow.write(chunk, More::no, kNow)) written += *n;
  }
  std::array<std::byte, 64> answer;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(quick.write(bytes("quick?"), More::no, server.now() + 1s));
    ASSERT_EQ(quick.read(answer, server.now() + 1s).value_or(0), 6u) << i;
  }
  ::kill(stopped, SIGCONT);
  const Instant end = server.now() + 10s;
  while (slow.info().unacked + slow.info().notsent_bytes != 0 && server.now() < end) {
    if (!server.poll()) server.wait(server.now() + 1ms);
  }
  EXPECT_EQ(slow.info().notsent_bytes, 0u);
  for (const pid_t child : {stopped, lively}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace netchannel
