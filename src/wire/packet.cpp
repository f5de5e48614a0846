// The straight road is a plain IPv4 or IPv6 header with TCP or UDP behind it; everything else turns off it
// into the general parsers, which may be slower.
#include "netchannel/wire/packet.hpp"

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"

namespace netchannel::wire {
namespace {

// The readers below fill in a value that is already in the caller's result: an IpPacket is too large to hand
// around.

Parsed<void> read_ipv4(Bytes l3, IpPacket& packet) {
  const auto view = Ipv4View::parse(l3);
  if (!view) return drop(view.error());
  packet.version = 4;
  packet.protocol = view->protocol();
  packet.ttl = view->ttl();
  packet.tos = view->tos();
  packet.source = view->source();
  packet.destination = view->destination();
  packet.header = view->header();
  packet.payload = view->payload();
  if (packet.header.size() > kIpv4MinHeaderSize && view->source_routed()) {
    return drop(DropReason::ipv4_source_routed);
  }
  if (!view->is_fragment()) return {};

  // DF with MF is contradictory; it is treated as the fragment that it is.
  packet.fragment = FragmentInfo{view->identification(), view->fragment_offset(), view->more_fragments()};
  const std::size_t length = packet.payload.size();
  if (const auto good = check_fragment(*packet.fragment, length, packet.header.size()); !good) return good;
  // RFC 1858 section 3 and RFC 3128: ports and flags may not be split off, nor written over by a second
  // fragment.
  const bool first = packet.fragment->offset == 0;
  if (first && length < least_transport_header(packet.protocol)) return drop(DropReason::frag_tiny_first);
  if (packet.protocol == Protocol::tcp && packet.fragment->offset == 8)
    return drop(DropReason::frag_tiny_first);
  return {};
}

Parsed<void> read_ipv6(Bytes l3, IpPacket& packet) {
  const auto view = Ipv6View::parse(l3);
  if (!view) return drop(view.error());
  if (view->unknown_option()) return drop(DropReason::ipv6_bad_option);
  const std::size_t header = view->header_length();
  packet.version = 6;
  packet.protocol = view->protocol();
  packet.ttl = view->hop_limit();
  packet.tos = view->traffic_class();
  packet.source = view->source();
  packet.destination = view->destination();
  packet.header = l3.first(header);
  packet.payload = view->payload();
  packet.fragment = view->fragment();
  if (!packet.fragment) return {};
  // RFC 8200 section 4.5: the extension headers before the fragment header come back into the payload length.
  const std::size_t before = header - kIpv6HeaderSize - kIpv6FragmentHeaderSize;
  if (const auto good = check_fragment(*packet.fragment, packet.payload.size(), before); !good) return good;
  if (packet.protocol == Protocol::tcp && packet.fragment->offset == 8)
    return drop(DropReason::frag_tiny_first);
  return {};
}

// The packet that an ICMP error of the packet's own version quotes; nothing if it is no error.
Parsed<std::optional<QuotedPacket>> read_quote(const IpPacket& packet) {
  Parsed<QuotedPacket> quoted = drop(DropReason::icmp_bad_quote);
  if (packet.version == 4 && packet.protocol == Protocol::icmp) {
    const auto message = IcmpView::parse(packet.payload);
    if (!message) return drop(message.error());
    if (!message->is_error()) return std::nullopt;
    quoted = QuotedPacket::parse_v4(message->payload());
  } else if (packet.version == 6 && packet.protocol == Protocol::icmpv6) {
    const auto message = Icmpv6View::parse(packet.payload);
    if (!message) return drop(message.error());
    if (!message->is_error()) return std::nullopt;
    quoted = QuotedPacket::parse_v6(message->payload());
  } else {
    return std::nullopt;
  }
  if (!quoted) return drop(quoted.error());
  // An error comes back to the address that the packet it quotes was sent from.
  if (quoted->flow.local.address != packet.destination) return drop(DropReason::icmp_bad_quote);
  return *quoted;
}

Parsed<void> read_error(const IpPacket& packet, FlowInfo& info) {
  const auto quoted = read_quote(packet);
  if (!quoted) return drop(quoted.error());
  if (!*quoted || !(*quoted)->has_ports) return {};
  info.kind = PacketKind::icmp_error;
  info.key = (*quoted)->flow;
  return {};
}

// `info.key` has its protocol, TCP or UDP, and its addresses.
Parsed<void> read_ports(Bytes transport, FlowInfo& info) {
  const bool tcp = info.key.protocol == Protocol::tcp;
  if (transport.size() < least_transport_header(info.key.protocol)) {
    return drop(tcp ? DropReason::tcp_truncated : DropReason::udp_truncated);
  }
  const std::uint16_t from = load_be16(transport, 0), to = load_be16(transport, 2);
  if (to == 0 || (tcp && from == 0)) return drop(tcp ? DropReason::tcp_bad_port : DropReason::udp_bad_port);
  info.kind = PacketKind::flow;
  info.key.peer.port = from;
  info.key.local.port = to;
  if (from == to && info.key.local.address == info.key.peer.address) return drop(DropReason::ip_land);
  return {};
}

constexpr bool has_ports(Protocol protocol) { return protocol == Protocol::tcp || protocol == Protocol::udp; }

// Any IP packet, fully parsed.
Parsed<void> read_any(const IpPacket& packet, FlowInfo& info) {
  info.l4_offset = static_cast<std::uint16_t>(info.l3_offset + packet.header_length());
  info.key.protocol = packet.protocol;
  info.key.local.address = packet.destination;
  info.key.peer.address = packet.source;
  if (packet.fragment) {
    info.kind = PacketKind::fragment;
    return {};
  }
  return has_ports(packet.protocol) ? read_ports(packet.payload, info) : read_error(packet, info);
}

// Off the straight road.
[[gnu::noinline]] Parsed<void> read_any_ipv4(Bytes l3, FlowInfo& info) {
  IpPacket packet;
  if (const auto good = read_ipv4(l3, packet); !good) return good;
  return read_any(packet, info);
}

[[gnu::noinline]] Parsed<void> read_any_ipv6(Bytes l3, FlowInfo& info) {
  IpPacket packet;
  if (const auto good = read_ipv6(l3, packet); !good) return good;
  return read_any(packet, info);
}

Parsed<void> read_flow_ipv4(Bytes l3, FlowInfo& info) {
  const bool plain = l3.size() >= kIpv4MinHeaderSize && load_u8(l3, 0) == 0x45 &&
                     (load_be16(l3, 6) & 0x3fff) == 0 && has_ports(Protocol{load_u8(l3, 9)});
  if (!plain) return read_any_ipv4(l3, info);
  const std::size_t total = load_be16(l3, 2);
  if (total < kIpv4MinHeaderSize || total > l3.size()) return drop(DropReason::ipv4_bad_total_length);
  info.l4_offset = static_cast<std::uint16_t>(info.l3_offset + kIpv4MinHeaderSize);
  info.key.protocol = Protocol{load_u8(l3, 9)};
  info.key.local.address = IpAddress::v4(load_be32(l3, 16));
  info.key.peer.address = IpAddress::v4(load_be32(l3, 12));
  return read_ports(l3.subspan(kIpv4MinHeaderSize, total - kIpv4MinHeaderSize), info);
}

Parsed<void> read_flow_ipv6(Bytes l3, FlowInfo& info) {
  const bool plain =
      l3.size() >= kIpv6HeaderSize && load_u8(l3, 0) >> 4 == 6 && has_ports(Protocol{load_u8(l3, 6)});
  if (!plain) return read_any_ipv6(l3, info);
  const std::size_t length = load_be16(l3, 4);
  if (length == 0 || length > l3.size() - kIpv6HeaderSize) return drop(DropReason::ipv6_bad_payload_length);
  info.l4_offset = static_cast<std::uint16_t>(info.l3_offset + kIpv6HeaderSize);
  info.key.protocol = Protocol{load_u8(l3, 6)};
  info.key.local.address = load_ipv6_address(l3, 24);
  info.key.peer.address = load_ipv6_address(l3, 8);
  if (info.key.peer.address.is_v4()) return drop(DropReason::ip_martian_source);
  if (info.key.local.address.is_v4()) return drop(DropReason::ip_not_ours);
  return read_ports(l3.subspan(kIpv6HeaderSize, length), info);
}

Parsed<void> read_frame(Bytes frame, FlowInfo& info) {
  const auto ethernet = EthernetView::parse(frame);
  if (!ethernet) return drop(ethernet.error());
  info.l3_offset = static_cast<std::uint16_t>(ethernet->header_length());
  const Bytes l3 = ethernet->payload();
  switch (ethernet->ether_type()) {
    case EtherType::ipv4:
      return read_flow_ipv4(l3, info);
    case EtherType::ipv6:
      return read_flow_ipv6(l3, info);
    case EtherType::arp:
      info.kind = PacketKind::arp;
      return {};
    default:
      return drop(DropReason::eth_unknown_type);
  }
}

}  // namespace

Parsed<IpPacket> parse_ip(Bytes l3) {
  if (l3.empty()) return drop(DropReason::ipv4_truncated);
  Parsed<IpPacket> packet;
  const auto read = load_u8(l3, 0) >> 4 == 6 ? read_ipv6(l3, *packet) : read_ipv4(l3, *packet);
  if (!read) packet = drop(read.error());
  return packet;
}

bool verify_header_checksum(const IpPacket& packet) {
  return packet.version == 6 || fold(checksum_fast(packet.header)) == 0xffff;
}

Parsed<void> check_source(const IpPacket& packet) {
  const IpAddress& source = packet.source;
  bool good = !source.is_loopback() && !source.is_multicast();
  if (packet.version == 4) {
    const std::uint32_t value = source.v4_value();
    good = good && value != 0 && value < 0xf0000000;  // 240/4 includes the broadcast address
  } else {
    good = good && (!source.is_unspecified() || packet.protocol == Protocol::icmpv6);
  }
  if (!good) return drop(DropReason::ip_martian_source);
  return {};
}

Parsed<FlowInfo> flow_of(Bytes frame) {
  Parsed<FlowInfo> info;
  const auto read = read_frame(frame, *info);
  if (!read) info = drop(read.error());
  return info;
}

}  // namespace netchannel::wire
