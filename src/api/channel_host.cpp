#include "api/channel_host.hpp"

#include <sodium.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "api/channel_tcp.hpp"
#include "api/channel_udp.hpp"
#include "api/local_tcp.hpp"
#include "api/tcp_ports.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

// A look costs a third of a microsecond: under one per cent of a loop that spins.
constexpr Duration kLookInterval = std::chrono::microseconds(50);
constexpr std::uint32_t kShortTurns = 8;

std::vector<proto::Route> routes_of(const control::Snapshot& snapshot) {
  std::vector<proto::Route> routes;
  for (const control::Route& route : snapshot.routes) {
    // Broadcast and multicast destinations are the link's own business, not a route's.
    if (route.type == control::RouteType::broadcast || route.type == control::RouteType::multicast) continue;
    const bool ours =
        route.type == control::RouteType::unicast && route.interface_index == snapshot.link.index;
    routes.push_back({.destination = route.destination,
                      .gateway = route.gateway,
                      .metric = route.metric,
                      .preferred_source = route.preferred_source,
                      .elsewhere = !ours});
  }
  return routes;
}

std::vector<Prefix> addresses_of(const control::Snapshot& snapshot) {
  std::vector<Prefix> addresses;
  for (const auto& address : snapshot.addresses) addresses.push_back(address.prefix);
  return addresses;
}

std::vector<proto::Route> gateway_routes(std::span<const IpAddress> gateways) {
  std::vector<proto::Route> routes;
  for (const IpAddress& gateway : gateways) {
    proto::Route route;
    route.destination = {gateway.is_v4() ? IpAddress::any_v4() : IpAddress::any_v6(), 0};
    route.gateway = gateway;
    routes.push_back(route);
  }
  return routes;
}

}  // namespace

Result<std::unique_ptr<HostImpl>> open_channel_host(const HostOptions& options) {
  return ChannelHost::open(options);
}

Result<std::unique_ptr<HostImpl>> ChannelHost::open(const HostOptions& options) {
  std::unique_ptr<ChannelHost> host(new ChannelHost(options));
  if (auto started = host->start(); !started) return tl::unexpected(started.error());
  return host;
}

ChannelHost::~ChannelHost() {
  keeper.reset();
  tcp_ports_.reset();  // which unclaims
}

Result<void> ChannelHost::start() {
  auto made = open_channel_device(options);
  if (!made) return tl::unexpected(made.error());
  made_ = std::move(*made);
  if (auto started = start_stack(); !started) return started;
  tcp_ports_ = std::make_unique<TcpPorts>(*this);
  kernel_epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!kernel_epoll_) {
    return fail(ErrorCode::system, "cannot make an epoll instance; raise the limit of open files", errno);
  }
  if (made_.mirror) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(kernel_epoll_.get(), EPOLL_CTL_ADD, made_.mirror->fd(), &event) != 0) {
      return fail(ErrorCode::system, "cannot watch the kernel's notifications", errno);
    }
    feed_addresses();
    feed_routes();
    for (const control::Neighbour& neighbour : made_.mirror->snapshot().neighbours) {
      if (control::is_usable(neighbour.state)) stack_->on_neighbour(neighbour.address, neighbour.mac);
    }
  }
  if (made_.local != nullptr) {
    if (auto started = start_local(); !started) return started;
  }
  sleep_fds = {made_.device->info().sleep_fd, kernel_epoll_.get()};
  say_what_was_chosen();
  poll();
  if (!options.keeper) return {};
  auto started = Keeper::start(*this);
  if (!started) return tl::unexpected(started.error());
  keeper = std::move(*started);
  return copies_.open();
}

Result<void> ChannelHost::start_local() {
  auto links = LocalLinks::open({.device = *made_.local,
                                 .stack = *stack_,
                                 .frames = made_.region->fd(),
                                 .slots = made_.tx_frames,
                                 .slot_size = made_.region->slot_size(),
                                 .any_user = options.local.any_user,
                                 .explain = explain});
  if (!links) return tl::unexpected(links.error());
  local_ = std::move(*links);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = local_.get();
  kernel_tcp_epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!kernel_tcp_epoll_ || ::epoll_ctl(kernel_epoll_.get(), EPOLL_CTL_ADD, local_->fd(), &event) != 0)
    return fail(ErrorCode::system, "cannot watch for peers; raise the limit of open files", errno);
  return {};
}

// The kernel's sockets that a local host also has.
bool ChannelHost::watch_all(int& also) {
  if (!local_) return true;
  also = kernel_tcp_epoll_.get();
  return kernel_tcp_.prepare_sleep(also);
}

Result<void> ChannelHost::start_stack() {
  const DeviceInfo& info = made_.device->info();
  auto channel = Channel::open({.rx_ring = std::bit_ceil(std::max(made_.rx_frames, 64u)),
                                .tx_ring = std::bit_ceil(std::max(made_.tx_frames, 64u)),
                                .rx_slots = made_.rx_frames,
                                .tx_slots = 2 * made_.tx_frames});  // a slot can be part of two packets
  if (!channel) return tl::unexpected(channel.error());
  channel_ = std::move(*channel);
  const driver::SlotRange rx{made_.rx_first, made_.rx_frames}, tx{made_.tx_first, made_.tx_frames};
  driver_ = std::make_unique<driver::Driver>(*made_.device, *made_.region, rx, driver_counters_);
  if (auto attached = driver_->attach(channel_->take_driver(), tx); !attached)
    return tl::unexpected(attached.error());

  stack::StackOptions wanted;
  wanted.link = {.mac = info.mac,
                 .mtu = info.mtu,
                 .max_tx_frame = info.max_tx_frame,
                 .bare = info.bare,
                 .virtual_link = info.virtual_link,
                 .tx_checksum = info.tx_checksum,
                 .local = made_.local != nullptr};
  wanted.rx = {rx.first, rx.count};
  wanted.tx = {tx.first, tx.count};
  wanted.addresses = options.addresses;
  wanted.routes = gateway_routes(options.gateways);
  randombytes_buf(wanted.secret.data(), wanted.secret.size());
  auto stack = stack::Stack::open(channel_->take_consumer(), *made_.region, wanted);
  if (!stack) return tl::unexpected(stack.error());
  stack_ = std::move(*stack);
  return {};
}

void ChannelHost::say_what_was_chosen() {
  const DeviceInfo& info = made_.device->info();
  path = made_.path;
  mode = info.mode;
  explain.push_back(std::string(to_string(path)) + " on " + info.name + " in mode " + info.mode);
  if (!info.why_not_better.empty()) explain.push_back(info.why_not_better);
}

bool ChannelHost::poll() {
  counters.add(Counter::host_polls);
  bool moved = driver_->poll();
  // The clock, timers and the kernel's descriptors are not asked in every turn of a spin: the sooner the turn
  // is over, the sooner the next packet is seen.
  if (!moved && !look_closely && ++short_turns_ % kShortTurns != 0) return false;
  look_closely = false;
  const Instant now = device::monotonic_now();
  turned_at = now;
  const stack::PollResult done = stack_->poll(now);
  if (done.sent != 0) transmit();
  moved |= done.did_something();
  if (now >= next_look_) {
    next_look_ = now + kLookInterval;
    moved |= look_at_kernel();
  }
  if (moved && poller_impl.has_sockets()) wake_ready();
  return moved;
}

// Tells the poller whom the stack has something for.
void ChannelHost::wake_ready() {
  const auto wake = [&](std::vector<Pollable*>& sockets, std::size_t index) {
    if (Pollable* socket = at(sockets, index)) poller_impl.wake(*socket);
  };
  std::array<stack::UdpHandle, 64> datagrams;
  while (const std::size_t n = stack_->take_ready(datagrams)) {
    for (const stack::UdpHandle handle : std::span(datagrams).first(n))
      wake(udp_sockets_, handle.value & 0xffff);
  }
  std::array<stack::TcpReady, 64> streams;
  while (const std::size_t n = stack_->tcp().take_ready(streams)) {
    for (const stack::TcpReady& ready : std::span(streams).first(n)) {
      wake(tcp_sockets_, ready.connection.place);
      wake(tcp_listeners_, ready.listener.value);
    }
  }
}

void ChannelHost::transmit() {
  while (driver_->transmit()) {
  }
  ask_for_neighbours();
}

bool ChannelHost::prepare_sleep() { return !stack_->pending() && driver_->prepare_sleep(); }

Instant ChannelHost::next_deadline() const { return stack_->next_deadline(); }

std::uint64_t ChannelHost::counter(Counter which) const {
  return made_.counters->read(which) + driver_counters_.read(which) + stack_->counters().read(which) +
         counters.read(which);
}

std::uint64_t ChannelHost::syscalls() const {
  return made_.counters->read(Counter::device_tx_kicks) + made_.counters->read(Counter::device_rx_wakeups) +
         kernel_calls_ + sleeps + kernel_tcp_.syscalls + (local_ ? local_->syscalls() : 0);
}

bool ChannelHost::look_at_kernel() {
  ask_for_neighbours();
  tcp_ports_->tidy();
  bool found = local_ && local_->has_business() && local_->look();
  std::array<epoll_event, 16> events;
  const int n = ::epoll_wait(kernel_epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  ++kernel_calls_;
  for (int i = 0; i < n; ++i) {
    void* const what = events[static_cast<std::size_t>(i)].data.ptr;
    if (local_ && what == local_.get()) {
      found |= local_->look();
      continue;
    }
    auto* socket = static_cast<ChannelUdp*>(what);
    if (socket == nullptr) {
      take_changes();
      continue;
    }
    const std::uint64_t calls = socket->take_slow_path();
    kernel_calls_ += calls;
    // The last call found nothing. What the others found must not wait for the next thing that happens.
    found |= calls > 1;
  }
  return found;
}

void ChannelHost::take_changes() {
  const control::Changes& changes = made_.mirror->refresh();
  const control::Snapshot& snapshot = made_.mirror->snapshot();
  if (changes.has(control::kLinkChanged)) {
    stack_->set_mtu(std::min(snapshot.link.mtu, made_.device->info().mtu));
    stack_->set_mac(snapshot.link.mac);
  }
  if (changes.has(control::kAddressesChanged)) feed_addresses();
  if (changes.has(control::kRoutesChanged) || changes.has(control::kAddressesChanged)) feed_routes();
  const std::uint64_t sent =
      stack_->counters().read(Counter::udp_sent) + stack_->counters().read(Counter::tcp_segments_sent);
  const bool used = sent != sent_at_last_refresh_;
  sent_at_last_refresh_ = sent;
  for (const control::Neighbour& neighbour : changes.neighbours) {
    const bool usable = control::is_usable(neighbour.state);
    stack_->on_neighbour(neighbour.address, usable ? std::optional(neighbour.mac) : std::nullopt);
    // Our packets do not pass the kernel, so it would let the entry grow old while we use it.
    if (used && neighbour.state == control::NeighbourState::stale)
      (void)made_.mirror->resolve(neighbour.address);
  }
}

void ChannelHost::feed_addresses() {
  const auto addresses = addresses_of(made_.mirror->snapshot());
  stack_->set_addresses(addresses);
  for (ClaimSet* claims : claim_sets_) (void)claims->update();
}

void ChannelHost::feed_routes() { stack_->set_routes(routes_of(made_.mirror->snapshot())); }

void ChannelHost::ask_for_neighbours() {
  std::array<IpAddress, 16> wanted;
  const std::size_t n = stack_->take_resolve_requests(wanted);
  if (n == 0 || !made_.mirror) return;
  for (std::size_t i = 0; i < n; ++i) {
    ++kernel_calls_;
    // It may be known already: the kernel then has nothing to notify.
    take_changes();
    const auto* known = control::find_neighbour(made_.mirror->snapshot(), wanted[i]);
    if (known != nullptr && control::is_usable(known->state)) {
      stack_->on_neighbour(wanted[i], known->mac);
    } else if (!made_.mirror->resolve(wanted[i])) {
      stack_->on_neighbour(wanted[i], std::nullopt);
    }
  }
}

FlowReply ChannelHost::command(FlowCommand::Kind kind, const FlowKey& flow) {
  ConsumerEnd& channel = stack_->channel();
  const std::uint32_t tag = ++next_tag_;
  channel.commands.push({.kind = kind, .tag = tag, .flow = flow});
  driver_->poll();
  FlowReply reply{.tag = tag, .ok = false, .code = ErrorCode::system};
  (void)channel.replies.pop_all({&reply, 1});
  return reply;
}

Result<void> ChannelHost::claim(const FlowKey& flow) {
  if (const auto known = claims_.find(flow); known != claims_.end()) {
    ++known->second;
    return {};
  }
  const FlowReply reply = command(FlowCommand::Kind::claim, flow);
  if (!reply.ok) {
    return fail(reply.code, "cannot claim the flow on the device; is the port another netchannel host's?",
                reply.sys_errno);
  }
  claims_[flow] = 1;
  return {};
}

void ChannelHost::unclaim(const FlowKey& flow) {
  const auto known = claims_.find(flow);
  if (known == claims_.end() || --known->second != 0) return;
  claims_.erase(known);
  (void)command(FlowCommand::Kind::unclaim, flow);
}

Result<void> ChannelHost::watch(ChannelUdp& socket, int fd) {
  if (fd < 0) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &socket;
  if (::epoll_ctl(kernel_epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail(ErrorCode::system, "cannot watch the kernel's socket of this port", errno);
  }
  return {};
}

void ChannelHost::forget(ChannelUdp& socket) { poller_impl.forget(&socket); }

Result<std::unique_ptr<UdpSocketImpl>> ChannelHost::open_udp(const Endpoint& local, const UdpOptions& given) {
  auto socket = ChannelUdp::open(*this, local, given);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<UdpSocketImpl>(std::move(*socket));
}

Result<std::unique_ptr<TcpListenerImpl>> ChannelHost::listen(const Endpoint& local,
                                                             const ListenOptions& given) {
  if (local_) return LocalTcpListener::open(*this, local, given);
  return ChannelTcpListener::open(*this, local, given);
}

Result<std::unique_ptr<TcpSocketImpl>> ChannelHost::connect(const Endpoint& peer,
                                                            const ConnectOptions& given) {
  if (local_ && !local_->reach(Protocol::tcp, peer, device::monotonic_now()))
    return KernelTcp::connect(*this, kernel_tcp_, peer, given);
  return ChannelTcp::connect(*this, peer, given);
}

}  // namespace netchannel
