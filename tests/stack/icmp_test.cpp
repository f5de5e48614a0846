// Echo, the errors we send and the errors we are sent.
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "proto/path_mtu.hpp"
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

class Icmp : public StackTest {
 protected:
  void SetUp() override { start(); }

  // An ICMP error from a router or the peer that quotes a datagram of ours.
  struct Told {
    bool v6 = false;
    std::uint8_t type = 3, code = 3;
    std::uint32_t rest = 0;
    Endpoint ours, theirs;
    std::size_t quoted = 48;  // bytes of our packet
  };
  static Packet error(const Told& t) {
    const Packet ours = testkit::ip({.source = t.ours.address, .destination = t.theirs.address},
                                    testkit::udp(t.ours, t.theirs, pattern(100)));
    const Bytes quote = Bytes(ours).first(std::min(t.quoted, ours.size()));
    const IpAddress from = t.theirs.address, to = t.ours.address;
    Packet message(8);
    if (t.v6) {
      wire::PartialSum sum = wire::pseudo_header(from, to, Protocol::icmpv6, 8 + quote.size());
      sum.add(wire::checksum_scalar(quote));
      wire::Icmpv6Repr{static_cast<wire::Icmpv6Type>(t.type), t.code, t.rest}.emit(message, sum);
    } else {
      wire::IcmpRepr{static_cast<wire::IcmpType>(t.type), t.code, t.rest}.emit(message,
                                                                               wire::checksum_scalar(quote));
    }
    message.insert(message.end(), quote.begin(), quote.end());
    return to_us(testkit::ip(
        {.source = from, .destination = to, .protocol = static_cast<std::uint8_t>(t.v6 ? 58 : 1)}, message));
  }
  Told told4{.ours = {kOur4, 7}, .theirs = {kPeer4, 9}};
  Told told6{.v6 = true, .type = 1, .code = 4, .ours = {kOur6, 7}, .theirs = {kPeer6, 9}, .quoted = 80};
};

TEST_F(Icmp, AnEchoIsAnsweredWithItsData) {
  ASSERT_TRUE(arrive(
      to_us(testkit::icmp_echo(kPeer4, kOur4, {.request = true, .id = 5, .sequence = 6}, pattern(56)))));
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  const Packet expected =
      testkit::icmp_echo(kOur4, kPeer4, {.request = false, .id = 5, .sequence = 6}, pattern(56));
  EXPECT_EQ(Packet(reply->begin() + 34, reply->end()), Packet(expected.begin() + 20, expected.end()));
  EXPECT_EQ(wire::EthernetView::parse(*reply)->destination(), kPeerMac);
  EXPECT_EQ(count(Counter::icmp_echo_replies), 1u);
}

TEST_F(Icmp, AnEchoOverIpv6IsAnsweredWithItsData) {
  ASSERT_TRUE(arrive(
      to_us(testkit::icmp_echo(kPeer6, kOur6, {.request = true, .id = 5, .sequence = 6}, pattern(57)))));
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  EXPECT_EQ(Packet(reply->begin() + 14, reply->end()),
            testkit::icmp_echo(kOur6, kPeer6, {.request = false, .id = 5, .sequence = 6}, pattern(57)));
}

TEST_F(Icmp, AnEchoToABroadcastIsNotAnswered) {
  ASSERT_TRUE(
      arrive(testkit::ethernet({MacAddress{{255, 255, 255, 255, 255, 255}}, kPeerMac}, testkit::kIpv4,
                               testkit::icmp_echo(kPeer4, IpAddress::v4(10, 0, 0, 255), {}, pattern(8)))));
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(count(DropReason::icmp_ignored), 1u);
}

TEST_F(Icmp, NobodyOnThePortIsToldWithAQuote) {
  const Packet frame = udp_from_peer({kPeer4, 4000}, {kOur4, 7}, pattern(100));
  ASSERT_TRUE(arrive(frame));
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  const auto ip = wire::parse_ip(l3_of(*reply));
  ASSERT_TRUE(ip && wire::verify_header_checksum(*ip));
  EXPECT_EQ(ip->destination, kPeer4);
  const auto message = wire::IcmpView::parse(ip->payload);
  ASSERT_TRUE(message);
  EXPECT_TRUE(wire::verify_checksum(*message));
  EXPECT_EQ(message->type(), wire::IcmpType::unreachable);
  EXPECT_EQ(message->code(), wire::IcmpUnreachable::kPort);
  EXPECT_EQ(Packet(message->payload().begin(), message->payload().end()),
            Packet(frame.begin() + 14, frame.end()));
  EXPECT_EQ(count(DropReason::udp_no_socket), 1u);
  EXPECT_EQ(count(Counter::icmp_errors_sent), 1u);
}

TEST_F(Icmp, NobodyOnThePortIsToldOverIpv6) {
  const Packet frame = udp_from_peer({kPeer6, 4000}, {kOur6, 7}, pattern(1400));
  ASSERT_TRUE(arrive(frame));
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->size(), 14u + 1280u);
  const auto ip = wire::parse_ip(l3_of(*reply));
  ASSERT_TRUE(ip);
  const auto message = wire::Icmpv6View::parse(ip->payload);
  ASSERT_TRUE(message);
  EXPECT_TRUE(wire::verify_checksum(*message, ip->source, ip->destination));
  EXPECT_EQ(message->type(), wire::Icmpv6Type::unreachable);
  EXPECT_EQ(message->code(), wire::Icmpv6Unreachable::kPort);
}

TEST_F(Icmp, NobodyOnThePortIsToldAboutADatagramThatCameInFragments) {
  const Packet datagram = testkit::udp({kPeer4, 4000}, {kOur4, 7}, pattern(3000));
  for (const std::size_t at : {0u, 1480u, 2960u}) {
    const std::size_t n = std::min<std::size_t>(1480, datagram.size() - at);
    const auto fragment = static_cast<std::uint16_t>((at + n < datagram.size() ? 0x2000 : 0) | at / 8);
    ASSERT_TRUE(
        arrive(to_us(testkit::ip({.source = kPeer4, .destination = kOur4, .id = 9, .fragment = fragment},
                                 Bytes(datagram).subspan(at, n)))));
  }
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  const auto message = wire::IcmpView::parse(wire::parse_ip(l3_of(*reply))->payload);
  ASSERT_TRUE(message);
  EXPECT_TRUE(wire::verify_checksum(*message));
  const auto quoted = wire::QuotedPacket::parse_v4(message->payload());
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->flow, (FlowKey{Protocol::udp, {kPeer4, 4000}, {kOur4, 7}}));
}

TEST_F(Icmp, ErrorsAreLimitedInRate) {
  settings.options.limits.icmp_errors_per_second = 10;
  start();
  for (int i = 0; i < 5; ++i) arrive(udp_from_peer({kPeer4, 4000}, {kOur4, 7}, pattern(10)));
  EXPECT_EQ(sent().size(), 2u);
  EXPECT_EQ(count(Counter::icmp_errors_limited), 3u);
  advance(100ms);
  arrive(udp_from_peer({kPeer4, 4000}, {kOur4, 7}, pattern(10)));
  EXPECT_EQ(sent().size(), 1u);
}

TEST_F(Icmp, NoErrorAboutABroadcast) {
  arrive(testkit::udp_frame({MacAddress{{255, 255, 255, 255, 255, 255}}, kPeerMac}, {kPeer4, 1},
                            {IpAddress::v4(10, 0, 0, 255), 7}, pattern(10)));
  arrive(testkit::udp_frame({MacAddress{{255, 255, 255, 255, 255, 255}}, kPeerMac}, {kPeer4, 1}, {kOur4, 7},
                            pattern(10)));
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(count(DropReason::udp_no_socket), 2u);
}

TEST_F(Icmp, OnASteeredDeviceNoErrorIsSent) {
  start_steered();
  arrive(udp_from_peer({kPeer4, 4000}, {kOur4, 7}, pattern(10)));
  EXPECT_TRUE(sent().empty());
}

TEST_F(Icmp, AnUnknownOptionThatAsksForItIsReported) {
  // Destination options with an option of type 0x80 (report) at byte 2 of the header.
  Packet payload(8);
  store_u8(payload, 0, 17);
  store_u8(payload, 2, 0x80);
  store_u8(payload, 3, 4);
  const Packet udp = testkit::udp({kPeer6, 1}, {kOur6, 7}, pattern(10));
  payload.insert(payload.end(), udp.begin(), udp.end());
  ASSERT_TRUE(arrive(to_us(testkit::ip({.source = kPeer6, .destination = kOur6, .protocol = 60}, payload))));
  EXPECT_EQ(count(DropReason::ipv6_bad_option), 1u);
  const auto reply = sent_one();
  ASSERT_TRUE(reply);
  const auto message = wire::Icmpv6View::parse(wire::parse_ip(l3_of(*reply))->payload);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type(), wire::Icmpv6Type::parameter_problem);
  EXPECT_EQ(message->code(), wire::Icmpv6ParameterProblem::kOption);
  EXPECT_EQ(message->pointer(), 42u);
}

// Errors that come to us.

TEST_F(Icmp, RefusedReachesAConnectedSocketOnce) {
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 9}));
  ASSERT_TRUE(arrive(error(told4)));
  EXPECT_TRUE(stack().readable(socket));
  EXPECT_EQ(send_one(socket, bytes("x")), SendStatus::refused);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(send_one(socket, bytes("y")), SendStatus::queued);
  EXPECT_EQ(count(Counter::icmp_errors_delivered), 1u);
  ASSERT_TRUE(arrive(error(told4)));
  const auto taken = stack().take_error(socket);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->code, ErrorCode::refused);
  EXPECT_EQ(taken->sys_errno, ECONNREFUSED);
  EXPECT_EQ(taken->peer, told4.theirs);
  EXPECT_FALSE(stack().take_error(socket));
}

TEST_F(Icmp, RefusedOverIpv6) {
  const UdpHandle socket = open({kOur6, 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer6, 9}));
  ASSERT_TRUE(arrive(error(told6)));
  EXPECT_EQ(stack().take_error(socket)->code, ErrorCode::refused);
}

TEST_F(Icmp, AnUnconnectedSocketHearsErrorsOnlyIfItAsksForAll) {
  const UdpHandle deaf = open({kOur4, 7});
  arrive(error(told4));
  EXPECT_FALSE(stack().take_error(deaf));
  EXPECT_EQ(count(DropReason::icmp_unmatched), 0u);
  stack().close_udp(deaf);
  UdpBind all;
  all.all_errors = true;
  const UdpHandle socket = open({kOur4, 7}, all);
  told4.code = 1;
  arrive(error(told4));
  const auto taken = stack().take_error(socket);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sys_errno, EHOSTUNREACH);
}

TEST_F(Icmp, ASoftErrorIsNotToldToAPlainConnectedSocket) {
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 9}));
  told4.code = 1;
  arrive(error(told4));
  told4.type = 11;
  arrive(error(told4));
  EXPECT_FALSE(stack().take_error(socket));
}

TEST_F(Icmp, AnErrorAboutAFlowThatIsNotOursIsCounted) {
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 9}));
  told4.ours.port = 8;
  arrive(error(told4));
  told4.ours.port = 7;
  told4.theirs.port = 10;
  arrive(error(told4));
  EXPECT_EQ(count(DropReason::icmp_unmatched), 2u);
  EXPECT_FALSE(stack().take_error(socket));
}

TEST_F(Icmp, PacketTooBigNarrowsThePathAndLargeDatagramsAreFragmented) {
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  EXPECT_EQ(send_one(socket, pattern(1400), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 1u);
  told4.code = 4;
  told4.rest = 1000;
  ASSERT_TRUE(arrive(error(told4)));
  EXPECT_EQ(send_one(socket, pattern(1400), {kPeer4, 9}), SendStatus::queued);
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_LE(frames[0].size(), 1014u);
  // Ten minutes later the path is tried again.
  run(proto::kPathMtuAge);
  EXPECT_EQ(send_one(socket, pattern(1400), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 1u);
}

TEST_F(Icmp, PacketTooBigTellsAConnectedSocketWhatFits) {
  UdpBind whole;
  whole.dont_fragment = true;
  const UdpHandle socket = open({kOur6, 7}, whole);
  stack().on_neighbour(kPeer6, kPeerMac);
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer6, 9}));
  told6.type = 2;
  told6.code = 0;
  told6.rest = 1300;
  ASSERT_TRUE(arrive(error(told6)));
  const auto taken = stack().take_error(socket);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->code, ErrorCode::message_too_long);
  EXPECT_EQ(taken->mtu, 1300u);
  EXPECT_EQ(send_one(socket, pattern(1253)), SendStatus::message_too_long);
  EXPECT_EQ(send_one(socket, pattern(1252)), SendStatus::queued);
}

}  // namespace
}  // namespace netchannel::stack
