// Sockets of one stack against a peer that is the test: what arrives, what is sent, who gets what.
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

class Udp : public StackTest {
 protected:
  void SetUp() override { start_steered(); }
  Packet from_peer(std::uint16_t port, Bytes payload, std::uint16_t to = 7) {
    return udp_from_peer({kPeer4, port}, {kOur4, to}, payload);
  }
  // The payload that waits in a socket, or "none".
  std::string next_text(UdpHandle socket) {
    const auto got = receive_one(socket);
    return got ? text(got->payload) : "none";
  }
};

TEST_F(Udp, DeliversADatagramToTheSocketOnItsPort) {
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(arrive(from_peer(4000, bytes("hello"))));
  const auto got = receive_one(socket);
  ASSERT_TRUE(got);
  EXPECT_EQ(text(got->payload), "hello");
  EXPECT_EQ(got->peer, (Endpoint{kPeer4, 4000}));
  EXPECT_EQ(got->local, (Endpoint{kOur4, 7}));
  EXPECT_EQ(got->ttl, 64);
  EXPECT_EQ(got->arrival, now);
  EXPECT_FALSE(got->truncated);
  EXPECT_FALSE(got->slow_path);
  EXPECT_EQ(count(Counter::udp_received), 1u);
}

TEST_F(Udp, SendsADatagramThatParsesAndHasARightChecksum) {
  const UdpHandle socket = open({kOur4, 7});
  EXPECT_EQ(send_one(socket, bytes("hello"), {kPeer4, 4000}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  const Packet expected = testkit::udp_frame({kPeerMac, kOurMac}, {kOur4, 7}, {kPeer4, 4000}, bytes("hello"));
  EXPECT_TRUE(std::equal(frame->begin(), frame->begin() + 14, expected.begin()));
  const auto ip = wire::parse_ip(l3_of(*frame));
  ASSERT_TRUE(ip);
  EXPECT_TRUE(wire::verify_header_checksum(*ip));
  EXPECT_EQ(Packet(ip->payload.begin(), ip->payload.end()), Packet(expected.begin() + 34, expected.end()));
}

TEST_F(Udp, OverIpv6TheWholeFrameIsAsExpected) {
  const UdpHandle socket = open({kOur6, 7});
  EXPECT_EQ(send_one(socket, bytes("hello"), {kPeer6, 4000}), SendStatus::queued);
  EXPECT_EQ(sent_one(), testkit::udp_frame({kPeerMac, kOurMac}, {kOur6, 7}, {kPeer6, 4000}, bytes("hello")));
  ASSERT_TRUE(arrive(udp_from_peer({kPeer6, 4000}, {kOur6, 7}, bytes("back"))));
  EXPECT_EQ(next_text(socket), "back");
}

TEST_F(Udp, ASecondDatagramToTheSamePeerIsAsRightAsTheFirst) {
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(send_one(socket, pattern(100, static_cast<std::uint8_t>(i)), {kPeer4, 4000}),
              SendStatus::queued);
    const auto frame = sent_one();
    ASSERT_TRUE(frame);
    const auto ip = wire::parse_ip(l3_of(*frame));
    ASSERT_TRUE(ip && wire::verify_header_checksum(*ip));
    const auto udp = wire::UdpView::parse(ip->payload);
    ASSERT_TRUE(udp);
    EXPECT_TRUE(wire::check_checksum(*udp, ip->source, ip->destination));
    EXPECT_EQ(Packet(udp->payload().begin(), udp->payload().end()),
              pattern(100, static_cast<std::uint8_t>(i)));
  }
}

TEST_F(Udp, ZeroBytesAreADatagram) {
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(arrive(from_peer(4000, {})));
  const auto got = receive_one(socket);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->payload.empty());
  EXPECT_EQ(send_one(socket, {}, {kPeer4, 4000}), SendStatus::queued);
  EXPECT_EQ(sent_one()->size(), 42u);
}

TEST_F(Udp, KeepsTheOrderOfArrivalAndOfSending) {
  const UdpHandle socket = open({kOur4, 7});
  for (const char* word : {"one", "two", "three"}) arrive(from_peer(4000, bytes(word)));
  std::array<Datagram, 8> got;
  ASSERT_EQ(stack().receive(socket, got), 3u);
  EXPECT_EQ(text(got[0].payload) + text(got[1].payload) + text(got[2].payload), "onetwothree");
  const Packet a = bytes("a"), b = bytes("b");
  const std::array<OutDatagram, 2> two = {OutDatagram{a, {kPeer4, 1}, false},
                                          OutDatagram{b, {kPeer4, 1}, false}};
  EXPECT_EQ(stack().send(socket, two), 2u);
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].back(), std::byte{'a'});
  EXPECT_EQ(frames[1].back(), std::byte{'b'});
}

TEST_F(Udp, TheSamePayloadGoesToManyPeers) {
  const UdpHandle socket = open({IpAddress::any_v6(), 7});
  const Packet payload = pattern(301);
  const std::array<OutDatagram, 3> out = {OutDatagram{payload, {kPeer4, 1}, false},
                                          OutDatagram{{}, {kPeer6, 2}, true},
                                          OutDatagram{{}, {kPeer4, 3}, true}};
  std::array<SendStatus, 3> told{};
  EXPECT_EQ(stack().send(socket, out, told), 3u);
  for (const Packet& frame : sent()) {
    const auto ip = wire::parse_ip(l3_of(frame));
    ASSERT_TRUE(ip);
    const auto udp = wire::UdpView::parse(ip->payload);
    ASSERT_TRUE(udp);
    EXPECT_TRUE(wire::check_checksum(*udp, ip->source, ip->destination));
    EXPECT_EQ(Packet(udp->payload().begin(), udp->payload().end()), payload);
  }
}

TEST_F(Udp, ABurstIsGivenToTheChannelAtOnce) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(10);
  const std::vector<OutDatagram> out(20, OutDatagram{payload, {kPeer4, 1}, false});
  EXPECT_EQ(stack().send(socket, out), 20u);
  EXPECT_EQ(driver().tx.peek(64), 20u);
  EXPECT_EQ(count(Counter::udp_sent), 20u);
}

TEST_F(Udp, WhenTheFramesAreOutTheRestWouldBlockAndGoesAfterAPoll) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(10);
  const std::vector<OutDatagram> out(100, OutDatagram{payload, {kPeer4, 1}, false});
  std::vector<SendStatus> told(100, SendStatus::failed);
  EXPECT_EQ(stack().send(socket, out, told), settings.slots);
  EXPECT_EQ(told[settings.slots - 1], SendStatus::queued);
  EXPECT_EQ(told[settings.slots], SendStatus::would_block);
  EXPECT_EQ(told[99], SendStatus::would_block);
  EXPECT_EQ(sent().size(), settings.slots);  // and their slots come home
  EXPECT_EQ(stack().send(socket, std::span(out).subspan(settings.slots)), 100u - settings.slots);
}

TEST_F(Udp, AFullRingIsWouldBlockAndNothingIsLost) {
  settings.ring = 64;
  settings.slots = 128;
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(10);
  const std::vector<OutDatagram> out(100, OutDatagram{payload, {kPeer4, 1}, false});
  EXPECT_EQ(stack().send(socket, out), 64u);
  EXPECT_EQ(stack().send(socket, out), 0u);
  EXPECT_EQ(sent().size(), 64u);
  EXPECT_EQ(stack().send(socket, std::span(out).first(36)), 36u);
}

TEST_F(Udp, SendingIsRefusedForWhatCannotBeSent) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(10);
  EXPECT_EQ(send_one(socket, payload), SendStatus::no_peer);
  EXPECT_EQ(send_one(socket, payload, {kPeer4, 0}), SendStatus::bad_peer);
  EXPECT_EQ(send_one(socket, payload, {kPeer6, 7}), SendStatus::bad_peer);
  EXPECT_EQ(send_one(socket, payload, {IpAddress::v4(0xffffffff), 7}), SendStatus::bad_peer);
  EXPECT_EQ(send_one(socket, payload, {IpAddress::v4(10, 0, 0, 255), 7}), SendStatus::bad_peer);
  EXPECT_EQ(send_one(socket, payload, {IpAddress::v4(192, 168, 0, 1), 7}), SendStatus::unreachable);
  EXPECT_EQ(send_one(socket, payload, {IpAddress::v4(127, 0, 0, 1), 7}), SendStatus::not_on_wire);
  EXPECT_EQ(send_one(socket, payload, {kOur4, 7}), SendStatus::not_on_wire);
  EXPECT_EQ(send_one(socket, Packet(65508), {kPeer4, 7}), SendStatus::message_too_long);
  EXPECT_EQ(send_one(UdpHandle{}, payload, {kPeer4, 7}), SendStatus::failed);
  EXPECT_TRUE(sent().empty());
}

TEST_F(Udp, ARouteThroughAnotherInterfaceIsNotOurs) {
  const std::vector<proto::Route> routes = {
      {.destination = {kOur4, 24}},
      {.destination = {IpAddress::v4(0), 0}, .gateway = kPeer4},
      {.destination = {IpAddress::v4(172, 16, 0, 0), 12}, .elsewhere = true}};
  stack().set_routes(routes);
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  EXPECT_EQ(send_one(socket, pattern(1), {IpAddress::v4(172, 16, 0, 1), 9}), SendStatus::not_on_wire);
  EXPECT_EQ(send_one(socket, pattern(1), {IpAddress::v4(8, 8, 8, 8), 9}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  EXPECT_EQ(wire::EthernetView::parse(*frame)->destination(), kPeerMac);  // through the gateway
}

TEST_F(Udp, BroadcastNeedsPermission) {
  UdpBind may;
  may.broadcast = true;
  const UdpHandle socket = open({IpAddress::any_v4(), 7}, may);
  EXPECT_EQ(send_one(socket, pattern(1), {IpAddress::v4(10, 0, 0, 255), 9}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  EXPECT_TRUE(wire::EthernetView::parse(*frame)->destination().is_broadcast());
  EXPECT_EQ(wire::parse_ip(l3_of(*frame))->source, kOur4);
}

TEST_F(Udp, MulticastGoesToTheGroupsMac) {
  const UdpHandle four = open({IpAddress::any_v4(), 7}), six = open({IpAddress::any_v6(), 8});
  EXPECT_EQ(send_one(four, pattern(1), {IpAddress::v4(239, 129, 2, 3), 9}), SendStatus::queued);
  EXPECT_EQ(wire::EthernetView::parse(*sent_one())->destination(), (MacAddress{{0x01, 0, 0x5e, 1, 2, 3}}));
  EXPECT_EQ(send_one(six, pattern(1), {*IpAddress::parse("ff02::1:2:3"), 9}), SendStatus::queued);
  EXPECT_EQ(wire::EthernetView::parse(*sent_one())->destination(), (MacAddress{{0x33, 0x33, 0, 2, 0, 3}}));
}

TEST_F(Udp, ABroadcastIsDeliveredToEverySocketBoundToAny) {
  UdpBind shared;
  shared.reuse_address = true;
  const UdpHandle a = open({IpAddress::any_v4(), 7}, shared), b = open({IpAddress::any_v4(), 7}, shared);
  const UdpHandle specific = open({kOur4, 7}, shared);
  const Packet frame = testkit::udp_frame({MacAddress{{255, 255, 255, 255, 255, 255}}, kPeerMac}, {kPeer4, 1},
                                          {IpAddress::v4(10, 0, 0, 255), 7}, bytes("all"));
  ASSERT_TRUE(arrive(frame));
  EXPECT_EQ(next_text(a), "all");
  EXPECT_EQ(next_text(b), "all");
  EXPECT_EQ(next_text(specific), "none");
  poll();
  EXPECT_EQ(lent(), settings.slots);
}

// Memory.

TEST_F(Udp, AReadDatagramKeepsItsSlotUntilItIsDropped) {
  const UdpHandle socket = open({kOur4, 7});
  arrive(from_peer(4000, bytes("x")));
  EXPECT_EQ(lent(), settings.slots - 1);
  auto got = receive_one(socket);
  poll();
  EXPECT_EQ(lent(), settings.slots - 1);
  EXPECT_EQ(stack().udp_info(socket)->held_frames, 1u);
  EXPECT_TRUE(!stack().pending());
  got.reset();
  EXPECT_TRUE(stack().pending());
  poll();
  EXPECT_EQ(lent(), settings.slots);
  EXPECT_EQ(stack().udp_info(socket)->held_frames, 0u);
}

TEST_F(Udp, TheReceiveBufferBoundsWhatWaits) {
  UdpBind small;
  small.receive_buffer = 300;
  const UdpHandle socket = open({kOur4, 7}, small);
  for (int i = 0; i < 5; ++i) arrive(from_peer(4000, pattern(58)));  // 100 bytes of packet each
  EXPECT_EQ(stack().udp_info(socket)->waiting, 3u);
  EXPECT_EQ(count(DropReason::udp_queue_full), 2u);
  EXPECT_TRUE(receive_one(socket));
  arrive(from_peer(4000, pattern(58)));
  EXPECT_EQ(stack().udp_info(socket)->waiting, 3u);
  EXPECT_EQ(count(DropReason::udp_queue_full), 2u);
}

TEST_F(Udp, OneDatagramIsTakenHoweverSmallTheBuffer) {
  UdpBind tiny;
  tiny.receive_buffer = 1;
  const UdpHandle socket = open({kOur4, 7}, tiny);
  arrive(from_peer(4000, pattern(1000)));
  EXPECT_TRUE(receive_one(socket));
}

TEST_F(Udp, OneSocketCannotHoldAllSlots) {
  const UdpHandle hog = open({kOur4, 7}), other = open({kOur4, 8});
  std::vector<Datagram> held(settings.slots);
  std::size_t got = 0;
  for (std::uint32_t i = 0; i < settings.slots; ++i) {
    arrive(from_peer(4000, bytes("x")));
    got += stack().receive(hog, std::span(held).subspan(got));
  }
  EXPECT_EQ(got, settings.slots / 4 * 3);
  EXPECT_EQ(count(DropReason::udp_queue_full), settings.slots - got);
  ASSERT_TRUE(arrive(from_peer(4000, bytes("y"), 8)));
  EXPECT_EQ(next_text(other), "y");
  held.clear();
  poll();
  EXPECT_EQ(lent(), settings.slots);
  arrive(from_peer(4000, bytes("x")));
  EXPECT_EQ(next_text(hog), "x");
}

TEST_F(Udp, AClosedSocketsSlotsAreNotChargedToItsSuccessor) {
  const UdpHandle first = open({kOur4, 7});
  arrive(from_peer(4000, bytes("a")));
  arrive(from_peer(4000, bytes("b")));
  auto held = receive_one(first);
  stack().close_udp(first);
  const UdpHandle second = open({kOur4, 7});
  held.reset();
  poll();
  EXPECT_EQ(stack().udp_info(second)->held_frames, 0u);
  EXPECT_EQ(lent(), settings.slots);
}

TEST_F(Udp, ABadDescriptorIsCountedAndForgotten) {
  FrameDesc desc;
  desc.slot = settings.slots;  // a transmit slot
  ASSERT_TRUE(driver().rx.push(desc));
  desc.slot = 0xffffffff;
  ASSERT_TRUE(driver().rx.push(desc));
  desc.slot = 0;
  desc.length = 4096;
  ASSERT_TRUE(driver().rx.push(desc));
  ASSERT_TRUE(driver().reclaimed.push(3));  // no transmit slot, and not lent
  poll();
  EXPECT_EQ(count(DropReason::device_bad_descriptor), 4u);
}

// Super-frames, parts, checksums by the device.

TEST_F(Udp, ASuperFrameBecomesDatagramsThatShareIt) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(1000);
  ASSERT_TRUE(arrive(from_peer(4000, payload), {.flags = kChecksumPartial, .segment_size = 300}));
  EXPECT_EQ(stack().udp_info(socket)->waiting, 4u);
  std::array<Datagram, 3> got;
  ASSERT_EQ(stack().receive(socket, got), 3u);
  EXPECT_EQ(got[1].payload.size(), 300u);
  EXPECT_EQ(got[1].payload.data(), got[0].payload.data() + 300);
  const auto last = receive_one(socket);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->payload.size(), 100u);
  EXPECT_EQ(count(Counter::udp_received), 4u);
  for (Datagram& datagram : got) datagram = {};
  poll();
  EXPECT_EQ(lent(), settings.slots - 1);  // the last one still holds it
}

TEST_F(Udp, APacketOfSeveralPartsArrivesInOnePiece) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(8900);
  ASSERT_TRUE(arrive(from_peer(4000, payload), {.part = 2048}));
  auto got = receive_one(socket);
  ASSERT_TRUE(got);
  EXPECT_EQ(Packet(got->payload.begin(), got->payload.end()), payload);
  poll();
  EXPECT_EQ(lent(), settings.slots);  // it is in a large slot
}

TEST_F(Udp, PartsMayBeSplitAnywhereAndOverBursts) {
  const UdpHandle socket = open({kOur4, 7});
  for (const std::size_t part : {1u, 13u, 14u, 33u, 42u}) {
    const Packet payload = pattern(part == 1 ? 0 : 100);
    Packet frame = from_peer(4000, payload);
    if (part == 1) frame.resize(30);  // as many parts as are allowed, of a frame that is cut off
    ASSERT_TRUE(arrive(frame, {.part = part}));
    EXPECT_EQ(receive_one(socket).has_value(), part != 1) << part;
  }
  EXPECT_EQ(count(DropReason::ipv4_truncated), 1u);
}

TEST_F(Udp, JumboFramesLeaveInSeveralParts) {
  settings.options.link.mtu = 9000;
  settings.options.link.max_tx_frame = 9014;
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(8972);
  EXPECT_EQ(send_one(socket, payload, {kPeer4, 9}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  const auto ip = wire::parse_ip(l3_of(*frame));
  ASSERT_TRUE(ip);
  const auto udp = wire::UdpView::parse(ip->payload);
  ASSERT_TRUE(udp);
  EXPECT_TRUE(wire::check_checksum(*udp, ip->source, ip->destination));
  EXPECT_EQ(Packet(udp->payload().begin(), udp->payload().end()), payload);
}

TEST_F(Udp, ADeviceThatCompletesChecksumsGetsThePseudoHeaderSum) {
  settings.options.link.tx_checksum = true;
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  EXPECT_EQ(send_one(socket, pattern(100), {kPeer4, 9}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  EXPECT_EQ(last_sent().flags, kChecksumPartial);
  EXPECT_EQ(last_sent().l4_offset, 34);
  EXPECT_EQ(load_be16(*frame, 40), wire::fold(wire::pseudo_header(kOur4, kPeer4, Protocol::udp, 108)));
}

class UdpSuperFrames : public Udp {
 protected:
  void SetUp() override {
    settings.options.link.max_tx_frame = 65535;
    settings.options.link.tx_checksum = true;
    settings.slot_size = 128 << 10;
    start_steered();
    socket = open({IpAddress::any_v4(), 7});
  }
  // Sends payloads of those sizes to those ports of the peer, in one call.
  struct To {
    std::size_t size;
    std::uint16_t port = 9;
  };
  void send(std::initializer_list<To> datagrams) {
    std::vector<Packet> payloads;
    std::vector<OutDatagram> out;
    for (const To& to : datagrams)
      payloads.push_back(testkit::pattern(to.size, static_cast<std::uint8_t>(payloads.size())));
    std::size_t i = 0;
    for (const To& to : datagrams) out.push_back({payloads[i++], {kPeer4, to.port}, false});
    EXPECT_EQ(stack().send(socket, out), out.size());
  }
  UdpHandle socket;
};

TEST_F(UdpSuperFrames, ARunOfOneSizeToOnePeerLeavesAsOneFrame) {
  send({{100}, {100}, {100}, {40}});
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->size(), 42u + 340);
  EXPECT_EQ(last_sent().segment_size, 100);
  EXPECT_EQ(last_sent().flags, kChecksumPartial);
  EXPECT_EQ(load_be16(*frame, 38), 348);
  const Bytes payload = Bytes(*frame).subspan(42);
  EXPECT_TRUE(std::ranges::equal(payload.subspan(100, 100), testkit::pattern(100, 1)));
  EXPECT_TRUE(std::ranges::equal(payload.subspan(300), testkit::pattern(40, 3)));
}

TEST_F(UdpSuperFrames, WhatDoesNotGoOnWithTheRunBeginsAnother) {
  send({{100}, {40}, {40}, {100}, {100, 8}, {100, 8}, {0}, {0}});
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 6u);
  EXPECT_EQ(frames[0].size(), 42u + 140);  // a shorter one ends the run
  EXPECT_EQ(frames[1].size(), 42u + 40);   // a longer one does not join
  EXPECT_EQ(frames[2].size(), 42u + 100);
  EXPECT_EQ(frames[3].size(), 42u + 200);  // another peer
  EXPECT_EQ(frames[4].size(), 42u);        // no bytes are a datagram too
  EXPECT_EQ(frames[5].size(), 42u);
}

TEST_F(UdpSuperFrames, ALoneDatagramIsNoSuperFrame) {
  send({{100}});
  ASSERT_TRUE(sent_one());
  EXPECT_EQ(last_sent().segment_size, 0);
}

TEST_F(UdpSuperFrames, NoRunIsLongerThanThePeersKernelCuts) {
  const Packet payload = testkit::pattern(1400);
  std::vector<OutDatagram> out(100, OutDatagram{payload, {kPeer4, 9}, false});
  EXPECT_EQ(stack().send(socket, out), out.size());
  std::size_t bytes = 0;
  for (const Packet& frame : sent()) {
    EXPECT_LE(frame.size(), 65535u);
    bytes += frame.size() - 42;
  }
  EXPECT_EQ(bytes, 140'000u);
  std::vector<OutDatagram> small(100, OutDatagram{Bytes(payload).first(10), {kPeer4, 9}, false});
  EXPECT_EQ(stack().send(socket, small), small.size());
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].size(), 42u + 640);
}

TEST_F(Udp, APartialChecksumIsAcceptedFromAVirtualLinkAndCounted) {
  Packet frame = from_peer(4000, pattern(100));
  store_be16(frame, 40, wire::fold(wire::pseudo_header(kOur4, kPeer4, Protocol::udp, 108)));
  const UdpHandle before = open({kOur4, 7});
  arrive(frame);
  EXPECT_EQ(next_text(before), "none");
  EXPECT_EQ(count(DropReason::udp_bad_checksum), 1u);
  settings.options.link.virtual_link = true;
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  arrive(frame);
  EXPECT_TRUE(receive_one(socket));
  EXPECT_EQ(count(Counter::checksum_partial_accepted), 1u);
}

// The slow path and readiness.

TEST_F(Udp, WhatTheKernelReceivedIsDeliveredAsSlowPath) {
  const UdpHandle socket = open({kOur4, 7});
  const Packet payload = pattern(65507);
  EXPECT_TRUE(stack().inject_slow_path(payload, {kPeer4, 4000}, {kOur4, 7}));
  const auto got = receive_one(socket);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->slow_path);
  EXPECT_EQ(got->peer, (Endpoint{kPeer4, 4000}));
  EXPECT_EQ(Packet(got->payload.begin(), got->payload.end()), payload);
  EXPECT_EQ(count(Counter::udp_slow_path), 1u);
  EXPECT_FALSE(stack().inject_slow_path(payload, {kPeer4, 4000}, {kOur4, 8}));
  EXPECT_EQ(count(DropReason::udp_no_socket), 1u);
}

TEST_F(Udp, LargeSlotsAreBoundedAndComeBack) {
  UdpBind roomy;
  roomy.receive_buffer = 1 << 30;
  settings.options.limits.large_slots = 4;
  start_steered();
  const UdpHandle socket = open({kOur4, 7}, roomy);
  const Packet payload = pattern(60000);
  for (int i = 0; i < 6; ++i) stack().inject_slow_path(payload, {kPeer4, 4000}, {kOur4, 7});
  EXPECT_EQ(stack().udp_info(socket)->waiting, 4u);
  EXPECT_EQ(count(DropReason::no_frames), 2u);
  while (receive_one(socket)) {
  }
  EXPECT_TRUE(stack().inject_slow_path(payload, {kPeer4, 4000}, {kOur4, 7}));
}

TEST_F(Udp, ReadySocketsAreNamedOnce) {
  const UdpHandle a = open({kOur4, 7}), b = open({kOur4, 8});
  arrive(from_peer(1, bytes("x"), 8));
  arrive(from_peer(1, bytes("x"), 7));
  arrive(from_peer(1, bytes("x"), 8));
  std::array<UdpHandle, 4> ready;
  ASSERT_EQ(stack().take_ready(ready), 2u);
  EXPECT_EQ(ready[0], b);
  EXPECT_EQ(ready[1], a);
  EXPECT_EQ(stack().take_ready(ready), 0u);
  EXPECT_TRUE(stack().readable(a));
  receive_one(a);
  EXPECT_FALSE(stack().readable(a));
  arrive(from_peer(1, bytes("x"), 7));
  EXPECT_EQ(stack().take_ready(ready), 1u);
  stack().close_udp(a);
  EXPECT_FALSE(stack().readable(a));
  arrive(from_peer(1, bytes("x"), 8));
  stack().close_udp(b);
  EXPECT_EQ(stack().take_ready(ready), 0u);
}

TEST_F(Udp, APollTakesOneBurstAndSaysThatThereIsMore) {
  settings.options.limits.burst = 4;
  start_steered();
  const UdpHandle socket = open({kOur4, 7});
  for (int i = 0; i < 6; ++i) arrive_only(from_peer(4000, bytes("x")), {});
  const PollResult first = stack().poll(now);
  EXPECT_EQ(first.frames, 4u);
  EXPECT_EQ(first.delivered, 4u);
  EXPECT_TRUE(first.more);
  EXPECT_TRUE(stack().pending());
  const PollResult second = stack().poll(now);
  EXPECT_EQ(second.frames, 2u);
  EXPECT_FALSE(second.more);
  EXPECT_EQ(stack().udp_info(socket)->waiting, 6u);
}

TEST_F(Udp, NewAddressesRoutesAndMtuHoldForTheNextDatagram) {
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  send_one(socket, pattern(10), {kPeer4, 9});
  sent();
  const std::vector<Prefix> moved = {{IpAddress::v4(10, 0, 0, 9), 24}};
  stack().set_addresses(moved);
  send_one(socket, pattern(10), {kPeer4, 9});
  EXPECT_EQ(wire::parse_ip(l3_of(*sent_one()))->source, IpAddress::v4(10, 0, 0, 9));
  stack().set_mtu(576);
  send_one(socket, pattern(1000), {kPeer4, 9});
  EXPECT_EQ(sent().size(), 2u);
  const MacAddress other{{2, 9, 9, 9, 9, 9}};
  stack().on_neighbour(kPeer4, other);
  send_one(socket, pattern(10), {kPeer4, 9});
  EXPECT_EQ(wire::EthernetView::parse(*sent_one())->destination(), other);
  stack().set_routes({});
  EXPECT_EQ(send_one(socket, pattern(10), {kPeer4, 9}), SendStatus::unreachable);
}

TEST_F(Udp, AnMtuBelowAnyLinksIsTakenAsTheLeast) {
  stack().set_mtu(0);
  const UdpHandle socket = open({kOur4, 7});
  EXPECT_EQ(send_one(socket, pattern(100), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 3u);  // 48 bytes in each packet of 68
}

TEST(StackOpen, RefusesSlotsThatAreNotItsOwn) {
  auto region = *FrameRegion::open({.slot_size = 2048, .slot_count = 64});
  const auto open = [&](SlotRange rx, SlotRange tx) {
    auto channel = *Channel::open({.rx_ring = 64, .tx_ring = 64, .rx_slots = 64, .tx_slots = 64});
    StackOptions options;
    options.rx = rx;
    options.tx = tx;
    return Stack::open(channel->take_consumer(), *region, options).has_value();
  };
  EXPECT_TRUE(open({0, 32}, {32, 32}));
  EXPECT_FALSE(open({0, 33}, {32, 32}));
  EXPECT_FALSE(open({0, 32}, {32, 33}));
  EXPECT_FALSE(open({0, 0}, {32, 32}));
  EXPECT_FALSE(open({0, 32}, {0xffffffff, 2}));
}

}  // namespace
}  // namespace netchannel::stack
