#include "testkit/frames.hpp"

#include <algorithm>

namespace netchannel::testkit {
namespace {

void put8(Packet& out, unsigned value) { out.push_back(static_cast<std::byte>(value & 0xff)); }
void put16(Packet& out, unsigned value) { put8(out, value >> 8), put8(out, value); }
void put32(Packet& out, std::uint32_t value) { put16(out, value >> 16), put16(out, value & 0xffff); }
void put(Packet& out, Bytes value) { out.insert(out.end(), value.begin(), value.end()); }
void put(Packet& out, const MacAddress& mac) { put(out, std::as_bytes(std::span(mac.bytes))); }
void put(Packet& out, const IpAddress& address) { put(out, address.network_bytes()); }

// The checksum of a transport packet whose own checksum field is zero (RFC 768, RFC 8200 section 8.1).
std::uint16_t transport_checksum(const IpAddress& from, const IpAddress& to, std::uint8_t protocol,
                                 Bytes packet) {
  Packet sum;
  put(sum, from);
  put(sum, to);
  put32(sum, static_cast<std::uint32_t>(packet.size()));
  put32(sum, protocol);
  put(sum, packet);
  return internet_checksum(sum);
}

Packet ipv4(const IpFields& fields, Bytes payload) {
  Packet out;
  const std::size_t header = 20 + fields.options.size();
  put8(out, 0x40 | static_cast<unsigned>(header / 4));
  put8(out, fields.tos);
  put16(out, static_cast<unsigned>(header + payload.size()));
  put16(out, fields.id);
  put16(out, fields.fragment);
  put8(out, fields.ttl);
  put8(out, fields.protocol);
  put16(out, 0);
  put(out, fields.source);
  put(out, fields.destination);
  put(out, fields.options);
  store_be16(out, 10, internet_checksum(out));
  put(out, payload);
  return out;
}

Packet ipv6(const IpFields& fields, Bytes payload) {
  Packet out;
  put32(out, 0x60000000u | std::uint32_t{fields.tos} << 20);
  put16(out, static_cast<unsigned>(payload.size()));
  put8(out, fields.protocol);
  put8(out, fields.ttl);
  put(out, fields.source);
  put(out, fields.destination);
  put(out, payload);
  return out;
}

}  // namespace

Packet bytes(std::string_view text) {
  const Bytes view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

Packet pattern(std::size_t size, std::uint8_t seed) {
  Packet out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>((i * 31 + i / 251 + seed * std::size_t{7}) & 0xff);
  return out;
}

std::uint16_t internet_checksum(Bytes data) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i)
    sum += std::uint64_t{load_u8(data, i)} << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum & 0xffff);
}

Packet ethernet(const MacPair& macs, std::uint16_t type, Bytes payload) {
  Packet out;
  put(out, macs.to);
  put(out, macs.from);
  put16(out, type);
  put(out, payload);
  return out;
}

Packet ip(const IpFields& fields, Bytes payload) {
  return fields.source.is_v4() ? ipv4(fields, payload) : ipv6(fields, payload);
}

Packet udp(const Endpoint& from, const Endpoint& to, Bytes payload) {
  Packet out;
  put16(out, from.port);
  put16(out, to.port);
  put16(out, static_cast<unsigned>(8 + payload.size()));
  put16(out, 0);
  put(out, payload);
  const std::uint16_t sum = transport_checksum(from.address, to.address, 17, out);
  store_be16(out, 6, sum == 0 ? 0xffff : sum);  // RFC 768: zero means that there is none
  return out;
}

Packet udp_frame(const MacPair& macs, const Endpoint& from, const Endpoint& to, Bytes payload) {
  const IpFields fields{.source = from.address, .destination = to.address};
  return ethernet(macs, from.address.is_v4() ? kIpv4 : kIpv6, ip(fields, udp(from, to, payload)));
}

Packet icmp_echo(const IpAddress& from, const IpAddress& to, const Echo& echo, Bytes payload) {
  const bool v4 = from.is_v4();
  Packet out;
  if (v4) {
    put8(out, echo.request ? 8 : 0);
  } else {
    put8(out, echo.request ? 128 : 129);
  }
  put8(out, 0);
  put16(out, 0);
  put16(out, echo.id);
  put16(out, echo.sequence);
  put(out, payload);
  // ICMPv6 sums the pseudo-header too (RFC 4443 section 2.3), ICMP does not (RFC 792).
  store_be16(out, 2, v4 ? internet_checksum(out) : transport_checksum(from, to, 58, out));
  const std::uint8_t protocol = v4 ? 1 : 58;
  return ip({.source = from, .destination = to, .protocol = protocol}, out);
}

Packet arp(const ArpFields& fields) {
  Packet out;
  put16(out, 1);  // Ethernet
  put16(out, kIpv4);
  put8(out, 6);
  put8(out, 4);
  put16(out, fields.operation);
  put(out, fields.sender_mac);
  put(out, fields.sender);
  put(out, fields.target_mac);
  put(out, fields.target);
  return out;
}

}  // namespace netchannel::testkit
