// Packets for tests, put together from the inside out and independently of the wire room, so that the two
// check each other:
//
//   ethernet(to, from, kIpv4, ipv4({.source = a, .destination = b}, udp(from_port, to_port, payload)))
//
// Checksums are right; a test that wants a wrong one changes bytes afterwards.
#pragma once

#include <string_view>
#include <vector>

#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::testkit {

using Packet = std::vector<std::byte>;

inline constexpr std::uint16_t kIpv4 = 0x0800;
inline constexpr std::uint16_t kArp = 0x0806;
inline constexpr std::uint16_t kVlan = 0x8100;
inline constexpr std::uint16_t kIpv6 = 0x86dd;
inline constexpr std::uint16_t kLocalExperiment = 0x88b5;  // IEEE 802, for what nobody else answers

Packet bytes(std::string_view text);
// Bytes that differ from place to place and from seed to seed.
Packet pattern(std::size_t size, std::uint8_t seed = 0);
// The RFC 1071 sum of `data`, complemented; 16-bit words, odd byte padded.
std::uint16_t internet_checksum(Bytes data);

struct MacPair {
  MacAddress to;
  MacAddress from;
};
Packet ethernet(const MacPair& macs, std::uint16_t type, Bytes payload);

struct IpFields {
  IpAddress source;
  IpAddress destination;
  std::uint8_t protocol = 17;
  std::uint8_t ttl = 64;
  std::uint8_t tos = 0;
  std::uint16_t id = 0;
  std::uint16_t fragment = 0;  // flags and offset as they stand in an IPv4 header
  Packet options{};            // IPv4, a multiple of four bytes
};
// IPv4 or IPv6, as the source is; RFC 791 section 3.1, RFC 8200 section 3.
Packet ip(const IpFields& fields, Bytes payload);
// RFC 768, with the checksum over the pseudo-header of the two addresses.
Packet udp(const Endpoint& from, const Endpoint& to, Bytes payload);
// A whole frame: Ethernet, IP, UDP.
Packet udp_frame(const MacPair& macs, const Endpoint& from, const Endpoint& to, Bytes payload);
// RFC 792 and RFC 4443 echo request or reply, as a whole IP packet.
struct Echo {
  bool request = true;
  std::uint16_t id = 1;
  std::uint16_t sequence = 1;
};
Packet icmp_echo(const IpAddress& from, const IpAddress& to, const Echo& echo, Bytes payload);

// RFC 826; operation 1 asks, 2 answers.
struct ArpFields {
  std::uint16_t operation = 1;
  MacAddress sender_mac;
  IpAddress sender;
  MacAddress target_mac;
  IpAddress target;
};
Packet arp(const ArpFields& fields);

}  // namespace netchannel::testkit
