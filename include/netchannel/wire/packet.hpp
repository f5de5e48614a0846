// One packet, whatever its IP version: what the driver and the stack ask of every frame.
//
//   flow_of(frame)   the driver: which flow is it, cheaply, and where its headers are
//   parse_ip(l3)     the stack: the packet between its link padding, fragments and unknown options judged
//
// Both compare every length with the bytes present. Neither knows our addresses, verifies a checksum, or
// reads a transport header beyond its ports. TTL 0 is not a fault here: a host delivers what reaches it (RFC
// 1122 section 3.2.1.7), as Linux does.
#pragma once

#include <cstdint>
#include <optional>

#include "netchannel/flow.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

// A packet of either version. It lives as long as the bytes it was parsed from.
struct IpPacket {
  std::uint8_t version = 4;
  Protocol protocol = Protocol::udp;  // of an IPv6 fragment, of the header behind the fragment header
  std::uint8_t ttl = 0;               // or hop limit
  std::uint8_t tos = 0;               // or traffic class
  IpAddress source{}, destination{};
  Bytes header;   // IPv6: extension headers included
  Bytes payload;  // without link padding
  std::optional<FragmentInfo> fragment;

  Ecn ecn() const { return Ecn{static_cast<std::uint8_t>(tos & 3)}; }
  std::size_t header_length() const { return header.size(); }
};

// `l3` begins with an IP header and may have a tail. Refused besides what is malformed: source routes,
// fragments that can be in no datagram (empty, past 65535 bytes, not in units of 8, too short for the
// transport header), and unknown IPv6 options that ask for it (the stack asks Ipv6View::unknown_option()
// then, if it wants to report).
Parsed<IpPacket> parse_ip(Bytes l3);

// IPv4's header checksum; IPv6 has none.
bool verify_header_checksum(const IpPacket& packet);

// Sources that can be on no wire (RFC 1122 section 3.2.1.3, RFC 4291 section 2.7): loopback, multicast,
// reserved, broadcast, and unspecified, but that ICMPv6 uses "::" before it has an address (RFC 4862).
Parsed<void> check_source(const IpPacket& packet);

enum class PacketKind : std::uint8_t {
  flow,        // TCP or UDP: `key` is complete
  fragment,    // no ports: `key` has protocol and addresses
  icmp_error,  // quotes a TCP or UDP packet of ours: `key` is that flow, from our side
  arp,         // `key` means nothing
  other,       // IP of another kind (echo, neighbour discovery, unknown): `key` has protocol and addresses
};

struct FlowInfo {
  PacketKind kind = PacketKind::other;
  std::uint16_t l3_offset = 0;  // of the IP or ARP header in the frame
  std::uint16_t l4_offset = 0;  // of the IP payload in the frame
  FlowKey key;                  // local is the packet's destination
};

// `frame` begins with an Ethernet header. Runs once for each packet: one pass over the headers, no checksum.
// A port of 0 is refused as the transport's view does it, and so is a packet from an endpoint to itself
// (land).
Parsed<FlowInfo> flow_of(Bytes frame);

}  // namespace netchannel::wire
