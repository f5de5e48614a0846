// Datagrams larger than a packet, in both directions, and two bare stacks that talk to each other.
#include <random>

#include "netchannel/wire/ipv6.hpp"
#include "proto/reassembly.hpp"
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

class Fragments : public StackTest {
 protected:
  UdpHandle four, six;
  void SetUp() override {
    settings.slots = 256;
    settings.ring = 512;
    start_steered();
    UdpBind roomy;
    roomy.receive_buffer = 1 << 20;
    four = open({kOur4, 7}, roomy);
    six = open({kOur6, 7}, roomy);
  }
  // The fragments of a UDP datagram from the peer; IPv6 ones with a fragment header.
  static std::vector<Packet> cut(bool v6, const Packet& datagram, std::size_t step, std::uint16_t id = 1) {
    std::vector<Packet> out;
    for (std::size_t at = 0; at < datagram.size(); at += step) {
      const std::size_t n = std::min(step, datagram.size() - at);
      const bool more = at + n < datagram.size();
      const Bytes piece = Bytes(datagram).subspan(at, n);
      if (!v6) {
        const auto fragment = static_cast<std::uint16_t>((more ? 0x2000 : 0) | at / 8);
        out.push_back(to_us(
            testkit::ip({.source = kPeer4, .destination = kOur4, .id = id, .fragment = fragment}, piece)));
        continue;
      }
      Packet payload(8);
      wire::Ipv6FragmentRepr{17, {id, static_cast<std::uint32_t>(at), more}}.emit(payload);
      payload.insert(payload.end(), piece.begin(), piece.end());
      out.push_back(to_us(testkit::ip({.source = kPeer6, .destination = kOur6, .protocol = 44}, payload)));
    }
    return out;
  }
  static Packet datagram(bool v6, Bytes payload) {
    return v6 ? testkit::udp({kPeer6, 4000}, {kOur6, 7}, payload)
              : testkit::udp({kPeer4, 4000}, {kOur4, 7}, payload);
  }
};

TEST_F(Fragments, ArriveInAnyOrderAndBecomeADatagram) {
  std::mt19937 random(3);
  for (const bool v6 : {false, true}) {
    const Packet payload = pattern(v6 ? 65527 : 65507);
    auto frames = cut(v6, datagram(v6, payload), 1440);
    std::shuffle(frames.begin(), frames.end(), random);
    for (const Packet& frame : frames) ASSERT_TRUE(arrive(frame));
    const auto got = receive_one(v6 ? six : four);
    ASSERT_TRUE(got);
    EXPECT_EQ(Packet(got->payload.begin(), got->payload.end()), payload);
    EXPECT_EQ(got->peer.port, 4000);
    EXPECT_FALSE(got->slow_path);
  }
  EXPECT_EQ(count(Counter::datagrams_reassembled), 2u);
  EXPECT_EQ(lent(), settings.slots);
}

TEST_F(Fragments, AWrongChecksumOverTheWholeIsFound) {
  Packet whole = datagram(false, pattern(3000));
  whole[2000] ^= std::byte{1};
  for (const Packet& frame : cut(false, whole, 1480)) arrive(frame);
  EXPECT_FALSE(receive_one(four));
  EXPECT_EQ(count(DropReason::udp_bad_checksum), 1u);
}

TEST_F(Fragments, WhatIsNotCompletedInTimeIsForgotten) {
  const auto frames = cut(false, datagram(false, pattern(3000)), 1480);
  arrive(frames[0]);
  EXPECT_EQ(stack().next_deadline(), now + 30s);
  advance(30s - 1ns);
  EXPECT_EQ(count(DropReason::frag_timeout), 0u);
  advance(1ns);
  EXPECT_EQ(count(DropReason::frag_timeout), 1u);
  arrive(frames[1]);
  arrive(frames[2]);
  EXPECT_FALSE(receive_one(four));
}

TEST_F(Fragments, OptionsBehindAFragmentHeaderAreWalkedWhenTheDatagramIsWhole) {
  Packet payload(8);  // destination options, six bytes of padding
  store_u8(payload, 0, 17);
  store_u8(payload, 2, 1);
  store_u8(payload, 3, 4);
  const Packet udp = datagram(true, pattern(100));
  payload.insert(payload.end(), udp.begin(), udp.end());
  for (const std::size_t at : {std::size_t{0}, std::size_t{64}}) {
    const bool more = at == 0;
    Packet piece(8);
    wire::Ipv6FragmentRepr{60, {9, static_cast<std::uint32_t>(at), more}}.emit(piece);
    const Bytes rest = Bytes(payload).subspan(at, more ? 64 : payload.size() - 64);
    piece.insert(piece.end(), rest.begin(), rest.end());
    arrive(to_us(testkit::ip({.source = kPeer6, .destination = kOur6, .protocol = 44}, piece)));
  }
  const auto got = receive_one(six);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->payload.size(), 100u);
}

TEST_F(Fragments, AnAtomicFragmentIsDeliveredAtOnceAndDisturbsNoOther) {
  const auto frames = cut(true, datagram(true, pattern(3000)), 1480, 5);
  arrive(frames[0]);
  const auto atomic = cut(true, datagram(true, bytes("atom")), 1480, 5);
  ASSERT_EQ(atomic.size(), 1u);
  arrive(atomic[0]);
  auto got = receive_one(six);
  ASSERT_TRUE(got);
  EXPECT_EQ(text(got->payload), "atom");
  arrive(frames[1]);
  arrive(frames[2]);
  EXPECT_TRUE(receive_one(six));
}

TEST_F(Fragments, LargeDatagramsAreSentInFragmentsThatTheSameStackUnderstands) {
  for (const bool v6 : {false, true}) {
    for (const std::size_t size : {1473u, 3000u, 65507u}) {
      const Packet payload = pattern(size);
      const Endpoint peer{v6 ? kPeer6 : kPeer4, 9};
      EXPECT_EQ(send_one(v6 ? six : four, payload, peer), SendStatus::queued);
      const auto memory = *FrameRegion::open({.slot_size = proto::kReassemblySlot, .slot_count = 4});
      FramePool pool(*memory, 0, 4, FramePool::Start::all_free);
      CounterPage page;
      proto::Reassembler reassembler(pool, page, {});
      std::optional<proto::Reassembled> whole;
      for (const Packet& frame : sent()) {
        EXPECT_LE(frame.size(), 1514u);
        EXPECT_FALSE(whole);
        const auto ip = wire::parse_ip(l3_of(frame));
        ASSERT_TRUE(ip && ip->fragment);
        EXPECT_TRUE(wire::verify_header_checksum(*ip));
        whole = reassembler.add(*ip, now);
      }
      ASSERT_TRUE(whole);
      const auto udp = wire::UdpView::parse(whole->payload.bytes());
      ASSERT_TRUE(udp);
      EXPECT_TRUE(wire::check_checksum(*udp, whole->source, whole->destination));
      EXPECT_EQ(Packet(udp->payload().begin(), udp->payload().end()), payload);
    }
  }
  EXPECT_EQ(count(Counter::udp_sent), 6u);
}

TEST_F(Fragments, EachDatagramHasItsOwnIdentification) {
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 3; ++i) {
    send_one(four, pattern(2000), {kPeer4, 9});
    for (const Packet& frame : sent()) ids.push_back(wire::parse_ip(l3_of(frame))->fragment->id);
  }
  ASSERT_EQ(ids.size(), 6u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_NE(ids[2], ids[4]);
}

TEST_F(Fragments, ADatagramGoesWholeOrNotAtAll) {
  settings.slots = 16;
  start_steered();
  four = open({kOur4, 7});
  EXPECT_EQ(send_one(four, pattern(15000), {kPeer4, 9}), SendStatus::queued);  // 11 fragments
  EXPECT_EQ(send_one(four, pattern(15000), {kPeer4, 9}), SendStatus::would_block);
  EXPECT_EQ(sent().size(), 11u);
  EXPECT_EQ(send_one(four, pattern(15000), {kPeer4, 9}), SendStatus::queued);
  // More than there are frames can never go: to wait would be for ever.
  EXPECT_EQ(send_one(four, pattern(60000), {kPeer4, 9}), SendStatus::message_too_long);
}

TEST_F(Fragments, WhereTheyAreForbiddenADatagramThatIsTooLongIsRefused) {
  UdpBind whole;
  whole.dont_fragment = true;
  const UdpHandle socket = open({kOur4, 8}, whole);
  EXPECT_EQ(send_one(socket, pattern(1472), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(send_one(socket, pattern(1473), {kPeer4, 9}), SendStatus::message_too_long);
}

TEST_F(Fragments, AnEchoOfManyFragmentsIsAnsweredInFragments) {
  settings.options.link.bare = true;
  start();
  const Packet ping = testkit::icmp_echo(kPeer4, kOur4, {}, pattern(4000));
  const Packet message(ping.begin() + 20, ping.end());
  for (std::size_t at = 0; at < message.size(); at += 1480) {
    const std::size_t n = std::min<std::size_t>(1480, message.size() - at);
    const auto fragment = static_cast<std::uint16_t>((at + n < message.size() ? 0x2000 : 0) | at / 8);
    arrive(to_us(
        testkit::ip({.source = kPeer4, .destination = kOur4, .protocol = 1, .id = 3, .fragment = fragment},
                    Bytes(message).subspan(at, n))));
  }
  EXPECT_EQ(sent().size(), 3u);
  EXPECT_EQ(count(Counter::icmp_echo_replies), 1u);
}

// Two stacks, each the other's peer: they resolve each other, and what one sends the other understands.
class TwoStacks : public ::testing::Test {
 protected:
  struct Side {
    std::unique_ptr<FrameRegion> region;
    std::unique_ptr<Channel> channel;
    DriverEnd driver;
    std::unique_ptr<Stack> stack;
    std::deque<std::uint32_t> lent;
  };
  static constexpr std::uint32_t kSlots = 256;
  Side a, b;
  Instant now{1'000'000'000};

  void open(Side& side, const MacAddress& mac, std::vector<Prefix> addresses, std::uint32_t mtu) {
    side.stack.reset();
    side.lent.clear();
    side.region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kSlots});
    side.channel = *Channel::open({.rx_ring = 512, .tx_ring = 512, .rx_slots = kSlots, .tx_slots = kSlots});
    side.driver = side.channel->take_driver();
    StackOptions options;
    options.link.mac = mac;
    options.link.mtu = mtu;
    options.link.bare = true;
    options.rx = {0, kSlots};
    options.tx = {kSlots, kSlots};
    options.addresses = std::move(addresses);
    options.secret.fill(mac.bytes[5]);
    side.stack = *Stack::open(side.channel->take_consumer(), *side.region, options);
    for (std::uint32_t i = 0; i < kSlots; ++i) side.lent.push_back(i);
  }
  void open_both(std::uint32_t mtu = 1500) {
    open(a, kOurMac, {{kOur4, 24}, {kOur6, 64}}, mtu);
    open(b, kPeerMac, {{kPeer4, 24}, {kPeer6, 64}}, mtu);
  }
  static bool carry(Side& from, Side& to) {
    bool moved = false;
    for (; from.driver.tx.peek(1) != 0 && !to.lent.empty(); moved = true) {
      FrameDesc desc = from.driver.tx.read(0);
      from.driver.tx.release(1);
      const Bytes bytes = from.region->bytes_of(desc);
      from.driver.reclaimed.push(desc.slot);
      desc.slot = to.lent.front();
      desc.offset = 0;
      to.lent.pop_front();
      std::copy(bytes.begin(), bytes.end(), to.region->slot(desc.slot).begin());
      to.driver.rx.push(desc);
    }
    return moved;
  }
  static void take_home(Side& side) {
    std::uint32_t slot = 0;
    while (side.driver.recycle.pop_all({&slot, 1}) == 1) side.lent.push_back(slot);
  }
  void settle() {
    for (bool moved = true; moved;) {
      moved = carry(a, b);
      moved = carry(b, a) || moved;
      for (Side* side : {&a, &b}) {
        moved = side->stack->poll(now).did_something() || moved;
        take_home(*side);
      }
    }
  }
};

TEST_F(TwoStacks, ResolveEachOtherAndEchoDatagramsOfEverySize) {
  for (const std::uint32_t mtu : {576u, 1500u, 9000u}) {
    open_both(mtu);
    for (const bool v6 : {false, true}) {
      if (v6 && mtu < 1280) continue;
      UdpBind bind;
      bind.local = {v6 ? kOur6 : kOur4, 7};
      const UdpHandle client = *a.stack->open_udp(bind);
      bind.local.address = v6 ? IpAddress::any_v6() : IpAddress::any_v4();
      bind.v6_only = true;
      const UdpHandle server = *b.stack->open_udp(bind);
      for (const std::size_t size : {0u, 1u, 500u, 1472u, 1473u, 8972u, 8973u, 30000u, 65507u}) {
        const Packet payload = pattern(size);
        const OutDatagram out{payload, {v6 ? kPeer6 : kPeer4, 7}, false};
        ASSERT_EQ(a.stack->send(client, {&out, 1}), 1u);
        settle();
        Datagram got;
        ASSERT_EQ(b.stack->receive(server, {&got, 1}), 1u) << mtu << " " << size;
        ASSERT_EQ(Packet(got.payload.begin(), got.payload.end()), payload);
        const OutDatagram back{got.payload, got.peer, false};
        ASSERT_EQ(b.stack->send(server, {&back, 1}), 1u);
        got = {};
        settle();
        ASSERT_EQ(a.stack->receive(client, {&got, 1}), 1u);
        ASSERT_EQ(Packet(got.payload.begin(), got.payload.end()), payload);
      }
    }
    EXPECT_EQ(a.lent.size(), kSlots);
    EXPECT_EQ(b.lent.size(), kSlots);
  }
}

TEST_F(TwoStacks, AClosedPortRefusesTheConnectedPeer) {
  open_both();
  UdpBind bind;
  bind.local = {IpAddress::any_v6(), 0};
  bind.peer = {kPeer6, 9};
  const UdpHandle client = *a.stack->open_udp(bind);
  const Packet payload = bytes("anybody?");
  const OutDatagram out{payload, {}, false};
  a.stack->send(client, {&out, 1});
  settle();
  const auto error = a.stack->take_error(client);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::refused);
  EXPECT_EQ(error->peer, bind.peer);
}

}  // namespace
}  // namespace netchannel::stack
