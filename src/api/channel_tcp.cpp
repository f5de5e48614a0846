#include "api/channel_tcp.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/channel_host.hpp"
#include "api/kernel_tcp.hpp"
#include "api/tcp_ports.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

// Segments come from the ring one by one as they arrive, and an acknowledgement costs what a segment costs.
constexpr Duration kAckGather = std::chrono::microseconds(50);

// Memory neither delays segments nor brings old ones back.
constexpr Duration kLocalTimeWait = std::chrono::milliseconds(100);

tcp::Settings settings_of(const TcpOptions& options, bool local) {
  tcp::Settings settings;
  settings.no_delay = options.no_delay;
  settings.quick_ack = options.quick_ack;
  settings.ack_gather = kAckGather;
  if (options.send_buffer != 0) settings.send_buffer = settings.send_buffer_max = options.send_buffer;
  if (options.receive_buffer != 0)
    settings.receive_buffer = settings.receive_buffer_max = options.receive_buffer;
  settings.mss_limit = options.max_segment;
  settings.user_timeout = options.user_timeout;
  settings.keepalive = options.keepalive;
  settings.keepalive_idle = options.keepalive_idle;
  settings.keepalive_interval = options.keepalive_interval;
  settings.keepalive_probes = options.keepalive_probes;
  settings.congestion = options.congestion == CongestionControl::reno ? tcp::CongestionAlgorithm::reno
                                                                      : tcp::CongestionAlgorithm::cubic;
  settings.ecn = options.ecn ? tcp::EcnMode::request : tcp::EcnMode::accept;
  if (local) settings.time_wait = kLocalTimeWait;
  return settings;
}

Error to_error(tcp::Failure failure) {
  switch (failure) {
    case tcp::Failure::refused:
      return {ErrorCode::refused, ECONNREFUSED, "the peer has no listener on that port"};
    case tcp::Failure::reset:
      return {ErrorCode::reset, ECONNRESET, "the peer has reset the connection"};
    case tcp::Failure::timed_out:
      return {ErrorCode::timed_out, ETIMEDOUT, "the peer does not answer any more"};
    case tcp::Failure::unreachable:
      return {ErrorCode::unreachable, EHOSTUNREACH, "the peer cannot be reached"};
    case tcp::Failure::none:
    case tcp::Failure::aborted:
      break;
  }
  return {ErrorCode::closed, EPIPE, "the connection is closed"};
}

// The peer has sent its FIN and everything before it has arrived.
bool peer_has_ended(tcp::State state) {
  switch (state) {
    case tcp::State::close_wait:
    case tcp::State::closing:
    case tcp::State::last_ack:
    case tcp::State::time_wait:
    case tcp::State::closed:
      return true;
    default:
      return false;
  }
}

TcpConnectionState to_linux(tcp::State state) {
  switch (state) {
    case tcp::State::closed:
      return TcpConnectionState::close;
    case tcp::State::listen:
      return TcpConnectionState::listen;
    case tcp::State::syn_sent:
      return TcpConnectionState::syn_sent;
    case tcp::State::syn_received:
      return TcpConnectionState::syn_recv;
    case tcp::State::established:
      return TcpConnectionState::established;
    case tcp::State::fin_wait_1:
      return TcpConnectionState::fin_wait1;
    case tcp::State::fin_wait_2:
      return TcpConnectionState::fin_wait2;
    case tcp::State::close_wait:
      return TcpConnectionState::close_wait;
    case tcp::State::closing:
      return TcpConnectionState::closing;
    case tcp::State::last_ack:
      return TcpConnectionState::last_ack;
    case tcp::State::time_wait:
      return TcpConnectionState::time_wait;
  }
  return TcpConnectionState::close;
}

bool is_connecting(tcp::State state) {
  return state == tcp::State::syn_sent || state == tcp::State::syn_received;
}

// Polls until ready(), by the host's wait mode, until the deadline.
template <class Ready>
Result<void> wait_for(ChannelHost& host, Instant deadline, Ready&& ready) {
  host.look_closely = true;  // the time of the last turn may be long ago
  for (bool polled = false;; polled = true) {
    if (ready()) {
      host.busy();
      return {};
    }
    if (polled && deadline == kNow) return fail(ErrorCode::would_block, "nothing to do now", EAGAIN);
    if (host.poll()) {
      host.busy();
      continue;
    }
    if (deadline == kNow) continue;
    if (deadline != kForever && host.turned_at >= deadline)
      return fail(ErrorCode::timed_out, "the deadline has passed", ETIMEDOUT);
    if (!host.idle(deadline)) return fail(ErrorCode::interrupted, "a signal came while waiting", EINTR);
  }
}

// A bare device has no kernel that would choose a port.
Result<stack::TcpListenerHandle> listen_on(stack::Tcp& tcp, stack::TcpListen& wanted) {
  constexpr std::uint16_t kFirst = 32768, kLast = 60999;  // Linux's ip_local_port_range
  if (wanted.local.port != 0) return tcp.listen(wanted);
  for (wanted.local.port = kFirst;; ++wanted.local.port) {
    auto listening = tcp.listen(wanted);
    const bool taken = !listening && listening.error().code == ErrorCode::address_in_use;
    if (!taken || wanted.local.port == kLast) return listening;
  }
}

constexpr Error kClosedHere{ErrorCode::closed, EBADF, "the socket has been closed by its owner"};

}  // namespace

tcp::Settings tcp_settings(const ChannelHost& host, const TcpOptions& options) {
  return settings_of(options, host.local() != nullptr);
}

ChannelTcp::ChannelTcp(ChannelHost& host, stack::TcpHandle connection)
    : host_(host),
      handle_(connection),
      local_(host.stack().tcp().local(connection)),
      peer_(host.stack().tcp().peer(connection)) {
  host.enter(connection, this);
}

ChannelTcp::~ChannelTcp() { close(); }

HostImpl& ChannelTcp::host() noexcept { return host_; }
const tcp::Connection* ChannelTcp::connection() const { return host_.stack().tcp().find(handle_); }

Result<std::unique_ptr<TcpSocketImpl>> ChannelTcp::connect(ChannelHost& host, const Endpoint& peer,
                                                           const ConnectOptions& options) {
  stack::TcpConnect wanted{.local = options.local,
                           .peer = peer,
                           .ttl = options.tcp.ttl,
                           .tos = options.tcp.tos,
                           .settings = tcp_settings(host, options.tcp)};
  host.poll();  // the time of the handshake is now
  if (host.reserves()) {
    const auto source = host.stack().tcp().source_for(peer, options.local.address);
    if (!source) return tl::unexpected(source.error());
    const auto port = host.tcp_ports().for_connection({*source, options.local.port}, peer);
    if (!port) return tl::unexpected(port.error());
    wanted.local = port->local;
    wanted.lease = port->lease;
  }
  const auto handle = host.stack().tcp().connect(wanted);
  if (!handle) return tl::unexpected(handle.error());
  auto socket = std::make_unique<ChannelTcp>(host, *handle);
  if (host.local() != nullptr) socket->else_by_kernel_ = options;
  socket->send_out();
  return std::unique_ptr<TcpSocketImpl>(std::move(socket));
}

void ChannelTcp::send_out() {
  host_.stack().set_time(device::monotonic_now());
  host_.stack().tcp().flush();
  host_.transmit();
}

// On the local path: whom the host that was met there does not let in, the kernel may. True: it is over to
// the kernel.
bool ChannelTcp::left_to_kernel() noexcept {
  if (kernel_) return true;
  const tcp::Connection* c = else_by_kernel_ ? connection() : nullptr;
  if (c == nullptr || is_connecting(c->state.state)) return false;
  ConnectOptions options = std::move(*else_by_kernel_);
  else_by_kernel_.reset();
  if (c->state.failure == tcp::Failure::none) return false;
  host_.local()->forget(Protocol::tcp, peer_);
  options.deadline = kNow;
  auto opened = KernelTcp::connect(host_, host_.kernel_tcp(), peer_, options);
  if (!opened) {
    refused_ = opened.error();
    return false;
  }
  kernel_ = std::move(*opened);
  host_.stack().tcp().close(handle_);
  host_.enter(handle_, nullptr);
  handle_ = {};
  host_.poller_impl.moved(*this);
  return true;
}

std::optional<Error> ChannelTcp::failure() const {
  if (refused_) return refused_;
  const tcp::Connection* c = connection();
  if (c == nullptr) return kClosedHere;
  if (c->state.failure == tcp::Failure::none) return std::nullopt;
  return to_error(c->state.failure);
}

Result<void> ChannelTcp::finish_connect(Instant deadline) noexcept {
  if (left_to_kernel()) return kernel_->finish_connect(deadline);
  const auto over = [&] {
    const tcp::Connection* c = connection();
    return c == nullptr || !is_connecting(c->state.state);
  };
  if (auto waited = wait_for(host_, deadline, over); !waited) return waited;
  if (left_to_kernel()) return kernel_->finish_connect(deadline);
  if (const auto error = failure()) {
    told_ = true;
    return tl::unexpected(*error);
  }
  return {};
}

bool ChannelTcp::something_to_read() {
  if (left_to_kernel()) return true;
  const tcp::Connection* c = connection();
  return c == nullptr || c->receive.readable() != 0 || peer_has_ended(c->state.state);
}

Result<std::size_t> ChannelTcp::receive(std::span<Bytes> out, Instant deadline) noexcept {
  if (auto waited = wait_for(host_, deadline, [&] { return something_to_read(); }); !waited)
    return tl::unexpected(waited.error());
  if (kernel_) return kernel_->receive(out, deadline);
  const std::size_t n = host_.stack().tcp().spans(handle_, out);
  if (n == 0) {
    const auto error = failure();
    if (!error || told_) return 0;
    told_ = true;
    return tl::unexpected(*error);
  }
  std::size_t bytes = 0;
  for (const Bytes view : out.first(n)) bytes += view.size();
  return bytes;
}

void ChannelTcp::consume(std::size_t bytes) noexcept {
  if (kernel_) return kernel_->consume(bytes);
  host_.stack().tcp().consume(handle_, bytes);
}

Result<std::size_t> ChannelTcp::read(std::span<const MutableBytes> to, Instant deadline) noexcept {
  if (left_to_kernel()) return kernel_->read(to, deadline);
  std::array<Bytes, 16> views;
  std::size_t copied = 0;
  std::size_t at = 0, offset = 0;  // where in `to`
  while (at < to.size()) {
    const auto got = copied == 0 ? receive(views, deadline)
                                 : Result<std::size_t>(host_.stack().tcp().spans(handle_, views));
    if (!got) return got;
    if (*got == 0) break;
    std::size_t used = 0;
    for (Bytes view : views) {
      while (!view.empty() && at < to.size()) {
        const std::size_t n = std::min(view.size(), to[at].size() - offset);
        std::memcpy(to[at].data() + offset, view.data(), n);
        view = view.subspan(n);
        used += n;
        offset += n;
        if (offset == to[at].size()) ++at, offset = 0;
      }
      if (at == to.size()) break;
    }
    copied += used;
    consume(used);
    std::fill(views.begin(), views.end(), Bytes{});
  }
  return copied;
}

std::size_t ChannelTcp::write_some(Bytes from) { return host_.stack().tcp().write(handle_, from); }

Result<std::size_t> ChannelTcp::write(std::span<const Bytes> from, More more, Instant deadline) noexcept {
  if (left_to_kernel()) return kernel_->write(from, more, deadline);
  stack::Tcp& tcp = host_.stack().tcp();
  if (more == More::yes) tcp.set_cork(handle_, true);
  std::size_t total = 0;
  for (Bytes part : from) {
    while (!part.empty()) {
      const std::size_t n = write_some(part);
      part = part.subspan(n);
      total += n;
      if (n != 0) continue;
      const tcp::Connection* c = connection();
      const bool over = c == nullptr || c->state.state == tcp::State::closed || c->state.fin_queued;
      if (over) {
        if (total == 0 && left_to_kernel()) return kernel_->write(from, more, deadline);
        if (total != 0) return total;
        auto error = failure();
        if (error && !told_) {
          told_ = true;
          return tl::unexpected(*error);
        }
        return fail(ErrorCode::closed, "the connection is closed for writing", EPIPE);
      }
      send_out();
      const auto waited = wait_for(host_, deadline, [&] {
        const tcp::Connection* now = connection();
        return now == nullptr || now->state.state == tcp::State::closed || tcp.writable(handle_) != 0;
      });
      if (!waited) return total != 0 ? Result<std::size_t>(total) : tl::unexpected(waited.error());
    }
  }
  if (more == More::yes) return total;
  tcp.set_cork(handle_, false);
  send_out();
  // What Nagle's rule or the window holds back waits for acknowledgements, and who only writes must see them.
  const tcp::Connection* c = connection();
  if (c != nullptr && c->state.snd_nxt < c->send.end()) host_.poll();
  return total;
}

Result<void> ChannelTcp::shutdown_write() noexcept {
  if (left_to_kernel()) return kernel_->shutdown_write();
  if (connection() == nullptr) return tl::unexpected(kClosedHere);
  host_.stack().tcp().shutdown_write(handle_);
  send_out();
  return {};
}

void ChannelTcp::forget() noexcept {
  host_.poller_impl.forget(this);
  host_.enter(handle_, nullptr);
  send_out();
  handle_ = {};
}

void ChannelTcp::close() noexcept {
  if (kernel_) host_.poller_impl.forget(this);
  if (kernel_) return kernel_->close();
  if (!handle_) return;
  host_.stack().tcp().close(handle_);
  forget();
}

Result<void> ChannelTcp::close_gracefully(Instant deadline) noexcept {
  if (left_to_kernel()) {
    host_.poller_impl.forget(this);
    return kernel_->close_gracefully(deadline);
  }
  if (connection() == nullptr) return tl::unexpected(kClosedHere);
  if (auto ended = shutdown_write(); !ended) return ended;
  const auto acknowledged = [&] {
    const tcp::State state = connection()->state.state;
    return state == tcp::State::closed || state == tcp::State::fin_wait_2 || state == tcp::State::time_wait;
  };
  const auto waited = wait_for(host_, deadline, acknowledged);
  const auto error = failure();
  close();
  if (!waited) return waited;
  if (error) return tl::unexpected(*error);
  return {};
}

void ChannelTcp::abort() noexcept {
  if (kernel_) host_.poller_impl.forget(this);
  if (kernel_) return kernel_->abort();
  if (!handle_) return;
  host_.stack().tcp().abort(handle_);
  forget();
}

Result<void> ChannelTcp::set_options(const TcpOptions& options) noexcept {
  if (left_to_kernel()) return kernel_->set_options(options);
  if (else_by_kernel_) else_by_kernel_->tcp = options;
  stack::Tcp& tcp = host_.stack().tcp();
  tcp::Settings* settings = tcp.settings(handle_);
  if (settings == nullptr) return tl::unexpected(kClosedHere);
  const tcp::Settings before = *settings;
  *settings = tcp_settings(host_, options);
  settings->cork = before.cork;
  if (options.no_delay && !before.no_delay) tcp.set_no_delay(handle_, true);
  tcp.set_keepalive(handle_, options.keepalive);
  tcp.set_tos(handle_, options.tos);
  send_out();
  return {};
}

Result<void> ChannelTcp::set_no_delay(bool on) noexcept {
  if (left_to_kernel()) return kernel_->set_no_delay(on);
  if (else_by_kernel_) else_by_kernel_->tcp.no_delay = on;
  stack::Tcp& tcp = host_.stack().tcp();
  if (tcp.find(handle_) == nullptr) return tl::unexpected(kClosedHere);
  tcp.set_no_delay(handle_, on);
  send_out();
  return {};
}

TcpInfo ChannelTcp::info() const noexcept {
  if (kernel_) return kernel_->info();
  const tcp::TcpInfo in = host_.stack().tcp().info(handle_);
  TcpInfo out;
  out.state = to_linux(in.state);
  out.ca_state = in.ca_state;
  out.retransmits = in.retransmits;
  out.probes = in.probes;
  out.backoff = in.backoff;
  out.timestamps = in.timestamps;
  out.sack = in.sack;
  out.window_scaling = in.window_scaling;
  out.ecn = in.ecn;
  out.snd_wscale = in.snd_wscale;
  out.rcv_wscale = in.rcv_wscale;
  out.rto = in.rto;
  out.ato = in.ato;
  out.snd_mss = in.snd_mss;
  out.rcv_mss = in.rcv_mss;
  out.advmss = in.advmss;
  out.pmtu_mss = in.pmtu_mss;
  out.unacked = in.unacked;
  out.sacked = in.sacked;
  out.lost = in.lost;
  out.last_data_sent = in.last_data_sent;
  out.last_data_recv = in.last_data_recv;
  out.last_ack_recv = in.last_ack_recv;
  out.rtt = in.rtt;
  out.rttvar = in.rttvar;
  out.min_rtt = in.min_rtt;
  out.snd_ssthresh = in.snd_ssthresh;
  out.snd_cwnd = in.snd_cwnd;
  out.snd_wnd = in.snd_wnd;
  out.rcv_space = in.rcv_space;
  out.total_retrans = in.total_retrans;
  out.segs_in = in.segs_in;
  out.segs_out = in.segs_out;
  out.bytes_acked = in.bytes_acked;
  out.bytes_received = in.bytes_received;
  out.bytes_retrans = in.bytes_retrans;
  out.notsent_bytes = in.notsent_bytes;
  return out;
}

std::size_t ChannelTcp::readable() const noexcept {
  if (kernel_) return kernel_->readable();
  const tcp::Connection* c = connection();
  return c == nullptr ? 0 : c->receive.readable();
}

std::size_t ChannelTcp::writable() const noexcept {
  if (kernel_) return kernel_->writable();
  return host_.stack().tcp().writable(handle_);
}

std::uint32_t ChannelTcp::readiness() noexcept {
  if (left_to_kernel()) return kernel_->readiness();
  const tcp::Connection* c = connection();
  if (c == nullptr) return kError;
  std::uint32_t ready = 0;
  if (something_to_read()) ready |= kReadable;
  if (c->state.failure != tcp::Failure::none && !told_) ready |= kError | kReadable | kWritable;
  const bool connecting = is_connecting(c->state.state);
  const bool room = c->state.state == tcp::State::closed || host_.stack().tcp().may_write(handle_);
  if (!connecting && room) ready |= kWritable;
  return ready;
}

Result<std::unique_ptr<TcpListenerImpl>> ChannelTcpListener::open(ChannelHost& host, const Endpoint& local,
                                                                  const ListenOptions& options) {
  std::unique_ptr<ChannelTcpListener> listener(new ChannelTcpListener(host));
  listener->local_ = local;
  if (!local.address.is_unspecified() && !host.stack().is_ours(local.address)) {
    return fail(ErrorCode::address_not_available,
                "not an address of this host's interface; listen on one of those, or use the kernel path",
                EADDRNOTAVAIL);
  }
  if (host.steered()) {
    const auto port = host.tcp_ports().reserve(local, {.reuse_address = options.reuse_address,
                                                       .reuse_port = options.reuse_port,
                                                       .v6_only = options.v6_only});
    if (!port) return tl::unexpected(port.error());
    listener->local_ = port->local;
    listener->lease_ = port->lease;
  }
  stack::TcpListen wanted{.local = listener->local_,
                          .v6_only = options.v6_only,
                          .backlog = std::max(options.backlog, 1U),
                          .ttl = options.tcp.ttl,
                          .tos = options.tcp.tos,
                          .lease = listener->lease_,
                          .settings = tcp_settings(host, options.tcp)};
  const auto handle = listen_on(host.stack().tcp(), wanted);
  listener->local_ = wanted.local;
  if (!handle) {
    host.tcp_ports().leave(listener->lease_);
    listener->lease_ = 0;
    return tl::unexpected(handle.error());
  }
  listener->handle_ = *handle;
  host.enter(*handle, listener.get());
  return std::unique_ptr<TcpListenerImpl>(std::move(listener));
}

ChannelTcpListener::~ChannelTcpListener() {
  host_.poller_impl.forget(this);
  host_.enter(handle_, nullptr);
  if (handle_) host_.stack().tcp().close(handle_);
  host_.stack().tcp().flush();
  host_.transmit();
  host_.tcp_ports().leave(lease_);
}

HostImpl& ChannelTcpListener::host() noexcept { return host_; }

Result<std::unique_ptr<TcpSocketImpl>> ChannelTcpListener::accept(Instant deadline) noexcept {
  stack::Tcp& tcp = host_.stack().tcp();
  if (auto waited = wait_for(host_, deadline, [&] { return tcp.waiting(handle_) != 0; }); !waited)
    return tl::unexpected(waited.error());
  return std::unique_ptr<TcpSocketImpl>(std::make_unique<ChannelTcp>(host_, *tcp.accept(handle_)));
}

std::size_t ChannelTcpListener::waiting() const noexcept { return host_.stack().tcp().waiting(handle_); }
std::uint32_t ChannelTcpListener::readiness() noexcept { return waiting() != 0 ? kReadable : 0u; }

}  // namespace netchannel
