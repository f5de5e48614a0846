// A bare device: ARP and neighbour discovery by the stack itself, and the packets that wait for them. A
// steered one: the kernel is asked.
#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

const MacAddress kBroadcast{{255, 255, 255, 255, 255, 255}};
const MacAddress kOtherMac{{2, 0, 0, 0, 0, 0x0c}};

class Bare : public StackTest {
 protected:
  UdpHandle four, six;
  void SetUp() override {
    start();
    four = open({IpAddress::any_v4(), 7});
    six = open({kOur6, 7});
  }
  static Packet arp(std::uint16_t operation, const MacAddress& mac, const IpAddress& sender,
                    const IpAddress& target, const MacAddress& to = kOurMac) {
    return testkit::ethernet({to, mac}, testkit::kArp,
                             testkit::arp({.operation = operation,
                                           .sender_mac = mac,
                                           .sender = sender,
                                           .target_mac = operation == 2 ? kOurMac : MacAddress{},
                                           .target = target}));
  }
  static Packet arp_reply() { return arp(2, kPeerMac, kPeer4, kOur4); }

  struct NeighbourMessage {
    wire::NeighbourRepr repr;
    IpAddress source, destination;
    MacAddress to = kOurMac;
    std::uint8_t hop_limit = 255;
  };
  static Packet frame_of(const NeighbourMessage& m) {
    Packet message(m.repr.size());
    m.repr.emit(message, m.source, m.destination);
    return testkit::ethernet(
        {m.to, kPeerMac}, testkit::kIpv6,
        testkit::ip({.source = m.source, .destination = m.destination, .protocol = 58, .ttl = m.hop_limit},
                    message));
  }
  static Packet advertisement(const MacAddress& mac = kPeerMac, bool solicited = true) {
    return frame_of({.repr = {.solicitation = false,
                              .solicited = solicited,
                              .override_flag = true,
                              .target = kPeer6,
                              .link_layer = mac},
                     .source = kPeer6,
                     .destination = kOur6});
  }
  // What kinds of frames were sent.
  std::string kinds() {
    std::string out;
    for (const Packet& frame : sent()) {
      const auto type = wire::EthernetView::parse(frame)->ether_type();
      if (type == wire::EtherType::arp) {
        out +=
            wire::ArpView::parse(l3_of(frame))->operation() == wire::ArpOperation::request ? "ask " : "tell ";
      } else {
        const auto ip = wire::parse_ip(l3_of(frame));
        if (!ip) {
          out += "bad ";
        } else if (ip->protocol == Protocol::icmpv6) {
          out += load_u8(ip->payload, 0) == 135 ? "ask " : "tell ";
        } else {
          out += "udp ";
        }
      }
    }
    return out;
  }
};

TEST_F(Bare, AsksForTheMacAndSendsWhatWaitedWhenItIsTold) {
  EXPECT_EQ(send_one(four, bytes("hello"), {kPeer4, 9}), SendStatus::queued);
  const auto question = sent_one();
  ASSERT_TRUE(question);
  const auto ethernet = wire::EthernetView::parse(*question);
  EXPECT_TRUE(ethernet->destination().is_broadcast());
  const auto asked = wire::ArpView::parse(ethernet->payload());
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->operation(), wire::ArpOperation::request);
  EXPECT_EQ(asked->sender(), kOur4);
  EXPECT_EQ(asked->sender_mac(), kOurMac);
  EXPECT_EQ(asked->target(), kPeer4);

  ASSERT_TRUE(arrive(arp_reply()));
  const auto datagram = sent_one();
  ASSERT_TRUE(datagram);
  EXPECT_EQ(wire::EthernetView::parse(*datagram)->destination(), kPeerMac);
  EXPECT_EQ(text(Bytes(*datagram).subspan(42)), "hello");
  EXPECT_EQ(send_one(four, bytes("again"), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(kinds(), "udp ");
}

TEST_F(Bare, SolicitsOverIpv6AndSendsWhatWaited) {
  EXPECT_EQ(send_one(six, bytes("hello"), {kPeer6, 9}), SendStatus::queued);
  const auto question = sent_one();
  ASSERT_TRUE(question);
  const auto ip = wire::parse_ip(l3_of(*question));
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->ttl, 255);
  EXPECT_EQ(ip->destination, wire::solicited_node(kPeer6));
  EXPECT_EQ(wire::EthernetView::parse(*question)->destination(), wire::multicast_mac(ip->destination));
  const auto message = wire::Icmpv6View::parse(ip->payload);
  ASSERT_TRUE(message);
  EXPECT_TRUE(wire::verify_checksum(*message, ip->source, ip->destination));
  const auto asked = wire::NeighbourView::parse(*message, {ip->source, ip->destination, ip->ttl});
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->is_solicitation());
  EXPECT_EQ(asked->target(), kPeer6);
  EXPECT_EQ(asked->link_layer(), kOurMac);

  ASSERT_TRUE(arrive(advertisement()));
  const auto datagram = sent_one();
  ASSERT_TRUE(datagram);
  EXPECT_EQ(wire::EthernetView::parse(*datagram)->destination(), kPeerMac);
}

TEST_F(Bare, AsksOnceASecondHoweverMuchIsSentAndKeepsTheOrder) {
  for (const char* word : {"a", "b", "c"}) send_one(four, bytes(word), {kPeer4, 9});
  EXPECT_EQ(kinds(), "ask ");
  advance(1s - 1ns);
  EXPECT_EQ(kinds(), "");
  advance(1ns);
  EXPECT_EQ(kinds(), "ask ");
  arrive(arp_reply());
  std::string words;
  for (const Packet& frame : sent()) words += text(Bytes(frame).subspan(42));
  EXPECT_EQ(words, "abc");
}

TEST_F(Bare, WithoutAnswerWhatWaitedIsDroppedCountedAndAConnectedSocketIsTold) {
  ASSERT_TRUE(stack().connect_udp(four, {kPeer4, 9}));
  send_one(four, bytes("a"));
  send_one(six, bytes("b"), {kPeer6, 9});
  run(3s - 1ns);
  EXPECT_EQ(count(DropReason::ip_neighbour_failed), 0u);
  advance(1ns);
  EXPECT_EQ(count(DropReason::ip_neighbour_failed), 2u);
  const auto error = stack().take_error(four);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::unreachable);
  EXPECT_EQ(error->sys_errno, EHOSTUNREACH);
  EXPECT_EQ(error->peer, (Endpoint{kPeer4, 9}));
  EXPECT_FALSE(stack().take_error(four));
  EXPECT_FALSE(stack().take_error(six));  // not connected
  EXPECT_EQ(kinds(), "ask ask ask ask ask ask ");
  EXPECT_EQ(stack().next_deadline(), kForever);
}

TEST_F(Bare, WhatWaitsIsBoundedAndTheNewestReplaceTheOldest) {
  settings.options.limits.waiting_of_neighbour = 4;
  SetUp();
  for (const char* word : {"a", "b", "c", "d", "e", "f"}) send_one(four, bytes(word), {kPeer4, 9});
  EXPECT_EQ(count(DropReason::ip_neighbour_queue_full), 2u);
  sent();
  arrive(arp_reply());
  std::string words;
  for (const Packet& frame : sent()) words += text(Bytes(frame).subspan(42));
  EXPECT_EQ(words, "cdef");
}

TEST_F(Bare, AFragmentedDatagramWaitsAndGoesAsAWhole) {
  settings.options.limits.waiting_of_neighbour = 4;
  SetUp();
  send_one(four, bytes("small"), {kPeer4, 9});
  send_one(four, pattern(5000), {kPeer4, 9});  // four fragments: the small one makes room
  EXPECT_EQ(count(DropReason::ip_neighbour_queue_full), 1u);
  send_one(four, pattern(9000), {kPeer4, 9});  // seven: never
  EXPECT_EQ(count(DropReason::ip_neighbour_queue_full), 2u);
  sent();
  arrive(arp_reply());
  EXPECT_EQ(sent().size(), 4u);
}

TEST_F(Bare, AnswersWhoAsksForUsAndRemembersThem) {
  ASSERT_TRUE(arrive(arp(1, kPeerMac, kPeer4, kOur4, kBroadcast)));
  const auto answer = sent_one();
  ASSERT_TRUE(answer);
  EXPECT_EQ(wire::EthernetView::parse(*answer)->destination(), kPeerMac);
  const auto told = wire::ArpView::parse(l3_of(*answer));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->operation(), wire::ArpOperation::reply);
  EXPECT_EQ(told->sender(), kOur4);
  EXPECT_EQ(told->sender_mac(), kOurMac);
  EXPECT_EQ(told->target(), kPeer4);
  EXPECT_EQ(count(Counter::arp_replies_sent), 1u);
  send_one(four, bytes("x"), {kPeer4, 9});
  EXPECT_EQ(kinds(), "udp ");  // no question needed
}

TEST_F(Bare, AnswersAProbeAndRemembersNothing) {
  ASSERT_TRUE(arrive(arp(1, kPeerMac, IpAddress::v4(0), kOur4, kBroadcast)));
  EXPECT_EQ(kinds(), "tell ");
  send_one(four, bytes("x"), {kPeer4, 9});
  EXPECT_EQ(kinds(), "ask ");
}

TEST_F(Bare, WhatNobodyAskedForIsNotBelieved) {
  arrive(arp_reply());
  arrive(arp(2, kPeerMac, kPeer4, kPeer4, kBroadcast));  // gratuitous
  arrive(arp(1, kPeerMac, kPeer4, kPeer4, kBroadcast));
  arrive(advertisement());
  send_one(four, bytes("x"), {kPeer4, 9});
  send_one(six, bytes("x"), {kPeer6, 9});
  EXPECT_EQ(kinds(), "ask ask ");
}

TEST_F(Bare, AnotherStationWithOurAddressIsCountedAndNotBelieved) {
  arrive(arp(1, kOtherMac, kOur4, kOur4, kBroadcast));
  EXPECT_EQ(count(DropReason::arp_conflict), 1u);
  EXPECT_EQ(kinds(), "");
}

TEST_F(Bare, AGratuitousArpMovesAKnownNeighbour) {
  send_one(four, bytes("x"), {kPeer4, 9});
  arrive(arp_reply());
  sent();
  arrive(arp(2, kOtherMac, kPeer4, kPeer4, kBroadcast));
  send_one(four, bytes("y"), {kPeer4, 9});
  EXPECT_EQ(wire::EthernetView::parse(*sent_one())->destination(), kOtherMac);
  // And is verified five seconds later, at the new place.
  advance(5s);
  const auto probe = sent_one();
  ASSERT_TRUE(probe);
  EXPECT_EQ(wire::EthernetView::parse(*probe)->destination(), kOtherMac);
}

TEST_F(Bare, AKnownNeighbourIsVerifiedInUseAndLostIfItIsGone) {
  send_one(four, bytes("x"), {kPeer4, 9});
  arrive(arp_reply());
  sent();
  run(30s);
  send_one(four, bytes("x"), {kPeer4, 9});
  EXPECT_EQ(kinds(), "udp ");
  run(5s);
  EXPECT_EQ(kinds(), "ask ");
  arrive(arp_reply());
  run(30s);
  EXPECT_EQ(kinds(), "");
  send_one(four, bytes("x"), {kPeer4, 9});
  run(7s);
  EXPECT_EQ(kinds(), "udp ask ask ask ");
  run(1s);
  send_one(four, bytes("x"), {kPeer4, 9});
  EXPECT_EQ(kinds(), "ask ");  // from the beginning
}

TEST_F(Bare, AnswersASolicitationAndOneOfWhoHasNoAddressYet) {
  const IpAddress group = wire::solicited_node(kOur6);
  ASSERT_TRUE(arrive(frame_of({.repr = {.solicitation = true, .target = kOur6, .link_layer = kPeerMac},
                               .source = kPeer6,
                               .destination = group,
                               .to = wire::multicast_mac(group)})));
  const auto answer = sent_one();
  ASSERT_TRUE(answer);
  const auto ip = wire::parse_ip(l3_of(*answer));
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, kOur6);
  EXPECT_EQ(ip->destination, kPeer6);
  const auto message = wire::Icmpv6View::parse(ip->payload);
  EXPECT_TRUE(wire::verify_checksum(*message, ip->source, ip->destination));
  const auto told = wire::NeighbourView::parse(*message, {ip->source, ip->destination, ip->ttl});
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->solicited());
  EXPECT_EQ(told->link_layer(), kOurMac);
  send_one(six, bytes("x"), {kPeer6, 9});
  EXPECT_EQ(kinds(), "udp ");

  ASSERT_TRUE(arrive(frame_of({.repr = {.solicitation = true, .target = kOur6, .link_layer = std::nullopt},
                               .source = IpAddress::any_v6(),
                               .destination = group,
                               .to = wire::multicast_mac(group)})));
  const auto all = sent_one();
  ASSERT_TRUE(all);
  EXPECT_EQ(wire::parse_ip(l3_of(*all))->destination, *IpAddress::parse("ff02::1"));
}

TEST_F(Bare, ANeighbourMessageThatARouterMayHaveForwardedIsNotBelieved) {
  send_one(six, bytes("x"), {kPeer6, 9});
  sent();
  ASSERT_TRUE(arrive(
      frame_of({.repr = {.solicitation = false, .solicited = true, .target = kPeer6, .link_layer = kPeerMac},
                .source = kPeer6,
                .destination = kOur6,
                .hop_limit = 254})));
  EXPECT_EQ(count(DropReason::nd_malformed), 1u);
  EXPECT_EQ(kinds(), "");
}

TEST_F(Bare, AFloodOfQuestionsStaysWithinTheTable) {
  settings.options.limits.neighbours = 16;
  settings.options.addresses = {{kOur4, 8}};
  start();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    arrive(arp(1, kPeerMac, IpAddress::v4(0x0a010000 + i), kOur4, kBroadcast));
    sent();
  }
  EXPECT_EQ(count(Counter::arp_replies_sent), 1000u);
  EXPECT_EQ(stack().next_deadline(), kForever);  // and nobody is asked back
}

TEST_F(Bare, TheGatewayIsAskedForAndNotTheDestination) {
  const std::vector<proto::Route> routes = {{.destination = {IpAddress::v4(0), 0}, .gateway = kPeer4}};
  stack().set_routes(routes);
  send_one(four, bytes("x"), {IpAddress::v4(8, 8, 8, 8), 9});
  const auto question = sent_one();
  ASSERT_TRUE(question);
  EXPECT_EQ(wire::ArpView::parse(l3_of(*question))->target(), kPeer4);
  send_one(four, bytes("y"), {IpAddress::v4(9, 9, 9, 9), 9});
  EXPECT_EQ(kinds(), "");
  arrive(arp_reply());
  EXPECT_EQ(kinds(), "udp udp ");
}

TEST_F(Bare, ADatagramToOurselvesComesBack) {
  EXPECT_EQ(send_one(four, bytes("self"), {kOur4, 7}), SendStatus::queued);
  const auto got = receive_one(four);
  ASSERT_TRUE(got);
  EXPECT_EQ(text(got->payload), "self");
  EXPECT_EQ(got->peer, (Endpoint{kOur4, 7}));
  EXPECT_EQ(kinds(), "");
}

TEST_F(StackTest, OnASteeredDeviceTheKernelIsAskedAndItsAnswerSendsWhatWaited) {
  start_steered();
  stack().on_neighbour(kPeer4, std::nullopt);
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  EXPECT_EQ(send_one(socket, bytes("x"), {kPeer4, 9}), SendStatus::queued);
  EXPECT_TRUE(sent().empty());
  std::array<IpAddress, 4> wanted;
  ASSERT_EQ(stack().take_resolve_requests(wanted), 1u);
  EXPECT_EQ(wanted[0], kPeer4);
  EXPECT_EQ(stack().take_resolve_requests(wanted), 0u);
  advance(1s);
  EXPECT_EQ(stack().take_resolve_requests(wanted), 1u);
  stack().on_neighbour(kPeer4, kPeerMac);
  EXPECT_EQ(sent().size(), 1u);
  EXPECT_EQ(stack().next_deadline(), kForever);
}

TEST_F(StackTest, OnASteeredDeviceAFailedNeighbourDropsWhatWaited) {
  start_steered();
  stack().on_neighbour(kPeer4, std::nullopt);
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 9}));
  send_one(socket, bytes("x"));
  stack().on_neighbour(kPeer4, std::nullopt);
  EXPECT_EQ(count(DropReason::ip_neighbour_failed), 1u);
  EXPECT_TRUE(stack().take_error(socket));
  // A kernel that never answers does not keep it for ever either.
  send_one(socket, bytes("x"));
  run(3s);
  EXPECT_EQ(count(DropReason::ip_neighbour_failed), 2u);
}

TEST_F(StackTest, OnASteeredDeviceArpAndEchoAreTheKernels) {
  start_steered();
  testkit::ArpFields question;
  question.sender_mac = kPeerMac;
  question.sender = kPeer4;
  question.target = kOur4;
  arrive(testkit::ethernet({kOurMac, kPeerMac}, testkit::kArp, testkit::arp(question)));
  arrive(to_us(testkit::icmp_echo(kPeer4, kOur4, {}, bytes("ping"))));
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(count(DropReason::icmp_ignored), 1u);
}

}  // namespace
}  // namespace netchannel::stack
