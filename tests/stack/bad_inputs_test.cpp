// Bad input and the right answer to each: a table whose rows carry the numbers of the project's list
// (Ethernet 1 to 10, IPv4 11 to 25, fragments 26 to 37, IPv6 38 to 48, UDP 49 to 58, ICMP 59 to 65; 57 is the
// reader's buffer, which a stack that lends its memory does not have, and 61, 63 and 64 are TCP's). Each row
// says what comes, which counter moves, what is answered and what the application gets. After each the stack
// must still serve, and every receive slot must have come home.
#include <functional>

#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "proto/path_mtu.hpp"
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;
using Frames = std::vector<Packet>;

enum class Reply : std::uint8_t { none, port_unreachable, parameter_problem };

struct Row {
  int number;
  const char* name;
  std::function<Frames()> frames;
  std::optional<DropReason> counter;
  std::uint64_t times = 1;  // the counter moves
  Reply reply = Reply::none;
  const char* delivered = "";  // the payloads, one behind the other
  Duration wait{};             // time that passes afterwards
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.number << " " << row.name; }

// Frames to start from.
Packet udp4(Bytes payload = {}) { return testkit::udp({kPeer4, 4000}, {kOur4, 7}, payload); }
Packet udp6(Bytes payload = {}) { return testkit::udp({kPeer6, 4000}, {kOur6, 7}, payload); }
Packet ether(std::uint16_t type, Bytes payload) {
  return testkit::ethernet({kOurMac, kPeerMac}, type, payload);
}
Packet frame4(Bytes transport, testkit::IpFields fields = {}) {
  if (fields.source == IpAddress{}) fields.source = kPeer4;
  if (fields.destination == IpAddress{}) fields.destination = kOur4;
  return ether(testkit::kIpv4, testkit::ip(fields, transport));
}
Packet frame6(Bytes payload, std::uint8_t next = 17, const IpAddress& from = kPeer6,
              const IpAddress& to = kOur6) {
  return ether(testkit::kIpv6, testkit::ip({.source = from, .destination = to, .protocol = next}, payload));
}
Packet hello4() { return frame4(udp4(bytes("hello"))); }
Packet hello6() { return frame6(udp6(bytes("hello"))); }

Packet with8(Packet frame, std::size_t at, unsigned value) {
  store_u8(frame, at, static_cast<std::uint8_t>(value));
  return frame;
}
Packet with16(Packet frame, std::size_t at, unsigned value) {
  store_be16(frame, at, static_cast<std::uint16_t>(value));
  return frame;
}
// The IPv4 header checksum made right again, so that the fault meant is the fault met.
Packet mended(Packet frame) {
  store_be16(frame, 24, 0);
  const std::size_t header = std::min<std::size_t>((load_u8(frame, 14) & 0xf) * 4u, frame.size() - 14);
  store_be16(frame, 24, testkit::internet_checksum(Bytes(frame).subspan(14, header)));
  return frame;
}
Packet cut(Packet frame, std::size_t size) {
  frame.resize(size);
  return frame;
}
Packet joined(Packet a, Bytes b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Packet from4(const char* source) {
  return frame4(udp4(bytes("x")), {.source = *IpAddress::parse(source), .destination = {}});
}
Packet from6(const char* source) { return frame6(udp6(bytes("x")), 17, *IpAddress::parse(source)); }
Packet options4(std::initializer_list<unsigned> values) {
  Packet options;
  for (const unsigned value : values) options.push_back(std::byte(value));
  return frame4(udp4(bytes("x")), {.source = {}, .destination = {}, .options = options});
}
// A fragment of protocol 17 (or another) with these flags and this offset in bytes.
Packet piece4(unsigned flags, unsigned offset, Bytes payload, std::uint8_t protocol = 17,
              std::uint8_t tos = 0) {
  return frame4(payload, {.source = {},
                          .destination = {},
                          .protocol = protocol,
                          .tos = tos,
                          .id = 77,
                          .fragment = static_cast<std::uint16_t>(flags | offset / 8)});
}
Packet piece6(bool more, std::uint32_t offset, Bytes payload, std::uint8_t next = 17) {
  Packet header(8);
  wire::Ipv6FragmentRepr{next, {77, offset, more}}.emit(header);
  return frame6(joined(header, payload), 44);
}
Bytes part(const Packet& of, std::size_t from, std::size_t to) { return Bytes(of).subspan(from, to - from); }
constexpr unsigned kMore = 0x2000, kDont = 0x4000;

Packet vlan(unsigned id, Bytes rest, unsigned inner = 0x0800) {
  Packet tag(4);
  store_be16(tag, 0, static_cast<std::uint16_t>(id));
  store_be16(tag, 2, static_cast<std::uint16_t>(inner));
  return joined(tag, rest);
}
// An extension header of `units` * 8 + 8 bytes whose options are given; the rest is zeros (Pad1).
Packet extension(unsigned next, unsigned units, std::initializer_list<unsigned> options) {
  Packet header(units * 8 + 8);
  store_u8(header, 0, static_cast<std::uint8_t>(next));
  store_u8(header, 1, static_cast<std::uint8_t>(units));
  std::size_t at = 2;
  for (const unsigned value : options) store_u8(header, at++, static_cast<std::uint8_t>(value));
  return header;
}
Packet hello_behind(const Packet& header, unsigned type, const IpAddress& to = kOur6) {
  return frame6(joined(header, udp6(bytes("hello"))), static_cast<std::uint8_t>(type), kPeer6, to);
}
// ICMP with a right checksum.
Packet icmp4(unsigned type, unsigned code, std::uint32_t rest, Bytes behind) {
  Packet message(8);
  wire::IcmpRepr{static_cast<wire::IcmpType>(type), static_cast<std::uint8_t>(code), rest}.emit(
      message, wire::checksum_scalar(behind));
  return frame4(joined(message, behind), {.source = {}, .destination = {}, .protocol = 1});
}
Packet icmp6(unsigned type, unsigned code, std::uint32_t rest, Bytes behind) {
  Packet message(8);
  wire::PartialSum sum = wire::pseudo_header(kPeer6, kOur6, Protocol::icmpv6, 8 + behind.size());
  sum.add(wire::checksum_scalar(behind));
  wire::Icmpv6Repr{static_cast<wire::Icmpv6Type>(type), static_cast<std::uint8_t>(code), rest}.emit(message,
                                                                                                    sum);
  return frame6(joined(message, behind), 58);
}
// What we may have sent.
Packet quote4() {
  return testkit::ip({.source = kOur4, .destination = kPeer4}, testkit::udp({kOur4, 7}, {kPeer4, 9}, {}));
}
Packet quote6() {
  return testkit::ip({.source = kOur6, .destination = kPeer6}, testkit::udp({kOur6, 7}, {kPeer6, 9}, {}));
}

Packet checksum_free(Packet frame, std::size_t at) { return with16(std::move(frame), at, 0); }

using enum DropReason;

const std::vector<Row> kEthernet = {
    {1, "EmptyFrame", [] { return Frames{{}}; }, eth_truncated},
    {1, "ThirteenBytes", [] { return Frames{cut(hello4(), 13)}; }, eth_truncated},
    {2, "HeaderAlone", [] { return Frames{cut(hello4(), 14)}; }, ipv4_truncated},
    {2, "OneByteShort", [] { return Frames{cut(hello4(), 33)}; }, ipv4_truncated},
    {2, "Ipv6OneByteShort", [] { return Frames{cut(hello6(), 53)}; }, ipv6_truncated},
    {3, "UnknownType", [] { return Frames{with16(hello4(), 12, 0x88b5)}; }, eth_unknown_type},
    {3, "LlcLength", [] { return Frames{with16(hello4(), 12, 40)}; }, eth_unknown_type},
    {4, "TagOfAnotherNetwork", [] { return Frames{ether(0x8100, vlan(5, part(hello4(), 14, 47)))}; },
     eth_unknown_type},
    {4, "PriorityTag", [] { return Frames{ether(0x8100, vlan(0xe000, part(hello4(), 14, 47)))}; },
     std::nullopt, 0, Reply::none, "hello"},
    {4, "TagCutOff", [] { return Frames{cut(ether(0x8100, vlan(0, {})), 17)}; }, eth_vlan_truncated},
    {4, "ThreeTags",
     [] { return Frames{ether(0x88a8, vlan(0, vlan(0, vlan(0, part(hello4(), 14, 47)), 0x8100), 0x8100))}; },
     eth_vlan_too_deep},
    {5, "AnotherMac", [] { return Frames{with8(hello4(), 5, 0x77)}; }, eth_not_ours},
    {6, "SourceMulticast", [] { return Frames{with8(hello4(), 6, 0x03)}; }, eth_bad_source},
    {6, "SourceOurs", [] { return Frames{with8(hello4(), 11, 0x0a)}; }, eth_bad_source},
    {7, "TrailingJunk", [] { return Frames{joined(hello4(), pattern(100))}; }, std::nullopt, 0, Reply::none,
     "hello"},
    {7, "TrailingJunkIpv6", [] { return Frames{joined(hello6(), pattern(100))}; }, std::nullopt, 0,
     Reply::none, "hello"},
};

const std::vector<Row> kIpv4 = {
    {11, "VersionSix", [] { return Frames{mended(with8(hello4(), 14, 0x65))}; }, ipv4_bad_version},
    {11, "VersionFourAsIpv6", [] { return Frames{with8(hello6(), 14, 0x40)}; }, ipv6_bad_version},
    {12, "HeaderLengthFour", [] { return Frames{mended(with8(hello4(), 14, 0x44))}; },
     ipv4_bad_header_length},
    {13, "HeaderPastTheFrame", [] { return Frames{with8(hello4(), 14, 0x4f)}; }, ipv4_bad_header_length},
    {13, "HeaderPastTheTotal", [] { return Frames{mended(with8(joined(hello4(), pattern(60)), 14, 0x4f))}; },
     ipv4_bad_total_length},
    {14, "TotalBelowTheHeader", [] { return Frames{mended(with16(hello4(), 16, 19))}; },
     ipv4_bad_total_length},
    {14, "TotalZero", [] { return Frames{mended(with16(hello4(), 16, 0))}; }, ipv4_bad_total_length},
    {15, "TotalPastTheFrame", [] { return Frames{mended(with16(hello4(), 16, 34))}; }, ipv4_bad_total_length},
    {15, "TotalLargest", [] { return Frames{mended(with16(hello4(), 16, 65535))}; }, ipv4_bad_total_length},
    {16, "HeaderChecksum", [] { return Frames{with16(hello4(), 24, load_be16(hello4(), 24) ^ 1u)}; },
     ipv4_bad_checksum},
    {17, "OptionLengthZero", [] { return Frames{options4({7, 0, 4, 0})}; }, ipv4_bad_option},
    {17, "OptionLengthOne", [] { return Frames{options4({7, 1, 4, 0})}; }, ipv4_bad_option},
    {17, "OptionPastTheHeader", [] { return Frames{options4({1, 1, 7, 3})}; }, ipv4_bad_option},
    {17, "OptionWithoutLength", [] { return Frames{options4({1, 1, 1, 7})}; }, ipv4_bad_option},
    {17, "SourceRouteTooShort", [] { return Frames{options4({131, 2, 1, 0})}; }, ipv4_bad_option},
    {17, "GoodOptions", [] { return Frames{options4({7, 7, 4, 0, 0, 0, 0, 0})}; }, std::nullopt, 0,
     Reply::none, "x"},
    {18, "LooseSourceRoute", [] { return Frames{options4({131, 7, 4, 10, 0, 0, 9, 0})}; },
     ipv4_source_routed},
    {18, "StrictSourceRoute", [] { return Frames{options4({137, 7, 4, 10, 0, 0, 9, 0})}; },
     ipv4_source_routed},
    {19, "SourceNone", [] { return Frames{from4("0.0.0.0")}; }, ip_martian_source},
    {19, "SourceLoopback", [] { return Frames{from4("127.0.0.1")}; }, ip_martian_source},
    {19, "SourceMulticast", [] { return Frames{from4("224.0.0.1")}; }, ip_martian_source},
    {19, "SourceReserved", [] { return Frames{from4("240.0.0.1")}; }, ip_martian_source},
    {19, "SourceBroadcast", [] { return Frames{from4("255.255.255.255")}; }, ip_martian_source},
    {19, "SourceSubnetBroadcast", [] { return Frames{from4("10.0.0.255")}; }, ip_martian_source},
    {19, "SourceOurs", [] { return Frames{from4("10.0.0.1")}; }, ip_martian_source},
    {20, "DestinationNotOurs",
     [] { return Frames{frame4(udp4(), {.source = {}, .destination = IpAddress::v4(10, 0, 0, 9)})}; },
     ip_not_ours},
    {20, "DestinationMulticast",
     [] { return Frames{frame4(udp4(), {.source = {}, .destination = IpAddress::v4(224, 0, 0, 1)})}; },
     ip_not_ours},
    {21, "Land",
     [] {
       return Frames{frame4(testkit::udp({kOur4, 7}, {kOur4, 7}, {}), {.source = kOur4, .destination = {}})};
     },
     ip_land},
    {21, "LandTcp",
     [] {
       return Frames{frame4(with16(with16(Packet(20), 0, 80), 2, 80),
                            {.source = kOur4, .destination = {}, .protocol = 6})};
     },
     ip_land},
    // RFC 1122 section 3.2.1.7: a host does not drop what has reached it.
    {22, "TtlZero", [] { return Frames{mended(with8(hello4(), 22, 0))}; }, std::nullopt, 0, Reply::none,
     "hello"},
    {23, "UnknownProtocol",
     [] { return Frames{frame4(pattern(20), {.source = {}, .destination = {}, .protocol = 132})}; },
     ip_unknown_protocol},
    {24, "ReservedFlag", [] { return Frames{mended(with16(hello4(), 20, 0x8000))}; }, std::nullopt, 0,
     Reply::none, "hello"},
    {25, "IpInIp",
     [] { return Frames{frame4(part(hello4(), 14, 47), {.source = {}, .destination = {}, .protocol = 4})}; },
     ip_unknown_protocol},
    {25, "Ipv6InIp",
     [] { return Frames{frame4(part(hello6(), 14, 67), {.source = {}, .destination = {}, .protocol = 41})}; },
     ip_unknown_protocol},
};

Packet long4() { return udp4(bytes("a datagram of two pieces")); }  // 32 bytes

const std::vector<Row> kFragments = {
    {26, "DontAndMore",
     [] {
       return Frames{piece4(kDont | kMore, 0, part(long4(), 0, 16)),
                     piece4(kDont, 16, part(long4(), 16, 32))};
     },
     std::nullopt, 0, Reply::none, "a datagram of two pieces"},
    {27, "PingOfDeath", [] { return Frames{piece4(0, 65528, pattern(8))}; }, frag_too_large},
    {28, "NotInUnitsOfEight", [] { return Frames{piece4(kMore, 0, part(long4(), 0, 17))}; }, frag_bad_length},
    {29, "Teardrop",
     [] { return Frames{piece4(kMore, 0, part(long4(), 0, 24)), piece4(0, 16, part(long4(), 16, 32))}; },
     frag_overlap},
    {29, "Enclosed",
     [] { return Frames{piece4(kMore, 0, part(long4(), 0, 24)), piece4(kMore, 8, part(long4(), 8, 16))}; },
     frag_overlap},
    {29, "SamePlaceOtherBytes",
     [] { return Frames{piece4(kMore, 0, part(long4(), 0, 16)), piece4(kMore, 0, pattern(16, 9))}; },
     frag_overlap},
    {29, "ExactDuplicate",
     [] {
       return Frames{piece4(kMore, 0, part(long4(), 0, 16)), piece4(kMore, 0, part(long4(), 0, 16)),
                     piece4(0, 16, part(long4(), 16, 32))};
     },
     std::nullopt, 0, Reply::none, "a datagram of two pieces"},
    {30, "TinyFirstOfTcp", [] { return Frames{piece4(kMore, 0, pattern(16), 6)}; }, frag_tiny_first},
    {30, "SecondOverTheTcpFlags", [] { return Frames{piece4(kMore, 8, pattern(16), 6)}; }, frag_tiny_first},
    {31, "Empty", [] { return Frames{piece4(kMore, 0, {})}; }, frag_bad_length},
    {31, "EmptyLast", [] { return Frames{piece4(0, 16, {})}; }, frag_bad_length},
    {32, "TwoEnds", [] { return Frames{piece4(0, 16, pattern(8)), piece4(0, 32, pattern(8))}; },
     frag_past_end},
    {33, "BehindTheEnd", [] { return Frames{piece4(0, 16, pattern(8)), piece4(kMore, 32, pattern(8))}; },
     frag_past_end},
    {34, "NeverCompleted", [] { return Frames{piece4(kMore, 0, part(long4(), 0, 16))}; }, frag_timeout, 1,
     Reply::none, "", 60s},
    {35, "Flood",
     [] {
       Frames flood;
       for (unsigned id = 0; id < 200; ++id)
         flood.push_back(mended(with16(piece4(kMore, 0, pattern(16)), 18, id)));
       return flood;
     },
     frag_memory, 200 - 16, Reply::none, "", 60s},
    {36, "CeWithNotEct",
     [] {
       return Frames{piece4(kMore, 0, part(long4(), 0, 16), 17, 3),
                     piece4(0, 16, part(long4(), 16, 32), 17, 0)};
     },
     frag_bad_ecn},
    {36, "CeWithEct",
     [] {
       return Frames{piece4(kMore, 0, part(long4(), 0, 16), 17, 2),
                     piece4(0, 16, part(long4(), 16, 32), 17, 3)};
     },
     std::nullopt, 0, Reply::none, "a datagram of two pieces"},
    {37, "OnlyTheFirstHasPorts",
     [] { return Frames{piece4(0, 16, part(long4(), 16, 32)), piece4(kMore, 0, part(long4(), 0, 16))}; },
     std::nullopt, 0, Reply::none, "a datagram of two pieces"},
};

Packet long6() { return udp6(bytes("a datagram of two pieces")); }

const std::vector<Row> kIpv6 = {
    {38, "LengthPastTheFrame", [] { return Frames{with16(hello6(), 18, 14)}; }, ipv6_bad_payload_length},
    {38, "LengthZero", [] { return Frames{with16(hello6(), 18, 0)}; }, ipv6_bad_payload_length},
    {39, "SourceMulticast", [] { return Frames{from6("ff02::1")}; }, ip_martian_source},
    {39, "SourceNone", [] { return Frames{from6("::")}; }, ip_martian_source},
    {39, "SourceLoopback", [] { return Frames{from6("::1")}; }, ip_martian_source},
    {39, "SourceMapped", [] { return Frames{with16(frame6(udp6(bytes("x")), 17, IpAddress{}), 32, 0xffff)}; },
     ip_martian_source},
    {39, "Land", [] { return Frames{frame6(testkit::udp({kOur6, 7}, {kOur6, 7}, {}), 17, kOur6)}; }, ip_land},
    {40, "ExtensionPastTheEnd", [] { return Frames{hello_behind(with8(extension(17, 0, {}), 1, 200), 60)}; },
     ipv6_bad_extension},
    {40, "HundredExtensions",
     [] {
       Packet chain;
       for (int i = 0; i < 99; ++i) chain = joined(chain, extension(60, 0, {}));
       return Frames{hello_behind(joined(chain, extension(17, 0, {})), 60)};
     },
     ipv6_too_many_extensions},
    {40, "HopByHopNotFirst",
     [] { return Frames{hello_behind(joined(extension(0, 0, {}), extension(17, 0, {})), 60)}; },
     ipv6_too_many_extensions},
    {40, "HopByHopTwice",
     [] { return Frames{hello_behind(joined(extension(0, 0, {}), extension(17, 0, {})), 0)}; },
     ipv6_too_many_extensions},
    {41, "OptionPastItsHeader", [] { return Frames{hello_behind(extension(17, 0, {5, 200}), 60)}; },
     ipv6_bad_option},
    {41, "PadNHuge", [] { return Frames{hello_behind(extension(17, 0, {1, 255}), 60)}; }, ipv6_bad_option},
    {42, "UnknownSkip", [] { return Frames{hello_behind(extension(17, 0, {0x3e, 4}), 60)}; }, std::nullopt, 0,
     Reply::none, "hello"},
    {42, "UnknownDiscard", [] { return Frames{hello_behind(extension(17, 0, {0x7e, 4}), 60)}; },
     ipv6_bad_option},
    {42, "UnknownReport", [] { return Frames{hello_behind(extension(17, 0, {0xbe, 4}), 60)}; },
     ipv6_bad_option, 1, Reply::parameter_problem},
    {42, "UnknownReportUnlessMulticast", [] { return Frames{hello_behind(extension(17, 0, {0xfe, 4}), 60)}; },
     ipv6_bad_option, 1, Reply::parameter_problem},
    {42, "UnknownReportToAGroup",
     [] { return Frames{hello_behind(extension(17, 0, {0xbe, 4}), 60, *IpAddress::parse("ff02::1"))}; },
     ipv6_bad_option, 1, Reply::parameter_problem},
    {42, "UnknownNotReportedToAGroup",
     [] { return Frames{hello_behind(extension(17, 0, {0xfe, 4}), 60, *IpAddress::parse("ff02::1"))}; },
     ipv6_bad_option},
    {43, "RoutingHeaderZero", [] { return Frames{hello_behind(extension(17, 2, {0, 1}), 43)}; },
     ipv6_routing_header_0},
    {44, "Overlap",
     [] { return Frames{piece6(true, 0, part(long6(), 0, 24)), piece6(false, 16, part(long6(), 16, 32))}; },
     frag_overlap},
    {45, "Atomic", [] { return Frames{piece6(false, 0, udp6(bytes("hello")))}; }, std::nullopt, 0,
     Reply::none, "hello"},
    {45, "AtomicBesideAQueueOfItsName",
     [] {
       return Frames{piece6(true, 0, part(long6(), 0, 16)), piece6(false, 0, udp6(bytes("hello "))),
                     piece6(false, 16, part(long6(), 16, 32))};
     },
     std::nullopt, 0, Reply::none, "hello a datagram of two pieces"},
    {46, "FirstWithoutItsChain", [] { return Frames{piece6(true, 0, extension(17, 0, {}), 60)}; },
     frag_tiny_first},
    {47, "NotInUnitsOfEight", [] { return Frames{piece6(true, 0, part(long6(), 0, 17))}; }, frag_bad_length},
    {47, "PastTheLargest", [] { return Frames{piece6(false, 65528, pattern(16))}; }, frag_too_large},
    {47, "NeighbourMessageInFragments",
     [] {
       const Packet message = icmp6(136, 0, 0, pattern(24));
       const Packet icmp(message.begin() + 54, message.end());
       return Frames{piece6(true, 0, part(icmp, 0, 16), 58),
                     piece6(false, 16, part(icmp, 16, icmp.size()), 58)};
     },
     nd_malformed},
    {48, "NoNextHeader", [] { return Frames{frame6(pattern(20), 59)}; }, ipv6_no_next_header},
    {48, "NoNextHeaderAndNothing", [] { return Frames{frame6({}, 59)}; }, ipv6_no_next_header},
};

const std::vector<Row> kUdp = {
    {49, "SevenBytes", [] { return Frames{frame4(pattern(7))}; }, udp_truncated},
    {50, "LengthSeven", [] { return Frames{with16(hello4(), 38, 7)}; }, udp_bad_length},
    {50, "LengthZero", [] { return Frames{with16(hello4(), 38, 0)}; }, udp_bad_length},
    {51, "LengthPastThePacket", [] { return Frames{with16(hello4(), 38, 14)}; }, udp_bad_length},
    {51, "LengthPastThePacketIpv6", [] { return Frames{with16(hello6(), 58, 14)}; }, udp_bad_length},
    {52, "LengthBelowThePacket", [] { return Frames{frame4(joined(udp4(bytes("hello")), pattern(10)))}; },
     std::nullopt, 0, Reply::none, "hello"},
    {53, "NoChecksumIpv4", [] { return Frames{checksum_free(hello4(), 40)}; }, std::nullopt, 0, Reply::none,
     "hello"},
    {53, "NoChecksumIpv6", [] { return Frames{checksum_free(hello6(), 60)}; }, udp_no_checksum_v6},
    {54, "WrongChecksum", [] { return Frames{with8(hello4(), 46, 'p')}; }, udp_bad_checksum},
    {54, "WrongChecksumIpv6", [] { return Frames{with8(hello6(), 66, 'p')}; }, udp_bad_checksum},
    {55, "SourcePortZero", [] { return Frames{frame4(testkit::udp({kPeer4, 0}, {kOur4, 7}, bytes("x")))}; },
     std::nullopt, 0, Reply::none, "x"},
    {55, "DestinationPortZero",
     [] { return Frames{frame4(testkit::udp({kPeer4, 4000}, {kOur4, 0}, bytes("x")))}; }, udp_bad_port},
    {56, "ZeroBytes", [] { return Frames{frame4(udp4())}; }, std::nullopt, 0, Reply::none, "(empty)"},
    {58, "AnotherPeer", [] { return Frames{frame4(testkit::udp({kPeer4, 4002}, {kOur4, 8}, bytes("x")))}; },
     udp_wrong_peer, 1, Reply::port_unreachable},
    {58, "NobodyThere", [] { return Frames{frame4(testkit::udp({kPeer4, 4002}, {kOur4, 99}, bytes("x")))}; },
     udp_no_socket, 1, Reply::port_unreachable},
};

const std::vector<Row> kIcmp = {
    {59, "SevenBytes",
     [] { return Frames{frame4(pattern(7), {.source = {}, .destination = {}, .protocol = 1})}; },
     icmp_truncated},
    {59, "SevenBytesIpv6", [] { return Frames{frame6(pattern(7), 58)}; }, icmp_truncated},
    {59, "WrongChecksum", [] { return Frames{with8(icmp4(8, 0, 1, pattern(8)), 41, 9)}; }, icmp_bad_checksum},
    {59, "WrongChecksumIpv6", [] { return Frames{with8(icmp6(128, 0, 1, pattern(8)), 61, 9)}; },
     icmp_bad_checksum},
    {60, "NothingQuoted", [] { return Frames{icmp4(3, 3, 0, {})}; }, icmp_bad_quote},
    {60, "SevenBytesBehindTheQuotedHeader", [] { return Frames{icmp4(3, 3, 0, part(quote4(), 0, 27))}; },
     icmp_bad_quote},
    {60, "QuotedHeaderLengthFour", [] { return Frames{icmp4(3, 3, 0, with8(quote4(), 0, 0x44))}; },
     icmp_bad_quote},
    {60, "QuotedVersionSix", [] { return Frames{icmp4(3, 3, 0, with8(quote4(), 0, 0x65))}; }, icmp_bad_quote},
    {60, "CutOffIpv6", [] { return Frames{icmp6(1, 4, 0, part(quote6(), 0, 47))}; }, icmp_bad_quote},
    {60, "SomebodyElsesPacket",
     [] {
       return Frames{icmp4(3, 3, 0,
                           testkit::ip({.source = IpAddress::v4(10, 0, 0, 9), .destination = kPeer4},
                                       testkit::udp({IpAddress::v4(10, 0, 0, 9), 7}, {kPeer4, 9}, {})))};
     },
     icmp_unmatched},
    {62, "MtuZero", [] { return Frames{icmp4(3, 4, 0, quote4())}; }, icmp_bad_mtu},
    {62, "MtuOne", [] { return Frames{icmp4(3, 4, 1, quote4())}; }, icmp_bad_mtu},
    {62, "MtuSixtySeven", [] { return Frames{icmp4(3, 4, 67, quote4())}; }, icmp_bad_mtu},
    {62, "MtuAboveTheLink", [] { return Frames{icmp4(3, 4, 9000, quote4())}; }, icmp_bad_mtu},
    {62, "MtuBelow1280Ipv6", [] { return Frames{icmp6(2, 0, 1279, quote6())}; }, icmp_bad_mtu},
    {62, "MtuHugeIpv6", [] { return Frames{icmp6(2, 0, 0xffffffff, quote6())}; }, icmp_bad_mtu},
    {65, "SourceQuench", [] { return Frames{icmp4(4, 0, 0, quote4())}; }, icmp_ignored},
    {65, "Redirect", [] { return Frames{icmp4(5, 1, 0x0a000009, quote4())}; }, icmp_ignored},
    {65, "RedirectIpv6", [] { return Frames{icmp6(137, 0, 0, pattern(32))}; }, icmp_ignored},
    {65, "UnknownType", [] { return Frames{icmp4(200, 0, 0, pattern(8))}; }, icmp_ignored},
};

class BadInputs : public StackTest {
 protected:
  UdpHandle any, connected;
  void SetUp() override {
    start();
    know_peers();
    any = open({IpAddress::any_v6(), 7});
    connected = open({kOur4, 8});
    ASSERT_TRUE(stack().connect_udp(connected, {kPeer4, 4001}));
  }
  std::string delivered() {
    std::string out;
    for (const UdpHandle socket : {any, connected}) {
      while (const auto got = receive_one(socket))
        out += got->payload.empty() ? "(empty)" : text(got->payload);
    }
    return out;
  }
  Reply reply_of(const Packet& frame) {
    const auto ip = wire::parse_ip(l3_of(frame));
    EXPECT_TRUE(ip);
    if (!ip) return Reply::none;
    const unsigned type = load_u8(ip->payload, 0), code = load_u8(ip->payload, 1);
    const bool v4 = ip->version == 4;
    if ((v4 && type == 3 && code == 3) || (!v4 && type == 1 && code == 4)) return Reply::port_unreachable;
    if (!v4 && type == 4 && code == 2) return Reply::parameter_problem;
    ADD_FAILURE() << "an answer of another kind";
    return Reply::none;
  }
};

class BadInput : public BadInputs, public ::testing::WithParamInterface<Row> {};

TEST_P(BadInput, HasItsCounterItsAnswerAndItsEffect) {
  const Row& row = GetParam();
  std::array<std::uint64_t, static_cast<std::size_t>(DropReason::kCount)> before;
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = count(static_cast<DropReason>(i));
  for (const Packet& frame : row.frames()) ASSERT_TRUE(arrive(frame));
  const auto replies = sent();
  run(row.wait);

  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto reason = static_cast<DropReason>(i);
    const bool expected = row.counter == reason;
    // A flood's leftovers also time out.
    if (!expected && row.wait != Duration{} && reason == frag_timeout) continue;
    EXPECT_EQ(count(reason) - before[i], expected ? row.times : 0) << to_string(reason);
  }
  if (row.reply == Reply::none) {
    EXPECT_TRUE(replies.empty());
  } else {
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(reply_of(replies[0]), row.reply);
  }
  EXPECT_EQ(delivered(), row.delivered);
  EXPECT_FALSE(stack().take_error(connected));

  // And life goes on: the stack serves, whole datagrams go out, no slot is lost.
  run(2s);
  arrive(hello4());
  arrive(hello6());
  arrive(frame4(testkit::udp({kPeer4, 4001}, {kOur4, 8}, bytes("!"))));
  EXPECT_EQ(delivered(), "hellohello!");
  EXPECT_EQ(send_one(any, pattern(1400), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(send_one(any, pattern(1400), {kPeer6, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 2u);
  poll();
  EXPECT_EQ(lent(), settings.slots);
}

std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  const std::string number = std::to_string(info.param.number);
  return "Row" + std::string(number.size() < 2 ? "0" : "") + number + "_" + info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Ethernet, BadInput, ::testing::ValuesIn(kEthernet), name_of);
INSTANTIATE_TEST_SUITE_P(Ipv4, BadInput, ::testing::ValuesIn(kIpv4), name_of);
INSTANTIATE_TEST_SUITE_P(Fragment, BadInput, ::testing::ValuesIn(kFragments), name_of);
INSTANTIATE_TEST_SUITE_P(Ipv6, BadInput, ::testing::ValuesIn(kIpv6), name_of);
INSTANTIATE_TEST_SUITE_P(Udp, BadInput, ::testing::ValuesIn(kUdp), name_of);
INSTANTIATE_TEST_SUITE_P(Icmp, BadInput, ::testing::ValuesIn(kIcmp), name_of);

// Rows whose fault is not in the bytes of a frame.

TEST_F(BadInputs, Row08_DescriptorOutsideTheMemory) {
  for (const FrameDesc& desc :
       {FrameDesc{.slot = 0xffffffff}, FrameDesc{.slot = settings.slots},
        FrameDesc{.slot = 1, .length = 2049}, FrameDesc{.slot = 1, .length = 1, .offset = 2048},
        FrameDesc{.slot = 1, .length = 2000, .offset = 60000}}) {
    ASSERT_TRUE(driver().rx.push(desc));
    poll();
  }
  EXPECT_EQ(count(device_bad_descriptor), 5u);
}

TEST_F(BadInputs, Row08_TheSameSlotTwice) {
  ASSERT_TRUE(arrive(hello4()));
  FrameDesc desc;
  desc.slot = 0;
  desc.length = 47;
  ASSERT_TRUE(driver().rx.push(desc));  // it waits in the socket's queue and is not the device's to give
  poll();
  EXPECT_EQ(count(device_bad_descriptor), 1u);
  EXPECT_EQ(delivered(), "hello");
}

TEST_F(BadInputs, Row09_AChainThatDoesNotEndIsDroppedWhole) {
  const Packet frame = frame4(udp4(pattern(58)));  // 100 bytes
  ASSERT_TRUE(arrive(frame, {.flags = kContinues, .part = 2}));
  EXPECT_EQ(count(device_chain_too_long), 1u);
  poll();
  EXPECT_EQ(lent(), settings.slots);
  ASSERT_TRUE(arrive(hello4()));  // the last part of it, as far as anybody can know
  EXPECT_EQ(delivered(), "");
  ASSERT_TRUE(arrive(hello4()));
  EXPECT_EQ(delivered(), "hello");
}

TEST_F(BadInputs, Row09_AChainSplitAtEveryByteOfTheHeadersIsOnePacket) {
  const Packet frame = hello4();
  for (std::size_t at = 1; at < frame.size(); ++at) {
    ASSERT_TRUE(arrive_only(part(frame, 0, at), {.flags = kContinues}));
    ASSERT_TRUE(arrive(part(frame, at, frame.size()), {}));
    EXPECT_EQ(delivered(), "hello") << at;
  }
}

TEST_F(BadInputs, Row10_ASuperFrameWhoseLengthsAgreeIsTakenAndOtherwiseDropped) {
  const Packet payload = pattern(40000);
  const Packet frame = frame4(udp4(payload));
  ASSERT_TRUE(arrive(frame, {.flags = kChecksumPartial, .segment_size = 1400, .part = 2048}));
  EXPECT_EQ(stack().udp_info(any)->waiting, 29u);
  EXPECT_EQ(delivered().size(), 40000u);
  ASSERT_TRUE(arrive(mended(with16(frame, 16, 60000)),
                     {.flags = kChecksumPartial, .segment_size = 1400, .part = 2048}));
  EXPECT_EQ(count(ipv4_bad_total_length), 1u);
}

TEST_F(BadInputs, Row62_AnMtuOf68NarrowsThePathToTheFloorOnly) {
  ASSERT_TRUE(arrive(icmp4(3, 4, 68, quote4())));
  EXPECT_EQ(count(icmp_bad_mtu), 0u);
  EXPECT_EQ(send_one(any, pattern(proto::kFloorMtuV4 - 28), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 1u);
  EXPECT_EQ(send_one(any, pattern(proto::kFloorMtuV4 - 27), {kPeer4, 9}), SendStatus::queued);
  EXPECT_EQ(sent().size(), 2u);
}

}  // namespace
}  // namespace netchannel::stack
