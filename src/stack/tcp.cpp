#include "stack/tcp.hpp"

#include <algorithm>
#include <cerrno>

#include "stack/tcp_impl.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {
namespace {

// Linux's ip_local_port_range.
constexpr std::uint16_t kFirstPort = 32768;
constexpr std::uint32_t kPorts = 60999 - kFirstPort + 1;

constexpr tcp::SharedOptions kSharedNodes{.frames = 65536, .records = 65536, .islands = 16384};

FlowKey wildcard(const Endpoint& local) { return {Protocol::tcp, local, {}}; }

tcp::Secret secret_of(const SipKey& key) {
  tcp::Secret secret;
  std::memcpy(secret.data(), &key.k0, 8);
  std::memcpy(secret.data() + 8, &key.k1, 8);
  return secret;
}

}  // namespace

Tcp::Impl::Impl(World& owner)
    : world(owner),
      limits(owner.options.limits.tcp),
      secrets{secret_of(owner.derive(16)), secret_of(owner.derive(17)), secret_of(owner.derive(18))},
      listener_key(owner.derive(19)),
      port_key(owner.derive(20)),
      shared(kSharedNodes, owner.counters),
      places(limits.connections),
      waits(limits.time_waits),
      table(owner.derive(21), limits.connections + limits.time_waits),
      wheel(LinksOf{this}),
      egress(owner.egress, owner.tx, owner.options.link, owner.counters),
      reset_budget(limits.resets_per_second, limits.resets_per_second / 10 + 1),
      listening(owner.derive(22)) {}

Tcp::Tcp(World& world) : impl_(std::make_unique<Impl>(world)) {}
Tcp::~Tcp() = default;

TcpConn* Tcp::Impl::get(TcpHandle handle) {
  if (handle.place == 0 || handle.place > places.capacity()) return nullptr;
  Place& place = places[handle.place - 1];
  return place.generation == handle.generation && place.conn ? &*place.conn : nullptr;
}

TcpListenerState* Tcp::Impl::get(TcpListenerHandle handle) {
  if (handle.value == 0 || handle.value > listeners.size()) return nullptr;
  return listeners[handle.value - 1].get();
}

std::uint32_t Tcp::Impl::find(const FlowKey& flow) const {
  return table.find(flow, [&](std::uint32_t number) {
    if ((number & kTimeWaitBit) != 0) {
      const TimeWaitEntry& entry = waits[number & ~kTimeWaitBit];
      return entry.local == flow.local && entry.peer == flow.peer;
    }
    const TcpConn& conn = *places[number].conn;
    return conn.local == flow.local && conn.peer == flow.peer;
  });
}

// A connection may go out where a TIME-WAIT still is if its timestamps will be later than any that the old
// one has sent (RFC 6191 from the other side; Linux's tcp_tw_reuse).
bool Tcp::Impl::is_free(const FlowKey& flow) const {
  const std::uint32_t number = find(flow);
  if (number == ConnTable::kNone) return true;
  if ((number & kTimeWaitBit) == 0) return false;
  const tcp::TimeWait& wait = waits[number & ~kTimeWaitBit].wait;
  return wait.timestamps && world.now - wait.ts_recent_at > std::chrono::seconds(1);
}

std::optional<std::uint32_t> Tcp::Impl::take_place(const FlowKey& flow, LeaseId lease) {
  const std::uint32_t place = places.take();
  if (place == tcp::kNoNode) {
    world.counters.add(Counter::tcp_connections_full);
    return std::nullopt;
  }
  TcpConn& conn = places[place].conn.emplace(shared, flow.local, flow.peer);
  conn.lease = lease;
  use(lease);
  table.insert(flow, place);
  return place;
}

void Tcp::Impl::leave_table(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  if (!conn.in_table) return;
  conn.in_table = false;
  table.erase(conn.flow(), place);
}

void Tcp::Impl::release(std::uint32_t place) {
  TcpConn& conn = *places[place].conn;
  leave_table(place);
  wheel.disarm(place);
  unuse(conn.lease);
  places[place].conn.reset();
  ++places[place].generation;
  places.give_back(place);
}

void Tcp::Impl::use(LeaseId lease) {
  if (lease >= leases.size()) leases.resize(lease + 1);
  ++leases[lease].count;
}
void Tcp::Impl::unuse(LeaseId lease) { --leases[lease].count; }
std::uint32_t Tcp::uses(LeaseId lease) const {
  return lease < impl_->leases.size() ? impl_->leases[lease].count : 0;
}

// The peer, who has closed first, is in TIME-WAIT. It takes a SYN of the same pair if its timestamp is later
// than the last (RFC 6191); without timestamps the initial sequence number alone, which a quick transfer
// outruns, would have to be beyond the old ones.
void Tcp::Impl::rest(const TcpConn& conn) {
  constexpr Duration kTwoTicks = std::chrono::milliseconds(2);  // of the timestamp clock
  const Duration time = conn.c.state.timestamps ? kTwoTicks : conn.c.state.settings.time_wait;
  LeaseUse& lease = leases[conn.lease];
  lease.rests_until = std::max(lease.rests_until, world.now + time);
}
bool Tcp::rests(LeaseId lease) const {
  return lease < impl_->leases.size() && impl_->world.now < impl_->leases[lease].rests_until;
}

Result<TcpListenerHandle> Tcp::listen(const TcpListen& options) {
  Impl& tcp = *impl_;
  if (options.local.port == 0) return fail(ErrorCode::invalid_argument, "a listener needs a port", EINVAL);
  if (!options.local.address.is_unspecified() && !tcp.world.net.is_ours(options.local.address)) {
    return fail(ErrorCode::address_not_available,
                "not an address of this stack; listen on one of those or on any", EADDRNOTAVAIL);
  }
  if (tcp.listeners.size() >= tcp.limits.listeners &&
      std::none_of(tcp.listeners.begin(), tcp.listeners.end(), [](const auto& l) { return l == nullptr; })) {
    return fail(ErrorCode::no_memory, "all listeners of this stack are in use", ENOBUFS);
  }
  auto free = std::find(tcp.listeners.begin(), tcp.listeners.end(), nullptr);
  if (free == tcp.listeners.end()) free = tcp.listeners.insert(free, nullptr);
  const auto number = static_cast<std::uint32_t>(free - tcp.listeners.begin()) + 1;
  if (!tcp.listening.insert(wildcard(options.local), number)) {
    return fail(ErrorCode::address_in_use, "another listener of this host has the port", EADDRINUSE);
  }
  const tcp::ListenOptions handshakes{.settings = options.settings,
                                      .syn_queue = options.syn_queue,
                                      .cookies = options.cookies,
                                      .secrets = tcp.secrets,
                                      .table_key = tcp.listener_key};
  *free = std::make_unique<TcpListenerState>(options, handshakes, tcp.world.counters);
  tcp.use(options.lease);
  return TcpListenerHandle{number};
}

void Tcp::close(TcpListenerHandle handle) {
  Impl& tcp = *impl_;
  TcpListenerState* listener = tcp.get(handle);
  if (listener == nullptr) return;
  while (const auto waiting = accept(handle)) abort(*waiting);
  tcp.listening.erase(wildcard(listener->given.local));
  tcp.unuse(listener->given.lease);
  std::erase_if(tcp.ready, [&](const TcpReady& r) { return r.listener == handle; });
  tcp.listeners[handle.value - 1].reset();
}

std::optional<TcpHandle> Tcp::accept(TcpListenerHandle handle) {
  TcpListenerState* listener = impl_->get(handle);
  if (listener == nullptr || listener->count == 0) return std::nullopt;
  const std::uint32_t place = listener->first - 1;
  TcpConn& conn = *impl_->places[place].conn;
  listener->first = conn.next_waiting;
  if (--listener->count == 0) listener->last = 0;
  conn.waiting = false;
  // What happened while it waited is news to whoever accepts it.
  if (conn.events != 0) impl_->note(place, conn.events);
  return impl_->handle_of(place);
}

std::uint32_t Tcp::waiting(TcpListenerHandle handle) const {
  const TcpListenerState* listener = impl_->get(handle);
  return listener == nullptr ? 0 : listener->count;
}

bool Tcp::taken(const Endpoint& local, const Endpoint& peer) const {
  return !impl_->is_free({Protocol::tcp, local, peer});
}

Result<IpAddress> Tcp::source_for(const Endpoint& to, const IpAddress& local) const {
  World& world = impl_->world;
  const IpAddress& peer = to.address;
  if (to.port == 0 || peer.is_unspecified()) {
    return fail(ErrorCode::invalid_argument, "a peer needs an address and a port", EINVAL);
  }
  // RFC 9293 MUST-46.
  if (peer.is_multicast() || (peer.is_v4() && world.net.is_broadcast(peer))) {
    return fail(ErrorCode::unreachable, "TCP needs one peer: not a group or a broadcast address",
                ENETUNREACH);
  }
  if (!local.is_unspecified() && !world.net.is_ours(local)) {
    return fail(ErrorCode::address_not_available, "not an address of this stack", EADDRNOTAVAIL);
  }
  if (!local.is_unspecified() && local.is_v4() != peer.is_v4()) {
    return fail(ErrorCode::invalid_argument, "the local address is of the other family", EINVAL);
  }
  const Way way = world.egress.find_way(Protocol::tcp, to, local);
  if (way.status == SendStatus::queued) return way.source;
  return fail(ErrorCode::unreachable, "no route to the peer through this device; use the kernel path",
              ENETUNREACH);
}

Result<Endpoint> Tcp::Impl::choose_local(const TcpConnect& options) const {
  const auto source = world.tcp.source_for(options.peer, options.local.address);
  if (!source) return tl::unexpected(source.error());
  Endpoint local{*source, options.local.port};
  if (local.port != 0) {
    if (is_free({Protocol::tcp, local, options.peer})) return local;
    return fail(ErrorCode::address_in_use, "this pair of ports has a connection, or had one a minute ago",
                EADDRINUSE);
  }
  // RFC 6056 section 3.3.1: from a random place on.
  const auto start = static_cast<std::uint32_t>(siphash(port_key, std::array{++ports_chosen}));
  for (std::uint32_t i = 0; i < kPorts; ++i) {
    local.port = static_cast<std::uint16_t>(kFirstPort + (start % kPorts + i) % kPorts);
    const bool free = is_free({Protocol::tcp, local, options.peer}) && listener_of(local) == 0;
    if (free) return local;
  }
  return fail(ErrorCode::address_not_available, "every port towards this peer is in use or in TIME-WAIT",
              EADDRNOTAVAIL);
}

Result<TcpHandle> Tcp::connect(const TcpConnect& options) {
  Impl& tcp = *impl_;
  const auto local = tcp.choose_local(options);
  if (!local) return tl::unexpected(local.error());
  const FlowKey flow{Protocol::tcp, *local, options.peer};
  tcp::Seq iss = tcp::initial_sequence(tcp.secrets.isn, flow, tcp.world.now);
  if (const std::uint32_t old = tcp.find(flow); old != ConnTable::kNone) {
    const tcp::Seq after = tcp.waits[old & ~Impl::kTimeWaitBit].wait.snd_nxt;
    if (iss <= after) iss = after + 0x10000;
    tcp.end_time_wait(old);
  }
  const auto place = tcp.take_place(flow, options.lease);
  if (!place) return fail(ErrorCode::no_memory, "all connections of this stack are in use", ENOBUFS);
  TcpConn& conn = *tcp.places[*place].conn;
  conn.ttl = options.ttl;
  conn.tos = options.tos;
  const bool v4 = options.peer.address.is_v4();
  tcp::connect(conn.c,
               {.settings = options.settings,
                .iss = iss,
                .ts_offset = tcp::timestamp_offset(tcp.secrets.timestamps, flow),
                .path_mss = tcp.path_mss(options.peer.address),
                .default_mss = static_cast<std::uint16_t>(v4 ? 536 : 1220)},
               tcp.world.now);
  tcp.touch(*place);
  return tcp.handle_of(*place);
}

const tcp::Connection* Tcp::find(TcpHandle handle) const {
  const TcpConn* conn = impl_->owned(handle);
  return conn == nullptr ? nullptr : &conn->c;
}
Endpoint Tcp::local(TcpHandle handle) const {
  const TcpConn* conn = impl_->owned(handle);
  return conn == nullptr ? Endpoint{} : conn->local;
}
Endpoint Tcp::peer(TcpHandle handle) const {
  const TcpConn* conn = impl_->owned(handle);
  return conn == nullptr ? Endpoint{} : conn->peer;
}
tcp::TcpInfo Tcp::info(TcpHandle handle) const {
  const TcpConn* conn = impl_->owned(handle);
  return conn == nullptr ? tcp::TcpInfo{} : tcp::info(conn->c, impl_->world.now);
}

// Frames that this connection's send queue may still take. Each may grow to the size of what is left
// (Choudhury and Hahne, 1998): one sender gets half of the frames, two a third each, and some are always left
// for acknowledgements, retransmissions and newcomers.
std::uint32_t Tcp::Impl::frames_for(const TcpConn& conn) const {
  const FramePool& pool = world.tx;
  const std::uint32_t reserve = pool.count() / kReservedShare;
  const auto free = static_cast<std::uint32_t>(pool.free_count());
  const std::uint32_t left = free > reserve ? free - reserve : 0;
  const std::uint32_t held = conn.c.send.frames();
  const std::uint32_t most = left > held ? left - held : 0;
  if (free > pool.count() / 2) return most;
  // They are scarce: what cannot leave, because the peer lets nothing in, waits with its writer.
  const std::uint32_t mss = std::max(tcp::effective_mss(conn.c.state), 1U);
  const std::uint32_t soon = (tcp::useful_to_hold(conn.c) + mss - 1) / mss;
  return std::min(most, soon > held ? soon - held : 0);
}

std::size_t Tcp::write(TcpHandle handle, Bytes data) {
  Impl& tcp = *impl_;
  TcpConn* conn = tcp.owned(handle);
  if (conn == nullptr || data.empty()) return 0;
  const FramePool& pool = tcp.world.tx;
  const std::size_t wanted = std::min<std::size_t>(data.size(), tcp::writable(conn->c));
  const std::size_t written = tcp::write(conn->c, data.first(wanted), tcp.world.tx,
                                         {.headroom = TcpEgress::kHeadroom,
                                          .most_frames = tcp.frames_for(*conn),
                                          .fill_slots = tcp.egress.takes_super_frames(),
                                          .sparing = pool.free_count() < pool.count() / 2});
  if (written < wanted) {
    tcp.starve(handle.place - 1);
    tcp.needy |= tcp.out_of_frames() && tcp::useful_to_hold(conn->c) > conn->c.send.size();
  }
  if (written != 0) tcp.touch(handle.place - 1);
  return written;
}

std::uint32_t Tcp::writable(TcpHandle handle) const {
  const TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr || conn->c.state.state == tcp::State::syn_sent) return 0;
  if (impl_->frames_for(*conn) == 0) return 0;
  return tcp::writable(conn->c);
}

bool Tcp::may_write(TcpHandle handle) {
  if (writable(handle) != 0) return true;
  const TcpConn* conn = impl_->owned(handle);
  if (conn != nullptr && tcp::writable(conn->c) != 0) impl_->starve(handle.place - 1);
  return false;
}

std::size_t Tcp::spans(TcpHandle handle, std::span<Bytes> out) const {
  const TcpConn* conn = impl_->owned(handle);
  return conn == nullptr ? 0 : conn->c.receive.spans(out);
}

void Tcp::consume(TcpHandle handle, std::size_t bytes) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  tcp::consume(conn->c, std::min<std::size_t>(bytes, conn->c.receive.readable()), impl_->world.now);
  if (conn->c.state.receiver.ack == tcp::AckDue::now) impl_->touch(handle.place - 1);
}

Frame Tcp::take(TcpHandle handle) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return {};
  Frame frame = tcp::take(conn->c, impl_->world.now);
  if (conn->c.state.receiver.ack == tcp::AckDue::now) impl_->touch(handle.place - 1);
  return frame;
}

void Tcp::shutdown_write(TcpHandle handle) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  tcp::shutdown_write(conn->c);
  impl_->touch(handle.place - 1);
}

void Tcp::close(TcpHandle handle) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  (void)tcp::close(conn->c, impl_->world.now);
  conn->owned = false;
  impl_->touch(handle.place - 1);
}

void Tcp::abort(TcpHandle handle) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  (void)tcp::abort(conn->c);
  conn->owned = false;
  impl_->touch(handle.place - 1);
}

tcp::Settings* Tcp::settings(TcpHandle handle) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return nullptr;
  impl_->touch(handle.place - 1);
  return &conn->c.state.settings;
}

void Tcp::set_cork(TcpHandle handle, bool on) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr || conn->c.state.settings.cork == on) return;
  tcp::set_cork(conn->c, on);
  impl_->touch(handle.place - 1);
}

void Tcp::set_no_delay(TcpHandle handle, bool on) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  tcp::set_no_delay(conn->c, on);
  impl_->touch(handle.place - 1);
}

void Tcp::set_keepalive(TcpHandle handle, bool on) {
  TcpConn* conn = impl_->owned(handle);
  if (conn == nullptr) return;
  tcp::set_keepalive(conn->c, on, impl_->world.now);
  impl_->touch(handle.place - 1);
}

void Tcp::set_tos(TcpHandle handle, std::uint8_t tos) {
  if (TcpConn* conn = impl_->owned(handle)) conn->tos = tos;
}

std::size_t Tcp::take_ready(std::span<TcpReady> out) {
  Impl& tcp = *impl_;
  const std::size_t n = std::min(out.size(), tcp.ready.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = tcp.ready[i];
    if (TcpListenerState* listener = tcp.get(out[i].listener)) listener->listed = false;
    TcpConn* conn = tcp.get(out[i].connection);
    if (conn == nullptr) continue;
    conn->listed = false;
    out[i].events = std::exchange(conn->events, tcp::Events{0});
  }
  tcp.ready.erase(tcp.ready.begin(), tcp.ready.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::size_t Tcp::connections() const { return impl_->places.used(); }
std::size_t Tcp::time_waits() const { return impl_->waits.used(); }

void Tcp::flush() {
  (void)impl_->serve();
  impl_->world.egress.flush();
}

}  // namespace netchannel::stack
