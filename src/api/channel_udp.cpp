#include "api/channel_udp.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/channel_host.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

// The largest batch for which statuses are kept here when the caller wants none.
constexpr std::size_t kBatch = 64;

Error to_error(const stack::SocketError& error) {
  switch (error.code) {
    case ErrorCode::refused:
      return {error.code, error.sys_errno, "the peer has no socket on that port"};
    case ErrorCode::message_too_long:
      return {error.code, error.sys_errno, "the datagram is longer than the path takes"};
    default:
      return {error.code, error.sys_errno, "the peer cannot be reached"};
  }
}

SendStatus status_of(ErrorCode code, SendStatus otherwise) {
  switch (code) {
    case ErrorCode::refused:
      return SendStatus::refused;
    case ErrorCode::message_too_long:
      return SendStatus::message_too_long;
    case ErrorCode::unreachable:
      return SendStatus::unreachable;
    default:
      return otherwise;
  }
}

}  // namespace

Result<std::unique_ptr<ChannelUdp>> ChannelUdp::open(ChannelHost& host, const Endpoint& local,
                                                     const UdpOptions& options) {
  std::unique_ptr<ChannelUdp> socket(new ChannelUdp(host, options));
  const bool specific = !local.address.is_unspecified();
  if (specific && !host.stack().is_ours(local.address)) {
    return fail(ErrorCode::address_not_available,
                "not an address of this host's interface; bind to one of those, or use the kernel path",
                EADDRNOTAVAIL);
  }
  socket->bound_ = local;
  if (host.reserves()) {
    auto reserved = control::Reservation::open(Protocol::udp, local,
                                               {.reuse_address = options.reuse_address,
                                                .reuse_port = options.reuse_port,
                                                .v6_only = options.v6_only,
                                                .coalesce = host.takes_joined_datagrams()});
    if (!reserved) return tl::unexpected(reserved.error());
    socket->reservation_.emplace(std::move(*reserved));
    socket->bound_.port = socket->reservation_->local().port;
  }
  stack::UdpBind bind;
  bind.local = socket->bound_;
  bind.v6_only = options.v6_only;
  bind.reuse_address = options.reuse_address;
  bind.reuse_port = options.reuse_port;
  bind.receive_buffer = options.receive_buffer;
  bind.broadcast = options.broadcast;
  auto handle = host.stack().open_udp(bind);
  if (!handle) return tl::unexpected(handle.error());
  socket->handle_ = *handle;
  host.enter(*handle, socket.get());
  socket->bound_.port = host.stack().udp_info(*handle)->local.port;
  const int fd = socket->reservation_ ? socket->reservation_->fd() : -1;
  if (auto watched = host.watch(*socket, fd); !watched) return tl::unexpected(watched.error());
  if (auto claimed = socket->claims_.set(socket->bound_, {}); !claimed)
    return tl::unexpected(claimed.error());
  if (host.local() != nullptr) host.local()->offer(Protocol::udp, socket->bound_, options.v6_only);
  return socket;
}

ChannelUdp::~ChannelUdp() {
  if (handle_ && host_.local() != nullptr) host_.local()->withdraw(Protocol::udp, bound_, options_.v6_only);
  if (handle_) {
    host_.enter(handle_, nullptr);
    host_.stack().close_udp(handle_);
  }
  host_.forget(*this);
}

HostImpl& ChannelUdp::host() noexcept { return host_; }
Endpoint ChannelUdp::local() const {
  const auto info = host_.stack().udp_info(handle_);
  return info ? info->local : bound_;
}
Endpoint ChannelUdp::peer() const { return peer_; }

Result<void> ChannelUdp::connect(const Endpoint& peer) {
  if (peer == Endpoint{} || peer.address.is_unspecified()) {
    host_.stack().disconnect_udp(handle_);
    peer_ = {};
  } else {
    if (host_.local() != nullptr) return connect_by_kernel(peer);
    if (auto connected = host_.stack().connect_udp(handle_, peer); !connected) return connected;
    peer_ = peer;
  }
  // The kernel then answers other senders to this port as it would for any connected socket.
  if (reservation_) {
    if (auto connected = reservation_->connect(peer_); !connected) return connected;
  }
  return claims_.set(bound_, peer_);
}

// On the local path the kernel knows from which address a peer is reached.
Result<void> ChannelUdp::connect_by_kernel(const Endpoint& peer) {
  if (auto connected = reservation_->connect(peer); !connected) return connected;
  const auto source = reservation_->source();
  if (auto connected = host_.stack().connect_udp(handle_, peer, source); !connected) return connected;
  peer_ = peer;
  (void)host_.local()->reach_soon(Protocol::udp, peer, device::monotonic_now());
  return {};
}

std::size_t ChannelUdp::take(std::span<Datagram> out) {
  DatagramCopies& copies = host_.copies();
  if (!copies.wanted()) return host_.stack().receive(handle_, out);
  // What `out` held goes first: it may be the room for what comes.
  for (Datagram& datagram : out) datagram = {};
  const std::size_t n = host_.stack().receive(handle_, out.first(std::min(out.size(), copies.room())));
  copies.take_over(out.first(n));
  return n;
}

Result<std::size_t> ChannelUdp::receive(std::span<Datagram> out, Wait wait) noexcept {
  const std::size_t least = std::min(wait.least, out.size());
  stack::Stack& stack = host_.stack();
  std::size_t n = 0;
  host_.look_closely = true;  // the time of the last turn may be long ago
  for (bool polled = false;; polled = true) {
    n += take(out.subspan(n));
    if (n != 0 && n >= least) {
      host_.busy();
      return n;
    }
    if (n == 0) {
      if (const auto error = stack.take_error(handle_)) return tl::unexpected(to_error(*error));
      if (const auto error = std::exchange(slow_error_, std::nullopt)) return tl::unexpected(*error);
    }
    if (polled && least == 0) return n;
    if (host_.poll()) {
      host_.busy();
      continue;
    }
    if (least == 0) continue;
    if (wait.deadline != kForever && host_.turned_at >= wait.deadline) return n;
    if (!host_.idle(wait.deadline)) return fail(ErrorCode::interrupted, "a signal came while waiting", EINTR);
  }
}

Result<std::size_t> ChannelUdp::send(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                                     More more) noexcept {
  stack::Stack& stack = host_.stack();
  std::size_t total = 0;
  bool drained = false;
  while (total < in.size()) {
    const std::size_t count = std::min(in.size() - total, kBatch);
    std::array<SendStatus, kBatch> local_statuses;
    const std::span<SendStatus> told =
        statuses.empty() ? std::span(local_statuses).first(count) : statuses.subspan(total, count);
    const auto batch = in.subspan(total, count);
    const std::size_t taken = stack.send(handle_, batch, told);
    if (reservation_) send_by_kernel(batch.first(taken), told.first(taken));
    total += taken;
    if (taken == count) continue;
    // No room: what is queued leaves, what was sent comes home, and then once more.
    if (drained) break;
    drained = true;
    host_.poll();
  }
  if (more == More::no) host_.transmit();
  std::fill(statuses.begin() + static_cast<std::ptrdiff_t>(std::min(total, statuses.size())),
            statuses.begin() + static_cast<std::ptrdiff_t>(std::min(in.size(), statuses.size())),
            SendStatus::would_block);
  return total;
}

// What has no route on our interface may have one elsewhere, and the kernel knows it.
void ChannelUdp::send_by_kernel(std::span<const OutDatagram> in, std::span<SendStatus> statuses) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (statuses[i] != SendStatus::not_on_wire) continue;
    std::size_t source = i;
    while (in[source].same && in[source].payload.empty() && source > 0) --source;
    const Endpoint& peer = in[i].peer == Endpoint{} ? peer_ : in[i].peer;
    if (host_.local() != nullptr && host_.local()->reach_soon(Protocol::udp, peer, device::monotonic_now())) {
      const OutDatagram again{in[source].payload, in[i].peer, false};
      (void)host_.stack().send(handle_, {&again, 1}, statuses.subspan(i, 1));
      if (statuses[i] != SendStatus::not_on_wire) continue;
    }
    const auto sent = reservation_->send_to(in[source].payload, peer);
    statuses[i] = sent ? SendStatus::queued : status_of(sent.error().code, statuses[i]);
  }
}

std::uint64_t ChannelUdp::take_slow_path() {
  // Each look takes a bounded number; what is left keeps the descriptor readable.
  constexpr std::uint64_t kMost = 16;
  std::uint64_t calls = 0;
  while (calls < kMost || reservation_->holds_more()) {
    if (!reservation_->holds_more()) ++calls;
    const auto got = reservation_->receive();
    // Elsewhere the stack sees the ICMP error itself.
    if (!got && host_.local() != nullptr) {
      slow_error_ = got.error();
      host_.poller_impl.wake(*this);
      continue;
    }
    if (!got || !*got) break;
    Endpoint to = (*got)->local;
    to.port = bound_.port;
    (void)host_.stack().inject_slow_path((*got)->payload, (*got)->peer, to);
  }
  return calls;
}

std::size_t ChannelUdp::pending() const noexcept {
  const auto info = host_.stack().udp_info(handle_);
  return info ? info->waiting : 0;
}

std::uint32_t ChannelUdp::readiness() noexcept {
  const bool readable = host_.stack().readable(handle_) || slow_error_;
  return (readable ? kReadable : 0u) | kWritable;
}

}  // namespace netchannel
