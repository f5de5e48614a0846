// Segments on their way in: to a connection, a TIME-WAIT, a listener, or to nobody; and what ICMP says of
// them.
#include <algorithm>
#include <utility>

#include "proto/tcp/closed.hpp"
#include "stack/tcp_impl.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {
namespace {

bool has_an_owner(const TcpConn& conn) { return conn.owned && !conn.waiting; }

// Stations of a local device cannot speak for each other, though they all have our addresses.
bool is_of_its_station(const TcpConn& conn, const TcpArrival& arrival) {
  return conn.mac.is_zero() || conn.mac == arrival.station;
}

}  // namespace

void Tcp::Impl::on_segment(const TcpArrival& arrival, const wire::TcpView& view, Frame&& frame) {
  tcp::SegmentIn segment = tcp::segment_from(view);
  const Bytes payload = view.payload();
  segment.length = static_cast<std::uint32_t>(payload.size());
  segment.ecn = arrival.ecn;
  const std::uint32_t size = frame.desc().segment_size;
  if (size != 0 && segment.length > size) {
    segment.segments = static_cast<std::uint16_t>((segment.length + size - 1) / size);
  }
  std::array<Frame, 2> parts;
  if (!payload.empty()) {
    const auto offset = static_cast<std::size_t>(payload.data() - frame.bytes().data());
    const std::size_t tail = frame.size() - offset - payload.size();
    frame.drop_front(offset);
    frame.drop_back(tail);
    make_room_on_the_ring(frame);
    parts[0] = std::move(frame);
    parts[1] = cut_beyond_reach(parts[0]);
    segment.payload = std::span(parts).first(parts[1] ? 2 : 1);
    const auto kept = static_cast<std::uint32_t>(parts[0].size() + (parts[1] ? parts[1].size() : 0));
    if (kept != segment.length) segment.flags.bits &= static_cast<std::uint8_t>(~wire::TcpFlags::kFin);
    segment.length = kept;
  }
  const std::uint32_t number = find({Protocol::tcp, arrival.local, arrival.peer});
  if (number == ConnTable::kNone) return on_no_connection(arrival, segment, std::nullopt);
  if ((number & kTimeWaitBit) != 0) return on_time_wait_segment(number, arrival, segment);
  if (world.link().local && !is_of_its_station(*places[number].conn, arrival))
    return world.drop(DropReason::eth_bad_source);
  const tcp::Events events = tcp::on_segment(places[number].conn->c, segment, world.now);
  touch(number);
  if (events == 0) return;
  note(number, events);
  if ((events & tcp::kReadable) != 0) ++world.delivered;
  if ((events & tcp::kReplaced) == 0) return;
  // RFC 6191: the new connection's numbers lie beyond the old one's. Who still owns that sees it closed.
  const tcp::Seq after = places[number].conn->c.state.snd_nxt;
  leave_table(number);
  on_no_connection(arrival, segment, after);
}

// The application reads byte by byte, so no frame may reach beyond kFrameReach. What a super-frame has there,
// a few bytes, goes into a frame of its own; without one it is as if it had not come.
Frame Tcp::Impl::cut_beyond_reach(Frame& frame) {
  const std::size_t end = frame.headroom() + frame.size();
  if (end <= kFrameReach) return {};
  const std::size_t beyond = std::min(end - kFrameReach, frame.size());
  auto rest = world.spill.allocate(0);
  if (rest && rest->tailroom() >= beyond) {
    const Bytes bytes = frame.bytes().last(beyond);
    std::copy(bytes.begin(), bytes.end(), rest->append(beyond).begin());
  }
  frame.drop_back(beyond);
  return rest && rest->size() == beyond ? std::move(*rest) : Frame();
}

// Receive slots that wait in queues are missing on the device's ring, where everybody's packets come in. When
// half of them do, what comes is copied to memory besides and the slot goes home.
void Tcp::Impl::make_room_on_the_ring(Frame& frame) {
  const FramePool& pool = world.rx;
  if (pool.held() < pool.count() / 2 || !pool.owns(frame)) return;
  auto copy = world.spill.allocate(0);
  if (!copy || copy->tailroom() < frame.size()) return;
  const Bytes bytes = frame.bytes();
  std::copy(bytes.begin(), bytes.end(), copy->append(bytes.size()).begin());
  frame = std::move(*copy);
  world.counters.add(Counter::tcp_spilled);
}

void Tcp::Impl::on_time_wait_segment(std::uint32_t number, const TcpArrival& arrival,
                                     const tcp::SegmentIn& segment) {
  TimeWaitEntry& entry = waits[number & ~kTimeWaitBit];
  switch (tcp::on_segment(entry.wait, segment, world.now)) {
    case tcp::TimeWaitVerdict::ignore:
      break;
    case tcp::TimeWaitVerdict::acknowledge:
      wheel.arm(number, entry.wait.deadline);  // a FIN again starts the time anew
      reply(entry.flow(), entry.ttl, entry.tos, tcp::time_wait_ack(entry.wait, world.now));
      break;
    case tcp::TimeWaitVerdict::replace: {
      const tcp::Seq after = entry.wait.snd_nxt;
      end_time_wait(number);
      on_no_connection(arrival, segment, after);
      break;
    }
  }
}

std::uint32_t Tcp::Impl::listener_of(const Endpoint& local) const {
  const auto lookup = [&](const IpAddress& address) {
    const std::uint32_t* number = listening.find({Protocol::tcp, {address, local.port}, {}});
    return number == nullptr ? 0 : *number;
  };
  if (const std::uint32_t exact = lookup(local.address)) return exact;
  if (local.address.is_v4()) {
    if (const std::uint32_t any = lookup(IpAddress::any_v4())) return any;
  }
  const std::uint32_t any = lookup(IpAddress::any_v6());
  if (any != 0 && local.address.is_v4() && listeners[any - 1]->given.v6_only) return 0;
  return any;
}

std::uint16_t Tcp::Impl::path_mss(const IpAddress& peer) const {
  const std::uint32_t headers = (peer.is_v4() ? 20 : 40) + 20;
  const std::uint32_t mtu = world.paths.mtu(peer, world.options.link.mtu, world.now);
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(mtu > headers ? mtu - headers : 0, 65535));
}

void Tcp::Impl::on_no_connection(const TcpArrival& arrival, const tcp::SegmentIn& segment,
                                 std::optional<tcp::Seq> after) {
  const std::uint32_t number = listener_of(arrival.local);
  const FlowKey flow{Protocol::tcp, arrival.local, arrival.peer};
  if (number == 0) {
    world.drop(DropReason::tcp_no_socket);
    const auto answer = tcp::answer_of_closed(segment);
    if (answer && reset_budget.take(world.now)) reply(flow, 64, 0, *answer);
    return;
  }
  TcpListenerState& listener = *listeners[number - 1];
  const bool v4 = arrival.peer.address.is_v4();
  const tcp::ListenResult result =
      listener.handshakes.on_segment({.flow = flow,
                                      .path_mss = path_mss(arrival.peer.address),
                                      .default_mss = static_cast<std::uint16_t>(v4 ? 536 : 1220),
                                      .accept_queue_full = listener.count >= listener.given.backlog,
                                      .after = after},
                                     segment, world.now);
  listeners_at = earlier(listeners_at, listener.handshakes.next_deadline());
  switch (result.action) {
    case tcp::ListenAction::none:
      break;
    case tcp::ListenAction::reply:
      if (result.reply.flags.rst() && !reset_budget.take(world.now)) break;
      reply(flow, listener.given.ttl, listener.given.tos, result.reply);
      break;
    case tcp::ListenAction::accept:
      accept(listener, number, arrival, result, segment);
      break;
  }
}

void Tcp::Impl::accept(TcpListenerState& listener, std::uint32_t number, const TcpArrival& arrival,
                       const tcp::ListenResult& result, const tcp::SegmentIn& segment) {
  const auto place = take_place({Protocol::tcp, arrival.local, arrival.peer}, listener.given.lease);
  if (!place) return;
  TcpConn& conn = *places[*place].conn;
  conn.ttl = listener.given.ttl;
  conn.tos = listener.given.tos;
  conn.waiting = true;
  tcp::accept(conn.c, result.handshake, listener.given.settings, world.now);
  tcp::SegmentIn first = segment;
  conn.events = static_cast<tcp::Events>(conn.events | tcp::on_segment(conn.c, first, world.now));
  touch(*place);
  (listener.last == 0 ? listener.first : places[listener.last - 1].conn->next_waiting) = *place + 1;
  listener.last = *place + 1;
  ++listener.count;
  ++world.delivered;
  if (std::exchange(listener.listed, true)) return;
  ready.push_back({.connection = {}, .listener = {number}, .events = 0});
}

bool Tcp::Impl::on_icmp(const proto::IcmpError& error) {
  const std::uint32_t number = find({Protocol::tcp, error.flow.local, error.flow.peer});
  if (number == ConnTable::kNone || (number & kTimeWaitBit) != 0) return false;
  TcpConn& conn = *places[number].conn;
  using Kind = proto::IcmpError::Kind;
  tcp::IcmpReport report{.error = error.hard() ? tcp::IcmpError::hard : tcp::IcmpError::soft,
                         .quoted = {error.tcp_sequence}};
  if (error.kind == Kind::too_big) {
    // RFC 5927 section 7: only what is in flight can have been too big, and only then is the path narrower.
    const tcp::TcpState& s = conn.c.state;
    if (!(report.quoted >= s.snd_una && report.quoted < s.snd_nxt)) {
      world.counters.add(Counter::tcp_icmp_ignored);
      return true;
    }
    const auto verdict =
        world.paths.lower(error.flow.peer.address, error.mtu, world.options.link.mtu, world.now);
    if (verdict == proto::PathMtuTable::Verdict::impossible) {
      world.drop(DropReason::icmp_bad_mtu);
      return true;
    }
    if (verdict == proto::PathMtuTable::Verdict::lowered) world.egress.invalidate();
    report.error = tcp::IcmpError::too_big;
    report.mss = path_mss(error.flow.peer.address);
  }
  if (error.kind == Kind::parameter_problem) report.error = tcp::IcmpError::soft;  // MUST-56
  note(number, tcp::on_icmp(conn.c, report));
  touch(number);
  return true;
}

void Tcp::Impl::on_unreachable(TcpHandle handle) {
  TcpConn* conn = get(handle);
  if (conn == nullptr) return;
  note(handle.place - 1, tcp::on_unreachable(conn->c));
  touch(handle.place - 1);
}

void Tcp::Impl::note(std::uint32_t place, tcp::Events events) {
  TcpConn& conn = *places[place].conn;
  conn.events = static_cast<tcp::Events>(conn.events | events);
  if (events == 0 || conn.listed || !has_an_owner(conn)) return;
  conn.listed = true;
  ready.push_back({.connection = handle_of(place), .listener = {}, .events = 0});
}

}  // namespace netchannel::stack
