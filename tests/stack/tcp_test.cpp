#include "tests/stack/tcp_pair.hpp"

namespace netchannel::stack {
namespace {

using tcp::State;

TEST_F(TcpPairTest, AConnectionIsMadeAndCarriesBytesBothWays) {
  start();
  const auto [mine, theirs] = connect(listen());
  EXPECT_EQ(write(a, mine, "ping"), 4u);
  run(1ms);
  EXPECT_EQ(read_all(b, theirs), "ping");
  EXPECT_EQ(write(b, theirs, "pong"), 4u);
  run(1ms);
  EXPECT_EQ(read_all(a, mine), "pong");
  EXPECT_EQ(b.tcp().peer(theirs), a.tcp().local(mine));
}

TEST_F(TcpPairTest, AConnectionIsMadeOverIpv6) {
  start();
  const auto [mine, theirs] = connect(listen(), {.peer = {b.options.v6, 80}});
  EXPECT_EQ(write(a, mine, "six"), 3u);
  run(1ms);
  EXPECT_EQ(read_all(b, theirs), "six");
  EXPECT_EQ(b.tcp().find(theirs)->state.peer_mss, 1440);
}

TEST_F(TcpPairTest, AMegabyteArrivesAsItWasWritten) {
  start();
  const auto [mine, theirs] = connect(listen());
  transfer(a, mine, b, theirs, 1 << 20);
  transfer(b, theirs, a, mine, 1 << 20);
  EXPECT_EQ(a.count(Counter::tcp_retransmitted), 0u);
}

TEST_F(TcpPairTest, BytesArriveOverALossyLink) {
  wire.a_to_b.loss = wire.b_to_a.loss = 0.05;
  wire.a_to_b.reorder = wire.b_to_a.reorder = 0.05;
  wire.a_to_b.duplicate = wire.b_to_a.duplicate = 0.05;
  wire.a_to_b.corrupt = wire.b_to_a.corrupt = 0.05;
  start();
  const auto [mine, theirs] = connect(listen());
  transfer(a, mine, b, theirs, 1 << 20);
  EXPECT_GT(a.count(Counter::tcp_retransmitted), 0u);
  EXPECT_GT(b.count(DropReason::tcp_bad_checksum), 0u);
}

TEST_F(TcpPairTest, SuperFramesCarryManySegmentsEach) {
  wire.max_tx_frame = 65535 + 14;
  wire.offloads = wire.multi_buffer = true;
  start();
  const auto [mine, theirs] = connect(listen());
  const std::uint64_t before = link().a_to_b().sent;
  transfer(a, mine, b, theirs, 8 << 20);
  EXPECT_LT(link().a_to_b().sent - before, (8u << 20) / 1448 / 5);
  EXPECT_EQ(a.count(Counter::tcp_retransmitted), 0u);
}

TEST_F(TcpPairTest, TheLargestSuperFrameIsReadToItsLastByte) {
  // A frame whose packet fills IPv4's total length ends beyond what an offset of 16 bits reaches.
  wire.max_tx_frame = 65535 + 14;
  wire.rx_headroom = 64;
  wire.offloads = true;
  a.options.slot_size = b.options.slot_size = 128 << 10;
  a.options.slots = b.options.slots = 128;
  start();
  const auto [mine, theirs] = connect(listen());
  transfer(a, mine, b, theirs, 1 << 20);
  const tcp::TcpState& s = b.tcp().find(theirs)->state;
  const std::size_t payload = 65535 - 52;
  const testkit::Packet data = testkit::pattern(payload, 5);
  testkit::Packet segment(32 + payload);
  store_be16(segment, 0, a.tcp().local(mine).port);
  store_be16(segment, 2, 80);
  store_be32(segment, 4, s.rcv_nxt.value);
  store_be32(segment, 8, s.snd_nxt.value);
  store_u8(segment, 12, 0x80);
  store_u8(segment, 13, 0x10);
  store_be16(segment, 14, 1000);
  store_be32(segment, 20, 0x0101080a);
  store_be32(segment, 24, s.ts_recent);
  store_be32(segment, 28, static_cast<std::uint32_t>(now.ns / 1'000'000) + s.ts_offset);
  std::copy(data.begin(), data.end(), segment.begin() + 32);
  const IpAddress &from = a.options.v4, &to = b.options.v4;
  wire::PartialSum sum = wire::pseudo_header(from, to, Protocol::tcp, segment.size());
  sum.add(wire::checksum_fast(segment));
  store_be16(segment, 16, wire::checksum(sum));
  a.send_raw(testkit::ethernet({link().b().info().mac, link().a().info().mac}, testkit::kIpv4,
                               testkit::ip({.source = from, .destination = to, .protocol = 6}, segment)));
  run(1ms);
  ASSERT_EQ(b.tcp().find(theirs)->receive.readable(), payload);
  std::array<Bytes, 4> views;
  std::size_t at = 0;
  while (at < payload) {
    ASSERT_NE(b.tcp().spans(theirs, views), 0u);
    const std::size_t n = std::min<std::size_t>(views[0].size(), at < 65000 ? 65000 : 1);
    ASSERT_TRUE(std::equal(views[0].begin(), views[0].begin() + static_cast<std::ptrdiff_t>(n),
                           data.begin() + static_cast<std::ptrdiff_t>(at)))
        << "after " << at;
    b.tcp().consume(theirs, n);
    at += n;
  }
}

TEST_F(TcpPairTest, SuperFramesThatGetLostAreSentAgainInParts) {
  wire.max_tx_frame = 65535 + 14;
  wire.offloads = wire.multi_buffer = true;
  wire.a_to_b.loss = 0.02;
  start();
  const auto [mine, theirs] = connect(listen());
  transfer(a, mine, b, theirs, 8 << 20);
  EXPECT_GT(a.count(Counter::tcp_retransmitted), 0u);
}

TEST_F(TcpPairTest, BothEndsCloseAndNothingIsLeft) {
  start();
  const TcpListenerHandle listener = listen();
  const auto [mine, theirs] = connect(listener);
  a.tcp().close(mine);
  a.tcp().flush();
  run(1ms);
  EXPECT_EQ(state(b, theirs), State::close_wait);
  EXPECT_EQ(a.tcp().find(mine), nullptr);
  b.tcp().close(theirs);
  b.tcp().flush();
  run(1ms);
  EXPECT_EQ(a.tcp().connections(), 0u);
  EXPECT_EQ(a.tcp().time_waits(), 1u);
  EXPECT_EQ(b.tcp().connections(), 0u);
  run(61s);
  EXPECT_EQ(a.tcp().time_waits(), 0u);
}

TEST_F(TcpPairTest, APortWithoutAListenerRefuses) {
  start();
  const auto mine = a.tcp().connect({.local = {}, .peer = {b.options.v4, 81}});
  ASSERT_TRUE(mine);
  a.tcp().flush();
  run(1ms);
  EXPECT_EQ(a.tcp().find(*mine)->state.failure, tcp::Failure::refused);
  EXPECT_EQ(b.count(DropReason::tcp_no_socket), 1u);
}

TEST_F(TcpPairTest, ANeighbourThatDoesNotAnswerEndsTheHandshake) {
  start();
  const auto mine = a.tcp().connect({.local = {}, .peer = {IpAddress::v4(10, 0, 0, 9), 80}});
  ASSERT_TRUE(mine);
  a.tcp().flush();
  run(5s);
  EXPECT_EQ(a.tcp().find(*mine)->state.failure, tcp::Failure::unreachable);
}

TEST_F(TcpPairTest, APeerOutsideEveryNetworkIsRefusedAtOnce) {
  start();
  const auto mine = a.tcp().connect({.local = {}, .peer = {IpAddress::v4(192, 0, 2, 1), 80}});
  ASSERT_FALSE(mine);
  EXPECT_EQ(mine.error().code, ErrorCode::unreachable);
}

TEST_F(TcpPairTest, AbortResetsThePeer) {
  start();
  const auto [mine, theirs] = connect(listen());
  a.tcp().abort(mine);
  a.tcp().flush();
  run(1ms);
  EXPECT_EQ(b.tcp().find(theirs)->state.failure, tcp::Failure::reset);
  EXPECT_EQ(a.tcp().connections(), 0u);
}

TEST_F(TcpPairTest, AClosedListenerResetsWhatWasNotAccepted) {
  start();
  const TcpListenerHandle listener = listen();
  const auto mine = a.tcp().connect({.local = {}, .peer = {b.options.v4, 80}});
  a.tcp().flush();
  run(1ms);
  EXPECT_EQ(b.tcp().waiting(listener), 1u);
  b.tcp().close(listener);
  b.tcp().flush();
  run(1ms);
  EXPECT_EQ(a.tcp().find(*mine)->state.failure, tcp::Failure::reset);
  EXPECT_EQ(b.tcp().connections(), 0u);
}

TEST_F(TcpPairTest, AFullAcceptQueuePutsHandshakesOff) {
  start();
  const TcpListenerHandle listener =
      listen({.local = {IpAddress::any_v4(), 80}, .v6_only = false, .backlog = 2});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.tcp().connect({.local = {}, .peer = {b.options.v4, 80}}));
  a.tcp().flush();
  run(10ms);
  EXPECT_EQ(b.tcp().waiting(listener), 2u);
  EXPECT_GT(b.count(Counter::tcp_accept_queue_full), 0u);
  ASSERT_TRUE(b.tcp().accept(listener));
  run(5s);
  EXPECT_EQ(b.tcp().waiting(listener), 2u);
}

TEST_F(TcpPairTest, ReadinessNamesEachConnectionOnce) {
  start();
  const TcpListenerHandle listener = listen();
  const auto [mine, theirs] = connect(listener);
  std::array<TcpReady, 8> ready;
  std::size_t n = b.tcp().take_ready(ready);
  EXPECT_TRUE(std::any_of(ready.begin(), ready.begin() + n, [&](auto& r) { return r.listener == listener; }));
  write(a, mine, "x");
  run(1ms);
  write(a, mine, "y");
  run(1ms);
  n = b.tcp().take_ready(ready);
  ASSERT_EQ(n, 1u);
  EXPECT_EQ(ready[0].connection, theirs);
  EXPECT_NE(ready[0].events & tcp::kReadable, 0);
  EXPECT_EQ(b.tcp().take_ready(ready), 0u);
}

TEST_F(TcpPairTest, ALeaseIsInUseUntilTheLastTimeWaitIsOver) {
  start();
  const TcpListenerHandle listener =
      listen({.local = {IpAddress::any_v4(), 80}, .v6_only = false, .lease = 7});
  const auto [mine, theirs] = connect(listener, {.local = {}, .peer = {b.options.v4, 80}, .lease = 5});
  EXPECT_EQ(b.tcp().uses(7), 2u);
  b.tcp().close(listener);
  EXPECT_EQ(b.tcp().uses(7), 1u);
  b.tcp().close(theirs);
  b.tcp().flush();
  run(1ms);
  a.tcp().close(mine);
  a.tcp().flush();
  run(1s);
  EXPECT_EQ(a.tcp().uses(5), 0u);
  EXPECT_EQ(b.tcp().uses(7), 1u);
  run(61s);
  EXPECT_EQ(b.tcp().uses(7), 0u);
}

TEST_F(TcpPairTest, APairInTimeWaitIsUsedAgainAfterASecond) {
  start();
  const TcpListenerHandle listener = listen();
  const TcpConnect options{.local = {a.options.v4, 4000}, .peer = {b.options.v4, 80}};
  for (int i = 0; i < 3; ++i) {
    const auto [mine, theirs] = connect(listener, options);
    a.tcp().close(mine);
    a.tcp().flush();
    run(1ms);
    b.tcp().close(theirs);
    b.tcp().flush();
    run(1ms);
    EXPECT_EQ(a.tcp().time_waits(), 1u);
    const auto at_once = a.tcp().connect(options);
    ASSERT_FALSE(at_once);
    EXPECT_EQ(at_once.error().code, ErrorCode::address_in_use);
    run(1100ms);
  }
}

// Its peer is in TIME-WAIT, and takes the pair again only with a later timestamp.
TEST_F(TcpPairTest, ALeaseRestsForATickAfterThePeerHasClosedFirst) {
  start();
  const TcpListenerHandle listener = listen();
  EXPECT_FALSE(a.tcp().rests(5));
  const auto [mine, theirs] = connect(listener, {.local = {}, .peer = {b.options.v4, 80}, .lease = 5});
  b.tcp().close(theirs);
  b.tcp().flush();
  run(1ms);
  EXPECT_FALSE(a.tcp().rests(5));
  a.tcp().close(mine);
  a.tcp().flush();
  ASSERT_TRUE(run_until(1s, [&] { return a.tcp().connections() == 0; }));
  EXPECT_TRUE(a.tcp().rests(5));
  to(now + 2ms - 1ns);
  EXPECT_TRUE(a.tcp().rests(5));
  to(now + 1ns);
  EXPECT_FALSE(a.tcp().rests(5));
}

TEST_F(TcpPairTest, ALeaseWithoutTimestampsRestsForTheTimeWaitOfThePeer) {
  start();
  const TcpListenerHandle listener = listen();
  TcpConnect options{.local = {}, .peer = {b.options.v4, 80}, .lease = 5};
  options.settings.timestamps = false;
  const auto [mine, theirs] = connect(listener, options);
  b.tcp().close(theirs);
  b.tcp().flush();
  run(1ms);
  a.tcp().close(mine);
  a.tcp().flush();
  run(59s);
  EXPECT_TRUE(a.tcp().rests(5));
  run(2s);
  EXPECT_FALSE(a.tcp().rests(5));
}

TEST_F(TcpPairTest, ALeaseOfAConnectionThatFailedDoesNotRest) {
  start();
  const auto refused = a.tcp().connect({.local = {}, .peer = {b.options.v4, 81}, .lease = 5});
  ASSERT_TRUE(refused);
  run(1ms);
  a.tcp().close(*refused);
  a.tcp().flush();
  EXPECT_EQ(a.tcp().uses(5), 0u);
  EXPECT_FALSE(a.tcp().rests(5));
}

TEST_F(TcpPairTest, ManyConnectionsShareTheFramesOfOneStack) {
  a.options.slots = b.options.slots = 1024;
  start();
  const TcpListenerHandle listener = listen();
  std::vector<Both> all;
  for (int i = 0; i < 50; ++i) all.push_back(connect(listener));
  const testkit::Packet data = testkit::pattern(64 << 10, 9);
  std::vector<std::size_t> written(all.size()), read(all.size());
  const bool done = run_until(60s, [&] {
    bool finished = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      written[i] += a.tcp().write(all[i].a, Bytes(data).subspan(written[i]));
      read[i] += read_all(b, all[i].b).size();
      finished &= read[i] == data.size();
    }
    a.tcp().flush();
    return finished;
  });
  EXPECT_TRUE(done) << testing::PrintToString(read);
}

TEST_F(TcpPairTest, ReadersThatDoNotReadLeaveSlotsForOthers) {
  start();
  const TcpListenerHandle listener = listen();
  std::vector<Both> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect(listener));
  const testkit::Packet data = testkit::pattern(1 << 20, 9);
  for (const Both& both : silent) (void)a.tcp().write(both.a, data);
  a.tcp().flush();
  run(100ms);
  for (const Both& both : silent) (void)a.tcp().write(both.a, data);
  a.tcp().flush();
  run(100ms);
  EXPECT_GT(b.count(Counter::tcp_spilled), 0u);
  for (const Both& both : silent) a.tcp().abort(both.a);
  a.tcp().flush();
  const auto [mine, theirs] = connect(listener);
  transfer(a, mine, b, theirs, 256 << 10);
}

TEST_F(TcpPairTest, AnIcmpMessageThatAPacketWasTooBigMakesSegmentsSmaller) {
  start();
  const auto [mine, theirs] = connect(listen());
  write(a, mine, std::string(3000, 'x'));
  const tcp::TcpState& s = a.tcp().find(mine)->state;
  testkit::Packet quoted =
      testkit::ip({.source = a.options.v4, .destination = b.options.v4, .protocol = 6}, testkit::pattern(8));
  store_be16(quoted, 20, a.tcp().local(mine).port);
  store_be16(quoted, 22, 80);
  store_be32(quoted, 24, s.snd_una.value);
  testkit::Packet message(8 + quoted.size());
  store_u8(message, 0, 3);
  store_u8(message, 1, 4);
  store_be16(message, 6, 1000);
  std::copy(quoted.begin(), quoted.end(), message.begin() + 8);
  store_be16(message, 2, testkit::internet_checksum(message));
  const testkit::Packet icmp =
      testkit::ip({.source = b.options.v4, .destination = a.options.v4, .protocol = 1}, message);
  const MacAddress to = link().a().info().mac, from = link().b().info().mac;
  b.send_raw(testkit::ethernet({to, from}, testkit::kIpv4, icmp));
  run(1ms);
  EXPECT_EQ(s.path_mss, 960);
  EXPECT_EQ(read_all(b, theirs).size(), 3000u);
}

}  // namespace
}  // namespace netchannel::stack
