#include "stack/ingress.hpp"

#include <algorithm>
#include <cstring>

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"
#include "netchannel/wire/tcp.hpp"
#include "netchannel/wire/udp.hpp"
#include "proto/udp.hpp"
#include "stack/icmp_ingress.hpp"

namespace netchannel::stack {
namespace {

// Linux sends at most 17 parts and a head; a 64 KiB super-frame in 2 KiB slots has 33.
constexpr std::uint32_t kMostParts = 36;

void start_chain(World& world, const Frame& first) {
  auto whole = world.large.allocate(0);
  if (!whole && world.reassembler.evict_oldest()) whole = world.large.allocate(0);
  world.chain_lost = !whole;
  if (!whole) return world.drop(DropReason::no_frames);
  world.chain = std::move(*whole);
  world.chain.set_flags(first.desc().flags & static_cast<std::uint16_t>(~kContinues), first.desc().l4_offset);
  world.chain.set_segment_size(first.desc().segment_size);
}

void lose_chain(World& world, DropReason reason) {
  world.drop(reason);
  world.chain = {};
  world.chain_lost = true;
}

// One part of a packet of several. Its bytes are copied, so that a packet is in one piece for whoever reads
// it, and the slot goes home.
void take_part(World& world, const Frame& part) {
  if (world.chain_parts++ == 0) start_chain(world, part);
  if (!world.chain_lost && world.chain_parts > kMostParts)
    lose_chain(world, DropReason::device_chain_too_long);
  if (!world.chain_lost) {
    const Bytes bytes = part.bytes();
    const MutableBytes to = world.chain.append(bytes.size());
    if (to.size() < bytes.size()) {
      lose_chain(world, DropReason::device_frame_too_large);
    } else {
      std::copy(bytes.begin(), bytes.end(), to.begin());
    }
  }
  if ((part.desc().flags & kContinues) != 0) return;
  world.chain_parts = 0;
  if (!world.chain_lost) receive_frame(world, std::move(world.chain), false);
}

// What the checksum says of a segment; counted if it may not be taken.
bool judge_tcp_checksum(World& world, const wire::TcpView& view, const wire::IpPacket& packet,
                        std::uint16_t flags) {
  if (!world.options.verify_checksums || (flags & (kChecksumVerified | kChecksumPartial)) != 0) return true;
  if (wire::verify_checksum(view, packet.source, packet.destination)) return true;
  if (world.link().virtual_link && wire::has_partial_checksum(view, packet.source, packet.destination)) {
    world.counters.add(Counter::checksum_partial_accepted);
    return true;
  }
  world.drop(DropReason::tcp_bad_checksum);
  return false;
}

void learn_local_peer(World& world, Protocol protocol, const Endpoint& peer, const LinkSource& from) {
  if (world.local_peers.set(protocol, peer, from.mac)) world.egress.invalidate();
}

void receive_tcp(World& world, Frame&& frame, const wire::IpPacket& packet, const LinkSource& from) {
  // RFC 9293 MUST-57: a group has no connections. Nor has a frame that was for all.
  if (!from.to_us_alone || from.group) return world.drop(DropReason::tcp_no_socket);
  const auto view = wire::TcpView::parse(packet.payload);
  if (!view) return world.drop(view.error());
  if (!judge_tcp_checksum(world, *view, packet, frame.desc().flags)) return;
  const TcpArrival arrival{.peer = {packet.source, view->source_port()},
                           .local = {packet.destination, view->destination_port()},
                           .ecn = static_cast<tcp::Ecn>(packet.tos & 3),
                           .station = from.mac};
  if (world.link().local && view->flags().syn()) learn_local_peer(world, Protocol::tcp, arrival.peer, from);
  world.tcp.impl().on_segment(arrival, *view, std::move(frame));
}

void receive_udp(World& world, Frame&& frame, const wire::IpPacket& packet, const LinkSource& from) {
  const auto udp = wire::UdpView::parse(packet.payload);
  if (!udp) return world.drop(udp.error());
  const Endpoint peer{packet.source, udp->source_port()}, local{packet.destination, udp->destination_port()};
  if (world.options.verify_checksums) {
    using Verdict = proto::ChecksumVerdict;
    const bool virtual_link = world.link().virtual_link;
    switch (proto::judge_udp_checksum(*udp, peer.address, local.address, frame.desc().flags, virtual_link)) {
      case Verdict::accepted:
        break;
      case Verdict::accepted_partial:
        world.counters.add(Counter::checksum_partial_accepted);
        break;
      case Verdict::wrong:
        return world.drop(DropReason::udp_bad_checksum);
      case Verdict::missing_v6:
        return world.drop(DropReason::udp_no_checksum_v6);
    }
  }
  const Bytes payload = udp->payload();
  const UdpArrival arrival{.peer = peer,
                           .local = local,
                           .when = world.now,
                           .offset = static_cast<std::uint32_t>(payload.data() - frame.bytes().data()),
                           .length = static_cast<std::uint32_t>(payload.size()),
                           .tos = packet.tos,
                           .ttl = packet.ttl,
                           .rx_slot = from.rx_slot};
  if (!from.to_us_alone) return world.sockets.deliver_broadcast(frame, arrival);
  if (world.link().local) learn_local_peer(world, Protocol::udp, peer, from);
  switch (world.sockets.deliver(std::move(frame), arrival)) {
    case UdpSockets::Delivery::delivered:
      ++world.delivered;
      break;
    case UdpSockets::Delivery::nobody:
      answer_port_unreachable(world, packet, from);
      break;
    case UdpSockets::Delivery::dropped:
      break;
  }
}

// The packet is whole and for us. `packet` looks into `frame`.
void receive_transport(World& world, Frame&& frame, const wire::IpPacket& packet, const LinkSource& from) {
  const bool v4 = packet.version == 4;
  if (packet.protocol == Protocol::udp) return receive_udp(world, std::move(frame), packet, from);
  if (packet.protocol == Protocol::tcp) return receive_tcp(world, std::move(frame), packet, from);
  if (packet.protocol == Protocol::icmp && v4) return receive_icmp(world, packet, from);
  if (packet.protocol == Protocol::icmpv6 && !v4) return receive_icmpv6(world, packet, from);
  if (packet.version == 6 && static_cast<std::uint8_t>(packet.protocol) == wire::Ipv6NextHeader::kNone) {
    return world.drop(DropReason::ipv6_no_next_header);
  }
  world.drop(DropReason::ip_unknown_protocol);
}

// A datagram that has become whole gets a header again, as if it had come in one packet: so options behind a
// fragment header are read, and an error about it can quote it, by the code that does so for every packet.
void receive_fragment(World& world, const wire::IpPacket& fragment, const LinkSource& from) {
  auto whole = world.reassembler.add(fragment, world.now);
  if (!whole) return;
  Frame frame = std::move(whole->payload);
  const auto length = static_cast<std::uint16_t>(frame.size());
  if (whole->version == 4) {
    const wire::Ipv4Repr header{.source = whole->source,
                                .destination = whole->destination,
                                .protocol = whole->protocol,
                                .ttl = whole->ttl,
                                .tos = whole->tos,
                                .payload_length = length,
                                .options = {}};
    header.emit(frame.prepend(header.size()));
  } else {
    const wire::Ipv6Repr header{.source = whole->source,
                                .destination = whole->destination,
                                .next_header = static_cast<std::uint8_t>(whole->protocol),
                                .hop_limit = whole->ttl,
                                .traffic_class = whole->tos,
                                .payload_length = length};
    header.emit(frame.prepend(wire::Ipv6Repr::size()));
  }
  const auto packet = wire::parse_ip(frame.bytes());
  if (!packet) return world.drop(packet.error());
  // RFC 8200 section 4.5: a fragment header within the fragments; nobody sends one in good faith.
  if (packet->fragment) return world.drop(DropReason::ipv6_too_many_extensions);
  receive_transport(world, std::move(frame), *packet, {from.mac, from.group, false, from.to_us_alone, true});
}

// A source that is ourselves: a loop, a forged sender or a land attack.
DropReason judge_own_source(const wire::IpPacket& packet) {
  const bool ported = packet.protocol == Protocol::udp || packet.protocol == Protocol::tcp;
  const bool land = packet.source == packet.destination && ported && packet.payload.size() >= 4 &&
                    load_be16(packet.payload, 0) == load_be16(packet.payload, 2);
  return land ? DropReason::ip_land : DropReason::ip_martian_source;
}

// A destination that is not one of our addresses: a group or broadcast that we listen to?
bool takes_group(const World& world, const wire::IpPacket& packet) {
  if (packet.version == 4) return world.net.is_broadcast(packet.destination);
  return packet.protocol == Protocol::icmpv6 && world.net.is_our_group(packet.destination);
}

void receive_ip(World& world, Frame&& frame, Bytes l3, LinkSource& from) {
  const auto packet = wire::parse_ip(l3);
  if (!packet) {
    world.drop(packet.error());
    if (packet.error() == DropReason::ipv6_bad_option) answer_unknown_option(world, l3, from);
    return;
  }
  if (world.options.verify_checksums && !wire::verify_header_checksum(*packet)) {
    return world.drop(DropReason::ipv4_bad_checksum);
  }
  const bool local = world.link().local;
  if (!local && world.net.is_ours(packet->source)) return world.drop(judge_own_source(*packet));
  if (!(local && packet->source.is_loopback())) {
    if (const auto good = wire::check_source(*packet); !good) return world.drop(good.error());
  }
  if (packet->version == 4 && world.net.is_broadcast(packet->source)) {
    return world.drop(DropReason::ip_martian_source);
  }
  from.to_us_alone = world.net.is_ours(packet->destination);
  if (!from.to_us_alone && !takes_group(world, *packet)) return world.drop(DropReason::ip_not_ours);
  if (packet->fragment) return receive_fragment(world, *packet, from);
  receive_transport(world, std::move(frame), *packet, from);
}

}  // namespace

void take_descriptor(World& world, const FrameDesc& desc) {
  auto frame = world.rx.adopt(desc);
  if (!frame) return world.drop(DropReason::device_bad_descriptor);
  const bool continues = (desc.flags & kContinues) != 0;
  if (continues || world.chain_parts != 0) return take_part(world, *frame);
  receive_frame(world, std::move(*frame), true);
}

void receive_frame(World& world, Frame frame, bool rx_slot) {
  const auto ethernet = wire::EthernetView::parse(frame.bytes());
  if (!ethernet) return world.drop(ethernet.error());
  if (const auto good = wire::check_addresses(*ethernet, world.link().mac); !good)
    return world.drop(good.error());
  // Identifier 0 carries a priority only (802.1Q section 9.6); any other is a network that we are not on.
  for (const wire::VlanTag& tag : ethernet->tags()) {
    if (tag.id() != 0) return world.drop(DropReason::eth_unknown_type);
  }
  const Bytes l3 = ethernet->payload();
  const std::uint8_t version = l3.empty() ? 0 : load_u8(l3, 0) >> 4;
  LinkSource from{ethernet->source(), ethernet->destination().is_multicast(), rx_slot, true, false};
  switch (ethernet->ether_type()) {
    case wire::EtherType::ipv4:
      if (l3.size() < wire::kIpv4MinHeaderSize) return world.drop(DropReason::ipv4_truncated);
      if (version != 4) return world.drop(DropReason::ipv4_bad_version);
      return receive_ip(world, std::move(frame), l3, from);
    case wire::EtherType::ipv6:
      if (l3.size() < wire::kIpv6HeaderSize) return world.drop(DropReason::ipv6_truncated);
      if (version != 6) return world.drop(DropReason::ipv6_bad_version);
      return receive_ip(world, std::move(frame), l3, from);
    case wire::EtherType::arp:
      return receive_arp(world, l3);
    default:
      return world.drop(DropReason::eth_unknown_type);
  }
}

bool deliver_copy(World& world, Bytes payload, const Endpoint& peer, const Endpoint& local, bool slow_path) {
  auto frame = world.large.allocate(0);
  if (!frame && world.reassembler.evict_oldest()) frame = world.large.allocate(0);
  if (!frame) {
    world.drop(DropReason::no_frames);
    return false;
  }
  const MutableBytes to = frame->append(payload.size());
  if (to.size() < payload.size()) {
    world.drop(DropReason::device_frame_too_large);
    return false;
  }
  std::copy(payload.begin(), payload.end(), to.begin());
  if (slow_path) world.counters.add(Counter::udp_slow_path);
  const UdpArrival arrival{.peer = peer,
                           .local = local,
                           .when = world.now,
                           .length = static_cast<std::uint32_t>(payload.size()),
                           .slow_path = slow_path};
  return world.sockets.deliver(std::move(*frame), arrival) == UdpSockets::Delivery::delivered;
}

}  // namespace netchannel::stack
