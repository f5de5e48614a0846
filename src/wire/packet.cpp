// The straight road is a plain IPv4 or IPv6 header with TCP or UDP behind it; everything else turns off it
// into the general parsers, which may be slower.
#include "netchannel/wire/packet.hpp"

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"

namespace netchannel::wire {
namespace {

Parsed<IpPacket> parse_ipv4(Bytes l3) {
  const auto view = Ipv4View::parse(l3);
  if (!view) return drop(view.error());
  IpPacket packet{.version = 4,
                  .protocol = view->protocol(),
                  .ttl = view->ttl(),
                  .tos = view->tos(),
                  .source = view->source(),
                  .destination = view->destination(),
                  .header = view->header(),
                  .payload = view->payload(),
                  .fragment = std::nullopt};
  if (packet.header.size() > kIpv4MinHeaderSize && view->source_routed()) {
    return drop(DropReason::ipv4_source_routed);
  }
  if (!view->is_fragment()) return packet;

  // DF with MF is contradictory; it is treated as the fragment that it is.
  packet.fragment = FragmentInfo{view->identification(), view->fragment_offset(), view->more_fragments()};
  const std::size_t length = packet.payload.size();
  if (const auto good = check_fragment(*packet.fragment, length, packet.header.size()); !good) {
    return drop(good.error());
  }
  // RFC 1858 section 3 and RFC 3128: ports and flags may not be split off, nor written over by a second
  // fragment.
  const bool first = packet.fragment->offset == 0;
  if (first && length < least_transport_header(packet.protocol)) return drop(DropReason::frag_tiny_first);
  if (packet.protocol == Protocol::tcp && packet.fragment->offset == 8)
    return drop(DropReason::frag_tiny_first);
  return packet;
}

Parsed<IpPacket> parse_ipv6(Bytes l3) {
  const auto view = Ipv6View::parse(l3);
  if (!view) return drop(view.error());
  if (view->unknown_option()) return drop(DropReason::ipv6_bad_option);
  const std::size_t header = view->header_length();
  IpPacket packet{.version = 6,
                  .protocol = view->protocol(),
                  .ttl = view->hop_limit(),
                  .tos = view->traffic_class(),
                  .source = view->source(),
                  .destination = view->destination(),
                  .header = l3.first(header),
                  .payload = view->payload(),
                  .fragment = view->fragment()};
  if (!packet.fragment) return packet;
  // RFC 8200 section 4.5: the extension headers before the fragment header come back into the payload length.
  const std::size_t before = header - kIpv6HeaderSize - kIpv6FragmentHeaderSize;
  if (const auto good = check_fragment(*packet.fragment, packet.payload.size(), before); !good) {
    return drop(good.error());
  }
  if (packet.protocol == Protocol::tcp && packet.fragment->offset == 8)
    return drop(DropReason::frag_tiny_first);
  return packet;
}

// The flow that an ICMP error quotes, if it quotes one.
Parsed<void> read_error(const IpPacket& packet, FlowInfo& info) {
  Parsed<QuotedPacket> quoted = drop(DropReason::icmp_bad_quote);
  if (packet.version == 4 && packet.protocol == Protocol::icmp) {
    const auto message = IcmpView::parse(packet.payload);
    if (!message) return drop(message.error());
    if (!message->is_error()) return {};
    quoted = QuotedPacket::parse_v4(message->payload());
  } else if (packet.version == 6 && packet.protocol == Protocol::icmpv6) {
    const auto message = Icmpv6View::parse(packet.payload);
    if (!message) return drop(message.error());
    if (!message->is_error()) return {};
    quoted = QuotedPacket::parse_v6(message->payload());
  } else {
    return {};
  }
  if (!quoted) return drop(quoted.error());
  // An error comes back to the address that the packet it quotes was sent from.
  if (quoted->flow.local.address != packet.destination) return drop(DropReason::icmp_bad_quote);
  if (!quoted->has_ports) return {};
  info.kind = PacketKind::icmp_error;
  info.key = quoted->flow;
  return {};
}

Parsed<void> read_ports(Bytes transport, FlowInfo& info) {
  const bool tcp = info.key.protocol == Protocol::tcp;
  if (transport.size() < least_transport_header(info.key.protocol)) {
    return drop(tcp ? DropReason::tcp_truncated : DropReason::udp_truncated);
  }
  info.kind = PacketKind::flow;
  info.key.peer.port = load_be16(transport, 0);
  info.key.local.port = load_be16(transport, 2);
  if (info.key.local.port == 0 || (tcp && info.key.peer.port == 0)) {
    return drop(tcp ? DropReason::tcp_bad_port : DropReason::udp_bad_port);
  }
  if (info.key.local == info.key.peer) return drop(DropReason::ip_land);
  return {};
}

constexpr bool has_ports(Protocol protocol) { return protocol == Protocol::tcp || protocol == Protocol::udp; }

// Any IP packet, fully parsed.
Parsed<FlowInfo> flow_of_any(const Parsed<IpPacket>& packet, FlowInfo info) {
  if (!packet) return drop(packet.error());
  info.l4_offset = static_cast<std::uint16_t>(info.l3_offset + packet->header_length());
  info.key = {packet->protocol, {packet->destination, 0}, {packet->source, 0}};
  if (packet->fragment) {
    info.kind = PacketKind::fragment;
    return info;
  }
  const auto read =
      has_ports(packet->protocol) ? read_ports(packet->payload, info) : read_error(*packet, info);
  if (!read) return drop(read.error());
  return info;
}

Parsed<FlowInfo> flow_of_ipv4(Bytes l3, FlowInfo info) {
  const bool plain = l3.size() >= kIpv4MinHeaderSize && load_u8(l3, 0) == 0x45 &&
                     (load_be16(l3, 6) & 0x3fff) == 0 && has_ports(Protocol{load_u8(l3, 9)});
  if (!plain) return flow_of_any(parse_ipv4(l3), info);
  const std::size_t total = load_be16(l3, 2);
  if (total < kIpv4MinHeaderSize || total > l3.size()) return drop(DropReason::ipv4_bad_total_length);
  info.l4_offset = static_cast<std::uint16_t>(info.l3_offset + kIpv4MinHeaderSize);
  info.key = {
      Protocol{load_u8(l3, 9)}, {IpAddress::v4(load_be32(l3, 16)), 0}, {IpAddress::v4(load_be32(l3, 12)), 0}};
  if (const auto read = read_ports(l3.subspan(kIpv4MinHeaderSize, total - kIpv4MinHeaderSize), info); !read) {
    return drop(read.error());
  }
  return info;
}

}  // namespace

Parsed<IpPacket> parse_ip(Bytes l3) {
  if (l3.empty()) return drop(DropReason::ipv4_truncated);
  return load_u8(l3, 0) >> 4 == 6 ? parse_ipv6(l3) : parse_ipv4(l3);
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
  const auto ethernet = EthernetView::parse(frame);
  if (!ethernet) return drop(ethernet.error());
  FlowInfo info;
  info.l3_offset = static_cast<std::uint16_t>(ethernet->header_length());
  const Bytes l3 = ethernet->payload();
  switch (ethernet->ether_type()) {
    case EtherType::ipv4:
      return flow_of_ipv4(l3, info);
    case EtherType::ipv6:
      return flow_of_any(parse_ipv6(l3), info);
    case EtherType::arp:
      info.kind = PacketKind::arp;
      return info;
    default:
      return drop(DropReason::eth_unknown_type);
  }
}

}  // namespace netchannel::wire
