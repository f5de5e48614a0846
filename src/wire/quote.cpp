// The quoted packet: see quote.hpp for what is believed of it and why.
#include "netchannel/wire/quote.hpp"

#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"

namespace netchannel::wire {
namespace {

constexpr std::size_t kLeastTransport = 8;  // RFC 792: "64 bits of Data Datagram"

// The eight bytes behind the quoted IP header; `flow` has its protocol and addresses.
QuotedPacket read_transport(FlowKey flow, Bytes transport) {
  QuotedPacket quoted{.flow = flow};
  if (flow.protocol != Protocol::tcp && flow.protocol != Protocol::udp) return quoted;
  quoted.has_ports = true;
  quoted.flow.local.port = load_be16(transport, 0);
  quoted.flow.peer.port = load_be16(transport, 2);
  if (flow.protocol == Protocol::tcp) quoted.tcp_sequence = load_be32(transport, 4);
  if (flow.protocol == Protocol::udp) quoted.udp_length = load_be16(transport, 4);
  return quoted;
}

}  // namespace

Parsed<QuotedPacket> QuotedPacket::parse_v4(Bytes bytes) {
  if (bytes.size() < kIpv4MinHeaderSize || load_u8(bytes, 0) >> 4 != 4)
    return drop(DropReason::icmp_bad_quote);
  const std::size_t header = (load_u8(bytes, 0) & 0xf) * std::size_t{4};
  if (header < kIpv4MinHeaderSize || bytes.size() < header + kLeastTransport) {
    return drop(DropReason::icmp_bad_quote);
  }
  const FlowKey flow{Protocol{load_u8(bytes, 9)},
                     {IpAddress::v4(load_be32(bytes, 12)), 0},
                     {IpAddress::v4(load_be32(bytes, 16)), 0}};
  const bool later_fragment = (load_be16(bytes, 6) & 0x1fff) != 0;
  if (later_fragment) return QuotedPacket{.flow = flow};
  return read_transport(flow, bytes.subspan(header));
}

Parsed<QuotedPacket> QuotedPacket::parse_v6(Bytes bytes) {
  if (bytes.size() < kIpv6HeaderSize + kLeastTransport || load_u8(bytes, 0) >> 4 != 6) {
    return drop(DropReason::icmp_bad_quote);
  }
  const auto chain = walk_ipv6_extensions(load_u8(bytes, 6), bytes.subspan(kIpv6HeaderSize));
  if (!chain) return drop(DropReason::icmp_bad_quote);
  const FlowKey flow{chain->protocol, {load_ipv6_address(bytes, 8), 0}, {load_ipv6_address(bytes, 24), 0}};
  if (flow.local.address.is_v4() || flow.peer.address.is_v4()) return drop(DropReason::icmp_bad_quote);
  if (chain->fragment && chain->fragment->offset != 0) return QuotedPacket{.flow = flow};
  const Bytes transport = bytes.subspan(kIpv6HeaderSize + chain->length);
  if (transport.size() < kLeastTransport) return drop(DropReason::icmp_bad_quote);
  return read_transport(flow, transport);
}

}  // namespace netchannel::wire
