// The virtio-net header alone, without a TAP: what is believed of a received one, what is said about a frame
// that is sent, and that neither is said or believed against the frame.
#include "device/bulk/vnet_header.hpp"

#include <bit>
#include <cstring>

#include "bulk_lab.hpp"
#include "device/bulk/uapi.hpp"

namespace netchannel::device {
namespace {

using testkit::pattern;
using uapi::VirtioNetHeader;

const testkit::MacPair kMacs{kOurMac, kPeerMac};
constexpr std::uint32_t kMtu = 1500;
constexpr std::uint16_t kSegment = 1400;

Packet udp_of(std::size_t payload, bool v6 = false) {
  const Endpoint ours{v6 ? kOurV6 : kOurV4, 7000}, peer{v6 ? kPeerV6 : kPeerV4, 5000};
  return testkit::udp_frame(kMacs, peer, ours, pattern(payload));
}

// A TCP header of `header` bytes before the payload; checksums are nobody's business here.
Packet tcp_of(std::size_t payload, bool v6 = false, std::size_t header = 20, std::uint8_t flags = 0x10) {
  Packet segment = pattern(header + payload);
  segment[12] = static_cast<std::byte>(header / 4 << 4);
  segment[13] = static_cast<std::byte>(flags);
  const testkit::IpFields fields{
      .source = v6 ? kPeerV6 : kPeerV4, .destination = v6 ? kOurV6 : kOurV4, .protocol = 6};
  return testkit::ethernet(kMacs, v6 ? testkit::kIpv6 : testkit::kIpv4, testkit::ip(fields, segment));
}

VnetHeader raw(const VirtioNetHeader& header) { return std::bit_cast<VnetHeader>(header); }

// As the kernel writes it for a super-frame of UDP over IPv4.
VirtioNetHeader honest_udp() {
  return {.flags = uapi::kNeedsChecksum,
          .gso_type = uapi::kGsoUdpL4,
          .hdr_len = 42,
          .gso_size = kSegment,
          .csum_start = 34,
          .csum_offset = 6,
          .num_buffers = 0};
}

VirtioNetHeader honest_tcp() {
  VirtioNetHeader header = honest_udp();
  header.gso_type = uapi::kGsoTcp4;
  header.hdr_len = 54;
  header.csum_offset = 16;
  return header;
}

void expect_bad(const VirtioNetHeader& header, const Packet& frame) {
  const auto got = parse_vnet_header(raw(header), frame);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), DropReason::device_bad_vnet_header);
}

TEST(VnetHeaderIn, ANakedFrameHasNothingToSay) {
  EXPECT_EQ(parse_vnet_header(raw({}), udp_of(100)), FrameOffload{});
  EXPECT_EQ(parse_vnet_header(raw({}), pattern(3)), FrameOffload{}) << "what it is, is the stack's business";
}

TEST(VnetHeaderIn, AValidatedChecksumIsVerified) {
  const auto got = parse_vnet_header(raw({.flags = uapi::kDataValid}), udp_of(100));
  EXPECT_EQ(got, (FrameOffload{.flags = kChecksumVerified}));
}

TEST(VnetHeaderIn, APartialChecksumComesWithThePlaceOfItsHeader) {
  for (const bool v6 : {false, true}) {
    const auto at = static_cast<std::uint16_t>(v6 ? 54 : 34);
    const VirtioNetHeader udp{.flags = uapi::kNeedsChecksum, .csum_start = at, .csum_offset = 6};
    EXPECT_EQ(parse_vnet_header(raw(udp), udp_of(100, v6)),
              (FrameOffload{.flags = kChecksumPartial, .l4_offset = at}));
    const VirtioNetHeader tcp{.flags = uapi::kNeedsChecksum, .csum_start = at, .csum_offset = 16};
    EXPECT_EQ(parse_vnet_header(raw(tcp), tcp_of(0, v6)),
              (FrameOffload{.flags = kChecksumPartial, .l4_offset = at}));
  }
}

TEST(VnetHeaderIn, ASuperFrameComesWithItsSegmentSize) {
  EXPECT_EQ(parse_vnet_header(raw(honest_udp()), udp_of(61'600)),
            (FrameOffload{.flags = kChecksumPartial, .segment_size = kSegment, .l4_offset = 34}));
  EXPECT_EQ(parse_vnet_header(raw(honest_tcp()), tcp_of(61'600)),
            (FrameOffload{.flags = kChecksumPartial, .segment_size = kSegment, .l4_offset = 34}));
  VirtioNetHeader tcp6 = honest_tcp();
  tcp6.gso_type = uapi::kGsoTcp6 | uapi::kGsoEcn;
  tcp6.csum_start = 54;
  EXPECT_EQ(parse_vnet_header(raw(tcp6), tcp_of(61'600, true)),
            (FrameOffload{.flags = kChecksumPartial, .segment_size = kSegment, .l4_offset = 54}));
}

TEST(VnetHeaderIn, ASuperFrameThatTheNicPutTogetherIsVerified) {
  VirtioNetHeader lro = honest_tcp();
  lro.flags = uapi::kDataValid;
  EXPECT_EQ(parse_vnet_header(raw(lro), tcp_of(5000)),
            (FrameOffload{.flags = kChecksumVerified, .segment_size = kSegment, .l4_offset = 34}));
}

TEST(VnetHeaderIn, OneSegmentIsNoSuperFrame) {
  const auto one = parse_vnet_header(raw(honest_udp()), udp_of(kSegment));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->segment_size, 0);
  const auto two = parse_vnet_header(raw(honest_udp()), udp_of(kSegment + 1));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->segment_size, kSegment);
}

TEST(VnetHeaderIn, ExtensionHeadersAndOptionsAreSteppedOver) {
  testkit::IpFields fields{.source = kPeerV4, .destination = kOurV4};
  fields.options = Packet(40, std::byte{1});
  const Packet datagram = testkit::udp({kPeerV4, 5000}, {kOurV4, 7000}, pattern(5000));
  VirtioNetHeader header = honest_udp();
  header.csum_start = 74;
  EXPECT_TRUE(parse_vnet_header(raw(header),
                                testkit::ethernet(kMacs, testkit::kIpv4, testkit::ip(fields, datagram))));

  Packet options(16, std::byte{0});
  options[0] = std::byte{17};
  options[1] = std::byte{1};
  const Packet datagram6 = testkit::udp({kPeerV6, 5000}, {kOurV6, 7000}, pattern(5000));
  options.insert(options.end(), datagram6.begin(), datagram6.end());
  header.csum_start = 54 + 16;
  const Packet frame =
      testkit::ethernet(kMacs, testkit::kIpv6,
                        testkit::ip({.source = kPeerV6, .destination = kOurV6, .protocol = 60}, options));
  const auto got = parse_vnet_header(raw(header), frame);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->l4_offset, 70);
}

TEST(VnetHeaderIn, ASegmentSizeOfZeroIsALie) {
  VirtioNetHeader header = honest_udp();
  header.gso_size = 0;
  expect_bad(header, udp_of(5000));
}

TEST(VnetHeaderIn, AHeaderLengthPastTheFrameIsALie) {
  VirtioNetHeader header = honest_udp();
  const Packet frame = udp_of(5000);
  header.hdr_len = static_cast<std::uint16_t>(frame.size());
  EXPECT_TRUE(parse_vnet_header(raw(header), frame)) << "a linear frame is all header";
  ++header.hdr_len;
  expect_bad(header, frame);
  header.hdr_len = 0xffff;
  expect_bad(header, frame);
}

TEST(VnetHeaderIn, AChecksumPlaceThatIsNotTheTransportsIsALie) {
  for (const std::uint16_t start : std::initializer_list<std::uint16_t>{0, 14, 33, 35, 5041, 5042, 0xffff}) {
    VirtioNetHeader header = honest_udp();
    header.csum_start = start;
    expect_bad(header, udp_of(5000));
  }
  for (const std::uint16_t offset : std::initializer_list<std::uint16_t>{0, 5, 7, 16, 5000, 0xffff}) {
    VirtioNetHeader header = honest_udp();
    header.csum_offset = offset;
    expect_bad(header, udp_of(5000));
  }
}

TEST(VnetHeaderIn, ATypeOfAnotherProtocolVersionOrUnknownIsALie) {
  for (int type = 1; type < 128; ++type) {
    VirtioNetHeader header = honest_udp();
    header.gso_type = static_cast<std::uint8_t>(type);
    if (type != uapi::kGsoUdpL4) expect_bad(header, udp_of(5000));
  }
  VirtioNetHeader tcp = honest_tcp();
  tcp.gso_type = uapi::kGsoTcp6;
  expect_bad(tcp, tcp_of(5000));
}

TEST(VnetHeaderIn, WhatIsNeitherTcpNorUdpHasNoChecksumToComplete) {
  const Packet arp =
      testkit::arp({.sender_mac = kPeerMac, .sender = kPeerV4, .target_mac = {}, .target = kOurV4});
  VirtioNetHeader header{.flags = uapi::kNeedsChecksum, .csum_start = 34, .csum_offset = 6};
  expect_bad(header, testkit::ethernet(kMacs, testkit::kArp, arp));
  expect_bad(header,
             testkit::ethernet(kMacs, testkit::kIpv4, testkit::icmp_echo(kPeerV4, kOurV4, {}, pattern(100))));
}

TEST(VnetHeaderIn, AnyCutOfAFrameBeforeItsPayloadIsALie) {
  for (const bool v6 : {false, true}) {
    VirtioNetHeader udp{.flags = uapi::kNeedsChecksum,
                        .csum_start = static_cast<std::uint16_t>(v6 ? 54 : 34),
                        .csum_offset = 6};
    const Packet frame = udp_of(20, v6);
    for (std::size_t size = 0; size <= frame.size(); ++size) {
      const bool whole = size >= (v6 ? 62u : 42u);
      EXPECT_EQ(parse_vnet_header(raw(udp), Bytes(frame).first(size)).has_value(), whole) << size;
    }
    VirtioNetHeader tcp = udp;
    tcp.csum_offset = 16;
    const Packet segment = tcp_of(20, v6, 60);
    for (std::size_t size = 0; size <= segment.size(); ++size) {
      const bool whole = size >= (v6 ? 114u : 94u);
      EXPECT_EQ(parse_vnet_header(raw(tcp), Bytes(segment).first(size)).has_value(), whole) << size;
    }
  }
}

TEST(VnetHeaderIn, ATcpHeaderLengthBelowFiveWordsIsALie) {
  Packet frame = tcp_of(5000);
  frame[34 + 12] = std::byte{0x40};
  expect_bad(honest_tcp(), frame);
}

TEST(VnetHeaderIn, AHeaderOfAnotherSizeIsNone) {
  const VnetHeader header{};
  EXPECT_FALSE(parse_vnet_header(Bytes(header).first(10), udp_of(1)));
}

VirtioNetHeader said(const Outgoing& out, std::uint32_t mtu = kMtu) {
  const auto header =
      make_vnet_header({.front = out.frame,
                        .bytes = out.frame.size(),
                        .offload = {out.meta.flags, out.meta.segment_size, out.meta.l4_offset}},
                       mtu);
  EXPECT_TRUE(header) << (header ? "" : to_string(header.error()));
  return std::bit_cast<VirtioNetHeader>(header.value_or(VnetHeader{}));
}

DropReason refusal(const Outgoing& out, std::uint32_t mtu = kMtu) {
  const auto header =
      make_vnet_header({.front = out.frame,
                        .bytes = out.frame.size(),
                        .offload = {out.meta.flags, out.meta.segment_size, out.meta.l4_offset}},
                       mtu);
  return header ? DropReason::kCount : header.error();
}

TEST(VnetHeaderOut, AFinishedFrameNeedsNothing) {
  const VnetHeader nothing{};
  EXPECT_EQ(raw(said({udp_of(100), {}})), nothing);
  EXPECT_EQ(raw(said({pattern(60), {}})), nothing) << "whatever it is";
}

TEST(VnetHeaderOut, APartialChecksumIsNamed) {
  const VirtioNetHeader udp = said(partial(udp_of(100)));
  EXPECT_EQ(udp.flags, uapi::kNeedsChecksum);
  EXPECT_EQ(udp.csum_start, 34);
  EXPECT_EQ(udp.csum_offset, 6);
  EXPECT_EQ(udp.gso_type, uapi::kGsoNone);
  const VirtioNetHeader tcp = said(partial(tcp_of(100, true)));
  EXPECT_EQ(tcp.csum_start, 54);
  EXPECT_EQ(tcp.csum_offset, 16);
}

TEST(VnetHeaderOut, ASuperFrameIsNamedByItsProtocolAndVersion) {
  const VirtioNetHeader udp = said(partial(udp_of(61'600), kSegment));
  EXPECT_EQ(udp.gso_type, uapi::kGsoUdpL4);
  EXPECT_EQ(udp.gso_size, kSegment);
  EXPECT_EQ(udp.hdr_len, 42);
  EXPECT_EQ(said(partial(udp_of(61'600, true), kSegment)).gso_type, uapi::kGsoUdpL4);
  const VirtioNetHeader tcp = said(partial(tcp_of(61'600, false, 32), 1448));
  EXPECT_EQ(tcp.gso_type, uapi::kGsoTcp4);
  EXPECT_EQ(tcp.hdr_len, 66);
  EXPECT_EQ(said(partial(tcp_of(61'600, true), kSegment)).gso_type, uapi::kGsoTcp6);
}

TEST(VnetHeaderOut, CwrGoesWithTheFirstSegmentOnly) {
  EXPECT_EQ(said(partial(tcp_of(5000, false, 20, 0x90), kSegment)).gso_type, uapi::kGsoTcp4 | uapi::kGsoEcn);
}

TEST(VnetHeaderOut, OneSegmentIsNoSuperFrame) {
  EXPECT_EQ(said(partial(udp_of(kSegment), kSegment)).gso_type, uapi::kGsoNone);
  EXPECT_EQ(said(partial(udp_of(kSegment + 1), kSegment)).gso_type, uapi::kGsoUdpL4);
}

TEST(VnetHeaderOut, WhatDoesNotFitTheMtuIsTooLarge) {
  EXPECT_EQ(refusal({udp_of(1472), {}}), DropReason::kCount);
  EXPECT_EQ(refusal({udp_of(1473), {}}), DropReason::device_frame_too_large);
  EXPECT_EQ(refusal(partial(udp_of(1473))), DropReason::device_frame_too_large);
  EXPECT_EQ(refusal(partial(udp_of(5000), 1472)), DropReason::kCount);
  EXPECT_EQ(refusal(partial(udp_of(5000), 1473)), DropReason::device_frame_too_large);
  EXPECT_EQ(refusal(partial(udp_of(1473), 1473)), DropReason::device_frame_too_large);
  EXPECT_EQ(refusal(partial(udp_of(5000), 1473), 9000), DropReason::kCount);
}

TEST(VnetHeaderOut, ASuperFrameWithAFinishedChecksumCannotBe) {
  Outgoing out = partial(udp_of(5000), kSegment);
  out.meta.flags = 0;
  EXPECT_EQ(refusal(out), DropReason::device_bad_descriptor);
}

TEST(VnetHeaderOut, ATransportOffsetThatIsNotTheFramesIsRefused) {
  Outgoing out = partial(udp_of(5000), kSegment);
  for (const std::uint16_t at : std::initializer_list<std::uint16_t>{0, 33, 35, 54, 0xffff}) {
    out.meta.l4_offset = at;
    EXPECT_EQ(refusal(out), DropReason::device_bad_descriptor) << at;
  }
  Outgoing arp{testkit::ethernet(kMacs, testkit::kArp, pattern(28)), {}};
  arp.meta.flags = kChecksumPartial;
  arp.meta.l4_offset = 34;
  EXPECT_EQ(refusal(arp), DropReason::device_bad_descriptor);
}

TEST(VnetHeaderOut, WhatIsSaidOfAFrameIsBelievedOfIt) {
  for (const bool v6 : {false, true}) {
    for (const auto& frame : {udp_of(30'000, v6), tcp_of(30'000, v6, 32)}) {
      const Outgoing out = partial(frame, kSegment);
      EXPECT_EQ(parse_vnet_header(raw(said(out)), out.frame),
                (FrameOffload{
                    .flags = kChecksumPartial, .segment_size = kSegment, .l4_offset = out.meta.l4_offset}));
    }
  }
}

}  // namespace
}  // namespace netchannel::device
