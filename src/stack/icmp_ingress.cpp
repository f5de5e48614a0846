#include "stack/icmp_ingress.hpp"

#include <array>
#include <cerrno>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/ipv6.hpp"

namespace netchannel::stack {
namespace {

// The way back to where a packet came from.
Way back_to(World& world, const wire::IpPacket& packet, const LinkSource& from) {
  return {
      .source = packet.destination, .destination = packet.source, .mac = from.mac, .mtu = world.link().mtu};
}

SocketError to_socket_error(const proto::IcmpError& error, std::uint32_t mtu) {
  using Kind = proto::IcmpError::Kind;
  SocketError out{ErrorCode::unreachable, EHOSTUNREACH, 0, error.flow.peer};
  switch (error.kind) {
    case Kind::port_unreachable:
      out.code = ErrorCode::refused, out.sys_errno = ECONNREFUSED;
      break;
    case Kind::too_big:
      out.code = ErrorCode::message_too_long, out.sys_errno = EMSGSIZE, out.mtu = mtu;
      break;
    case Kind::protocol_unreachable:
      out.sys_errno = ENOPROTOOPT;
      break;
    case Kind::prohibited:
      out.sys_errno = error.flow.peer.address.is_v4() ? EHOSTUNREACH : EACCES;
      break;
    case Kind::parameter_problem:
      out.sys_errno = EPROTO;
      break;
    case Kind::host_unreachable:
    case Kind::time_exceeded:
      break;
  }
  return out;
}

// An error that quotes a packet which we may have sent.
void take_error(World& world, const wire::Parsed<proto::IcmpError>& error) {
  if (!error) return world.drop(error.error());
  const FlowKey& flow = error->flow;
  if (flow.protocol == Protocol::tcp) {
    const bool taken = world.net.is_ours(flow.local.address) && world.tcp.impl().on_icmp(*error);
    if (!taken) world.drop(DropReason::icmp_unmatched);
    return;
  }
  const bool ours = flow.protocol == Protocol::udp && world.net.is_ours(flow.local.address) &&
                    world.sockets.has_flow(flow.local, flow.peer);
  if (!ours) return world.drop(DropReason::icmp_unmatched);
  std::uint32_t mtu = 0;
  if (error->kind == proto::IcmpError::Kind::too_big) {
    using Verdict = proto::PathMtuTable::Verdict;
    const IpAddress& destination = flow.peer.address;
    switch (world.paths.lower(destination, error->mtu, world.link().mtu, world.now)) {
      case Verdict::impossible:
        return world.drop(DropReason::icmp_bad_mtu);
      case Verdict::unchanged:
        return;
      case Verdict::lowered:
        break;
    }
    mtu = world.paths.mtu(destination, world.link().mtu, world.now);
    world.egress.invalidate();
  }
  if (world.link().local && error->hard()) {
    // The port may be the kernel's now.
    world.local_peers.forget(Protocol::udp, flow.peer);
    world.egress.invalidate();
  }
  world.sockets.deliver_error(flow.local, to_socket_error(*error, mtu), error->hard());
}

// Sends an ICMP error of the family of `about`, quoting it.
template <class Repr>
void send_error(World& world, const wire::IpPacket& about, const LinkSource& from, const Repr& repr) {
  if (!world.error_budget.take(world.now)) {
    world.counters.add(Counter::icmp_errors_limited);
    return;
  }
  const Way way = back_to(world, about, from);
  // Header and payload of the packet stand one behind the other.
  const Bytes quote{about.header.data(), proto::quote_length(about)};
  std::array<std::byte, Repr::size()> head;
  wire::PartialSum sum = wire::checksum_fast(quote);
  const Protocol protocol = about.version == 4 ? Protocol::icmp : Protocol::icmpv6;
  if (about.version == 6)
    sum.add(wire::pseudo_header(way.source, way.destination, protocol, head.size() + quote.size()));
  repr.emit(head, sum);
  const IpOut out{.protocol = protocol, .dont_fragment = true, .head = head, .body = quote};
  if (world.egress.send_ip(way, out) == SendStatus::queued) world.counters.add(Counter::icmp_errors_sent);
}

// `message` is the echo request as it stands behind the IP header.
template <class Repr>
void answer_echo(World& world, const wire::IpPacket& packet, const LinkSource& from, const Repr& repr) {
  // RFC 1122 section 3.2.2.6: an echo request to a group or broadcast address may be discarded; it is
  // (smurf).
  if (!world.link().bare || !world.net.is_ours(packet.destination))
    return world.drop(DropReason::icmp_ignored);
  const Way way = back_to(world, packet, from);
  const Bytes data = packet.payload.subspan(Repr::size());
  std::array<std::byte, Repr::size()> head;
  wire::PartialSum sum = wire::checksum_fast(data);
  if (packet.version == 6)
    sum.add(wire::pseudo_header(way.source, way.destination, packet.protocol, packet.payload.size()));
  repr.emit(head, sum);
  const IpOut out{
      .protocol = packet.protocol, .tos = packet.tos, .dont_fragment = true, .head = head, .body = data};
  if (world.egress.send_ip(way, out) == SendStatus::queued) world.counters.add(Counter::icmp_echo_replies);
}

void apply(World& world, const proto::NeighbourCache::Effect& effect) {
  if (effect.evicted) world.egress.on_failed(*effect.evicted);
  if (effect.changed || effect.evicted) world.egress.invalidate();
  if (effect.resolved) world.egress.on_resolved(effect.index, effect.mac);
}

void answer_solicitation(World& world, const wire::NeighbourView& asked, const wire::IpPacket& packet) {
  const IpAddress target = asked.target();
  if (!world.net.is_ours(target)) return world.drop(DropReason::arp_not_ours);
  // RFC 4861 section 7.2.4: to who has no address yet, the answer goes to all nodes, and it is not
  // "solicited".
  const bool unspecified = packet.source.is_unspecified();
  static constexpr IpAddress kAllNodes = IpAddress::v6({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  const std::optional<MacAddress>& asker = asked.link_layer();
  if (!unspecified && asker && world.net.is_on_link(packet.source)) {
    apply(world, world.neighbours.on_question(packet.source, *asker, world.now));
  }
  Way way{.source = target,
          .destination = unspecified ? kAllNodes : packet.source,
          .mac = unspecified ? wire::multicast_mac(kAllNodes) : asker.value_or(MacAddress{}),
          .mtu = world.link().mtu};
  if (!unspecified && !asker) {
    way = world.egress.find_way(packet.source, target);
    if (way.status != SendStatus::queued) return;
  }
  std::array<std::byte, 32> message;
  wire::NeighbourRepr{.solicitation = false,
                      .solicited = !unspecified,
                      .override_flag = true,
                      .target = target,
                      .link_layer = world.link().mac}
      .emit(message, way.source, way.destination);
  const IpOut out{.protocol = Protocol::icmpv6, .ttl = 255, .head = message};
  if (world.egress.send_ip(way, out) == SendStatus::queued) world.counters.add(Counter::arp_replies_sent);
}

void receive_neighbour_message(World& world, const wire::Icmpv6View& message, const wire::IpPacket& packet) {
  const auto view = wire::NeighbourView::parse(message, {packet.source, packet.destination, packet.ttl});
  if (!view) return world.drop(view.error());
  if (view->is_solicitation()) return answer_solicitation(world, *view, packet);
  if (world.net.is_ours(view->target())) return world.drop(DropReason::arp_conflict);
  apply(world,
        world.neighbours.on_answer(
            view->target(),
            {.mac = view->link_layer(), .solicited = view->solicited(), .overrides = view->override_flag()},
            world.now));
}

}  // namespace

void receive_arp(World& world, Bytes payload) {
  if (!world.link().bare) return world.drop(DropReason::arp_not_ours);
  const auto arp = wire::ArpView::parse(payload);
  if (!arp) return world.drop(arp.error());
  const MacAddress mac = arp->sender_mac();
  const IpAddress sender = arp->sender();
  if (mac.is_multicast() || mac.is_zero() || sender.is_multicast() || sender.is_limited_broadcast()) {
    return world.drop(DropReason::arp_malformed);
  }
  if (world.net.is_ours(sender)) return world.drop(DropReason::arp_conflict);
  const bool for_us = world.net.is_ours(arp->target());
  const bool asks = arp->operation() == wire::ArpOperation::request;
  // RFC 5227: a probe's sender has no address yet; it is answered and not remembered.
  const bool has_address = !sender.is_unspecified() && world.net.is_on_link(sender);
  if (has_address && asks && for_us) {
    apply(world, world.neighbours.on_question(sender, mac, world.now));
  } else if (has_address) {
    // RFC 826's merge: whatever it was about, it may update an entry that is there.
    apply(world, world.neighbours.on_answer(sender, {.mac = mac, .solicited = !asks && for_us}, world.now));
  }
  if (!for_us) return world.drop(DropReason::arp_not_ours);
  if (!asks) return;
  std::array<std::byte, wire::kArpSize> reply;
  wire::ArpRepr{wire::ArpOperation::reply, world.link().mac, arp->target(), mac, sender}.emit(reply);
  if (world.egress.send_raw(mac, 0x0806, reply)) world.counters.add(Counter::arp_replies_sent);
}

void receive_icmp(World& world, const wire::IpPacket& packet, const LinkSource& from) {
  const auto message = wire::IcmpView::parse(packet.payload);
  if (!message) return world.drop(message.error());
  if (world.options.verify_checksums && !wire::verify_checksum(*message)) {
    return world.drop(DropReason::icmp_bad_checksum);
  }
  if (message->type() == wire::IcmpType::echo_request) {
    answer_echo(world, packet, from, wire::IcmpRepr::echo_reply(message->identifier(), message->sequence()));
  } else {
    take_error(world, proto::read_icmp_error(*message));
  }
}

void receive_icmpv6(World& world, const wire::IpPacket& packet, const LinkSource& from) {
  const auto message = wire::Icmpv6View::parse(packet.payload);
  if (!message) return world.drop(message.error());
  if (world.options.verify_checksums && !wire::verify_checksum(*message, packet.source, packet.destination)) {
    return world.drop(DropReason::icmp_bad_checksum);
  }
  if (message->type() == wire::Icmpv6Type::echo_request) {
    answer_echo(world, packet, from,
                wire::Icmpv6Repr::echo_reply(message->identifier(), message->sequence()));
  } else if (message->is_neighbour_message() && world.link().bare) {
    // RFC 6980 section 5: in fragments nobody sends them in good faith.
    if (from.reassembled) return world.drop(DropReason::nd_malformed);
    receive_neighbour_message(world, *message, packet);
  } else {
    take_error(world, proto::read_icmpv6_error(*message));
  }
}

void answer_port_unreachable(World& world, const wire::IpPacket& packet, const LinkSource& from) {
  const bool local = world.link().local;
  if (!(world.link().bare || local) || !proto::may_send_error(packet, from.group, false, local)) return;
  if (packet.version == 4) {
    send_error(world, packet, from, wire::IcmpRepr::unreachable(wire::IcmpUnreachable::kPort));
  } else {
    send_error(world, packet, from, wire::Icmpv6Repr::unreachable(wire::Icmpv6Unreachable::kPort));
  }
}

void answer_unknown_option(World& world, Bytes l3, const LinkSource& from) {
  const auto view = wire::Ipv6View::parse(l3);
  if (!world.link().bare || !view) return;
  const auto unknown = view->unknown_option();
  if (!unknown) return;
  const wire::Ipv6UnknownOption option = *unknown;
  if (option.action < wire::Ipv6OptionAction::report) return;
  wire::IpPacket packet;
  packet.version = 6;
  packet.protocol = view->protocol();
  packet.source = view->source();
  packet.destination = view->destination();
  packet.header = l3.first(view->header_length());
  packet.payload = view->payload();
  packet.fragment = view->fragment();
  const bool group_too = option.action == wire::Ipv6OptionAction::report;
  if (!wire::check_source(packet) || world.net.is_ours(packet.source)) return;
  if (!proto::may_send_error(packet, from.group, group_too)) return;
  if (!world.net.is_ours(packet.destination)) {
    // RFC 4443 section 2.2 (b): an error about a packet to a group goes out from an address of ours.
    const auto source = proto::choose_source(packet.source, {}, world.net.addresses());
    if (!packet.destination.is_multicast() || !world.net.is_our_group(packet.destination) || !source) return;
    packet.destination = *source;
  }
  send_error(world, packet, from,
             wire::Icmpv6Repr::parameter_problem(wire::Icmpv6ParameterProblem::kOption, option.pointer));
}

}  // namespace netchannel::stack
