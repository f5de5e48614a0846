#include "stack/egress.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "proto/udp.hpp"

namespace netchannel::stack {
namespace {

// Payloads begin at a cache line, and the longest headers stand before them.
constexpr std::uint16_t kHeadroom = 64;
static_assert(proto::UdpHeader::kMaxSize <= kHeadroom);
constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint32_t kCacheEntries = 2048;
// Linux cuts a super-frame into no more datagrams (UDP_MAX_SEGMENTS).
constexpr std::uint32_t kMostTogether = 64;
const proto::Route kOnLink;

}  // namespace

Egress::Egress(const EgressParts& parts, const SipKey& key)
    : at_(parts),
      cache_(kCacheEntries, key),
      waiting_(parts.neighbours.capacity(), parts.limits.waiting_frames, parts.limits.waiting_of_neighbour),
      identification_(key) {
  unreachable_.reserve(parts.limits.waiting_frames);
}

void Egress::reclaim() {
  std::array<std::uint32_t, 64> slots;
  while (const std::size_t n = at_.channel.reclaimed.pop_all(slots)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!at_.frames.reclaim(slots[i])) at_.counters.drop(DropReason::device_bad_descriptor);
    }
    if (n < slots.size()) return;
  }
}

std::uint32_t Egress::room(std::uint32_t frames) {
  const std::uint32_t taken = staged_ + (super_.frame ? 1 : 0);
  const std::uint32_t places = at_.channel.tx.reserve(taken + frames);
  frames = places > taken ? std::min(frames, places - taken) : 0;
  if (at_.frames.free_count() < frames) reclaim();
  return static_cast<std::uint32_t>(std::min<std::size_t>(at_.frames.free_count(), frames));
}

// There is room on the ring.
void Egress::stage(Frame frame) {
  if (super_.frame) close_super_frame();
  at_.channel.tx.write(staged_++, std::move(frame).release());
}

void Egress::flush() {
  if (super_.frame) close_super_frame();
  if (staged_ == 0) return;
  at_.channel.tx.submit(staged_);
  sent_ += staged_;
  staged_ = 0;
}

SendStatus Egress::send_udp(const UdpSocketState& socket, const Endpoint& peer, Bytes payload,
                            std::optional<wire::PartialSum>& sum) {
  const CachedHeader* cached = cache_.find(socket.handle, peer, generation_, now);
  if (cached == nullptr || payload.size() > cached->max_payload)
    return send_udp_slowly(socket, peer, payload);
  if (takes_super_frames() && join_super_frame(socket, peer, payload)) {
    at_.counters.add(Counter::udp_sent);
    return SendStatus::queued;
  }
  if (!room_for(1)) return SendStatus::would_block;
  Frame frame = *at_.frames.allocate(kHeadroom);
  const MutableBytes to = frame.append(payload.size());
  const proto::UdpHeader& header = cached->header;
  if (takes_super_frames()) {
    if (super_.frame) close_super_frame();
    std::copy(payload.begin(), payload.end(), to.begin());
    super_ = {std::move(frame), socket.handle, peer, header, static_cast<std::uint32_t>(payload.size()), 1};
    at_.counters.add(Counter::udp_sent);
    return SendStatus::queued;
  }
  if (at_.link.tx_checksum) {
    std::copy(payload.begin(), payload.end(), to.begin());
    header.stamp_partial(frame.prepend(header.size()), payload.size());
    frame.set_flags(kChecksumPartial, static_cast<std::uint16_t>(header.l4_offset()));
  } else {
    if (sum) {
      std::copy(payload.begin(), payload.end(), to.begin());
    } else {
      sum = wire::copy_and_checksum(to, payload);
    }
    header.stamp(frame.prepend(header.size()), payload.size(), *sum);
  }
  stage(std::move(frame));
  at_.counters.add(Counter::udp_sent);
  return SendStatus::queued;
}

// Appends the datagram to the run that is open, if it goes on with it. A run ends with one that is shorter.
bool Egress::join_super_frame(const UdpSocketState& socket, const Endpoint& peer, Bytes payload) {
  SuperFrame& open = super_;
  if (!open.frame || open.socket != socket.handle || !(open.peer == peer)) return false;
  const std::size_t whole = open.frame.size() + payload.size();
  const std::size_t most = std::min<std::size_t>(at_.link.max_tx_frame, kFrameReach) - open.header.size();
  const bool goes_on = !payload.empty() && payload.size() <= open.size && open.count < kMostTogether &&
                       open.frame.size() == std::size_t{open.size} * open.count && whole <= most;
  if (!goes_on || open.frame.tailroom() < payload.size()) return false;
  std::copy(payload.begin(), payload.end(), open.frame.append(payload.size()).begin());
  ++open.count;
  return true;
}

void Egress::close_super_frame() {
  SuperFrame open = std::move(super_);
  super_.frame = {};
  const std::size_t total = open.frame.size();
  open.header.stamp_partial(open.frame.prepend(open.header.size()), total);
  open.frame.set_flags(kChecksumPartial, static_cast<std::uint16_t>(open.header.l4_offset()));
  if (open.count > 1) open.frame.set_segment_size(static_cast<std::uint16_t>(open.size));
  at_.channel.tx.write(staged_++, std::move(open.frame).release());
}

SendStatus Egress::judge_peer(const UdpSocketState& socket, const Endpoint& peer) const {
  if (peer.port == 0 || !socket.binding.takes(peer.address.is_v4())) return SendStatus::bad_peer;
  if (at_.link.local) return SendStatus::queued;
  if (peer.address.is_unspecified() || peer.address.is_loopback()) return SendStatus::not_on_wire;
  if (!socket.broadcast && peer.address.is_v4() && at_.net.is_broadcast(peer.address))
    return SendStatus::bad_peer;
  return SendStatus::queued;
}

// No prebuilt header: finds the way, keeps a header for next time, and writes the datagram in as many packets
// and frames as it needs.
SendStatus Egress::send_udp_slowly(const UdpSocketState& socket, const Endpoint& peer, Bytes payload) {
  if (const SendStatus judged = judge_peer(socket, peer); judged != SendStatus::queued) return judged;
  const bool v4 = peer.address.is_v4();
  if (payload.size() > proto::max_udp_payload(v4)) return SendStatus::message_too_long;
  const Way way = find_way(Protocol::udp, peer, socket.binding.local.address);
  if (way.status != SendStatus::queued) return way.status;

  const Endpoint local{way.source, socket.binding.local.port};
  const std::uint32_t l3_overhead = v4 ? 28 : 48;
  if (socket.dont_fragment && payload.size() + l3_overhead > way.mtu) return SendStatus::message_too_long;
  if (!way.waits_under) {
    CachedHeader& entry = cache_.make(socket.handle, peer);
    entry.header = proto::UdpHeader({.source_mac = at_.link.mac,
                                     .destination_mac = way.mac,
                                     .source = local,
                                     .destination = peer,
                                     .ttl = socket.ttl,
                                     .tos = socket.tos});
    const std::uint32_t slot = at_.frames.region().slot_size();
    const auto most = static_cast<std::uint32_t>(proto::max_udp_payload(v4));
    entry.max_payload = static_cast<std::uint16_t>(std::min({way.mtu - l3_overhead, slot - kHeadroom, most}));
    entry.valid_until = way.valid_until;
    entry.generation = generation_;
    std::optional<wire::PartialSum> sum;
    if (payload.size() <= entry.max_payload) return send_udp(socket, peer, payload, sum);
  }

  std::array<std::byte, wire::kUdpHeaderSize> head;
  const wire::UdpRepr header{local.port, peer.port, static_cast<std::uint16_t>(payload.size())};
  wire::PartialSum sum =
      wire::pseudo_header(local.address, peer.address, Protocol::udp, header.datagram_size());
  sum.add(wire::checksum_fast(payload));
  header.emit(head, sum);
  const SendStatus status = send_ip(way, {.protocol = Protocol::udp,
                                          .ttl = socket.ttl,
                                          .tos = socket.tos,
                                          .dont_fragment = true,
                                          .head = head,
                                          .body = payload,
                                          .socket = socket.handle,
                                          .peer = peer});
  if (status == SendStatus::queued) at_.counters.add(Counter::udp_sent);
  return status;
}

MacAddress Egress::group_mac(const IpAddress& group) const {
  if (group.is_v6()) return wire::multicast_mac(group);
  // RFC 1112 section 6.4: 01:00:5e and the low 23 bits of the group.
  const std::uint32_t value = group.v4_value();
  return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(value >> 16 & 0x7f),
           static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)}};
}

// From one address of the machine to another, which may be the same.
Way Egress::find_local_way(Protocol protocol, const Endpoint& destination, const IpAddress& source) {
  Way way;
  way.destination = destination.address;
  way.source = source.is_unspecified() ? destination.address : source;
  way.mtu = at_.link.mtu;
  const auto station = at_.local_peers.find(protocol, destination);
  if (station) {
    way.mac = *station;
  } else {
    way.status = SendStatus::not_on_wire;
  }
  return way;
}

Way Egress::find_way(Protocol protocol, const Endpoint& to, const IpAddress& source) {
  if (at_.link.local) return find_local_way(protocol, to, source);
  const IpAddress& destination = to.address;
  Way way;
  way.destination = destination;
  way.source = source;
  if (destination.is_unspecified() || destination.is_loopback() || at_.net.is_ours(destination)) {
    way.status = SendStatus::not_on_wire;
    return way;
  }
  const bool broadcast = destination.is_v4() && at_.net.is_broadcast(destination);
  const proto::Route* route = at_.routes.lookup(destination);
  // A group or a broadcast is on the link whatever the routes say.
  if (broadcast || destination.is_multicast()) route = &kOnLink;
  if (route == nullptr || route->elsewhere) {
    if (route == nullptr) at_.counters.drop(DropReason::ip_no_route);
    way.status = route == nullptr ? SendStatus::unreachable : SendStatus::not_on_wire;
    return way;
  }
  if (source.is_unspecified()) {
    const auto chosen = proto::choose_source(destination, *route, at_.net.addresses());
    if (!chosen) {
      at_.counters.drop(DropReason::ip_no_route);
      way.status = SendStatus::unreachable;
      return way;
    }
    way.source = *chosen;
  }
  way.mtu = at_.paths.mtu(destination, at_.link.mtu, now);
  if (broadcast) {
    way.mac = kBroadcastMac;
  } else if (destination.is_multicast()) {
    way.mac = group_mac(destination);
  } else {
    use_neighbour(route->gateway.is_unspecified() ? destination : route->gateway, way);
  }
  return way;
}

void Egress::use_neighbour(const IpAddress& next_hop, Way& way) {
  const auto answer = at_.neighbours.use(next_hop, now);
  if (answer.evicted) {
    on_failed(*answer.evicted);
    invalidate();
  }
  if (answer.act_now) act(answer.action);
  way.mac = answer.mac;
  way.valid_until = answer.valid_until;
  if (!answer.usable) way.waits_under = answer.index;
}

namespace {

// Reads `head` and `body` as one run of bytes.
void gather(MutableBytes to, const IpOut& out, std::size_t offset) {
  if (offset < out.head.size()) {
    const std::size_t n = std::min(to.size(), out.head.size() - offset);
    std::memcpy(to.data(), out.head.data() + offset, n);
    to = to.subspan(n);
    offset += n;
  }
  if (!to.empty()) std::memcpy(to.data(), out.body.data() + (offset - out.head.size()), to.size());
}

struct HeaderBytes {
  std::array<std::byte, wire::kEthernetHeaderSize + wire::kIpv6HeaderSize + wire::kIpv6FragmentHeaderSize>
      bytes;
  std::size_t size = 0;
};

// Ethernet and IP headers of one piece. `whole`: it is no fragment.
HeaderBytes write_headers(const MacAddress& from, const Way& way, const IpOut& out,
                          const proto::FragmentPiece& piece, std::optional<std::uint32_t> id) {
  HeaderBytes header;
  const MutableBytes to(header.bytes);
  const bool v4 = way.destination.is_v4();
  wire::EthernetRepr{way.mac, from, v4 ? wire::EtherType::ipv4 : wire::EtherType::ipv6, {}}.emit(to);
  const MutableBytes l3 = to.subspan(wire::kEthernetHeaderSize);
  const auto length = static_cast<std::uint16_t>(piece.length);
  if (v4) {
    const wire::Ipv4Repr ip{.source = way.source,
                            .destination = way.destination,
                            .protocol = out.protocol,
                            .ttl = out.ttl,
                            .tos = out.tos,
                            .dont_fragment = !id && out.dont_fragment,
                            .more_fragments = piece.more,
                            .identification = static_cast<std::uint16_t>(id.value_or(0)),
                            .fragment_offset = static_cast<std::uint16_t>(piece.offset),
                            .payload_length = length,
                            .options = {}};
    ip.emit(l3);
    header.size = wire::kEthernetHeaderSize + ip.size();
    return header;
  }
  wire::Ipv6Repr ip{.source = way.source,
                    .destination = way.destination,
                    .next_header = static_cast<std::uint8_t>(out.protocol),
                    .hop_limit = out.ttl,
                    .traffic_class = out.tos,
                    .payload_length = length};
  header.size = wire::kEthernetHeaderSize + wire::kIpv6HeaderSize;
  if (id) {
    ip.next_header = wire::Ipv6NextHeader::kFragment;
    ip.payload_length = static_cast<std::uint16_t>(length + wire::kIpv6FragmentHeaderSize);
    wire::Ipv6FragmentRepr{static_cast<std::uint8_t>(out.protocol), {*id, piece.offset, piece.more}}.emit(
        l3.subspan(wire::kIpv6HeaderSize));
    header.size += wire::kIpv6FragmentHeaderSize;
  }
  ip.emit(l3);
  return header;
}

}  // namespace

SendStatus Egress::send_ip(const Way& way, const IpOut& out) {
  const bool v4 = way.destination.is_v4();
  const auto length = static_cast<std::uint32_t>(out.head.size() + out.body.size());
  const std::uint32_t ip_header = v4 ? 20 : 40;
  const bool whole = length + ip_header <= way.mtu;
  const std::uint32_t header = ip_header + (whole || v4 ? 0 : 8);
  if (way.mtu < header + 8) return SendStatus::message_too_long;
  const proto::FragmentPlan plan(length, whole ? length + header + 8 : way.mtu, header);
  const std::uint32_t slot = at_.frames.region().slot_size();
  const auto slots_of = [&](std::uint32_t bytes) { return (14 + header + bytes + slot - 1) / slot; };
  const std::uint32_t pieces = plan.count();
  const std::uint32_t parts =
      (pieces - 1) * slots_of(plan.piece(0).length) + slots_of(plan.piece(pieces - 1).length);
  if (parts > std::min<std::uint32_t>({kMostParts, at_.channel.tx.capacity(), at_.frames.count()})) {
    return SendStatus::message_too_long;
  }
  if (!room_for(parts)) return SendStatus::would_block;

  std::optional<std::uint32_t> id;
  if (!whole) id = identification_.next(way.source, way.destination);
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const proto::FragmentPiece piece = plan.piece(i);
    const HeaderBytes headers = write_headers(at_.link.mac, way, out, piece, id);
    Frame* frame = &parts_[used++];
    *frame = *at_.frames.allocate(0);
    std::memcpy(frame->append(headers.size).data(), headers.bytes.data(), headers.size);
    for (std::uint32_t done = 0; done < piece.length;) {
      if (frame->tailroom() == 0) {
        frame->set_flags(kContinues, 0);
        frame = &parts_[used++];
        *frame = *at_.frames.allocate(0);
      }
      const auto n =
          static_cast<std::uint32_t>(std::min<std::size_t>(frame->tailroom(), piece.length - done));
      gather(frame->append(n), out, piece.offset + done);
      done += n;
    }
  }
  if (!whole) at_.counters.add(Counter::fragments_sent, pieces);
  return let_go(way, out, used);
}

// The finished frames go to the ring, or wait for the neighbour.
SendStatus Egress::let_go(const Way& way, const IpOut& out, std::uint32_t parts) {
  const auto all = std::span(parts_).first(parts);
  if (!way.waits_under) {
    for (Frame& frame : all) stage(std::move(frame));
    return SendStatus::queued;
  }
  const auto count_drop = [&] { at_.counters.drop(DropReason::ip_neighbour_queue_full); };
  if (!waiting_.make_room(*way.waits_under, parts, count_drop)) {
    count_drop();
    for (Frame& frame : all) frame = {};
    return SendStatus::queued;  // lost, as any datagram may be; the sender can do nothing about it
  }
  for (Frame& frame : all)
    waiting_.enter(*way.waits_under, {std::move(frame), out.socket, out.connection, out.peer});
  return SendStatus::queued;
}

bool Egress::send_raw(const MacAddress& to, std::uint16_t ether_type, Bytes payload) {
  if (!room_for(1)) {
    at_.counters.drop(DropReason::no_frames);
    return false;
  }
  Frame frame = *at_.frames.allocate(0);
  const auto type = static_cast<wire::EtherType>(ether_type);
  wire::EthernetRepr{to, at_.link.mac, type, {}}.emit(frame.append(wire::kEthernetHeaderSize));
  std::memcpy(frame.append(payload.size()).data(), payload.data(), payload.size());
  stage(std::move(frame));
  return true;
}

void Egress::on_resolved(std::uint32_t neighbour, const MacAddress& mac) {
  while (!waiting_.empty(neighbour)) {
    const std::uint32_t parts = waiting_.front_parts(neighbour);
    const bool room = at_.channel.tx.reserve(staged_ + parts) >= staged_ + parts;
    if (!room) at_.counters.drop(DropReason::ip_neighbour_queue_full);
    for (std::uint32_t i = 0; i < parts; ++i) {
      WaitingRoom::Guest guest = waiting_.leave(neighbour);
      if (i == 0) wire::store_mac(guest.frame.mutable_bytes(), 0, mac);
      if (room) stage(std::move(guest.frame));
    }
  }
}

void Egress::on_failed(std::uint32_t neighbour) {
  while (!waiting_.empty(neighbour)) {
    const std::uint32_t parts = waiting_.front_parts(neighbour);
    for (std::uint32_t i = 0; i < parts; ++i) {
      const WaitingRoom::Guest guest = waiting_.leave(neighbour);
      if (i != 0) continue;
      at_.counters.drop(DropReason::ip_neighbour_failed);
      if (guest.connection) unreachable_.push_back(guest.connection);
      UdpSocketState* socket = at_.sockets.get(guest.socket);
      if (socket == nullptr || !(socket->binding.connected() || socket->all_errors)) continue;
      at_.sockets.raise(*socket, {ErrorCode::unreachable, EHOSTUNREACH, 0, guest.peer});
    }
  }
}

void Egress::act(const proto::NeighbourAction& action) {
  using Kind = proto::NeighbourAction::Kind;
  if (action.kind == Kind::failed) {
    on_failed(action.index);
    invalidate();
    return;
  }
  if (action.kind == Kind::resolve) {
    if (resolve_count_ == resolve_requests_.size()) return;  // asked again in a second
    resolve_requests_[(resolve_head_ + resolve_count_++) % resolve_requests_.size()] = action.address;
    return;
  }
  const auto source = proto::choose_source(action.address, {}, at_.net.addresses());
  if (!source) return;
  at_.counters.add(Counter::arp_requests_sent);
  if (action.address.is_v4()) {
    std::array<std::byte, wire::kArpSize> message;
    wire::ArpRepr{wire::ArpOperation::request, at_.link.mac, *source, {}, action.address}.emit(message);
    send_raw(action.kind == Kind::ask_one ? action.mac : kBroadcastMac, 0x0806, message);
    return;
  }
  // RFC 4861 section 7.2.2.
  const bool one = action.kind == Kind::ask_one;
  Way way{.source = *source,
          .destination = one ? action.address : wire::solicited_node(action.address),
          .mtu = at_.link.mtu};
  way.mac = one ? action.mac : wire::multicast_mac(way.destination);
  std::array<std::byte, 32> message;
  wire::NeighbourRepr{.solicitation = true, .target = action.address, .link_layer = at_.link.mac}.emit(
      message, way.source, way.destination);
  send_ip(way, {.protocol = Protocol::icmpv6, .ttl = 255, .head = message});
}

std::size_t Egress::take_resolve_requests(std::span<IpAddress> out) {
  std::size_t n = 0;
  for (; n < out.size() && resolve_count_ != 0; ++n, --resolve_count_) {
    out[n] = resolve_requests_[resolve_head_];
    resolve_head_ = (resolve_head_ + 1) % static_cast<std::uint32_t>(resolve_requests_.size());
  }
  return n;
}

std::size_t Egress::take_unreachable(std::span<TcpHandle> out) {
  const std::size_t n = std::min(out.size(), unreachable_.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = unreachable_.back();
    unreachable_.pop_back();
  }
  return n;
}

}  // namespace netchannel::stack
