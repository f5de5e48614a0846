// TCP on the kernel path, over the loopback address, in each of the three ways of waiting. Both ends stand in
// this thread wherever the kernel lets them: it shakes hands and buffers by itself.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "api/tcp_impl.hpp"
#include "netchannel/host.hpp"
#include "tests/api/kernel_peer.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;

const IpAddress kLoopback = IpAddress::v4(127, 0, 0, 1);
const Endpoint kAnyPort{kLoopback, 0};

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// A plain client that blocks.
class PlainClient {
 public:
  explicit PlainClient(const Endpoint& peer) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(peer.port);
    to.sin_addr.s_addr = htonl(peer.address.v4_value());
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  bool write(Bytes bytes) const {
    return connected_ &&
           ::send(fd_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  }

 private:
  UniqueFd fd_;
  bool connected_ = false;
};

class KernelTcpTest : public ::testing::TestWithParam<std::tuple<Path, WaitMode>> {
 protected:
  void SetUp() override {
    HostOptions options;
    options.path = std::get<Path>(GetParam());
    options.wait = std::get<WaitMode>(GetParam());
    auto opened = Host::open(options);
    ASSERT_TRUE(opened) << describe(opened.error());
    host.emplace(std::move(*opened));
  }
  Instant soon(Duration by = 5s) const { return host->now() + by; }

  TcpListener listen(const Endpoint& local = kAnyPort, const ListenOptions& options = {}) {
    auto listener = host->listen(local, options);
    if (!listener) ADD_FAILURE() << describe(listener.error());
    return std::move(*listener);
  }
  TcpSocket connect(const Endpoint& peer, ConnectOptions options = {}) {
    if (options.deadline == kForever) options.deadline = soon();
    auto socket = host->connect(peer, options);
    if (!socket) ADD_FAILURE() << describe(socket.error());
    return std::move(*socket);
  }
  struct Pair {
    TcpSocket near, far;
  };
  Pair connected(const TcpOptions& near = {}, const TcpOptions& far = {}) {
    auto listener = listen(kAnyPort, {.tcp = far});
    TcpSocket socket = connect(listener.local(), {.tcp = near});
    auto accepted = listener.accept(soon());
    if (!accepted) ADD_FAILURE() << describe(accepted.error());
    return {std::move(socket), std::move(*accepted)};
  }
  void must_write(TcpSocket& socket, Bytes bytes) {
    const auto wrote = socket.write(bytes, More::no, soon());
    ASSERT_TRUE(wrote) << describe(wrote.error());
    ASSERT_EQ(*wrote, bytes.size());
  }
  // Reads until `size` bytes are there or the stream ends.
  std::vector<std::byte> read_all(TcpSocket& socket, std::size_t size) {
    std::vector<std::byte> out(size);
    std::size_t done = 0;
    while (done < size) {
      const auto got = socket.read(std::span(out).subspan(done), soon());
      if (!got) ADD_FAILURE() << describe(got.error());
      if (!got || *got == 0) break;
      done += *got;
    }
    out.resize(done);
    return out;
  }
  void expect_bytes(TcpSocket& socket, Bytes expected) {
    EXPECT_TRUE(std::ranges::equal(read_all(socket, expected.size()), expected));
  }
  void expect_end(TcpSocket& socket) {
    std::array<std::byte, 1> out;
    const auto got = socket.read(out, soon());
    ASSERT_TRUE(got) << describe(got.error());
    EXPECT_EQ(*got, 0u);
  }
  // What is acknowledged makes room again, a delayed acknowledgement (40 ms) later at the latest.
  void fill_up(TcpSocket& socket) {
    const std::vector<std::byte> much(1 << 20);
    while (socket.write(much, More::no, soon(100ms))) {
    }
  }

  std::optional<Host> host;
};

template <class T>
void expect_error(const Result<T>& result, ErrorCode code, int sys_errno) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, code) << describe(result.error());
  EXPECT_EQ(result.error().sys_errno, sys_errno) << describe(result.error());
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Path, WaitMode>>& given) {
  const bool batched = std::get<Path>(given.param) == Path::kernel_batched;
  return (batched ? "batched_" : "plain_") + std::string(to_string(std::get<WaitMode>(given.param)));
}

constexpr auto kPaths = {Path::kernel, Path::kernel_batched};
INSTANTIATE_TEST_SUITE_P(Waits, KernelTcpTest,
                         ::testing::Combine(::testing::ValuesIn(kPaths),
                                            ::testing::Values(WaitMode::block, WaitMode::spin,
                                                              WaitMode::adaptive)),
                         name_of);

class KernelTcpThatSleeps : public KernelTcpTest {};
INSTANTIATE_TEST_SUITE_P(Waits, KernelTcpThatSleeps,
                         ::testing::Combine(::testing::ValuesIn(kPaths),
                                            ::testing::Values(WaitMode::block, WaitMode::adaptive)),
                         name_of);

class KernelTcpThatBlocks : public KernelTcpTest {};
INSTANTIATE_TEST_SUITE_P(Waits, KernelTcpThatBlocks,
                         ::testing::Combine(::testing::ValuesIn(kPaths), ::testing::Values(WaitMode::block)),
                         name_of);

TEST_P(KernelTcpTest, carries_bytes_both_ways_and_knows_its_two_ends) {
  auto [near, far] = connected();
  EXPECT_EQ(near.local(), far.peer());
  EXPECT_EQ(near.peer(), far.local());
  EXPECT_FALSE(near.accelerated());
  must_write(near, bytes_of("there"));
  expect_bytes(far, bytes_of("there"));
  must_write(far, bytes_of("and back"));
  expect_bytes(near, bytes_of("and back"));
}

TEST_P(KernelTcpTest, waits_for_ever_in_every_call_that_has_no_deadline) {
  auto listener = listen();
  std::thread other([&, at = listener.local()] {
    const PlainClient peer(at);
    std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(peer.write(bytes_of("x")));
    std::this_thread::sleep_for(5ms);
  });
  auto socket = listener.accept();
  ASSERT_TRUE(socket) << describe(socket.error());
  std::array<std::byte, 4> out;
  EXPECT_EQ(socket->read(out).value_or(9), 1u);
  EXPECT_EQ(socket->read(out).value_or(9), 0u);
  other.join();
  auto again = host->connect(listener.local());
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->write(bytes_of("y")).value_or(9), 1u);
}

TEST_P(KernelTcpTest, receive_shows_what_is_ready_until_it_is_consumed) {
  auto [near, far] = connected();
  must_write(near, bytes_of("abcdef"));
  std::array<Bytes, 3> views;
  ASSERT_EQ(far.receive(views, soon()).value_or(0), 6u);
  EXPECT_EQ(far.readable(), 6u);
  far.consume(2);
  ASSERT_EQ(far.receive(views, soon()).value_or(0), 4u);
  EXPECT_TRUE(std::ranges::equal(views[0], bytes_of("cdef")));
  // Seen and left: whoever asks again is shown what has come since as well, and what was shown stays.
  must_write(near, bytes_of("gh"));
  const Bytes before = views[0];
  ASSERT_EQ(far.receive(views, soon()).value_or(0), 6u);
  EXPECT_TRUE(std::ranges::equal(views[0], bytes_of("cdefgh")));
  EXPECT_TRUE(std::ranges::equal(before, bytes_of("cdef")));
  // read() takes what receive() holds, before what is still in the kernel.
  must_write(near, bytes_of("ij"));
  expect_bytes(far, bytes_of("cdefghij"));
  EXPECT_EQ(far.readable(), 0u);
}

TEST_P(KernelTcpTest, a_long_stream_comes_whole_through_views_consumed_in_odd_pieces) {
  auto [near, far] = connected();
  const auto sent = pattern(1 << 20);
  std::thread writer([&, &socket = near] {
    std::size_t done = 0;
    while (done < sent.size()) {
      const auto wrote = socket.write(std::span(sent).subspan(done), More::no, soon());
      if (!wrote) return;
      done += *wrote;
    }
  });
  std::vector<std::byte> got;
  std::array<Bytes, 2> views;
  std::size_t step = 1;
  while (got.size() < sent.size()) {
    const auto ready = far.receive(views, soon());
    if (!ready || *ready == 0) break;
    const std::size_t n = std::min(views[0].size(), step);
    got.insert(got.end(), views[0].begin(), views[0].begin() + static_cast<std::ptrdiff_t>(n));
    far.consume(n);
    step = step % 70'001 + 7'919;
  }
  writer.join();
  EXPECT_TRUE(got == sent) << got.size();
}

TEST_P(KernelTcpTest, gathers_and_scatters_more_pieces_than_one_call_takes) {
  auto [near, far] = connected();
  const auto sent = pattern(1000);
  std::vector<Bytes> from;
  for (std::size_t i = 0; i < sent.size(); i += 4) from.push_back(std::span(sent).subspan(i, 4));
  from.insert(from.begin() + 9, Bytes{});
  EXPECT_EQ(near.write(from, More::no, soon()).value_or(0), 1000u);
  std::vector<std::byte> got(1000);
  const std::array<MutableBytes, 3> to = {std::span(got).first(1), std::span(got).subspan(1, 500),
                                          std::span(got).subspan(501)};
  // The pieces leave in several calls: not all need to be here at once.
  const std::size_t first = far.read(std::span<const MutableBytes>(to), soon()).value_or(0);
  ASSERT_GT(first, 255u);
  const auto rest = read_all(far, 1000 - first);
  std::copy(rest.begin(), rest.end(), got.begin() + static_cast<std::ptrdiff_t>(first));
  EXPECT_TRUE(got == sent);
  EXPECT_EQ(far.read(MutableBytes{}, soon()).value_or(9), 0u);
}

TEST_P(KernelTcpTest, the_end_of_one_direction_leaves_the_other_open) {
  auto [near, far] = connected();
  must_write(near, bytes_of("last"));
  ASSERT_TRUE(near.shutdown_write());
  expect_bytes(far, bytes_of("last"));
  expect_end(far);
  expect_end(far);
  must_write(far, bytes_of("answer"));
  expect_bytes(near, bytes_of("answer"));
  expect_error(near.write(bytes_of("more"), More::no, soon()), ErrorCode::closed, EPIPE);
}

TEST_P(KernelTcpTest, what_would_have_to_wait_says_so_when_it_may_not) {
  auto listener = listen();
  expect_error(listener.accept(kNow), ErrorCode::would_block, EAGAIN);
  auto [near, far] = connected();
  std::array<std::byte, 1> out;
  std::array<Bytes, 1> views;
  expect_error(near.read(out, kNow), ErrorCode::would_block, EAGAIN);
  expect_error(near.receive(views, kNow), ErrorCode::would_block, EAGAIN);
  fill_up(near);
  expect_error(near.write(bytes_of("x"), More::no, kNow), ErrorCode::would_block, EAGAIN);
}

TEST_P(KernelTcpTest, a_deadline_is_kept_although_nothing_comes) {
  auto listener = listen();
  auto [near, far] = connected();
  fill_up(near);
  const auto expect_kept = [&](auto call) {
    const Instant deadline = soon(10ms);
    expect_error(call(deadline), ErrorCode::timed_out, 0);
    EXPECT_GE(host->now(), deadline);
  };
  std::array<std::byte, 1> out;
  std::array<Bytes, 1> views;
  expect_kept([&](Instant deadline) { return listener.accept(deadline); });
  expect_kept([&](Instant deadline) { return near.read(out, deadline); });
  expect_kept([&](Instant deadline) { return near.receive(views, deadline); });
  expect_kept([&](Instant deadline) { return near.write(bytes_of("x"), More::no, deadline); });
  expect_kept([&](Instant deadline) { return near.close_gracefully(deadline); });
}

TEST_P(KernelTcpTest, a_write_that_runs_out_of_time_says_how_much_is_in) {
  auto [near, far] = connected({.send_buffer = 16384}, {.receive_buffer = 16384});
  const std::vector<std::byte> much(4 << 20);
  const auto wrote = near.write(much, More::no, soon(10ms));
  ASSERT_TRUE(wrote);
  EXPECT_GT(*wrote, 0u);
  EXPECT_LT(*wrote, much.size());
  std::size_t got = 0;
  near.shutdown_write();
  for (std::array<std::byte, 65536> out; got < *wrote;) {
    const auto n = far.read(out, soon());
    if (!n || *n == 0) break;
    got += *n;
  }
  EXPECT_EQ(got, *wrote);
}

TEST_P(KernelTcpTest, connecting_without_waiting_is_finished_later) {
  auto listener = listen();
  auto socket = host->connect(listener.local(), {.deadline = kNow});
  ASSERT_TRUE(socket) << describe(socket.error());
  const auto done = socket->finish_connect(soon());
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(socket->finish_connect(kNow));
  auto far = listener.accept(soon());
  ASSERT_TRUE(far);
  must_write(*socket, bytes_of("x"));
  expect_bytes(*far, bytes_of("x"));
}

TEST_P(KernelTcpTest, a_closed_port_refuses_and_stays_refused) {
  const Endpoint gone = listen().local();
  expect_error(host->connect(gone, {.deadline = soon()}), ErrorCode::refused, ECONNREFUSED);
  expect_error(host->connect(gone), ErrorCode::refused, ECONNREFUSED);
  auto socket = host->connect(gone, {.deadline = kNow});
  if (!socket) return expect_error(socket, ErrorCode::refused, ECONNREFUSED);
  expect_error(socket->finish_connect(soon()), ErrorCode::refused, ECONNREFUSED);
  expect_error(socket->finish_connect(soon()), ErrorCode::refused, ECONNREFUSED);
}

TEST_P(KernelTcpTest, a_peer_that_does_not_answer_meets_the_deadline) {
  // The second of two connections to a backlog that is full: its handshake does not end.
  auto listener = listen(kAnyPort, {.backlog = 1});
  std::vector<TcpSocket> crowd;
  for (int i = 0; i < 8; ++i) {
    auto socket = host->connect(listener.local(), {.deadline = soon(20ms)});
    if (!socket) return expect_error(socket, ErrorCode::timed_out, 0);
    crowd.push_back(std::move(*socket));
  }
  ADD_FAILURE() << "eight connections fitted a backlog of one";
}

TEST_P(KernelTcpTest, addresses_that_do_not_fit_are_refused_before_anything_is_sent) {
  expect_error(host->connect({kLoopback, 0}), ErrorCode::invalid_argument, EINVAL);
  expect_error(host->connect({kLoopback, 9}, {.local = {*IpAddress::parse("::1"), 0}}),
               ErrorCode::invalid_argument, EINVAL);
  expect_error(host->connect({kLoopback, 9}, {.local = {IpAddress::v4(192, 0, 2, 9), 0}}),
               ErrorCode::address_not_available, EADDRNOTAVAIL);
  expect_error(host->listen({IpAddress::v4(192, 0, 2, 9), 0}), ErrorCode::address_not_available,
               EADDRNOTAVAIL);
  auto listener = listen();
  expect_error(host->listen(listener.local()), ErrorCode::address_in_use, EADDRINUSE);
}

TEST_P(KernelTcpTest, a_connection_leaves_from_the_address_and_port_that_were_named) {
  auto listener = listen({IpAddress::any_v4(), 0});
  const Endpoint peer{kLoopback, listener.local().port};
  const Endpoint free = listen({IpAddress::v4(127, 0, 0, 2), 0}).local();
  EXPECT_EQ(connect(peer, {.local = free}).local(), free);
  const auto chosen = connect(peer, {.local = {free.address, 0}});
  EXPECT_EQ(chosen.local().address, free.address);
  EXPECT_NE(chosen.local().port, 0);
}

TEST_P(KernelTcpTest, both_families_are_served_unless_only_one_is_wanted) {
  auto both = listen({IpAddress::any_v6(), 0});
  const std::uint16_t port = both.local().port;
  auto v4 = connect({kLoopback, port});
  auto v6 = connect({*IpAddress::parse("::1"), port});
  auto first = both.accept(soon());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->peer(), v4.local());
  auto second = both.accept(soon());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->peer(), v6.local());
  auto one = listen({IpAddress::any_v6(), 0}, {.v6_only = true});
  expect_error(host->connect({kLoopback, one.local().port}, {.deadline = soon()}), ErrorCode::refused,
               ECONNREFUSED);
}

TEST_P(KernelTcpTest, an_abort_resets_the_peer) {
  auto [near, far] = connected();
  near.abort();
  std::array<std::byte, 1> out;
  expect_error(far.read(out, soon()), ErrorCode::reset, ECONNRESET);
  expect_error(far.write(bytes_of("x"), More::no, soon()), ErrorCode::closed, EPIPE);
  expect_error(near.read(out, soon()), ErrorCode::closed, EBADF);
}

TEST_P(KernelTcpTest, a_reset_behind_bytes_that_were_shown_is_told_once_they_are_consumed) {
  auto [near, far] = connected();
  must_write(near, bytes_of("last words"));
  std::array<Bytes, 1> views;
  ASSERT_EQ(far.receive(views, soon()).value_or(0), 10u);
  near.abort();
  EXPECT_EQ(far.receive(views, soon()).value_or(0), 10u);
  EXPECT_EQ(far.receive(views, soon()).value_or(0), 10u);
  far.consume(10);
  expect_error(far.receive(views, soon()), ErrorCode::reset, ECONNRESET);
  EXPECT_EQ(far.receive(views, soon()).value_or(9), 0u);
}

TEST_P(KernelTcpTest, closing_with_bytes_unread_resets_and_without_ends) {
  std::array<std::byte, 1> out;
  {
    auto [near, far] = connected();
    must_write(near, bytes_of("unread"));
    std::array<Bytes, 1> views;
    ASSERT_EQ(far.receive(views, soon()).value_or(0), 6u);
    far.close();
    far.close();
    expect_error(near.read(out, soon()), ErrorCode::reset, ECONNRESET);
  }
  auto [near, far] = connected();
  must_write(near, bytes_of("read"));
  expect_bytes(far, bytes_of("read"));
  must_write(far, bytes_of("bye"));
  far.close();
  expect_bytes(near, bytes_of("bye"));
  expect_end(near);
}

TEST_P(KernelTcpTest, a_graceful_close_waits_until_all_is_acknowledged) {
  auto [near, far] = connected();
  must_write(near, bytes_of("all of it"));
  const auto closed = near.close_gracefully(soon());
  EXPECT_TRUE(closed) << describe(closed.error());
  expect_error(near.close_gracefully(soon()), ErrorCode::closed, EBADF);
  expect_bytes(far, bytes_of("all of it"));
  expect_end(far);
}

TEST_P(KernelTcpTest, a_graceful_close_after_the_peers_end_is_the_last_word) {
  auto [near, far] = connected();
  ASSERT_TRUE(far.shutdown_write());
  expect_end(near);
  EXPECT_TRUE(near.close_gracefully(soon()));
  expect_end(far);
}

TEST_P(KernelTcpTest, a_graceful_close_that_meets_a_reset_says_so) {
  auto [near, far] = connected();
  fill_up(near);
  far.abort();
  expect_error(near.close_gracefully(soon()), ErrorCode::reset, ECONNRESET);
}

int option(TcpSocket& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(socket.impl().fd(), level, name, &value, &size);
  return value;
}

std::string congestion_of(TcpSocket& socket) {
  char name[16] = {};
  socklen_t size = sizeof name;
  ::getsockopt(socket.impl().fd(), IPPROTO_TCP, TCP_CONGESTION, name, &size);
  return name;
}

TEST_P(KernelTcpTest, options_reach_the_kernel_at_both_ends_and_later) {
  const TcpOptions all{.no_delay = true,
                       .quick_ack = true,
                       .send_buffer = 50'000,
                       .receive_buffer = 60'000,
                       .max_segment = 1000,
                       .user_timeout = 1500ms,
                       .keepalive = true,
                       .keepalive_idle = 9s,
                       .keepalive_interval = 8s,
                       .keepalive_probes = 7,
                       .congestion = CongestionControl::reno,
                       .ttl = 33,
                       .tos = 16};
  auto [near, far] = connected(all, all);
  for (TcpSocket* socket : {&near, &far}) {
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_SNDBUF), 100'000);
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_RCVBUF), 120'000);
    EXPECT_LE(socket->info().snd_mss, 1000u);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_KEEPIDLE), 9);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_KEEPINTVL), 8);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_KEEPCNT), 7);
    EXPECT_EQ(option(*socket, IPPROTO_IP, IP_TTL), 33);
    EXPECT_EQ(option(*socket, IPPROTO_IP, IP_TOS), 16);
    EXPECT_EQ(congestion_of(*socket), "reno");
  }
  EXPECT_TRUE(near.set_no_delay(false));
  EXPECT_EQ(option(near, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_EQ(option(near, IPPROTO_IP, IP_TTL), 33);
  EXPECT_TRUE(near.set_options({}));
  EXPECT_EQ(option(near, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(near, IPPROTO_IP, IP_TTL), 64);
  EXPECT_EQ(option(near, SOL_SOCKET, SO_SNDBUF), 100'000);  // that it was set cannot be undone
}

TEST_P(KernelTcpTest, info_has_linuxs_figures) {
  auto [near, far] = connected();
  const auto sent = pattern(5000);
  must_write(near, sent);
  expect_bytes(far, sent);
  must_write(far, bytes_of("x"));
  expect_bytes(near, bytes_of("x"));
  const TcpInfo info = near.info();
  EXPECT_EQ(info.state, TcpConnectionState::established);
  EXPECT_EQ(info.bytes_acked, 5001u);  // the SYN counts
  EXPECT_EQ(info.bytes_received, 1u);
  EXPECT_GT(info.snd_mss, 500u);
  EXPECT_GT(info.snd_cwnd, 0u);
  EXPECT_GT(info.pmtu_mss, info.snd_mss - 1);
  EXPECT_EQ(far.info().bytes_received, 5000u);
  near.shutdown_write();
  expect_end(far);
  EXPECT_EQ(far.info().state, TcpConnectionState::close_wait);
  near.close();
  EXPECT_EQ(near.info().snd_mss, 0u);
}

TEST_P(KernelTcpThatBlocks, a_blocking_program_makes_the_calls_of_a_plain_one_and_no_other) {
  auto listener = listen();
  std::uint64_t before = host->syscalls();
  const auto made = [&] { return host->syscalls() - std::exchange(before, host->syscalls()); };
  auto near = host->connect(listener.local());
  ASSERT_TRUE(near);
  EXPECT_EQ(made(), 2u);  // socket, connect
  auto far = listener.accept();
  ASSERT_TRUE(far);
  EXPECT_EQ(made(), 2u);  // fcntl, this once, and accept4
  auto other = host->connect(listener.local());
  ASSERT_TRUE(other && listener.accept());
  made();
  std::array<std::byte, 64> out;
  for (int i = 0; i < 3; ++i) {
    near->write(bytes_of("request"));
    far->read(out);
    far->write(bytes_of("answer"));
    near->read(out);
  }
  EXPECT_EQ(made(), 12u);
  near->close();
  EXPECT_EQ(made(), 1u);
}

class Signals {
 public:
  Signals() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval every{{0, 3000}, {0, 3000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Signals() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};

TEST_P(KernelTcpThatSleeps, a_signal_ends_a_sleep_and_loses_nothing) {
  auto listener = listen();
  auto [near, far] = connected();
  auto [writer, unread] = connected();
  std::array<std::byte, 8> out;
  const std::vector<std::byte> much(1 << 20);
  {
    const Signals signals;
    for (const Instant deadline : {kForever, soon()}) {
      expect_error(listener.accept(deadline), ErrorCode::interrupted, EINTR);
      expect_error(far.read(out, deadline), ErrorCode::interrupted, EINTR);
      // What went in before the signal is told first; then there is no room any more.
      Result<std::size_t> wrote = 0;
      while ((wrote = writer.write(much, More::no, deadline))) {
      }
      expect_error(wrote, ErrorCode::interrupted, EINTR);
    }
  }
  auto more = connect(listener.local());
  EXPECT_TRUE(listener.accept(soon()));
}

// --- the poller ---

TEST_P(KernelTcpTest, a_poller_names_each_of_many_connections_when_it_is_ready_and_once) {
  constexpr std::size_t kMany = 200;
  auto listener = listen();
  Poller& poller = host->poller();
  ASSERT_TRUE(poller.add(listener, 10'000));
  std::vector<TcpSocket> near, far;
  for (std::size_t i = 0; i < kMany; ++i) {
    near.push_back(connect(listener.local()));
    std::array<Event, 4> events;
    ASSERT_EQ(poller.wait(events, soon()).value_or(0), 1u);
    EXPECT_EQ(events[0].token, 10'000u);
    auto accepted = listener.accept(kNow);
    ASSERT_TRUE(accepted);
    far.push_back(std::move(*accepted));
    ASSERT_TRUE(poller.add(far.back(), i));
  }
  std::array<Event, 256> events;
  EXPECT_EQ(poller.wait(events, soon(2ms)).value_or(9), 0u);
  for (std::size_t i = 0; i < kMany; i += 2) must_write(near[i], bytes_of(std::to_string(i)));
  std::map<std::uint64_t, int> named;
  while (named.size() < kMany / 2) {
    const auto ready = poller.wait(events, soon());
    ASSERT_TRUE(ready && *ready != 0);
    for (const Event& event : std::span(events).first(*ready)) {
      ++named[event.token];
      EXPECT_EQ(event.readiness, std::uint32_t{kReadable});
      expect_bytes(far[event.token], bytes_of(std::to_string(event.token)));
    }
  }
  for (const auto& [token, times] : named) {
    EXPECT_EQ(token % 2, 0u);
    EXPECT_EQ(times, 1) << token;
  }
  EXPECT_EQ(poller.wait(events, soon(2ms)).value_or(9), 0u);
}

TEST_P(KernelTcpTest, a_poller_names_bytes_that_are_held_and_those_in_the_kernel_in_one_event) {
  auto [near, far] = connected();
  ASSERT_TRUE(host->poller().add(far, 7, kReadable | kWritable));
  must_write(near, bytes_of("abc"));
  std::array<Bytes, 1> views;
  ASSERT_EQ(far.receive(views, soon()).value_or(0), 3u);
  far.consume(1);
  must_write(near, bytes_of("def"));
  std::array<Event, 8> events;
  std::size_t n = 0;
  do {
    n = host->poller().wait(events, soon()).value_or(9);
    ASSERT_EQ(n, 1u);
    EXPECT_EQ(events[0].token, 7u);
    EXPECT_NE(events[0].readiness & kReadable, 0u);
  } while ((events[0].readiness & kWritable) == 0);
}

TEST_P(KernelTcpTest, a_poller_says_when_a_connection_is_made_ended_or_reset) {
  auto listener = listen();
  auto near = host->connect(listener.local(), {.deadline = kNow});
  ASSERT_TRUE(near);
  ASSERT_TRUE(host->poller().add(*near, 1, kWritable));
  std::array<Event, 8> events;
  ASSERT_EQ(host->poller().wait(events, soon()).value_or(0), 1u);
  EXPECT_EQ(events[0].readiness, std::uint32_t{kWritable});
  ASSERT_TRUE(near->finish_connect(kNow));
  auto far = listener.accept(soon());
  ASSERT_TRUE(far);
  ASSERT_TRUE(host->poller().remove(*near));
  ASSERT_TRUE(host->poller().add(*near, 1));
  far->shutdown_write();
  ASSERT_EQ(host->poller().wait(events, soon()).value_or(0), 1u);
  EXPECT_EQ(events[0].readiness, std::uint32_t{kReadable});
  far->abort();
  do {
    ASSERT_EQ(host->poller().wait(events, soon()).value_or(0), 1u);
  } while ((events[0].readiness & kError) == 0);
}

TEST_P(KernelTcpTest, a_poller_sleeps_although_sockets_that_it_does_not_watch_are_ready) {
  auto [near, far] = connected();
  auto [other_near, other_far] = connected();
  ASSERT_TRUE(host->poller().add(other_far, 1));
  must_write(near, bytes_of("not watched"));
  std::array<Bytes, 1> views;
  ASSERT_GT(far.receive(views, soon()).value_or(0), 0u);
  must_write(near, bytes_of("nor this"));
  std::array<Event, 4> events;
  const std::uint64_t sleeps = host->counter(Counter::host_sleeps);
  EXPECT_EQ(host->poller().wait(events, soon(30ms)).value_or(9), 0u);
  EXPECT_LE(host->counter(Counter::host_sleeps) - sleeps, 3u);
}

TEST_P(KernelTcpTest, a_socket_leaves_the_poller_when_it_is_closed) {
  auto listener = listen();
  std::array<Event, 4> events;
  for (int i = 0; i < 3; ++i) {
    auto near = connect(listener.local());
    auto far = listener.accept(soon());
    ASSERT_TRUE(far);
    ASSERT_TRUE(host->poller().add(*far, 1));
    far->close();
    EXPECT_FALSE(host->poller().remove(*far));
    // Its descriptor's number is the next socket's, which must stay watched when the closed one goes.
    auto next = connect(listener.local());
    auto next_far = listener.accept(soon());
    ASSERT_TRUE(next_far);
    ASSERT_TRUE(host->poller().add(*next_far, 2));
    {
      const TcpSocket gone = std::move(*far);
    }
    must_write(next, bytes_of("x"));
    ASSERT_EQ(host->poller().wait(events, soon()).value_or(0), 1u);
    EXPECT_EQ(events[0].token, 2u);
  }
}

TEST_P(KernelTcpTest, waiting_on_the_host_ends_when_something_comes_or_is_held) {
  auto [near, far] = connected();
  std::thread other([&, &socket = near] {
    std::this_thread::sleep_for(5ms);
    socket.write(bytes_of("ab"), More::no, soon());
  });
  std::array<Bytes, 1> views;
  Result<std::size_t> got = 0;
  while (!(got = far.receive(views, kNow))) {
    ASSERT_EQ(got.error().code, ErrorCode::would_block);
    host->wait(soon());
  }
  other.join();
  far.consume(1);
  const Instant deadline = soon();
  host->wait(deadline);  // one byte is still held
  EXPECT_LT(host->now(), deadline);
}

TEST_P(KernelTcpTest, a_closed_socket_refuses_everything) {
  auto [near, far] = connected();
  near.close();
  std::array<std::byte, 1> out;
  std::array<Bytes, 1> views;
  expect_error(near.read(out, soon()), ErrorCode::closed, EBADF);
  expect_error(near.receive(views, soon()), ErrorCode::closed, EBADF);
  expect_error(near.write(bytes_of("x"), More::no, soon()), ErrorCode::closed, EBADF);
  expect_error(near.shutdown_write(), ErrorCode::closed, EBADF);
  near.abort();
  expect_end(far);
}

}  // namespace
}  // namespace netchannel
