// Bad inputs and the right answer to each: one row a packet, named by its number in the project's list of
// them. A row without a reason says that the packet is taken all the same.
#include <gtest/gtest.h>

#include <optional>
#include <ostream>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/packet.hpp"
#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;
using test::operator+;
using test::hex;
using test::patched;

using Why = std::optional<DropReason>;

template <class T>
Why why(const Parsed<T>& parsed) {
  return parsed ? Why{} : Why{parsed.error()};
}

// The ways in. Each takes the bytes that its layer gets.
Why flow(Bytes frame) { return why(flow_of(frame)); }
Why ip(Bytes l3) { return why(parse_ip(l3)); }
Why source(Bytes l3) { return why(check_source(parse_ip(l3).value())); }
Why station(Bytes frame) { return why(check_addresses(EthernetView::parse(frame).value(), test::kOurMac)); }
Why arp(Bytes bytes) { return why(ArpView::parse(bytes)); }

// What a stack does with an IP packet: the transport's view and its checksum.
Why transport(Bytes l3) {
  const auto packet = parse_ip(l3);
  if (!packet) return packet.error();
  if (!verify_header_checksum(*packet)) return DropReason::ipv4_bad_checksum;
  switch (packet->protocol) {
    case Protocol::udp: {
      const auto udp = UdpView::parse(packet->payload);
      return udp ? why(check_checksum(*udp, packet->source, packet->destination)) : Why{udp.error()};
    }
    case Protocol::tcp: {
      const auto tcp = TcpView::parse(packet->payload);
      if (!tcp) return tcp.error();
      return verify_checksum(*tcp, packet->source, packet->destination) ? Why{}
                                                                        : DropReason::tcp_bad_checksum;
    }
    case Protocol::icmp: {
      const auto icmp = IcmpView::parse(packet->payload);
      if (!icmp) return icmp.error();
      return verify_checksum(*icmp) ? Why{} : DropReason::icmp_bad_checksum;
    }
    case Protocol::icmpv6: {
      const auto icmp = Icmpv6View::parse(packet->payload);
      if (!icmp) return icmp.error();
      const bool good = verify_checksum(*icmp, packet->source, packet->destination);
      return good ? Why{} : DropReason::icmp_bad_checksum;
    }
    default:
      return {};
  }
}

Why neighbour(Bytes l3) {
  const auto packet = parse_ip(l3).value();
  const auto message = Icmpv6View::parse(packet.payload).value();
  return why(NeighbourView::parse(message, {packet.source, packet.destination, packet.ttl}));
}

struct Row {
  int number;  // 0: not in the list, but of its kind
  const char* name;
  Why (*way)(Bytes);
  Buffer bytes;
  Why reason;
};

void PrintTo(const Row& row, std::ostream* out) { *out << "row " << row.number << " " << row.name; }

class BadInput : public ::testing::TestWithParam<Row> {};

TEST_P(BadInput, IsAnsweredAsTheTableSays) {
  const Row& row = GetParam();
  const Why got = row.way(row.bytes);
  EXPECT_EQ(got.has_value(), row.reason.has_value());
  EXPECT_EQ(got ? to_string(*got) : "taken", row.reason ? to_string(*row.reason) : "taken");
}

std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  std::string number = std::to_string(info.param.number);
  return "Row" + std::string(3 - number.size(), '0') + number + "_" + info.param.name;
}

// Changes after which an IPv4 header's checksum is right again.
Buffer resummed(Buffer l3) {
  const std::size_t header = (load_u8(l3, 0) & 0xf) * std::size_t{4};
  store_be16(l3, 10, 0);
  store_be16(l3, 10, checksum(checksum_scalar(Bytes(l3).first(header))));
  return l3;
}

Buffer ipv4_with_options(const Buffer& options) {
  Ipv4Repr repr;
  for (const std::byte byte : options) repr.options.push_back(std::to_integer<std::uint8_t>(byte));
  return test::ipv4(Protocol::udp, test::filler(8), repr);
}

Buffer ipv4_from(const IpAddress& from) {
  Ipv4Repr repr;
  repr.source = from;
  return resummed(patched(
      test::ipv4(Protocol::udp, test::filler(8), repr),
      {{12, from.bytes()[12]}, {13, from.bytes()[13]}, {14, from.bytes()[14]}, {15, from.bytes()[15]}}));
}

Buffer ipv6_from(const IpAddress& from, std::uint8_t next = 17) {
  Buffer l3 = test::ipv6(next, test::filler(8));
  store_ipv6_address(l3, 8, from);
  return l3;
}

Buffer ipv4_fragment(std::size_t offset, bool more, std::size_t length, Protocol protocol = Protocol::udp) {
  Ipv4Repr repr;
  repr.fragment_offset = static_cast<std::uint16_t>(offset);
  repr.more_fragments = more;
  repr.identification = 77;
  return test::ipv4(protocol, test::filler(length), repr);
}

Buffer ipv6_fragment(std::uint32_t offset, bool more, const Buffer& payload, std::uint8_t next = 17) {
  Buffer header(Ipv6FragmentRepr::size());
  Ipv6FragmentRepr{next, {77, offset, more}}.emit(header);
  return test::ipv6(Ipv6NextHeader::kFragment, header + payload);
}

Buffer ipv4_frame(const Buffer& l3) { return test::frame(EtherType::ipv4, l3); }
Buffer ipv6_frame(const Buffer& l3) { return test::frame(EtherType::ipv6, l3); }

std::vector<Row> ethernet_rows() {
  const Buffer whole = ipv4_frame(test::udp4(test::filler(4)));
  const std::string tag = "81000005", outer = "88a80006";
  const std::string macs = "020000000001 020000000002 ";
  using enum DropReason;
  return {
      {1, "empty", flow, {}, eth_truncated},
      {1, "thirteen_bytes", flow, test::cut(whole, 13), eth_truncated},
      {2, "header_alone", flow, test::cut(whole, 14), ipv4_truncated},
      {2, "nineteen_bytes_of_ip", flow, test::cut(whole, 33), ipv4_truncated},
      {3, "unknown_type", flow, patched(whole, {{12, 0x88}, {13, 0xcc}}), eth_unknown_type},
      {3, "llc_length", flow, patched(whole, {{12, 0x00}, {13, 0x26}}), eth_unknown_type},
      {4, "tag_cut_off", flow, hex(macs + "8100 0005"), eth_vlan_truncated},
      {4, "tag_without_type", flow, hex(macs + "8100 0005 08"), eth_vlan_truncated},
      {4, "second_tag_cut_off", flow, hex(macs + outer + "8100 00"), eth_vlan_truncated},
      {4, "three_tags", flow, hex(macs + outer + tag + tag + "0800"), eth_vlan_too_deep},
      {4, "two_tags", flow, hex(macs + outer + tag + "0800") + test::udp4({}), {}},
      {5, "not_our_address", station, patched(whole, {{5, 9}}), eth_not_ours},
      {5, "multicast_is_heard", station, patched(whole, {{0, 0x33}}), {}},
      {6, "source_multicast", station, patched(whole, {{6, 0x03}}), eth_bad_source},
      {6, "source_broadcast", station,
       patched(whole, {{6, 255}, {7, 255}, {8, 255}, {9, 255}, {10, 255}, {11, 255}}), eth_bad_source},
      {6, "source_ours", station, patched(whole, {{11, 1}}), eth_bad_source},
      {6, "source_zero", station, patched(whole, {{6, 0}, {11, 0}}), eth_bad_source},
      {7, "padding", flow, whole + Buffer(20), {}},
      {7, "junk_behind", transport, test::udp4(test::filler(3)) + test::filler(33), {}},
      {10, "super_frame", flow, ipv4_frame(test::udp4(test::filler(65507))), {}},
      {0, "arp_cut_off", arp, Buffer(27), arp_malformed},
      {0, "arp_of_other_hardware", arp, hex("0006 0800 06 04 0001") + Buffer(20), arp_malformed},
      {0, "arp_of_other_protocol", arp, hex("0001 86dd 06 04 0001") + Buffer(20), arp_malformed},
      {0, "arp_of_other_hardware_size", arp, hex("0001 0800 08 04 0001") + Buffer(20), arp_malformed},
      {0, "arp_of_other_protocol_size", arp, hex("0001 0800 06 10 0001") + Buffer(20), arp_malformed},
  };
}

std::vector<Row> ipv4_rows() {
  const Buffer good = test::udp4(test::filler(8));
  const Buffer land = [] {
    Ipv4Repr repr;
    repr.source = test::kOur4;
    return test::ipv4(Protocol::tcp, hex("1b58 1b58 00000001 00000000 5002 ffff 0000 0000"), repr);
  }();
  using enum DropReason;
  return {
      {11, "version_6_under_0800", flow, ipv4_frame(test::udp6(test::filler(8))), ipv4_bad_version},
      {11, "version_5", ip, patched(good, {{0, 0x55}}), ipv4_bad_version},
      {12, "header_length_4", ip, patched(good, {{0, 0x44}}), ipv4_bad_header_length},
      {12, "header_length_0", flow, ipv4_frame(patched(good, {{0, 0x40}})), ipv4_bad_header_length},
      {13, "header_past_bytes", ip, patched(good, {{0, 0x4f}}), ipv4_bad_header_length},
      {13, "header_past_total", ip, patched(good + Buffer(40), {{0, 0x4f}}), ipv4_bad_total_length},
      {14, "total_below_header", ip, patched(good, {{3, 19}}), ipv4_bad_total_length},
      {14, "total_below_header_on_the_straight_road", flow, ipv4_frame(patched(good, {{3, 19}})),
       ipv4_bad_total_length},
      {14, "total_0", flow, ipv4_frame(patched(good, {{3, 0}})), ipv4_bad_total_length},
      {15, "total_past_bytes", ip, patched(good, {{3, 37}}), ipv4_bad_total_length},
      {15, "total_past_bytes_on_the_straight_road", flow, ipv4_frame(patched(good, {{3, 37}})),
       ipv4_bad_total_length},
      {15, "total_65535", flow, ipv4_frame(patched(good, {{2, 255}, {3, 255}})), ipv4_bad_total_length},
      {16, "checksum", transport, patched(good, {{8, 63}}), ipv4_bad_checksum},
      {17, "option_length_0", ip, ipv4_with_options(hex("44000000")), ipv4_bad_option},
      {17, "option_length_1", ip, ipv4_with_options(hex("44010000")), ipv4_bad_option},
      {17, "option_past_header", ip, ipv4_with_options(hex("01018807")), ipv4_bad_option},
      {17, "option_without_length", ip, ipv4_with_options(hex("01010144")), ipv4_bad_option},
      {17, "loose_route_without_pointer", ip, ipv4_with_options(hex("83020000")), ipv4_bad_option},
      {17, "strict_route_pointer_3", ip, ipv4_with_options(hex("89030300")), ipv4_bad_option},
      {17, "record_route_pointer_0", ip, ipv4_with_options(hex("07030000")), ipv4_bad_option},
      {17, "timestamp_too_short", ip, ipv4_with_options(hex("44030500")), ipv4_bad_option},
      {17, "router_alert_too_short", ip, ipv4_with_options(hex("94030000")), ipv4_bad_option},
      {17, "record_route", ip, ipv4_with_options(hex("07070400000000 00")), {}},
      {17, "unknown_option", ip, ipv4_with_options(hex("99040000")), {}},
      {18, "loose_source_route", ip, ipv4_with_options(hex("8307040a000001 00")), ipv4_source_routed},
      {18, "strict_source_route", flow, ipv4_frame(ipv4_with_options(hex("018907040a000001"))),
       ipv4_source_routed},
      {19, "from_unspecified", source, ipv4_from(IpAddress::any_v4()), ip_martian_source},
      {19, "from_loopback", source, ipv4_from(IpAddress::v4(127, 1, 2, 3)), ip_martian_source},
      {19, "from_multicast", source, ipv4_from(IpAddress::v4(224, 0, 0, 1)), ip_martian_source},
      {19, "from_reserved", source, ipv4_from(IpAddress::v4(240, 0, 0, 1)), ip_martian_source},
      {19, "from_broadcast", source, ipv4_from(IpAddress::v4(0xffffffff)), ip_martian_source},
      {19, "from_a_neighbour", source, ipv4_from(IpAddress::v4(223, 255, 255, 254)), {}},
      {21, "land", flow, ipv4_frame(land), ip_land},
      {22, "ttl_0_is_delivered", transport, resummed(patched(good, {{8, 0}})), {}},
      {23, "protocol_unknown", flow, ipv4_frame(test::ipv4(Protocol{132}, test::filler(12))), {}},
      {24, "evil_bit", flow, ipv4_frame(resummed(patched(good, {{6, 0x80}}))), {}},
      {24, "evil_bit_is_no_fragment", transport, resummed(patched(good, {{6, 0x80}})), {}},
      {25,
       "ip_in_ip_is_not_parsed",
       flow,
       ipv4_frame(test::ipv4(Protocol{4}, test::ipv4(Protocol{4}, good))),
       {}},
  };
}

std::vector<Row> fragment_rows() {
  const Buffer udp8 = test::filler(8);
  using enum DropReason;
  return {
      {26, "df_and_mf_is_a_fragment", ip, resummed(patched(ipv4_fragment(0, true, 16), {{6, 0x60}})), {}},
      {27, "past_65535", ip, ipv4_fragment(65528, false, 8), frag_too_large},
      {27, "past_65535_with_header", ip, ipv4_fragment(65504, false, 12), frag_too_large},
      {27, "up_to_65535_with_header", ip, ipv4_fragment(65504, false, 11), {}},
      {27, "ping_of_death", flow, ipv4_frame(ipv4_fragment(65528, false, 1000, Protocol::icmp)),
       frag_too_large},
      {28, "not_a_multiple_of_8", ip, ipv4_fragment(0, true, 15), frag_bad_length},
      {28, "last_one_may_be_odd", ip, ipv4_fragment(8, false, 15), {}},
      {30, "tcp_header_split", ip, ipv4_fragment(0, true, 16, Protocol::tcp), frag_tiny_first},
      {30, "tcp_first_of_24", ip, ipv4_fragment(0, true, 24, Protocol::tcp), {}},
      {30, "tcp_offset_1", ip, ipv4_fragment(8, true, 24, Protocol::tcp), frag_tiny_first},
      {30, "udp_offset_1", ip, ipv4_fragment(8, true, 24), {}},
      {31, "empty", ip, ipv4_fragment(8, true, 0), frag_bad_length},
      {31, "empty_last", ip, ipv4_fragment(8, false, 0), frag_bad_length},
      {37, "first_of_a_flow_is_a_fragment", flow, ipv4_frame(ipv4_fragment(0, true, 16)), {}},
      {27, "ipv6_past_65535", ip, ipv6_fragment(65528, false, udp8), frag_too_large},
      {27, "ipv6_up_to_65535", ip, ipv6_fragment(65528, false, test::filler(7)), {}},
      {28, "ipv6_not_a_multiple_of_8", ip, ipv6_fragment(0, true, test::filler(15)), frag_bad_length},
      {31, "ipv6_empty", ip, ipv6_fragment(8, true, {}), frag_bad_length},
      {30, "ipv6_tcp_offset_1", ip, ipv6_fragment(8, true, test::filler(24), 6), frag_tiny_first},
      {45,
       "atomic",
       transport,
       [] {
         Buffer whole = test::udp6(test::filler(5));
         return ipv6_fragment(0, false, {whole.begin() + 40, whole.end()});
       }(),
       {}},
      {46, "udp_header_cut_off", ip, ipv6_fragment(0, true, {}), frag_tiny_first},
      {46, "tcp_header_cut_off", ip, ipv6_fragment(0, true, test::filler(16), 6), frag_tiny_first},
      {46, "destination_options_cut_off", ip, ipv6_fragment(0, true, hex("1102 0104 00000000"), 60),
       frag_tiny_first},
      {46, "whole_chain", ip, ipv6_fragment(0, true, hex("1100 0104 00000000") + udp8, 60), {}},
      {47, "multiple_of_8", flow, ipv6_frame(ipv6_fragment(0, true, test::filler(12))), frag_bad_length},
  };
}

std::vector<Row> ipv6_rows() {
  const Buffer good = test::udp6(test::filler(8));
  const Buffer payload{good.begin() + 40, good.end()};
  const auto with = [&](std::uint8_t first, std::string_view headers) {
    return test::ipv6(first, hex(headers) + payload);
  };
  std::string long_chain;
  for (int i = 0; i < 120; ++i) long_chain += "3c00 0104 00000000";
  const std::array<std::uint8_t, 16> multicast{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const std::array<std::uint8_t, 16> loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  Buffer to_mapped = good;
  store_ipv6_address(to_mapped, 24, test::kOur4);
  using enum DropReason;
  return {
      {0, "empty", flow, ipv6_frame({}), ipv6_truncated},
      {0, "header_cut_off", flow, ipv6_frame(test::cut(good, 39)), ipv6_truncated},
      {0, "version_4_under_86dd", flow, ipv6_frame(test::udp4(test::filler(30))), ipv6_bad_version},
      {38, "payload_past_bytes", flow, ipv6_frame(patched(good, {{5, 17}})), ipv6_bad_payload_length},
      {38, "payload_0", ip, patched(good, {{5, 0}}), ipv6_bad_payload_length},
      {38, "jumbogram", ip, patched(with(0, "1100 c204 00010008"), {{5, 0}}), ipv6_bad_payload_length},
      {39, "from_multicast", source, ipv6_from(IpAddress::v6(multicast)), ip_martian_source},
      {39, "tcp_from_unspecified", source, ipv6_from({}, 6), ip_martian_source},
      {39, "icmpv6_from_unspecified", source, ipv6_from({}, 58), {}},
      {39, "from_loopback", source, ipv6_from(IpAddress::v6(loopback)), ip_martian_source},
      {39, "from_mapped_ipv4", flow, ipv6_frame(ipv6_from(test::kPeer4)), ip_martian_source},
      {39, "to_mapped_ipv4", flow, ipv6_frame(to_mapped), ip_not_ours},
      {40, "extension_past_end", ip, with(60, "1103 0104 00000000"), ipv6_bad_extension},
      {40, "extension_of_4_bytes", ip, test::ipv6(60, hex("11000104")), ipv6_bad_extension},
      {40, "chain_of_120", ip, with(60, long_chain), ipv6_too_many_extensions},
      {40, "hop_by_hop_second", ip, with(60, "0000 0104 00000000 1100 0104 00000000"),
       ipv6_too_many_extensions},
      {40, "hop_by_hop_twice", ip, with(0, "0000 0104 00000000 1100 0104 00000000"),
       ipv6_too_many_extensions},
      {40, "routing_twice", ip, with(43, "2b00 0200 00000000 1100 0200 00000000"), ipv6_too_many_extensions},
      {40, "destination_three_times", ip,
       with(60, "3c00 0104 00000000 3c00 0104 00000000 1100 0104 00000000"), ipv6_too_many_extensions},
      {40, "destination_twice", transport, with(60, "3c00 0104 00000000 1100 0104 00000000"), {}},
      {40, "fragment_twice", ip, with(44, "2c00 0000 00000001 1100 0001 00000001"), ipv6_too_many_extensions},
      {41, "option_past_header", ip, with(60, "1100 0505 00000000"), ipv6_bad_option},
      {41, "option_without_length", ip, with(0, "1100 0103 00000005"), ipv6_bad_option},
      {41, "padding_past_header", ip, with(0, "1100 01ff 00000000"), ipv6_bad_option},
      {41, "padding_too_long", ip, with(0, "1101 0106 00000000 00000502 00000102"), ipv6_bad_option},
      {41, "padding_of_one_byte_too_often", ip, with(0, "1101 0502 0000 0000 00000000 00000000"),
       ipv6_bad_option},
      {41, "padding_of_7", transport, with(0, "1101 0502 0000 0105 00000000 00 050100"), {}},
      {42, "unknown_00_is_skipped", transport, with(60, "1100 1e04 00000000"), {}},
      {42, "unknown_01", ip, with(60, "1100 5e04 00000000"), ipv6_bad_option},
      {42, "unknown_10", ip, with(60, "1100 9e04 00000000"), ipv6_bad_option},
      {42, "unknown_11", flow, ipv6_frame(with(60, "1100 de04 00000000")), ipv6_bad_option},
      {43, "routing_0", ip, with(43, "1100 0001 00000000"), ipv6_routing_header_0},
      {43, "routing_0_done", ip, with(43, "1100 0000 00000000"), ipv6_routing_header_0},
      {43, "unknown_routing", ip, with(43, "1100 6301 00000000"), ipv6_routing_unknown},
      {43, "unknown_routing_done", transport, with(43, "1100 6300 00000000"), {}},
      {48, "no_next_header", flow, ipv6_frame(test::ipv6(59, test::filler(5))), {}},
      {48, "no_next_header_and_no_payload", ip, test::ipv6(59, {}), {}},
      {48, "no_next_header_behind_options", ip, test::ipv6(60, hex("3b00 0104 00000000")), {}},
  };
}

std::vector<Row> udp_rows() {
  const Buffer four = test::udp4(test::filler(8)), six = test::udp6(test::filler(8));
  const auto udp4 = [](const char* header) { return test::ipv4(Protocol::udp, hex(header)); };
  using enum DropReason;
  return {
      {49, "seven_bytes", transport, udp4("9c40 1b58 0007 00"), udp_truncated},
      {49, "seven_bytes_of_a_flow", flow, ipv4_frame(udp4("9c40 1b58 0007 00")), udp_truncated},
      {49, "empty_ipv6", flow, ipv6_frame(test::ipv6(17, hex("9c40 1b58"))), udp_truncated},
      {50, "length_7", transport, patched(four, {{25, 7}}), udp_bad_length},
      {50, "length_0", transport, patched(four, {{25, 0}}), udp_bad_length},
      {51, "length_past_ip", transport, patched(four, {{25, 17}}), udp_bad_length},
      {52, "length_below_ip", transport, udp4("9c40 1b58 0008 0000 ffff ffff"), {}},
      {53, "no_checksum_ipv4", transport, patched(four, {{26, 0}, {27, 0}}), {}},
      {53, "no_checksum_ipv6", transport, patched(six, {{46, 0}, {47, 0}}), udp_no_checksum_v6},
      {54, "wrong_checksum_ipv4", transport, patched(four, {{30, 0xee}}), udp_bad_checksum},
      {54, "wrong_checksum_ipv6", transport, patched(six, {{50, 0xee}}), udp_bad_checksum},
      {55, "source_port_0", transport, udp4("0000 1b58 0008 0000"), {}},
      {55, "source_port_0_of_a_flow", flow, ipv4_frame(udp4("0000 1b58 0008 0000")), {}},
      {55, "destination_port_0", transport, udp4("9c40 0000 0008 0000"), udp_bad_port},
      {55, "destination_port_0_of_a_flow", flow, ipv4_frame(udp4("9c40 0000 0008 0000")), udp_bad_port},
      {56, "empty_datagram", transport, test::udp4({}), {}},
      {56, "empty_datagram_ipv6", transport, test::udp6({}), {}},
  };
}

std::vector<Row> icmp_rows() {
  const auto error4 = [](const Buffer& quote) {
    return ipv4_frame(test::icmp4(IcmpRepr::unreachable(3), quote));
  };
  const auto error6 = [](const Buffer& quote) {
    return ipv6_frame(test::icmp6(Icmpv6Repr::unreachable(4), quote));
  };
  const Buffer echo4 = test::icmp4(IcmpRepr::echo_request(1, 2), test::filler(9));
  const Buffer echo6 = test::icmp6(Icmpv6Repr::echo_request(1, 2), test::filler(9));
  const Buffer quote4 = test::sent_udp4(), quote6 = test::sent_udp6();
  using enum DropReason;
  return {
      {59, "seven_bytes", transport, test::ipv4(Protocol::icmp, hex("08000000 000100")), icmp_truncated},
      {59, "seven_bytes_of_a_flow", flow, ipv4_frame(test::ipv4(Protocol::icmp, hex("08000000 000100"))),
       icmp_truncated},
      {59, "seven_bytes_ipv6", transport, test::ipv6(58, hex("80000000 000100")), icmp_truncated},
      {59, "bad_checksum", transport, patched(echo4, {{30, 0x77}}), icmp_bad_checksum},
      {59, "bad_checksum_ipv6", transport, patched(echo6, {{50, 0x77}}), icmp_bad_checksum},
      {59, "checksum_over_the_ip_length_alone", transport, echo4 + test::filler(20), {}},
      {60, "quotes_nothing", flow, error4({}), icmp_bad_quote},
      {60, "quotes_7_bytes_of_udp", flow, error4(test::cut(quote4, 27)), icmp_bad_quote},
      {60, "quotes_8_bytes_of_udp", flow, error4(test::cut(quote4, 28)), {}},
      {60, "quotes_header_of_length_4", flow, error4(patched(quote4, {{0, 0x44}})), icmp_bad_quote},
      {60, "quotes_header_past_end", flow, error4(patched(quote4, {{0, 0x4f}})), icmp_bad_quote},
      {60, "quotes_other_version", flow, error4(quote6), icmp_bad_quote},
      {60, "quotes_a_packet_of_another", flow, error4(test::udp4({})), icmp_bad_quote},
      {60, "quotes_nothing_ipv6", flow, error6({}), icmp_bad_quote},
      {60, "quotes_7_bytes_of_udp_ipv6", flow, error6(test::cut(quote6, 47)), icmp_bad_quote},
      {60, "quotes_8_bytes_of_udp_ipv6", flow, error6(test::cut(quote6, 48)), {}},
      {60, "quotes_other_version_ipv6", flow, error6(quote4 + Buffer(30)), icmp_bad_quote},
      {60, "quotes_broken_extensions", flow, error6(patched(quote6, {{6, 60}, {41, 9}})), icmp_bad_quote},
      {60, "quotes_a_packet_of_another_ipv6", flow, error6(test::udp6({})), icmp_bad_quote},
      {65,
       "source_quench_is_no_error",
       flow,
       ipv4_frame(test::icmp4({IcmpType::source_quench, 0, 0}, quote4)),
       {}},
      {65, "redirect_is_no_error", flow, ipv4_frame(test::icmp4({IcmpType::redirect, 1, 0}, quote4)), {}},
      {65, "unknown_type_is_no_error", flow, ipv6_frame(test::icmp6({Icmpv6Type{5}, 0, 0}, quote6)), {}},
  };
}

std::vector<Row> neighbour_rows() {
  const auto message = [](const NeighbourRepr& repr, const IpAddress& from, const IpAddress& to,
                          std::uint8_t hop_limit = 255) {
    Buffer body(repr.size());
    repr.emit(body, from, to);
    Buffer l3 = test::ipv6(58, body);
    store_u8(l3, 7, hop_limit);
    store_ipv6_address(l3, 8, from);
    store_ipv6_address(l3, 24, to);
    return l3;
  };
  NeighbourRepr ask;
  ask.target = test::kOur6;
  NeighbourRepr ask_with_mac = ask;
  ask_with_mac.link_layer = test::kPeerMac;
  NeighbourRepr tell{
      .solicitation = false, .solicited = true, .target = test::kPeer6, .link_layer = test::kPeerMac};
  NeighbourRepr tell_all = tell;
  tell_all.solicited = false;
  const std::array<std::uint8_t, 16> all_nodes{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const IpAddress everybody = IpAddress::v6(all_nodes), group = solicited_node(test::kOur6);
  const Buffer good = message(ask_with_mac, test::kPeer6, group);
  using enum DropReason;
  return {
      {0, "solicitation", neighbour, good, {}},
      {0, "advertisement", neighbour, message(tell, test::kPeer6, test::kOur6), {}},
      {0, "hop_limit_254", neighbour, message(ask_with_mac, test::kPeer6, group, 254), nd_malformed},
      {0, "code_1", neighbour, patched(good, {{41, 1}}), nd_malformed},
      {0, "target_multicast", neighbour, patched(good, {{48, 0xff}}), nd_malformed},
      {0, "cut_off", neighbour, test::ipv6(58, hex("87000000") + Buffer(19)), nd_malformed},
      {0, "option_length_0", neighbour, patched(good, {{65, 0}}), nd_malformed},
      {0, "option_past_end", neighbour, patched(good, {{65, 2}}), nd_malformed},
      {0, "option_of_4_bytes", neighbour,
       [&] {
         Buffer l3 = patched(good, {{5, 28}});
         return test::cut(l3, 68);
       }(),
       nd_malformed},
      {0, "long_link_layer_address", neighbour, patched(good + Buffer(8), {{5, 40}, {65, 2}}), nd_malformed},
      {0, "unknown_option_is_skipped", neighbour, patched(good, {{64, 14}}), {}},
      {0, "unspecified_to_the_group", neighbour, message(ask, {}, group), {}},
      {0, "unspecified_to_an_address", neighbour, message(ask, {}, test::kOur6), nd_malformed},
      {0, "unspecified_with_link_layer_address", neighbour, message(ask_with_mac, {}, group), nd_malformed},
      {0, "solicited_advertisement_to_all", neighbour, message(tell, test::kPeer6, everybody), nd_malformed},
      {0, "advertisement_to_all", neighbour, message(tell_all, test::kPeer6, everybody), {}},
      {0, "another_type", neighbour, patched(good, {{40, 133}}), nd_malformed},
  };
}

std::vector<Row> tcp_rows() {
  const TcpFlags ack{TcpFlags::kAck};
  const Buffer good = test::tcp4(ack, {}, test::filler(8));
  const Buffer header{good.begin() + 20, good.end()};
  const Buffer short_segment = test::ipv4(Protocol::tcp, test::cut(header, 19));
  using enum DropReason;
  return {
      {66, "nineteen_bytes", transport, short_segment, tcp_truncated},
      {66, "nineteen_bytes_of_a_flow", flow, ipv4_frame(short_segment), tcp_truncated},
      {66, "nineteen_bytes_ipv6", flow, ipv6_frame(test::ipv6(6, test::cut(header, 19))), tcp_truncated},
      {66, "data_offset_4", transport, patched(good, {{32, 0x40}}), tcp_bad_offset},
      {66, "data_offset_0", transport, patched(good, {{32, 0x00}}), tcp_bad_offset},
      {66, "data_offset_past_segment", transport, patched(good, {{32, 0x80}}), tcp_bad_offset},
      {67, "wrong_checksum", transport, patched(good, {{40, 0xee}}), tcp_bad_checksum},
      {67, "right_checksum", transport, good, {}},
      {67, "right_checksum_ipv6", transport, test::tcp6(ack, test::filler(7)), {}},
      {68, "option_length_0_lives", transport, test::tcp4(ack, hex("02000000"), {}), {}},
      {75, "forty_nops", transport, test::tcp4(ack, Buffer(40, std::byte{1}), {}), {}},
      {78, "source_port_0", transport, patched(good, {{20, 0}, {21, 0}}), tcp_bad_port},
      {78, "destination_port_0", transport, patched(good, {{22, 0}, {23, 0}}), tcp_bad_port},
      {78, "source_port_0_of_a_flow", flow, ipv4_frame(patched(good, {{20, 0}, {21, 0}})), tcp_bad_port},
      {78, "destination_port_0_of_a_flow", flow, ipv4_frame(patched(good, {{22, 0}, {23, 0}})), tcp_bad_port},
  };
}

INSTANTIATE_TEST_SUITE_P(Ethernet, BadInput, ::testing::ValuesIn(ethernet_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Ipv4, BadInput, ::testing::ValuesIn(ipv4_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Fragment, BadInput, ::testing::ValuesIn(fragment_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Ipv6, BadInput, ::testing::ValuesIn(ipv6_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Udp, BadInput, ::testing::ValuesIn(udp_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Icmp, BadInput, ::testing::ValuesIn(icmp_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Neighbour, BadInput, ::testing::ValuesIn(neighbour_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Tcp, BadInput, ::testing::ValuesIn(tcp_rows()), name_of);

}  // namespace
}  // namespace netchannel::wire
