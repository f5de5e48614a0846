#include "netchannel/wire/packet.hpp"

#include <gtest/gtest.h>

#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;
using test::operator+;
using test::hex;

FlowInfo flow(EtherType type, const Buffer& l3, const VlanTags& tags = {}) {
  return flow_of(test::frame(type, l3, tags)).value();
}

TEST(ParseIp, LinkPaddingIsNotPayload) {
  const Buffer l3 = test::udp4(hex("01")) + Buffer(17, std::byte{0xee});
  EXPECT_EQ(parse_ip(l3).value().payload.size(), 9u);
  const Buffer six = test::udp6(hex("01")) + Buffer(17, std::byte{0xee});
  EXPECT_EQ(parse_ip(six).value().payload.size(), 9u);
}

TEST(ParseIp, TellsTheTypeOfServiceOfBothVersions) {
  Ipv4Repr four;
  four.tos = 0xb9;
  four.ttl = 7;
  const Buffer l3 = test::ipv4(Protocol::udp, test::filler(8), four);
  EXPECT_EQ(parse_ip(l3).value().ecn(), Ecn::ect1);
  EXPECT_EQ(parse_ip(l3).value().tos, 0xb9);
  EXPECT_EQ(parse_ip(l3).value().ttl, 7);
  EXPECT_EQ(Ipv4View::parse(l3).value().dscp(), 46);
  Ipv6Repr six;
  six.traffic_class = 0x03;
  six.hop_limit = 9;
  const Buffer l3v6 = test::ipv6(17, test::filler(8), six);
  EXPECT_EQ(parse_ip(l3v6).value().ecn(), Ecn::ce);
  EXPECT_EQ(parse_ip(l3v6).value().ttl, 9);
}

TEST(ParseIp, AnIpv4FragmentTellsItsPlace) {
  Ipv4Repr repr;
  repr.identification = 0xbeef;
  repr.fragment_offset = 1480;
  repr.more_fragments = true;
  const Buffer l3 = test::ipv4(Protocol::udp, test::filler(16), repr);
  const auto packet = parse_ip(l3).value();
  EXPECT_EQ(packet.fragment, (FragmentInfo{0xbeef, 1480, true}));
  EXPECT_EQ(packet.payload.size(), 16u);
}

TEST(ParseIp, AnIpv6FragmentBeginsBehindItsHeader) {
  // Destination options and the transport of a first fragment belong to its payload.
  const Buffer inner = hex("1100 0104 00000000") + test::filler(16);
  Buffer header(8);
  Ipv6FragmentRepr{60, {5, 0, true}}.emit(header);
  const Buffer l3 = test::ipv6(44, header + inner);
  const auto packet = parse_ip(l3).value();
  EXPECT_EQ(packet.fragment, (FragmentInfo{5, 0, true}));
  EXPECT_EQ(packet.protocol, Protocol{60});
  EXPECT_EQ(packet.header_length(), 48u);
  EXPECT_TRUE(std::equal(inner.begin(), inner.end(), packet.payload.begin(), packet.payload.end()));
  const auto chain = walk_ipv6_extensions(60, packet.payload).value();
  EXPECT_EQ(chain.protocol, Protocol::udp);
  EXPECT_EQ(chain.length, 8u);
}

TEST(ParseIp, ALaterIpv6FragmentIsNotReadAsHeaders) {
  Buffer header(8);
  Ipv6FragmentRepr{60, {5, 16, false}}.emit(header);
  const Buffer l3 = test::ipv6(44, header + hex("ffff"));
  const auto packet = parse_ip(l3).value();
  EXPECT_EQ(packet.protocol, Protocol{60});
  EXPECT_EQ(packet.payload.size(), 2u);
}

TEST(ParseIp, Row045_AnAtomicFragmentIsAWholePacket) {
  Buffer header(8);
  Ipv6FragmentRepr{17, {77, 0, false}}.emit(header);
  const Buffer l3 = test::ipv6(44, header + test::filler(8));
  const auto packet = parse_ip(l3).value();
  EXPECT_FALSE(packet.fragment);
  EXPECT_EQ(packet.protocol, Protocol::udp);
  EXPECT_EQ(packet.payload.size(), 8u);
}

TEST(Ipv6, Row042_AnUnknownOptionTellsItsActionAndPlace) {
  const auto unknown = [](const char* options) {
    const Buffer l3 = test::ipv6(0, hex(options) + test::filler(8));
    return Ipv6View::parse(l3).value().unknown_option();
  };
  EXPECT_FALSE(unknown("1100 1e04 00000000"));
  EXPECT_EQ(unknown("1100 5e04 00000000")->action, Ipv6OptionAction::discard);
  EXPECT_EQ(unknown("1100 9e04 00000000")->action, Ipv6OptionAction::report);
  EXPECT_EQ(unknown("1100 de04 00000000")->action, Ipv6OptionAction::report_unless_multicast);
  EXPECT_EQ(unknown("1100 de04 00000000")->pointer, 42u);
  EXPECT_EQ(unknown("1100 0502 0000 de00")->pointer, 46u);
  EXPECT_EQ(unknown("3c00 0104 00000000 1100 de04 00000000")->pointer, 50u);
  EXPECT_EQ(unknown("1100 5e00 de02 0000")->pointer, 42u) << "the first one counts";
}

TEST(Ipv4, OptionsCanBeWalked) {
  Ipv4Repr repr;
  for (const std::byte byte : hex("01 94040000 070304"))
    repr.options.push_back(std::to_integer<std::uint8_t>(byte));
  const Buffer l3 = test::ipv4(Protocol::udp, test::filler(8), repr);
  OptionCursor options = Ipv4View::parse(l3).value().options();
  const auto alert = options.next().value();
  EXPECT_EQ(alert.kind, Ipv4OptionKind::kRouterAlert);
  EXPECT_EQ(alert.data.size(), 2u);
  EXPECT_EQ(options.next().value().kind, Ipv4OptionKind::kRecordRoute);
  EXPECT_FALSE(options.next());
  EXPECT_FALSE(options.malformed());
}

TEST(Ethernet, ATagTellsItsParts) {
  const Buffer bytes = hex("020000000001 020000000002 88a8 b00c 8100 0005 86dd");
  const auto view = EthernetView::parse(bytes).value();
  ASSERT_EQ(view.tags().size(), 2u);
  EXPECT_EQ(view.tags()[0], (VlanTag{EtherType::qinq, 0xb00c}));
  EXPECT_EQ(view.tags()[0].id(), 12);
  EXPECT_EQ(view.tags()[0].priority(), 5);
  EXPECT_EQ(view.tags()[1].id(), 5);
  EXPECT_EQ(view.ether_type(), EtherType::ipv6);
  EXPECT_EQ(view.header_length(), 22u);
}

TEST(FlowOf, LocalIsTheDestination) {
  const FlowInfo four = flow(EtherType::ipv4, test::udp4({}));
  EXPECT_EQ(four.kind, PacketKind::flow);
  EXPECT_EQ(four.key,
            (FlowKey{Protocol::udp, {test::kOur4, test::kOurPort}, {test::kPeer4, test::kPeerPort}}));
  const FlowInfo six = flow(EtherType::ipv6, test::tcp6({TcpFlags::kSyn}, {}));
  EXPECT_EQ(six.key,
            (FlowKey{Protocol::tcp, {test::kOur6, test::kOurPort}, {test::kPeer6, test::kPeerPort}}));
  EXPECT_EQ(six.l4_offset, 54);
}

TEST(FlowOf, HeadersMoveWithTagsAndOptions) {
  Ipv4Repr repr;
  for (int i = 0; i < 8; ++i) repr.options.push_back(1);
  VlanTags tags;
  tags.push_back({EtherType::vlan, 9});
  const FlowInfo info =
      flow(EtherType::ipv4, test::ipv4(Protocol::udp, hex("9c40 1b58 0008 0000"), repr), tags);
  EXPECT_EQ(info.kind, PacketKind::flow);
  EXPECT_EQ(info.l3_offset, 18);
  EXPECT_EQ(info.l4_offset, 18 + 28);
  EXPECT_EQ(info.key.local.port, test::kOurPort);
}

TEST(FlowOf, Row037_AFragmentHasNoPorts) {
  Ipv4Repr repr;
  repr.more_fragments = true;
  const FlowInfo info = flow(EtherType::ipv4, test::ipv4(Protocol::udp, test::filler(16), repr));
  EXPECT_EQ(info.kind, PacketKind::fragment);
  EXPECT_EQ(info.key, (FlowKey{Protocol::udp, {test::kOur4, 0}, {test::kPeer4, 0}}));
}

TEST(FlowOf, EchoAndUnknownProtocolsAreOfAnotherKind) {
  const FlowInfo echo = flow(EtherType::ipv4, test::icmp4(IcmpRepr::echo_request(1, 2), {}));
  EXPECT_EQ(echo.kind, PacketKind::other);
  EXPECT_EQ(echo.key.protocol, Protocol::icmp);
  const FlowInfo sctp = flow(EtherType::ipv4, test::ipv4(Protocol{132}, test::filler(12)));
  EXPECT_EQ(sctp.kind, PacketKind::other);
  const FlowInfo none = flow(EtherType::ipv6, test::ipv6(59, {}));
  EXPECT_EQ(none.kind, PacketKind::other) << "row 48";
}

TEST(FlowOf, IcmpOfTheOtherVersionIsOfAnotherKind) {
  const FlowInfo info = flow(EtherType::ipv4, test::ipv4(Protocol::icmpv6, test::filler(3)));
  EXPECT_EQ(info.kind, PacketKind::other);
}

TEST(FlowOf, AnErrorThatQuotesALaterFragmentNamesNoFlow) {
  Buffer quote = test::patched(test::sent_udp4(), {{6, 0x00}, {7, 0x10}});
  const FlowInfo info = flow(EtherType::ipv4, test::icmp4(IcmpRepr::time_exceeded(1), quote));
  EXPECT_EQ(info.kind, PacketKind::other);
}

TEST(FlowOf, AnErrorThatQuotesEchoNamesNoFlow) {
  Ipv4Repr repr;
  repr.source = test::kOur4;
  repr.destination = test::kPeer4;
  const Buffer quote = test::ipv4(Protocol::icmp, test::filler(8), repr);
  EXPECT_EQ(flow(EtherType::ipv4, test::icmp4(IcmpRepr::unreachable(1), quote)).kind, PacketKind::other);
}

TEST(FlowOf, AnErrorQuotesThroughExtensionHeaders) {
  Ipv6Repr repr;
  repr.source = test::kOur6;
  repr.destination = test::kPeer6;
  const Buffer quote = test::ipv6(60, hex("0600 0104 00000000 1b58 9c40 00c0ffee"), repr);
  const FlowInfo info = flow(EtherType::ipv6, test::icmp6(Icmpv6Repr::packet_too_big(1280), quote));
  EXPECT_EQ(info.kind, PacketKind::icmp_error);
  EXPECT_EQ(info.key,
            (FlowKey{Protocol::tcp, {test::kOur6, test::kOurPort}, {test::kPeer6, test::kPeerPort}}));
  EXPECT_EQ(QuotedPacket::parse_v6(quote).value().tcp_sequence, 0x00c0ffeeu);
}

TEST(FlowOf, ArpIsArp) {
  const FlowInfo info = flow(EtherType::arp, Buffer(28));
  EXPECT_EQ(info.kind, PacketKind::arp);
  EXPECT_EQ(info.l3_offset, 14);
}

TEST(Icmp, Row062_TheMtuIsToldAsItStands) {
  for (const unsigned mtu : {0u, 1u, 67u, 1400u, 65535u}) {
    Buffer out(8);
    IcmpRepr::fragmentation_needed(static_cast<std::uint16_t>(mtu)).emit(out);
    const auto view = IcmpView::parse(out).value();
    EXPECT_EQ(view.mtu(), mtu);
    EXPECT_EQ(view.code(), IcmpUnreachable::kFragmentationNeeded);
  }
  Buffer out(8);
  Icmpv6Repr::packet_too_big(70000).emit(out, {});
  EXPECT_EQ(Icmpv6View::parse(out).value().mtu(), 70000u);
}

TEST(Icmp, EachMessageSaysItsOwn) {
  Buffer out(8);
  IcmpRepr::parameter_problem(21).emit(out);
  EXPECT_EQ(IcmpView::parse(out).value().pointer(), 21);
  EXPECT_TRUE(IcmpView::parse(out).value().is_error());
  IcmpRepr::echo_reply(7, 8).emit(out);
  EXPECT_EQ(IcmpView::parse(out).value().identifier(), 7);
  EXPECT_EQ(IcmpView::parse(out).value().sequence(), 8);
  Icmpv6Repr::parameter_problem(Icmpv6ParameterProblem::kOption, 42).emit(out, {});
  EXPECT_EQ(Icmpv6View::parse(out).value().pointer(), 42u);
  Icmpv6Repr::echo_reply(7, 8).emit(out, {});
  EXPECT_EQ(Icmpv6View::parse(out).value().identifier(), 7);
  EXPECT_FALSE(Icmpv6View::parse(out).value().is_error());
}

TEST(Icmpv6, GroupsOfNeighbourDiscovery) {
  const IpAddress address = IpAddress::parse("fe80::2aa:ff:fe28:9c5a").value();
  EXPECT_EQ(solicited_node(address), IpAddress::parse("ff02::1:ff28:9c5a").value());
  EXPECT_EQ(multicast_mac(solicited_node(address)), (MacAddress{{0x33, 0x33, 0xff, 0x28, 0x9c, 0x5a}}));
}

TEST(Udp, RecognisesAChecksumLeftToTheDevice) {
  for (const bool six : {false, true}) {
    Buffer l3 = six ? test::udp6(test::filler(5)) : test::udp4(test::filler(5));
    const std::size_t at = six ? 40 : 20;
    const IpAddress from = six ? test::kPeer6 : test::kPeer4, to = six ? test::kOur6 : test::kOur4;
    store_be16(l3, at + 6, fold(pseudo_header(from, to, Protocol::udp, 13)));
    const auto view = UdpView::parse(Bytes(l3).subspan(at)).value();
    EXPECT_TRUE(has_partial_checksum(view, from, to));
    EXPECT_FALSE(check_checksum(view, from, to));
  }
}

TEST(Udp, Row052_OnlyTheUdpLengthIsDelivered) {
  const Buffer bytes = hex("9c40 1b58 000a 0000 0102 0304");
  const auto view = UdpView::parse(bytes).value();
  EXPECT_EQ(view.payload().size(), 2u);
}

TEST(Udp, AChecksumOfZeroIsSentAsAllOnes) {
  // Words that sum to 0xffff would make the field 0, which says that there is none.
  Buffer out(8);
  UdpRepr{0, 0xfff7, 0}.emit(out, {});
  EXPECT_EQ(load_be16(out, 6), 0xffff);
}

}  // namespace
}  // namespace netchannel::wire
