// After a burst: each connection that something happened to is asked once for what it has to send, its timer
// is set, and what is over leaves its place.
#include <algorithm>
#include <utility>

#include "stack/tcp_impl.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {
namespace {

// In one poll, so that a storm of timers does not keep packets waiting.
constexpr std::uint32_t kTimersTogether = 256;
constexpr std::size_t kStarvedTogether = 64;
// How long data may wait for a closed window while others find no frame.
constexpr Duration kStallAllowed = std::chrono::seconds(10);
constexpr Duration kMakeRoomEvery = std::chrono::milliseconds(100);

}  // namespace

void Tcp::Impl::touch(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  if (std::exchange(conn.touched, true)) return;
  touched.push_back(place);
}

bool Tcp::Impl::serve() {
  if (touched.empty()) return false;
  // serve_one() may touch others, and itself again if there was no room.
  serving.swap(touched);
  for (const std::uint32_t place : serving) {
    places[place].conn->touched = false;
    if (!serve_one(place)) touch(place);
    settle(place);
  }
  serving.clear();
  return !touched.empty();
}

// False: there was no room for all; ask again.
bool Tcp::Impl::serve_one(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  tcp::Connection& c = conn.c;
  const bool reachable = find_way(place);
  const TcpPath path{conn.local, conn.peer, world.options.link.mac, conn.mac, conn.ttl, conn.tos};
  for (;;) {
    const tcp::TxLimits room = egress.limits(tcp::effective_mss(c.state));
    if (room.segments == 0) return false;
    batch.clear();
    const bool more = tcp::poll_tx(c, batch, room, world.now);
    for (const tcp::SegmentOut& segment : batch) {
      if (reachable) {
        egress.send(path, segment, &c.send);
      } else if (segment.length == 0) {
        reply(conn.flow(), conn.ttl, conn.tos, segment, handle_of(place));
      } else {
        world.drop(DropReason::ip_neighbour_queue_full);  // not lost for good: it is sent again
      }
    }
    world.counters.add(Counter::tcp_segments_sent, batch.size());
    if (!more || batch.empty()) return true;
  }
}

// True: conn.mac is the next hop's.
bool Tcp::Impl::find_way(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  if (conn.way_generation == world.egress.generation() && world.now < conn.way_until) return true;
  // Whoever else says that the peer's port is his does not get its segments.
  if (world.link().local && !conn.mac.is_zero()) return true;
  const Way way = world.egress.find_way(Protocol::tcp, conn.peer, conn.local.address);
  if (way.status != SendStatus::queued) {
    note(place, tcp::on_unreachable(conn.c));
    return false;
  }
  const std::uint16_t mss = path_mss(conn.peer.address);
  if (mss != conn.c.state.path_mss && conn.c.state.black_hole_mss == 0) tcp::set_path_mss(conn.c, mss);
  if (way.waits_under) return false;
  conn.mac = way.mac;
  conn.way_until = way.valid_until;
  conn.way_generation = world.egress.generation();
  return true;
}

// A segment without payload whose way is not known beforehand.
void Tcp::Impl::reply(const FlowKey& flow, std::uint8_t ttl, std::uint8_t tos, const tcp::SegmentOut& segment,
                      TcpHandle connection) {
  const Way way = world.egress.find_way(Protocol::tcp, flow.peer, flow.local.address);
  if (way.status != SendStatus::queued) return;
  const wire::TcpRepr repr{.source_port = flow.local.port,
                           .destination_port = flow.peer.port,
                           .sequence = segment.seq.value,
                           .acknowledgment = segment.ack.value,
                           .flags = segment.flags,
                           .window = segment.window,
                           .options = segment.options};
  std::array<std::byte, wire::kTcpMinHeaderSize + wire::kTcpMaxOptionsSize> bytes;
  const auto head = std::span(bytes).first(repr.size());
  repr.emit(head, wire::pseudo_header(flow.local.address, flow.peer.address, Protocol::tcp, head.size()));
  const SendStatus status = world.egress.send_ip(way, {.protocol = Protocol::tcp,
                                                       .ttl = ttl,
                                                       .tos = tos,
                                                       .dont_fragment = true,
                                                       .head = head,
                                                       .connection = connection});
  if (status != SendStatus::queued) world.drop(DropReason::no_frames);
}

// Sets the timer, and lets go of what is over.
void Tcp::Impl::settle(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  const tcp::TcpState& s = conn.c.state;
  if (conn.touched) return;
  if (s.state == tcp::State::closed) {
    if (conn.in_table && s.failure == tcp::Failure::none) rest(conn);
    leave_table(place);
    wheel.disarm(place);
    if (!conn.owned) release(place);
    return;
  }
  if (s.state == tcp::State::time_wait && !conn.owned) return enter_time_wait(place);
  arm(place);
}

// A timer that has moved on is left where it is and looked at when it fires: most are moved on with every
// segment, and the wheel is only told of earlier ones.
void Tcp::Impl::arm(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  const Instant at = tcp::next_deadline(conn.c.state);
  if (at == kForever) return wheel.disarm(place);
  if (!conn.timer.armed() || at < conn.timer.at) wheel.arm(place, at);
}

void Tcp::Impl::enter_time_wait(std::uint32_t place) {
  const TcpConn& conn = *places[place].conn;
  if (!conn.in_table) return release(place);  // a new connection has the pair already
  const std::uint32_t index = waits.take();
  if (index == tcp::kNoNode) {
    world.counters.add(Counter::tcp_time_waits_full);
    return release(place);
  }
  TimeWaitEntry& entry = waits[index];
  entry = {};
  entry.wait = tcp::time_wait_of(conn.c.state);
  entry.local = conn.local;
  entry.peer = conn.peer;
  entry.lease = conn.lease;
  entry.ttl = conn.ttl;
  entry.tos = conn.tos;
  use(entry.lease);
  release(place);
  table.insert(entry.flow(), index | kTimeWaitBit);
  wheel.arm(index | kTimeWaitBit, entry.wait.deadline);
}

void Tcp::Impl::end_time_wait(std::uint32_t number) {
  TimeWaitEntry& entry = waits[number & ~kTimeWaitBit];
  table.erase(entry.flow(), number);
  wheel.disarm(number);
  unuse(entry.lease);
  waits.give_back(number & ~kTimeWaitBit);
}

void Tcp::Impl::run_timers() {
  std::array<TcpHandle, 32> unreachable;
  const std::size_t failed = world.egress.take_unreachable(unreachable);
  for (std::size_t i = 0; i < failed; ++i) on_unreachable(unreachable[i]);
  wheel.expire(world.now, kTimersTogether, [&](std::uint32_t number) {
    if ((number & kTimeWaitBit) != 0) return end_time_wait(number);
    TcpConn& conn = *places[number].conn;
    if (tcp::next_deadline(conn.c.state) > world.now) return arm(number);
    note(number, tcp::on_timer(conn.c, world.now));
    touch(number);
  });
  if (listeners_at <= world.now) retry_handshakes();
  if (needy && make_room_at <= world.now) make_room_for_writers();
  wake_starved();
}

// What is left is the reserve: nobody can write any more.
bool Tcp::Impl::out_of_frames() const { return world.tx.free_count() <= world.tx.count() / kReservedShare; }

// Somebody could send and has no frame, because others hold them whose peers let nothing in: who has done so
// for long has to go, until there is room to work again.
void Tcp::Impl::make_room_for_writers() {
  needy = false;
  make_room_at = world.now + kMakeRoomEvery;
  for (std::uint32_t place = 0; place < places.touched(); ++place) {
    if (world.tx.free_count() > world.tx.count() / 2) return;
    if (!places[place].conn) continue;
    const tcp::Events ended = tcp::end_if_stalled(places[place].conn->c, world.now - kStallAllowed);
    if (ended == 0) continue;
    note(place, ended);
    touch(place);
  }
}

void Tcp::Impl::retry_handshakes() {
  listeners_at = kForever;
  for (const auto& listener : listeners) {
    if (listener == nullptr) continue;
    std::array<tcp::Listener::Retry, 32> retries;
    const std::size_t n = listener->handshakes.on_timer(retries, world.now);
    for (std::size_t i = 0; i < n; ++i) {
      reply(retries[i].flow, listener->given.ttl, listener->given.tos, retries[i].segment);
    }
    listeners_at = earlier(listeners_at, listener->handshakes.next_deadline());
  }
}

void Tcp::Impl::starve(std::uint32_t place) {
  if (!std::exchange(places[place].conn->starved, true)) starved.push_back(place);
}

// Writers that found no frame, now that some are free again: those who would get one, a few each time.
void Tcp::Impl::wake_starved() {
  if (world.tx.free_count() <= world.tx.count() / 4) return;
  const std::size_t looked_at = std::min<std::size_t>(starved.size(), kStarvedTogether);
  for (std::size_t i = 0; i < looked_at; ++i) {
    if (starved_turn >= starved.size()) starved_turn = 0;
    const std::uint32_t place = starved[starved_turn];
    const bool waiting = places[place].conn && places[place].conn->starved;
    if (waiting && places[place].conn->c.state.state != tcp::State::closed &&
        frames_for(*places[place].conn) == 0) {
      ++starved_turn;
      continue;
    }
    starved[starved_turn] = starved.back();
    starved.pop_back();
    if (!waiting) continue;
    places[place].conn->starved = false;
    note(place, tcp::kWritable);
  }
}

// Nothing more comes from there and nothing arrives there.
void Tcp::Impl::on_station_gone(const MacAddress& station) {
  for (std::uint32_t place = 0; place < places.touched(); ++place) {
    if (!places[place].conn || !places[place].conn->in_table) continue;
    TcpConn& conn = *places[place].conn;
    const bool known = !conn.mac.is_zero();
    if (known ? conn.mac != station : world.local_peers.find(Protocol::tcp, conn.peer) != station) continue;
    note(place, tcp::on_peer_gone(conn.c));
    touch(place);
  }
}

Instant Tcp::Impl::next_deadline() const {
  const Instant room = needy ? make_room_at : kForever;
  return earlier(room, earlier(wheel.next_deadline(), listeners_at));
}

}  // namespace netchannel::stack
