// UDP headers and checksums, ICMP errors and their rate, and the cutting of datagrams.
#include <gtest/gtest.h>

#include <set>

#include "netchannel/frame.hpp"
#include "netchannel/wire/packet.hpp"
#include "proto/fragment.hpp"
#include "proto/icmp.hpp"
#include "proto/udp.hpp"
#include "testkit/frames.hpp"

namespace netchannel::proto {
namespace {

using namespace std::chrono_literals;
using testkit::Packet;
using testkit::pattern;

const MacAddress kMacA{{2, 0, 0, 0, 0, 1}}, kMacB{{2, 0, 0, 0, 0, 2}};
const Endpoint kA4{IpAddress::v4(10, 0, 0, 1), 1000}, kB4{IpAddress::v4(10, 0, 0, 2), 2000};
const Endpoint kA6{*IpAddress::parse("2001:db8::1"), 1000}, kB6{*IpAddress::parse("2001:db8::2"), 2000};

UdpHeader header_between(const Endpoint& a, const Endpoint& b) {
  return UdpHeader({.source_mac = kMacA, .destination_mac = kMacB, .source = a, .destination = b});
}

Packet stamped(const UdpHeader& header, const Packet& payload) {
  Packet out(header.size());
  header.stamp(out, payload.size(), wire::checksum_scalar(payload));
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

TEST(UdpHeader, IsWhatAnIndependentWriterMakes) {
  for (const auto& [a, b] : {std::pair{kA4, kB4}, std::pair{kA6, kB6}}) {
    const UdpHeader header = header_between(a, b);
    for (const std::size_t size : {0u, 1u, 2u, 100u, 1399u, 1472u}) {
      Packet expected = testkit::udp_frame({kMacB, kMacA}, a, b, pattern(size));
      Packet got = stamped(header, pattern(size));
      if (a.address.is_v4()) {
        // DF, which the other does not set, and with it the header checksum.
        EXPECT_EQ(load_be16(got, 20), 0x4000);
        const auto ip = wire::parse_ip(Bytes(got).subspan(14));
        ASSERT_TRUE(ip);
        EXPECT_TRUE(wire::verify_header_checksum(*ip));
        for (const std::size_t at : {20u, 21u, 24u, 25u}) got[at] = expected[at];
      }
      EXPECT_EQ(got, expected) << size;
    }
  }
}

TEST(UdpHeader, AChecksumOfZeroIsSentAsAllOnes) {
  const UdpHeader header = header_between(kA4, kB4);
  // The two bytes that bring the sum to 0xffff.
  Packet payload(2);
  const Packet probe = stamped(header, payload);
  store_be16(payload, 0, load_be16(probe, 40));
  EXPECT_EQ(load_be16(stamped(header, payload), 40), 0xffff);
}

TEST(UdpHeader, PartialLeavesThePseudoHeaderSum) {
  const UdpHeader header = header_between(kA6, kB6);
  Packet out(header.size());
  header.stamp_partial(out, 100);
  const auto udp = wire::UdpView::parse(Bytes(out).subspan(54));
  EXPECT_FALSE(udp);  // the payload is not there; the field is
  EXPECT_EQ(load_be16(out, 60),
            wire::fold(wire::pseudo_header(kA6.address, kB6.address, Protocol::udp, 108)));
}

class JudgeChecksum : public ::testing::Test {
 protected:
  Packet datagram = testkit::udp(kA4, kB4, pattern(100));
  ChecksumVerdict judge(std::uint16_t flags, bool virtual_link) {
    return judge_udp_checksum(*wire::UdpView::parse(datagram), kA4.address, kB4.address, flags, virtual_link);
  }
  void make_partial() {
    store_be16(datagram, 6,
               wire::fold(wire::pseudo_header(kA4.address, kB4.address, Protocol::udp, datagram.size())));
  }
};

TEST_F(JudgeChecksum, RightAndWrong) {
  EXPECT_EQ(judge(0, false), ChecksumVerdict::accepted);
  datagram.back() ^= std::byte{1};
  EXPECT_EQ(judge(0, false), ChecksumVerdict::wrong);
  EXPECT_EQ(judge(0, true), ChecksumVerdict::wrong);
}

TEST_F(JudgeChecksum, PartialIsAcceptedFromAVirtualLinkOnly) {
  make_partial();
  EXPECT_EQ(judge(0, false), ChecksumVerdict::wrong);
  EXPECT_EQ(judge(0, true), ChecksumVerdict::accepted_partial);
}

TEST_F(JudgeChecksum, TheDevicesWordIsEnough) {
  datagram.back() ^= std::byte{1};
  EXPECT_EQ(judge(kChecksumVerified, false), ChecksumVerdict::accepted);
  EXPECT_EQ(judge(kChecksumPartial, false), ChecksumVerdict::accepted);
}

TEST_F(JudgeChecksum, NoneIsFineOverIpv4AndMissingOverIpv6) {
  store_be16(datagram, 6, 0);
  EXPECT_EQ(judge(0, false), ChecksumVerdict::accepted);
  Packet six = testkit::udp(kA6, kB6, pattern(10));
  store_be16(six, 6, 0);
  EXPECT_EQ(judge_udp_checksum(*wire::UdpView::parse(six), kA6.address, kB6.address, 0, true),
            ChecksumVerdict::missing_v6);
}

TEST(TokenBucket, GivesSoManyASecondAndSavesUpABurst) {
  TokenBucket bucket(10, 3);
  Instant now{1'000'000'000};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
  now = now + 100ms - 1ns;
  EXPECT_FALSE(bucket.take(now));
  now = now + 1ns;
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
  now = now + 3600s;  // no more than the burst is saved
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
}

TEST(TokenBucket, OfNoneGivesNone) { EXPECT_FALSE(TokenBucket(0, 10).take(Instant{1'000'000'000})); }

wire::IpPacket packet_to_b() {
  wire::IpPacket packet;
  packet.source = kA4.address;
  packet.destination = kB4.address;
  return packet;
}

TEST(MaySendError, AboutAnOrdinaryPacketOnly) {
  EXPECT_TRUE(may_send_error(packet_to_b(), false));
  EXPECT_FALSE(may_send_error(packet_to_b(), true));
  wire::IpPacket packet = packet_to_b();
  packet.destination = IpAddress::v4(224, 0, 0, 1);
  EXPECT_FALSE(may_send_error(packet, false));
  EXPECT_TRUE(may_send_error(packet, false, true));
  packet = packet_to_b();
  packet.destination = IpAddress::v4(0xffffffff);
  EXPECT_FALSE(may_send_error(packet, false));
  for (const char* source : {"0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255"}) {
    packet = packet_to_b();
    packet.source = *IpAddress::parse(source);
    EXPECT_FALSE(may_send_error(packet, false)) << source;
  }
  packet = packet_to_b();
  packet.fragment = wire::FragmentInfo{1, 0, true};
  EXPECT_TRUE(may_send_error(packet, false));
  packet.fragment->offset = 8;
  EXPECT_FALSE(may_send_error(packet, false));
}

TEST(MaySendError, NeverAboutAnError) {
  Packet message(8);
  wire::IpPacket packet = packet_to_b();
  packet.protocol = Protocol::icmp;
  packet.payload = message;
  for (const unsigned type : {3u, 4u, 5u, 11u, 12u, 99u}) {
    store_u8(message, 0, static_cast<std::uint8_t>(type));
    EXPECT_FALSE(may_send_error(packet, false)) << type;
  }
  store_u8(message, 0, 8);
  EXPECT_TRUE(may_send_error(packet, false));
  packet.version = 6;
  packet.source = kA6.address;
  packet.destination = kB6.address;
  packet.protocol = Protocol::icmpv6;
  for (const unsigned type : {1u, 2u, 3u, 4u, 127u}) {
    store_u8(message, 0, static_cast<std::uint8_t>(type));
    EXPECT_FALSE(may_send_error(packet, false)) << type;
  }
  store_u8(message, 0, 128);
  EXPECT_TRUE(may_send_error(packet, false));
}

TEST(QuoteLength, KeepsTheErrorBelowTheLimit) {
  const Packet header(20), small(100), large(1400);
  wire::IpPacket packet = packet_to_b();
  packet.header = header;
  packet.payload = small;
  EXPECT_EQ(quote_length(packet), 120u);
  packet.payload = large;
  EXPECT_EQ(quote_length(packet), 548u);
  packet.version = 6;
  EXPECT_EQ(quote_length(packet), 1232u);
}

// An ICMP unreachable about a datagram from A to B, as B or a router on the way would send it.
Packet unreachable(std::uint8_t code, std::uint16_t mtu, std::size_t quote = 28) {
  const Packet datagram =
      testkit::ip({.source = kA4.address, .destination = kB4.address}, testkit::udp(kA4, kB4, pattern(100)));
  Packet message(8);
  store_u8(message, 0, 3);
  store_u8(message, 1, code);
  store_be16(message, 6, mtu);
  message.insert(message.end(), datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(quote));
  return message;
}

TEST(ReadIcmpError, NamesTheFlowFromOurSide) {
  const Packet message = unreachable(3, 0);
  const auto error = read_icmp_error(*wire::IcmpView::parse(message));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, IcmpError::Kind::port_unreachable);
  EXPECT_EQ(error->flow, (FlowKey{Protocol::udp, kA4, kB4}));
  EXPECT_TRUE(error->hard());
}

TEST(ReadIcmpError, TellsTheCodesApart) {
  using Kind = IcmpError::Kind;
  const std::pair<std::uint8_t, Kind> codes[] = {
      {0, Kind::host_unreachable}, {1, Kind::host_unreachable}, {2, Kind::protocol_unreachable},
      {3, Kind::port_unreachable}, {4, Kind::too_big},          {13, Kind::prohibited}};
  for (const auto& [code, kind] : codes) {
    const Packet message = unreachable(code, 1400);
    const auto error = read_icmp_error(*wire::IcmpView::parse(message));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind, kind) << int{code};
    EXPECT_EQ(error->mtu, kind == Kind::too_big ? 1400u : 0u);
  }
}

TEST(ReadIcmpError, RefusesWhatIsCutOffOrNoError) {
  const Packet cut = unreachable(3, 0, 27);
  EXPECT_EQ(read_icmp_error(*wire::IcmpView::parse(cut)).error(), DropReason::icmp_bad_quote);
  Packet redirect = unreachable(3, 0);
  store_u8(redirect, 0, 5);
  EXPECT_EQ(read_icmp_error(*wire::IcmpView::parse(redirect)).error(), DropReason::icmp_ignored);
  Packet other = unreachable(3, 0);
  store_u8(other, 8 + 9, 47);  // quotes GRE
  EXPECT_EQ(read_icmp_error(*wire::IcmpView::parse(other)).error(), DropReason::icmp_unmatched);
}

TEST(FragmentPlan, CoversThePayloadInUnitsOfEight) {
  for (const std::uint32_t mtu : {68u, 552u, 576u, 1280u, 1500u, 9000u}) {
    for (const std::uint32_t header : {20u, 48u}) {
      if (mtu < header + 8) continue;
      for (const std::uint32_t length : {1u, 8u, 1472u, 1473u, 1480u, 1481u, 2960u, 65515u}) {
        const FragmentPlan plan(length, mtu, header);
        std::uint32_t at = 0;
        for (std::uint32_t i = 0; i < plan.count(); ++i) {
          const FragmentPiece piece = plan.piece(i);
          EXPECT_EQ(piece.offset, at);
          EXPECT_GT(piece.length, 0u);
          EXPECT_LE(piece.length + header, mtu);
          EXPECT_EQ(piece.more, i + 1 < plan.count());
          EXPECT_TRUE(!piece.more || piece.length % 8 == 0);
          at += piece.length;
        }
        EXPECT_EQ(at, length);
      }
    }
  }
}

TEST(Identification, DiffersFromDatagramToDatagramAndFromKeyToKey) {
  IdentificationSource source({1, 2}), other({3, 4});
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(source.next(kA4.address, kB4.address) & 0xffff);
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_NE(IdentificationSource({1, 2}).next(kA4.address, kB4.address),
            other.next(kA4.address, kB4.address));
}

}  // namespace
}  // namespace netchannel::proto
