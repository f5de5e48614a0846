// The path emulator with a kernel at each of its ends, before anything of ours is put on it.
#include <gtest/gtest.h>
#include <poll.h>

#include "testkit/kernel_socket.hpp"
#include "testkit/wan_pair.hpp"
#include "tests/api/kernel_stream.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testkit::KernelSocket;
using testkit::pattern;

class WanTest : public testkit::WanPair {
 protected:
  // Two datagram sockets that know each other, the neighbours' addresses resolved.
  void open_datagrams(bool v6 = false) {
    const Endpoint here{v6 ? kOurV6 : kOurV4, 7000}, there{v6 ? kPeerV6 : kPeerV4, 7000};
    a.emplace(KernelSocket::udp(here));
    in_b([&] { b.emplace(KernelSocket::udp(there)); });
    ASSERT_TRUE(a->connect(there) && b->connect(here));
    ASSERT_TRUE(a->send(testkit::bytes("hello")));
    ASSERT_TRUE(b->receive());
  }
  // The kernels send nothing of their own from here on (router solicitations, neighbour probes), so that
  // frames on the path can be counted as datagrams.
  void hush_kernels() {
    const auto hush = [](const IpAddress& other, const char* mac) {
      must("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1");
      must("ip neigh replace " + other.to_string() + " dev eth0 nud permanent lladdr " + mac);
    };
    hush(kPeerV4, "02:00:00:00:00:0b");
    in_b([&] { hush(kOurV4, "02:00:00:00:00:0a"); });
  }
  // Sends `n` datagrams with their numbers; returns the numbers of those that come, in their order.
  std::vector<std::uint32_t> numbers_through(std::uint32_t n, std::size_t size = 100) {
    for (std::uint32_t i = 0; i < n; ++i) {
      auto datagram = pattern(size);
      store_be32(datagram, 0, i);
      EXPECT_TRUE(a->send(datagram));
    }
    std::vector<std::uint32_t> got;
    while (const auto datagram = b->receive(300ms)) got.push_back(load_be32(*datagram, 0));
    return got;
  }

  std::optional<KernelSocket> a, b;
};

std::size_t distinct(std::vector<std::uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return static_cast<std::size_t>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

TEST_F(WanTest, ACleanPathCarriesEveryFrameWholeAndInOrderBothWays) {
  if (IsSkipped()) return;
  build({});
  for (const bool v6 : {false, true}) {
    open_datagrams(v6);
    for (const std::size_t size : {1u, 18u, 1000u, v6 ? 1452u : 1472u}) {
      ASSERT_TRUE(a->send(pattern(size, 1)) && b->send(pattern(size, 2)));
      EXPECT_EQ(b->receive(), pattern(size, 1));
      EXPECT_EQ(a->receive(), pattern(size, 2));
    }
    const auto numbers = numbers_through(100);
    EXPECT_EQ(numbers.size(), 100u);
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  }
  EXPECT_EQ(wan().stats().too_large, 0u);
  EXPECT_EQ(wan().stats().missed, 0u);
}

TEST_F(WanTest, AFrameTakesItsDelayEachWay) {
  if (IsSkipped()) return;
  build({.a_to_b = {.delay = 30ms}, .b_to_a = {.delay = 20ms}});
  open_datagrams();
  const auto start = Clock::now();
  ASSERT_TRUE(a->send(pattern(10)));
  ASSERT_TRUE(b->receive());
  EXPECT_GE(Clock::now() - start, 30ms);
  ASSERT_TRUE(b->send(pattern(10)));
  ASSERT_TRUE(a->receive());
  EXPECT_GE(Clock::now() - start, 50ms);
}

TEST_F(WanTest, WhatIsLostDoublesOrOvertakesIsCounted) {
  if (IsSkipped()) return;
  build({});
  open_datagrams();
  hush_kernels();
  wan().change({.loss = 0.2}, {});
  const auto before = wan().stats().to_right;
  const auto left_over = numbers_through(200);
  const auto after = wan().stats().to_right;
  EXPECT_EQ(after.lost - before.lost, after.sent - before.sent - (after.delivered - before.delivered));
  EXPECT_EQ(left_over.size(), 200 - (after.lost - before.lost));
  EXPECT_LT(left_over.size(), 190u);

  wan().change({.duplicate = 0.2}, {});
  const auto doubled = numbers_through(200);
  EXPECT_EQ(distinct(doubled), 200u);
  EXPECT_EQ(doubled.size() - 200, wan().stats().to_right.duplicated);
  EXPECT_GT(doubled.size(), 210u);

  wan().change({.delay = 1ms, .reorder = 0.2, .reorder_by = 5ms}, {});
  const auto mixed = numbers_through(200);
  EXPECT_EQ(distinct(mixed), 200u);
  EXPECT_FALSE(std::is_sorted(mixed.begin(), mixed.end()));
  EXPECT_GT(wan().stats().to_right.reordered, 10u);
}

TEST_F(WanTest, WhatIsCorruptedIsThrownAwayByTheReceiversChecksums) {
  if (IsSkipped()) return;
  build({});
  open_datagrams();
  wan().change({.corrupt = 1}, {});
  EXPECT_LT(numbers_through(100).size(), 10u) << "a flipped bit may stand where nobody looks";
  EXPECT_GE(wan().stats().to_right.corrupted, 100u);
}

TEST_F(WanTest, ARateDelaysAndItsQueueDrops) {
  if (IsSkipped()) return;
  build({});
  open_datagrams();
  hush_kernels();
  // 20 frames of 1042 bytes fit; each takes 1 ms.
  wan().change({.rate = 1042 * 8 * 1000, .queue_bytes = 20 * 1042}, {});
  const auto start = Clock::now();
  const auto through = numbers_through(100, 1000);
  EXPECT_GE(Clock::now() - start, 20ms);
  EXPECT_GE(through.size(), 20u);
  EXPECT_EQ(through.size(), 100 - wan().stats().to_right.queue_drops);
}

TEST_F(WanTest, AFrameLargerThanTheMtuIsCountedNotCarried) {
  if (IsSkipped()) return;
  build({});
  open_datagrams();
  must("ip link set eth0 mtu 2000");
  in_between([] { must("ip link set x0 mtu 2000"); });
  ASSERT_TRUE(a->send(pattern(1900)));
  EXPECT_FALSE(b->receive(100ms));
  EXPECT_EQ(wan().stats().too_large, 1u);
}

struct Impairment {
  const char* name;
  device::LinkDirection direction;
};

std::ostream& operator<<(std::ostream& out, const Impairment& impairment) { return out << impairment.name; }

class WanWithTcp : public WanTest, public ::testing::WithParamInterface<Impairment> {};

// The kernels' TCP repairs what the path does; that it must is also the proof that frames arrive with their
// checksums.
TEST_P(WanWithTcp, TheKernelsStreamsArriveWholeBothWays) {
  if (IsSkipped()) return;
  constexpr std::size_t kSize = 1 << 20;
  build({.a_to_b = GetParam().direction, .b_to_a = GetParam().direction, .mtu = 1500});
  std::optional<KernelStream> listener, client, server;
  in_b([&] { listener.emplace(KernelStream::listening({kPeerV4, 7001})); });
  client.emplace(KernelStream::connecting({kPeerV4, 7001}));
  ASSERT_TRUE(testkit::wait_readable(listener->fd(), Clock::now() + 10s));
  server = listener->accept();
  ASSERT_TRUE(server);
  const auto there = pattern(kSize, 1), back = pattern(kSize, 2);
  std::vector<std::byte> at_server, at_client;
  std::size_t sent = 0, returned = 0;
  std::vector<std::byte> buffer(1 << 16);
  const auto move = [&](KernelStream& s, const testkit::Packet& from, std::size_t& at,
                        std::vector<std::byte>& to) {
    if (const ssize_t n = s.send(Bytes(from).subspan(at)); n > 0) at += static_cast<std::size_t>(n);
    for (ssize_t n; (n = s.receive(buffer)) > 0;) to.insert(to.end(), buffer.begin(), buffer.begin() + n);
  };
  const auto end = Clock::now() + 30s;
  while ((at_server.size() < kSize || at_client.size() < kSize) && Clock::now() < end) {
    const auto wanted = [](std::size_t at) {
      return static_cast<short>(at < kSize ? POLLIN | POLLOUT : POLLIN);
    };
    pollfd ready[] = {{client->fd(), wanted(sent), 0}, {server->fd(), wanted(returned), 0}};
    ::poll(ready, 2, 1000);
    move(*client, there, sent, at_client);
    move(*server, back, returned, at_server);
  }
  EXPECT_TRUE(at_server == there) << at_server.size() << " bytes came";
  EXPECT_TRUE(at_client == back) << at_client.size() << " bytes came";
  EXPECT_EQ(wan().stats().too_large, 0u);
  EXPECT_EQ(wan().stats().missed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Impairments, WanWithTcp,
                         ::testing::Values(Impairment{"clean", {}},
                                           Impairment{"loss", {.delay = 1ms, .loss = 0.03}},
                                           Impairment{"reordering", {.delay = 2ms, .reorder = 0.03}},
                                           Impairment{"duplication", {.duplicate = 0.05}},
                                           Impairment{"corruption", {.corrupt = 0.02}},
                                           Impairment{"rate", {.rate = 50'000'000, .queue_bytes = 100'000}}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace netchannel
