// The test kit against the wire room: two writers of the same formats that know nothing of each other.
#include <gtest/gtest.h>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/packet.hpp"
#include "netchannel/wire/udp.hpp"
#include "testkit/clock.hpp"
#include "testkit/frames.hpp"
#include "testkit/hex.hpp"
#include "testkit/port.hpp"
#include "testkit/transcript.hpp"

namespace netchannel::testkit {
namespace {

using namespace std::chrono_literals;

const MacPair kMacs{{{0x02, 0, 0, 0, 0, 0x0b}}, {{0x02, 0, 0, 0, 0, 0x0a}}};
const IpAddress kA4 = IpAddress::v4(10, 0, 0, 1), kB4 = IpAddress::v4(10, 0, 0, 2);
const IpAddress kA6 = *IpAddress::parse("fd00::1"), kB6 = *IpAddress::parse("fd00::2");

TEST(Frames, AUdpFrameIsWhatTheWireRoomReads) {
  for (const auto& [from, to] :
       {std::pair(Endpoint{kA4, 5}, Endpoint{kB4, 7}), {Endpoint{kA6, 5}, Endpoint{kB6, 7}}}) {
    for (const std::size_t size : {0u, 1u, 2u, 999u, 1400u}) {
      const Packet frame = udp_frame(kMacs, from, to, pattern(size));
      const auto flow = wire::flow_of(frame);
      ASSERT_TRUE(flow);
      EXPECT_EQ(flow->key, (FlowKey{Protocol::udp, to, from}));
      const auto packet = wire::parse_ip(Bytes(frame).subspan(flow->l3_offset));
      ASSERT_TRUE(packet);
      EXPECT_TRUE(wire::verify_header_checksum(*packet));
      const auto datagram = wire::UdpView::parse(packet->payload);
      ASSERT_TRUE(datagram);
      EXPECT_TRUE(wire::check_checksum(*datagram, packet->source, packet->destination));
      EXPECT_EQ(Packet(datagram->payload().begin(), datagram->payload().end()), pattern(size));
    }
  }
}

TEST(Frames, AnEchoIsWhatTheWireRoomReads) {
  const Packet v4 = icmp_echo(kA4, kB4, {.request = true, .id = 3, .sequence = 4}, pattern(33));
  const auto packet4 = wire::parse_ip(v4);
  ASSERT_TRUE(packet4);
  EXPECT_EQ(packet4->protocol, Protocol::icmp);
  const auto message4 = wire::IcmpView::parse(packet4->payload);
  ASSERT_TRUE(message4);
  EXPECT_TRUE(wire::verify_checksum(*message4));

  const Packet v6 = icmp_echo(kA6, kB6, {.request = false}, pattern(33));
  const auto packet6 = wire::parse_ip(v6);
  ASSERT_TRUE(packet6);
  EXPECT_EQ(packet6->protocol, Protocol::icmpv6);
  const auto message6 = wire::Icmpv6View::parse(packet6->payload);
  ASSERT_TRUE(message6);
  EXPECT_TRUE(wire::verify_checksum(*message6, kA6, kB6));
}

TEST(Frames, AnArpPacketIsWhatTheWireRoomReads) {
  const Packet packet =
      arp({.operation = 2, .sender_mac = kMacs.from, .sender = kA4, .target_mac = kMacs.to, .target = kB4});
  const auto view = wire::ArpView::parse(packet);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->operation(), wire::ArpOperation::reply);
  EXPECT_EQ(view->sender(), kA4);
  EXPECT_EQ(view->sender_mac(), kMacs.from);
  EXPECT_EQ(view->target(), kB4);
  EXPECT_EQ(view->target_mac(), kMacs.to);
}

TEST(Frames, IpFieldsStandWhereTheyShould) {
  const IpFields fields{.source = kA4,
                        .destination = kB4,
                        .protocol = 99,
                        .ttl = 3,
                        .tos = 0xb8,
                        .id = 77,
                        .fragment = 0x2005,
                        .options = Packet(4, std::byte{1})};
  const Packet packet = ip(fields, pattern(8));
  const auto view = wire::Ipv4View::parse(packet);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->ttl(), 3);
  EXPECT_EQ(view->tos(), 0xb8);
  EXPECT_EQ(view->identification(), 77);
  EXPECT_EQ(view->fragment_offset(), 40u);
  EXPECT_TRUE(view->more_fragments());
  EXPECT_EQ(view->header_length(), 24u);
  EXPECT_TRUE(wire::verify_checksum(*view));
}

TEST(Frames, PatternsDifferByPlaceAndSeed) {
  EXPECT_NE(pattern(100, 1), pattern(100, 2));
  EXPECT_EQ(pattern(100, 1), pattern(100, 1));
  const Packet long_one = pattern(2000);
  EXPECT_NE(Packet(long_one.begin(), long_one.begin() + 256),
            Packet(long_one.begin() + 256, long_one.begin() + 512));
}

TEST(Hex, DumpsAsOthersDo) {
  EXPECT_EQ(hex_dump(bytes("0123456789abcdefX"), "  "),
            "  0000: 3031 3233 3435 3637 3839 6162 6364 6566\n  0010: 58\n");
  EXPECT_EQ(hex_dump({}), "");
}

TEST(Hex, SummariesSayWhatAFrameIs) {
  EXPECT_EQ(summary(udp_frame(kMacs, {kA4, 5}, {kB4, 7}, pattern(10))),
            "02:00:00:00:00:0a > 02:00:00:00:00:0b ipv4 10.0.0.1:5 > 10.0.0.2:7 udp 52 bytes");
  EXPECT_EQ(summary(udp_frame(kMacs, {kA6, 5}, {kB6, 7}, {})),
            "02:00:00:00:00:0a > 02:00:00:00:00:0b ipv6 [fd00::1]:5 > [fd00::2]:7 udp 62 bytes");
  EXPECT_EQ(summary(ethernet(kMacs, kArp, arp({1, {}, kA4, {}, kB4}))),
            "02:00:00:00:00:0a > 02:00:00:00:00:0b arp who has 10.0.0.2 tell 10.0.0.1 42 bytes");
  EXPECT_EQ(summary(ethernet(kMacs, kLocalExperiment, {})),
            "02:00:00:00:00:0a > 02:00:00:00:00:0b type 0x88b5 14 bytes");
}

TEST(Hex, SummariesOfBrokenFramesReadNothingThatIsNotThere) {
  const Packet whole = udp_frame(kMacs, {kA4, 5}, {kB4, 7}, pattern(10));
  const Packet whole6 = udp_frame(kMacs, {kA6, 5}, {kB6, 7}, pattern(10));
  for (const Packet& frame : {whole, whole6}) {
    for (std::size_t size = 0; size < frame.size(); ++size) {
      EXPECT_FALSE(summary(Packet(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size))).empty());
    }
  }
  Packet long_header = whole;
  long_header[14] = std::byte{0x4f};  // 60 bytes of header are not there
  EXPECT_NE(summary(long_header).find("10.0.0.1 > 10.0.0.2 udp"), std::string::npos);
}

TEST(Transcript, TellsTheStoryInOrder) {
  Transcript transcript;
  EXPECT_TRUE(transcript.empty());
  transcript.packet(Instant{1'500'000}, "a -> b", ethernet(kMacs, kLocalExperiment, bytes("hi")));
  transcript.note(Instant{2'000'000'000}, "b", "gives up");
  EXPECT_EQ(transcript.size(), 2u);
  EXPECT_EQ(transcript.text(),
            "+0.001500 a -> b  02:00:00:00:00:0a > 02:00:00:00:00:0b type 0x88b5 16 bytes\n"
            "+2.000000 b  gives up\n");
  EXPECT_NE(transcript.text(true).find("    0000: 0200 0000 000b"), std::string::npos);
}

TEST(VirtualClock, MovesOnlyForward) {
  VirtualClock clock;
  clock.advance(5ms);
  clock.advance_to(Instant{1});
  EXPECT_EQ(clock.now(), Instant{5'000'000});
  clock.advance_to(Instant{6'000'000});
  EXPECT_EQ(clock.now(), Instant{6'000'000});
}

// A device that does with its slots what it is told to.
class SlotThief final : public Device {
 public:
  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override { return slots.size(); }
  std::size_t rx_burst(std::span<FrameDesc>) noexcept override { return 0; }
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override {
    returns.push_back(frames[0].slot);
    return frames.size();
  }
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override {
    std::size_t n = 0;
    for (; !returns.empty(); returns.pop_back()) out[n++].slot = returns.back();
    return n;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  std::vector<std::uint32_t> returns;

 private:
  DeviceInfo info_;
};

TEST(Port, SeesThatASlotDoesNotComeHome) {
  Port port;
  SlotThief device;
  port.attach(device);
  ASSERT_TRUE(port.send(pattern(60)));
  device.returns.clear();
  EXPECT_FALSE(port.slots_home());
}

TEST(Port, SeesThatASlotComesHomeTwice) {
  Port port;
  SlotThief device;
  port.attach(device);
  ASSERT_TRUE(port.send(pattern(60)));
  device.returns.push_back(device.returns[0]);
  EXPECT_FALSE(port.slots_home());
}

TEST(Pump, RunsALinkUntilNothingIsUnderWayAndNoFurther) {
  Port a, b;
  const auto link =
      *device::LinkPair::open({.a_to_b = {.delay = 3ms}, .b_to_a = {.delay = 5ms}}, a.home(), b.home());
  a.attach(link->a());
  b.attach(link->b());
  ASSERT_TRUE(a.send(pattern(60)));
  std::vector<Instant> turns;
  EXPECT_TRUE(pump(*link, [&](Instant now) {
    turns.push_back(now);
    const auto at_b = b.receive();
    for (const auto& packet : at_b) EXPECT_TRUE(b.send(packet));
    return !at_b.empty() || !a.receive().empty();
  }));
  EXPECT_EQ(turns, (std::vector<Instant>{{0}, {3'000'000}, {3'000'000}, {8'000'000}, {8'000'000}}));
  EXPECT_EQ(link->now(), Instant{8'000'000});
  EXPECT_FALSE(pump(*link, [](Instant) { return true; }, 10)) << "what never rests is given up";
}

}  // namespace
}  // namespace netchannel::testkit
