// Packets as Linux 6 has sent them on a virtual Ethernet with checksum offload off: every field that a view
// reads, the checksum, and the same bytes again from the repr where the repr keeps everything.
#include <gtest/gtest.h>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/packet.hpp"
#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;
using test::operator+;
using test::hex;

template <class Repr>
Buffer emitted(const Repr& repr) {
  Buffer out(repr.size());
  repr.emit(out);
  return out;
}

Buffer copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

TEST(KnownPackets, ArpRequest) {
  const Buffer bytes =
      hex("ffffffffffff 020000000001 0806"
          "0001 0800 06 04 0001 020000000001 0a090002 000000000000 0a090001");
  const auto ethernet = EthernetView::parse(bytes).value();
  EXPECT_TRUE(ethernet.destination().is_broadcast());
  EXPECT_EQ(ethernet.source(), test::kOurMac);
  ASSERT_EQ(ethernet.ether_type(), EtherType::arp);
  const auto arp = ArpView::parse(ethernet.payload()).value();
  EXPECT_EQ(arp.operation(), ArpOperation::request);
  EXPECT_EQ(arp.sender_mac(), test::kOurMac);
  EXPECT_EQ(arp.sender(), test::kPeer4);
  EXPECT_TRUE(arp.target_mac().is_zero());
  EXPECT_EQ(arp.target(), test::kOur4);
  EXPECT_EQ(emitted(EthernetRepr::from(ethernet)) + emitted(ArpRepr::from(arp)), bytes);
}

TEST(KnownPackets, UdpOverIpv4) {
  const Buffer bytes =
      hex("020000000002 020000000001 0800"
          "4500 0021 f4f8 4000 40 11 31bf 0a090001 0a090002"
          "a570 270f 000d db6d 68656c6c6f");
  const auto ip = Ipv4View::parse(Bytes(bytes).subspan(14)).value();
  EXPECT_TRUE(verify_checksum(ip));
  EXPECT_EQ(ip.total_length(), 33);
  EXPECT_EQ(ip.identification(), 0xf4f8);
  EXPECT_TRUE(ip.dont_fragment());
  EXPECT_FALSE(ip.is_fragment());
  EXPECT_EQ(ip.ttl(), 64);
  EXPECT_EQ(ip.protocol(), Protocol::udp);
  EXPECT_EQ(ip.source(), test::kOur4);
  EXPECT_EQ(ip.destination(), test::kPeer4);
  const auto udp = UdpView::parse(ip.payload()).value();
  EXPECT_EQ(udp.source_port(), 0xa570);
  EXPECT_EQ(udp.destination_port(), 9999);
  EXPECT_EQ(copy(udp.payload()), hex("68656c6c6f"));
  EXPECT_TRUE(check_checksum(udp, ip.source(), ip.destination()));
  EXPECT_FALSE(has_partial_checksum(udp, ip.source(), ip.destination()));

  EXPECT_EQ(emitted(Ipv4Repr::from(ip)), copy(ip.header()));
  const UdpRepr repr = UdpRepr::from(udp);
  Buffer header(UdpRepr::size());
  PartialSum rest = pseudo_header(ip.source(), ip.destination(), Protocol::udp, repr.datagram_size());
  rest.add(checksum_fast(udp.payload()));
  repr.emit(header, rest);
  EXPECT_EQ(header, copy(udp.datagram().first(8)));
}

TEST(KnownPackets, UdpOverIpv6) {
  const Buffer bytes =
      hex("600ad002 000e 11 40 fd000009000000000000000000000001 fd000009000000000000000000000002"
          "a5fe 270f 000e f4a5 68656c6c6f36");
  const auto ip = Ipv6View::parse(bytes).value();
  EXPECT_EQ(ip.flow_label(), 0xad002u);
  EXPECT_EQ(ip.traffic_class(), 0);
  EXPECT_EQ(ip.payload_length(), 14);
  EXPECT_EQ(ip.hop_limit(), 64);
  EXPECT_EQ(ip.protocol(), Protocol::udp);
  EXPECT_EQ(ip.header_length(), 40u);
  EXPECT_FALSE(ip.fragment());
  EXPECT_EQ(emitted(Ipv6Repr::from(ip)), test::cut(bytes, 40));
  const auto udp = UdpView::parse(ip.payload()).value();
  EXPECT_TRUE(check_checksum(udp, ip.source(), ip.destination()));
  EXPECT_EQ(copy(udp.payload()), hex("68656c6c6f36"));
}

TEST(KnownPackets, TcpSyn) {
  const Buffer bytes =
      hex("4500 003c b26c 4000 40 06 743b 0a090001 0a090002"
          "8ee0 1e61 e7a85db5 00000000 a002 faf0 b61c 0000"
          "020405b4 0402 080a0ae6855500000000 01 03030a");
  const auto ip = Ipv4View::parse(bytes).value();
  const auto tcp = TcpView::parse(ip.payload()).value();
  EXPECT_TRUE(verify_checksum(tcp, ip.source(), ip.destination()));
  EXPECT_EQ(tcp.source_port(), 0x8ee0);
  EXPECT_EQ(tcp.destination_port(), 7777);
  EXPECT_EQ(tcp.sequence(), 0xe7a85db5u);
  EXPECT_EQ(tcp.acknowledgment(), 0u);
  EXPECT_EQ(tcp.flags(), TcpFlags{TcpFlags::kSyn});
  EXPECT_EQ(tcp.window(), 0xfaf0);
  EXPECT_EQ(tcp.sequence_length(), 1u);
  EXPECT_TRUE(tcp.payload().empty());
  const auto [options, malformed] = parse_options(tcp);
  EXPECT_FALSE(malformed);
  EXPECT_EQ(options.mss, 1460);
  EXPECT_TRUE(options.sack_permitted);
  EXPECT_EQ(options.timestamps, (TcpTimestamps{0x0ae68555, 0}));
  EXPECT_EQ(options.window_scale, 10);
  EXPECT_TRUE(options.sack.empty());

  const TcpRepr repr = TcpRepr::from(tcp);
  Buffer header(repr.size());
  repr.emit(header, pseudo_header(ip.source(), ip.destination(), Protocol::tcp, header.size()));
  EXPECT_EQ(header, copy(tcp.segment()));
}

TEST(KnownPackets, TcpDataWithTimestamps) {
  const Buffer bytes =
      hex("4500 0037 b26e 4000 40 06 743e 0a090001 0a090002"
          "8ee0 1e61 e7a85db6 c80272c2 8018 003f 2bb0 0000 0101080a0ae6855515119f99 616263");
  const auto ip = Ipv4View::parse(bytes).value();
  const auto tcp = TcpView::parse(ip.payload()).value();
  EXPECT_TRUE(verify_checksum(tcp, ip.source(), ip.destination()));
  EXPECT_EQ(tcp.flags(), TcpFlags{TcpFlags::kPsh | TcpFlags::kAck});
  EXPECT_EQ(tcp.sequence_length(), 3u);
  EXPECT_EQ(copy(tcp.payload()), hex("616263"));
  const TcpRepr repr = TcpRepr::from(tcp);
  EXPECT_EQ(repr.options.timestamps, (TcpTimestamps{0x0ae68555, 0x15119f99}));
  Buffer header(repr.size());
  PartialSum rest = pseudo_header(ip.source(), ip.destination(), Protocol::tcp, tcp.segment().size());
  rest.add(checksum_fast(tcp.payload()));
  repr.emit(header, rest);
  EXPECT_EQ(header, copy(tcp.segment().first(32)));
}

TEST(KnownPackets, IcmpEchoReply) {
  const Buffer bytes = hex("4500 0020 862f 0000 40 01 e099 0a090002 0a090001 0000 0ae6 1234 0001 70717273");
  const auto ip = Ipv4View::parse(bytes).value();
  EXPECT_TRUE(verify_checksum(ip));
  const auto icmp = IcmpView::parse(ip.payload()).value();
  EXPECT_TRUE(verify_checksum(icmp));
  EXPECT_EQ(icmp.type(), IcmpType::echo_reply);
  EXPECT_EQ(icmp.identifier(), 0x1234);
  EXPECT_EQ(icmp.sequence(), 1);
  EXPECT_FALSE(icmp.is_error());
  Buffer header(IcmpRepr::size());
  IcmpRepr::echo_reply(0x1234, 1).emit(header, checksum_fast(icmp.payload()));
  EXPECT_EQ(header, copy(icmp.message().first(8)));
}

TEST(KnownPackets, Icmpv6EchoReply) {
  const Buffer bytes =
      hex("60055b82 000c 3a 40 fd000009000000000000000000000002 fd000009000000000000000000000001"
          "8100 8f88 1234 0001 70717273");
  const auto ip = Ipv6View::parse(bytes).value();
  const auto icmp = Icmpv6View::parse(ip.payload()).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source(), ip.destination()));
  EXPECT_EQ(icmp.type(), Icmpv6Type::echo_reply);
  EXPECT_EQ(icmp.identifier(), 0x1234);
  Buffer header(Icmpv6Repr::size());
  PartialSum rest = pseudo_header(ip.source(), ip.destination(), Protocol::icmpv6, icmp.message().size());
  rest.add(checksum_fast(icmp.payload()));
  Icmpv6Repr::echo_reply(0x1234, 1).emit(header, rest);
  EXPECT_EQ(header, copy(icmp.message().first(8)));
}

TEST(KnownPackets, IcmpPortUnreachableQuotesOurDatagram) {
  const Buffer bytes = hex(
      "020000000001 020000000002 0800 45c0 003d 4f75 0000 40 01 1677 0a090002 0a090001"
      "0303 1130 00000000 4500 0021 f4f8 4000 40 11 31bf 0a090001 0a090002 a570 270f 000d db6d 68656c6c6f");
  const auto ip = parse_ip(Bytes(bytes).subspan(14)).value();
  const auto icmp = IcmpView::parse(ip.payload).value();
  EXPECT_TRUE(verify_checksum(icmp));
  EXPECT_TRUE(icmp.is_error());
  EXPECT_EQ(icmp.code(), IcmpUnreachable::kPort);
  const auto quoted = QuotedPacket::parse_v4(icmp.payload()).value();
  const FlowKey ours{Protocol::udp, {test::kOur4, 0xa570}, {test::kPeer4, 9999}};
  EXPECT_EQ(quoted.flow, ours);
  EXPECT_EQ(quoted.udp_length, 13);
  const auto flow = flow_of(bytes).value();
  EXPECT_EQ(flow.kind, PacketKind::icmp_error);
  EXPECT_EQ(flow.key, ours);
  EXPECT_EQ(flow.l3_offset, 14);
  EXPECT_EQ(flow.l4_offset, 34);
}

TEST(KnownPackets, Icmpv6PortUnreachableQuotesOurDatagram) {
  const Buffer bytes =
      hex("020000000001 020000000002 86dd"
          "60088f7f 003e 3a 40 fd000009000000000000000000000002 fd000009000000000000000000000001"
          "0104 c330 00000000"
          "600ad002 000e 11 40 fd000009000000000000000000000001 fd000009000000000000000000000002"
          "a5fe 270f 000e f4a5 68656c6c6f36");
  const auto ip = parse_ip(Bytes(bytes).subspan(14)).value();
  const auto icmp = Icmpv6View::parse(ip.payload).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source, ip.destination));
  EXPECT_TRUE(icmp.is_error());
  EXPECT_EQ(icmp.code(), Icmpv6Unreachable::kPort);
  const auto flow = flow_of(bytes).value();
  EXPECT_EQ(flow.kind, PacketKind::icmp_error);
  EXPECT_EQ(flow.key, (FlowKey{Protocol::udp, {test::kOur6, 0xa5fe}, {test::kPeer6, 9999}}));
}

TEST(KnownPackets, NeighbourSolicitation) {
  const Buffer bytes =
      hex("60000000 0020 3a ff fd000009000000000000000000000001 ff0200000000000000000001ff000002"
          "8700 7d85 00000000 fd000009000000000000000000000002 0101 020000000001");
  const auto ip = parse_ip(bytes).value();
  const auto icmp = Icmpv6View::parse(ip.payload).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source, ip.destination));
  const auto asked = NeighbourView::parse(icmp, {ip.source, ip.destination, ip.ttl}).value();
  EXPECT_TRUE(asked.is_solicitation());
  EXPECT_EQ(asked.target(), test::kPeer6);
  EXPECT_EQ(asked.link_layer(), test::kOurMac);
  EXPECT_EQ(ip.destination, solicited_node(asked.target()));
  Buffer out(32);
  NeighbourRepr::from(asked).emit(out, ip.source, ip.destination);
  EXPECT_EQ(out, copy(ip.payload));
}

TEST(KnownPackets, NeighbourAdvertisement) {
  const Buffer bytes =
      hex("60000000 0020 3a ff fd000009000000000000000000000002 fd000009000000000000000000000001"
          "8800 1c7f 60000000 fd000009000000000000000000000002 0201 020000000002");
  const auto ip = parse_ip(bytes).value();
  const auto icmp = Icmpv6View::parse(ip.payload).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source, ip.destination));
  const auto told = NeighbourView::parse(icmp, {ip.source, ip.destination, ip.ttl}).value();
  EXPECT_FALSE(told.is_solicitation());
  EXPECT_FALSE(told.router());
  EXPECT_TRUE(told.solicited());
  EXPECT_TRUE(told.override_flag());
  EXPECT_EQ(told.link_layer(), test::kPeerMac);
  Buffer out(32);
  NeighbourRepr::from(told).emit(out, ip.source, ip.destination);
  EXPECT_EQ(out, copy(ip.payload));
}

TEST(KnownPackets, DuplicateAddressDetectionWithANonce) {
  const Buffer bytes =
      hex("60000000 0020 3a ff 00000000000000000000000000000000 ff0200000000000000000001ff000002"
          "8700 92df 00000000 fd000009000000000000000000000002 0e01589419f56a28");
  const auto ip = parse_ip(bytes).value();
  const auto icmp = Icmpv6View::parse(ip.payload).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source, ip.destination));
  const auto asked = NeighbourView::parse(icmp, {ip.source, ip.destination, ip.ttl}).value();
  EXPECT_FALSE(asked.link_layer());
  EXPECT_TRUE(check_source(ip)) << "no address yet";
}

TEST(KnownPackets, MulticastListenerReportBehindHopByHopOptions) {
  const Buffer bytes =
      hex("333300000016 020000000001 86dd"
          "60000000 0024 00 01 fe80000000000000000000fffe000001 ff020000000000000000000000000016"
          "3a00 0502 0000 0100 8f00 7207 0000 0001 04000000 ff0200000000000000000001ff000001");
  const auto ip = Ipv6View::parse(Bytes(bytes).subspan(14)).value();
  EXPECT_EQ(ip.next_header(), Ipv6NextHeader::kHopByHop);
  EXPECT_EQ(ip.protocol(), Protocol::icmpv6);
  EXPECT_EQ(ip.header_length(), 48u);
  EXPECT_FALSE(ip.unknown_option());
  const auto icmp = Icmpv6View::parse(ip.payload()).value();
  EXPECT_TRUE(verify_checksum(icmp, ip.source(), ip.destination()));
  const auto flow = flow_of(bytes).value();
  EXPECT_EQ(flow.kind, PacketKind::other);
  EXPECT_EQ(flow.l4_offset, 14 + 48);
}

}  // namespace
}  // namespace netchannel::wire
