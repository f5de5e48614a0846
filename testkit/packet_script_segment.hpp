// TCP segments as bytes and back, for packet scripts; independent of the wire room, so that the two check
// each other. Reading verifies all that has one right answer: lengths, checksums, the form of the options.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "netchannel/address.hpp"
#include "testkit/frames.hpp"
#include "testkit/packet_script.hpp"

namespace netchannel::testkit::script {

struct Flags {
  static constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32;
};

struct Segment {
  Endpoint from, to;
  std::uint8_t ttl = 64;
  std::uint8_t tos = 0;
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  std::uint8_t flags = 0;
  std::uint8_t reserved = 0;
  std::uint16_t window = 0;
  std::uint16_t urgent = 0;
  std::vector<Option> options;  // with sequence numbers and timestamps as on the wire
  Packet payload;
};

struct Spoiled {
  bool checksum = false;
  bool length = false;
};
// A whole IP packet. Options stand one behind the other, filled up with NOPs.
Packet packet_of(const Segment& segment, Spoiled spoiled = {});
// Of a whole IP packet; options without NOPs. An error says what is wrong with it.
tl::expected<Segment, std::string> read_segment(Bytes packet);

// An ICMP or ICMPv6 error from `router` to the sender of `quoted` (a whole IP packet, quoted up to the end of
// the TCP header). An ICMPv4 "protocol unreachable" is ICMPv6's "unrecognized next header". No value: the
// family has no such error.
std::optional<Packet> icmp_error(const IcmpPart& what, const IpAddress& router, Bytes quoted);

// "S.", "-"
std::string flag_letters(std::uint8_t flags);

}  // namespace netchannel::testkit::script
