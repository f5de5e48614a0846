#include "stack/stack.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "stack/ingress.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {
namespace {

// No link is narrower (RFC 791), and no header is longer.
std::uint32_t sane_mtu(std::uint32_t mtu) { return std::max(mtu, proto::kMinMtuV4); }

// What waits for neighbours may not keep all frames from those that can be sent.
StackOptions with_sane_limits(StackOptions options) {
  options.link.mtu = sane_mtu(options.link.mtu);
  options.limits.waiting_frames = std::min(options.limits.waiting_frames, std::max(options.tx.count / 2, 1u));
  return options;
}

bool inside(const SlotRange& range, const FrameRegion& region) {
  return range.count != 0 && range.first < region.slot_count() &&
         range.count <= region.slot_count() - range.first;
}

bool overlap(const SlotRange& a, const SlotRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace

SipKey World::derive(std::uint64_t use) const {
  const auto secret = std::span(options.secret);
  const SipKey root = SipKey::from(secret.first<16>());
  const SipKey salt = SipKey::from(secret.last<16>());
  return {siphash(root, std::array{salt.k0, use}), siphash(root, std::array{salt.k1, ~use})};
}

World::World(ConsumerEnd end, FrameRegion& region, OwnMemory own, const StackOptions& wanted)
    : options(with_sane_limits(wanted)),
      channel(std::move(end)),
      memory(std::move(own)),
      rx(region, wanted.rx.first, wanted.rx.count, FramePool::Start::all_lent),
      tx(region, wanted.tx.first, wanted.tx.count, FramePool::Start::all_free),
      large(*memory.large, 0, memory.large->slot_count(), FramePool::Start::all_free),
      spill(*memory.spill, 0, memory.spill->slot_count(), FramePool::Start::all_free),
      neighbours(
          {.capacity = wanted.limits.neighbours, .resolved_outside = !wanted.link.bare, .key = derive(1)}),
      local_peers(derive(6)),
      paths(wanted.limits.narrow_paths, derive(2)),
      reassembler(large, counters,
                  {.datagrams = wanted.limits.reassemblies,
                   .of_source = wanted.limits.reassemblies_of_source,
                   .key = derive(3)}),
      error_budget(wanted.limits.icmp_errors_per_second, wanted.limits.icmp_errors_per_second / 10 + 1),
      sockets({wanted.limits.udp_sockets, wanted.rx, memory.large->slot_count()}, derive(4), counters),
      egress({channel, tx, options.link, net, routes, neighbours, local_peers, paths, sockets, counters,
              options.limits},
             derive(5)),
      tcp(*this) {
  net.set(wanted.addresses);
  net.set_all_ours(wanted.link.local);
  given_routes = wanted.routes;
  rebuild_routes();
}

void World::rebuild_routes() {
  std::vector<proto::Route> all = given_routes;
  if (link().bare) {
    // Nobody else says it: the networks of our addresses are on the link.
    for (const Prefix& mine : net.addresses())
      all.push_back({.destination = mine, .preferred_source = mine.address});
  }
  routes.set(all);
  egress.invalidate();
}

Result<std::unique_ptr<Stack>> Stack::open(ConsumerEnd channel, FrameRegion& frames,
                                           const StackOptions& options) {
  if (!inside(options.rx, frames) || !inside(options.tx, frames) || overlap(options.rx, options.tx)) {
    return fail(ErrorCode::invalid_argument,
                "a stack needs receive and transmit slots of its own within the region");
  }
  if (options.limits.udp_sockets == 0 || options.limits.udp_sockets > 65534 ||
      options.limits.large_slots == 0 || options.limits.neighbours == 0 ||
      options.limits.waiting_frames == 0 || options.limits.spill_slots == 0 ||
      options.limits.tcp.connections == 0 || options.limits.tcp.connections > 1u << 24) {
    return fail(ErrorCode::invalid_argument, "a limit of the stack is 0 or too large; use the defaults");
  }
  auto large =
      FrameRegion::open({.slot_size = proto::kReassemblySlot, .slot_count = options.limits.large_slots});
  if (!large) return tl::unexpected(large.error());
  auto spill = FrameRegion::open({.slot_size = frames.slot_size(), .slot_count = options.limits.spill_slots});
  if (!spill) return tl::unexpected(spill.error());
  auto world = std::make_unique<World>(std::move(channel), frames,
                                       World::OwnMemory{std::move(*large), std::move(*spill)}, options);
  return std::unique_ptr<Stack>(new Stack(std::move(world)));
}

Stack::Stack(std::unique_ptr<World> world) : world_(std::move(world)) {}
Stack::~Stack() = default;

namespace {

// Takes one burst. The packets' first lines are asked for a few ahead: each is cold, the device has just
// written it.
std::uint32_t take_burst(World& world) {
  constexpr std::uint32_t kAhead = 4;
  const FrameRegion& region = world.rx.region();
  const auto prefetch = [&](const FrameDesc& desc) {
    if (region.holds(desc)) __builtin_prefetch(region.bytes_of(desc).data());
  };
  auto& ring = world.channel.rx;
  const std::uint32_t n = ring.peek(world.options.limits.burst);
  for (std::uint32_t i = 0; i < std::min(n, kAhead); ++i) prefetch(ring.read(i));
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch(ring.read(i + kAhead));
    take_descriptor(world, ring.read(i));
  }
  if (n != 0) ring.release(n);
  return n;
}

void run_timers(World& world) {
  if (world.neighbours.next_deadline() <= world.now) {
    std::array<proto::NeighbourAction, 32> actions;
    const std::size_t n = world.neighbours.poll(world.now, actions);
    for (std::size_t i = 0; i < n; ++i) world.egress.act(actions[i]);
  }
  world.reassembler.expire(world.now);
  if (world.paths.expire(world.now)) world.egress.invalidate();
  world.tcp.impl().run_timers();
}

// Sends every released receive slot home, in one release of the ring, which has room for all.
std::uint32_t recycle(World& world) {
  std::uint32_t sent = 0;
  std::array<std::uint32_t, 64> slots;
  while (world.rx.free_count() != 0) {
    const auto wanted = static_cast<std::uint32_t>(std::min(world.rx.free_count(), slots.size()));
    if (world.channel.recycle.reserve(sent + wanted) < sent + wanted) break;
    const std::size_t n = world.rx.take_free(std::span(slots).first(wanted));
    for (std::size_t i = 0; i < n; ++i) {
      world.sockets.on_slot_home(slots[i]);
      world.channel.recycle.write(sent++, slots[i]);
    }
  }
  if (sent != 0) world.channel.recycle.submit(sent);
  return sent;
}

}  // namespace

PollResult Stack::poll(Instant now) noexcept {
  World& world = *world_;
  set_time(now);
  world.delivered = 0;
  world.egress.reclaim();
  PollResult result;
  result.frames = take_burst(world);
  run_timers(world);
  const bool unsent = world.tcp.impl().serve();
  world.egress.flush();
  result.recycled = recycle(world);
  result.sent = world.egress.take_sent();
  result.delivered = world.delivered;
  result.more = unsent || result.frames == world.options.limits.burst;
  return result;
}

void Stack::set_time(Instant now) noexcept { world_->now = world_->egress.now = now; }

Instant Stack::next_deadline() const noexcept {
  const World& world = *world_;
  const Instant others = earlier(world.reassembler.next_deadline(), world.paths.next_expiry());
  return earlier(world.neighbours.next_deadline(), earlier(world.tcp.impl().next_deadline(), others));
}

bool Stack::pending() noexcept {
  World& world = *world_;
  return !world.channel.rx.empty() || world.rx.free_count() != 0 || world.tcp.impl().has_work();
}
Tcp& Stack::tcp() noexcept { return world_->tcp; }
ConsumerEnd& Stack::channel() noexcept { return world_->channel; }
const CounterPage& Stack::counters() const noexcept { return world_->counters; }
const LinkFacts& Stack::link() const noexcept { return world_->options.link; }

void Stack::set_addresses(std::span<const Prefix> addresses) {
  world_->net.set(addresses);
  world_->rebuild_routes();
}

void Stack::set_routes(std::span<const proto::Route> routes) {
  world_->given_routes.assign(routes.begin(), routes.end());
  world_->rebuild_routes();
}

void Stack::set_mtu(std::uint32_t mtu) {
  world_->link().mtu = sane_mtu(mtu);
  world_->egress.invalidate();
}

void Stack::set_mac(const MacAddress& mac) {
  world_->link().mac = mac;
  world_->egress.invalidate();
}

std::span<const Prefix> Stack::addresses() const noexcept { return world_->net.addresses(); }
bool Stack::is_ours(const IpAddress& address) const noexcept { return world_->net.is_ours(address); }

void Stack::on_neighbour(const IpAddress& address, std::optional<MacAddress> mac) {
  World& world = *world_;
  if (!mac) {
    const auto gone = world.neighbours.forget(address);
    if (gone) world.egress.on_failed(*gone);
    world.egress.invalidate();
    return;
  }
  const auto effect = world.neighbours.set(address, *mac, world.now);
  if (effect.evicted) world.egress.on_failed(*effect.evicted);
  if (effect.changed || effect.evicted) world.egress.invalidate();
  if (effect.resolved) world.egress.on_resolved(effect.index, effect.mac);
  world.egress.flush();
}

void Stack::set_local_peer(Protocol protocol, const Endpoint& peer, const MacAddress& station) {
  if (world_->local_peers.set(protocol, peer, station)) world_->egress.invalidate();
}

std::optional<MacAddress> Stack::local_peer(Protocol protocol, const Endpoint& peer) const noexcept {
  return world_->local_peers.find(protocol, peer);
}

void Stack::forget_local_peer(Protocol protocol, const Endpoint& peer) {
  world_->local_peers.forget(protocol, peer);
  world_->egress.invalidate();
}

void Stack::forget_station(const MacAddress& station) {
  world_->tcp.impl().on_station_gone(station);
  world_->local_peers.forget(station);
  world_->egress.invalidate();
}

std::size_t Stack::take_resolve_requests(std::span<IpAddress> out) noexcept {
  return world_->egress.take_resolve_requests(out);
}

Result<UdpHandle> Stack::open_udp(const UdpBind& bind) {
  if (!bind.local.address.is_unspecified() && !world_->net.is_ours(bind.local.address)) {
    return fail(ErrorCode::address_not_available,
                "not an address of this stack; bind to one of those or to any", EADDRNOTAVAIL);
  }
  auto socket = world_->sockets.open(bind);
  if (!socket || bind.peer == Endpoint{}) return socket;
  if (auto connected = connect_udp(*socket, bind.peer); !connected) {
    close_udp(*socket);
    return tl::unexpected(connected.error());
  }
  return socket;
}

Result<void> Stack::connect_udp(UdpHandle handle, const Endpoint& peer, const IpAddress& given) {
  World& world = *world_;
  UdpSocketState* socket = world.sockets.get(handle);
  if (socket == nullptr) return fail(ErrorCode::closed, "the socket is closed", EBADF);
  // From where the socket was bound to, not from where it has been connected to.
  world.sockets.disconnect(*socket);
  if (peer.port == 0 || peer.address.is_unspecified() || !socket->binding.takes(peer.address.is_v4())) {
    return fail(ErrorCode::invalid_argument, "a peer needs a port and an address of the socket's family",
                EINVAL);
  }
  IpAddress source = socket->binding.local.address;
  if (source.is_unspecified() && !given.is_unspecified()) {
    source = given;
  } else if (source.is_unspecified() && world.net.is_ours(peer.address)) {
    source = peer.address;
  } else if (source.is_unspecified()) {
    const proto::Route* route = world.routes.lookup(peer.address);
    const auto chosen = route == nullptr || route->elsewhere
                            ? std::nullopt
                            : proto::choose_source(peer.address, *route, world.net.addresses());
    if (!chosen) {
      return fail(ErrorCode::unreachable,
                  "no route to the peer through this device; add one or use the kernel path", ENETUNREACH);
    }
    source = *chosen;
  }
  world.sockets.connect(*socket, source, peer);
  return {};
}

void Stack::disconnect_udp(UdpHandle handle) {
  if (UdpSocketState* socket = world_->sockets.get(handle)) world_->sockets.disconnect(*socket);
}

void Stack::close_udp(UdpHandle socket) { world_->sockets.close(socket); }

Result<UdpInfo> Stack::udp_info(UdpHandle handle) const {
  const UdpSocketState* socket = world_->sockets.get(handle);
  if (socket == nullptr) return fail(ErrorCode::closed, "the socket is closed", EBADF);
  return UdpInfo{socket->binding.local, socket->binding.peer, socket->waiting, socket->waiting_bytes,
                 socket->held_frames};
}

std::size_t Stack::receive(UdpHandle socket, std::span<Datagram> out) noexcept {
  return world_->sockets.receive(socket, out);
}

bool Stack::readable(UdpHandle handle) const noexcept {
  const UdpSocketState* socket = world_->sockets.get(handle);
  return socket != nullptr && (socket->waiting != 0 || socket->error);
}

std::size_t Stack::take_ready(std::span<UdpHandle> out) noexcept { return world_->sockets.take_ready(out); }

std::optional<SocketError> Stack::take_error(UdpHandle handle) noexcept {
  UdpSocketState* socket = world_->sockets.get(handle);
  if (socket == nullptr) return std::nullopt;
  return std::exchange(socket->error, std::nullopt);
}

namespace {

SendStatus status_of(const SocketError& error) {
  switch (error.code) {
    case ErrorCode::refused:
      return SendStatus::refused;
    case ErrorCode::message_too_long:
      return SendStatus::message_too_long;
    default:
      return SendStatus::unreachable;
  }
}

// A bare device has no kernel to bring a datagram to ourselves back to us.
SendStatus send_to_self(World& world, const UdpSocketState& socket, const Endpoint& peer, Bytes payload) {
  if (payload.size() > proto::max_udp_payload(peer.address.is_v4())) return SendStatus::message_too_long;
  const IpAddress& bound = socket.binding.local.address;
  const Endpoint from{bound.is_unspecified() ? peer.address : bound, socket.binding.local.port};
  deliver_copy(world, payload, from, peer, false);
  world.counters.add(Counter::udp_sent);
  return SendStatus::queued;
}

SendStatus send_one(World& world, UdpSocketState& socket, const OutDatagram& datagram, Bytes payload,
                    std::optional<wire::PartialSum>& sum) {
  // As the kernel does: a pending error is told once, and what would have been sent is not.
  if (socket.error) return status_of(*std::exchange(socket.error, std::nullopt));
  const bool given = datagram.peer != Endpoint{};
  if (!given && !socket.binding.connected()) return SendStatus::no_peer;
  const Endpoint& peer = given ? datagram.peer : socket.binding.peer;
  const SendStatus status = world.egress.send_udp(socket, peer, payload, sum);
  const bool to_self =
      status == SendStatus::not_on_wire && world.link().bare && world.net.is_ours(peer.address);
  return to_self ? send_to_self(world, socket, peer, payload) : status;
}

}  // namespace

std::size_t Stack::send(UdpHandle handle, std::span<const OutDatagram> in,
                        std::span<SendStatus> statuses) noexcept {
  World& world = *world_;
  UdpSocketState* socket = world.sockets.get(handle);
  std::size_t taken = 0;
  Bytes payload;
  std::optional<wire::PartialSum> sum;  // of `payload`, once somebody has made it
  for (; taken < in.size(); ++taken) {
    if (!in[taken].same) {
      payload = in[taken].payload;
      sum.reset();
    }
    const SendStatus status =
        socket == nullptr ? SendStatus::failed : send_one(world, *socket, in[taken], payload, sum);
    if (!statuses.empty()) statuses[taken] = status;
    if (status == SendStatus::would_block) break;
  }
  if (!statuses.empty()) {
    for (std::size_t i = taken; i < in.size(); ++i) statuses[i] = SendStatus::would_block;
  }
  world.egress.flush();
  return taken;
}

bool Stack::inject_slow_path(Bytes payload, const Endpoint& peer, const Endpoint& local) noexcept {
  return deliver_copy(*world_, payload, peer, local, true);
}

}  // namespace netchannel::stack
