#include "bench/tcp_transport.hpp"

#include <algorithm>

#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr Duration kConnectTime = std::chrono::seconds(5);
constexpr Duration kWriteTime = std::chrono::milliseconds(10);  // then the sender looks at its clock
constexpr Duration kReplyTime = std::chrono::seconds(5);
// How soon what did not fit is tried again, while nothing comes.
constexpr Duration kUnsentInterval = std::chrono::microseconds(100);
constexpr std::size_t kViews = 16;

// What follows the first `done` bytes of `from`.
std::vector<Bytes> rest_of(std::span<const Bytes> from, std::size_t done) {
  std::vector<Bytes> out;
  for (const Bytes piece : from) {
    const std::size_t gone = std::min(done, piece.size());
    done -= gone;
    if (gone < piece.size()) out.push_back(piece.subspan(gone));
  }
  return out;
}

}  // namespace

bool is_pause(const Error& error) {
  return error.code == ErrorCode::would_block || error.code == ErrorCode::timed_out ||
         error.code == ErrorCode::interrupted;
}

bool write_all(TcpSocket& socket, std::span<const Bytes> from, Instant deadline) noexcept {
  std::vector<Bytes> left;
  while (!from.empty()) {
    const auto wrote = socket.write(from, More::no, deadline);
    if (!wrote && (wrote.error().code != ErrorCode::interrupted || interrupted())) return false;
    std::size_t size = 0;
    for (const Bytes piece : from) size += piece.size();
    if (wrote && *wrote == size) return true;
    if (device::monotonic_now() >= deadline) return false;
    if (wrote) left = rest_of(from, *wrote), from = left;
  }
  return true;
}

TcpTransport::TcpTransport(Host& host, const BlockOptions& options)
    : HostTransport(host),
      options_(options),
      patient_(waits_without_deadline(host, options)),
      whole_messages_(is_rr(options.workload)),
      ready_(host) {}

std::unique_ptr<TcpTransport> TcpTransport::client(Host& host, const BlockOptions& options) {
  return std::unique_ptr<TcpTransport>(new TcpTransport(host, options));
}

Result<std::unique_ptr<TcpTransport>> TcpTransport::server(Host& host, const BlockOptions& options,
                                                           const IpAddress& near) {
  std::unique_ptr<TcpTransport> transport(new TcpTransport(host, options));
  ListenOptions wanted;
  wanted.tcp.no_delay = is_rr(options.workload);
  auto listener = host.listen({near, 0}, wanted);
  if (!listener) return tl::unexpected(listener.error());
  transport->listener_.emplace(std::move(*listener));
  transport->expected_ = std::size_t{options.pairs} * options.flows;
  return transport;
}

Result<void> TcpTransport::add(TcpSocket socket) {
  connections_.push_back({std::move(socket)});
  const std::size_t port = connections_.size() - 1;
  const bool alone = std::size_t{options_.pairs} * options_.flows == 1;
  if (alone || is_channel(host_)) return {};
  return host_.poller().add(connections_[port].socket, port);
}

Result<void> TcpTransport::connect_to(const Far& far, std::uint32_t flows) {
  const std::size_t count = std::size_t{options_.pairs} * flows;
  connections_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i / flows >= far.ports.size())
      return fail(ErrorCode::invalid_argument, "the far end opened fewer ports than pairs");
    ConnectOptions wanted{.deadline = kNow};
    wanted.tcp.no_delay = is_rr(options_.workload);
    auto socket = host_.connect({far.address, far.ports[i / flows]}, wanted);
    if (!socket) return tl::unexpected(socket.error());
    const Instant deadline = device::monotonic_now() + kConnectTime;
    auto done = socket->finish_connect(deadline);
    while (!done && done.error().code == ErrorCode::interrupted && !interrupted())
      done = socket->finish_connect(deadline);
    if (!done) return done;
    if (auto added = add(std::move(*socket)); !added) return added;
  }
  return {};
}

Result<void> TcpTransport::accept_some(Instant deadline) noexcept {
  while (connections_.size() < expected_) {
    auto socket = listener_->accept(deadline);
    if (!socket) return is_pause(socket.error()) ? Result<void>{} : tl::unexpected(socket.error());
    if (auto added = add(std::move(*socket)); !added) return added;
  }
  return {};
}

bool TcpTransport::send_unsent(Connection& connection) noexcept {
  if (connection.unsent.empty()) return true;
  const auto wrote = connection.socket.write(connection.unsent, More::no, kNow);
  if (!wrote) return false;
  connection.unsent.erase(connection.unsent.begin(),
                          connection.unsent.begin() + static_cast<std::ptrdiff_t>(*wrote));
  if (!connection.unsent.empty()) return false;
  --unsent_;
  return true;
}

void TcpTransport::send_all_unsent() noexcept {
  if (unsent_ == 0) return;
  for (Connection& connection : connections_) (void)send_unsent(connection);
}

Result<Sent> TcpTransport::send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept {
  Connection& connection = connections_[port];
  if (!send_unsent(connection)) return Sent{};
  const bool may_wait = !whole_messages_ && connections_.size() == 1;
  const Instant deadline = !may_wait ? kNow : patient_ ? kForever : device::monotonic_now() + kWriteTime;
  const auto wrote = connection.socket.write(messages, more ? More::yes : More::no, deadline);
  if (!wrote) return is_pause(wrote.error()) ? Result<Sent>(Sent{}) : tl::unexpected(wrote.error());
  const std::size_t begun = (*wrote + options_.size - 1) / options_.size;
  const std::size_t in_part = *wrote % options_.size;
  if (in_part != 0) {
    const Bytes rest = messages[begun - 1].subspan(in_part);
    connection.unsent.assign(rest.begin(), rest.end());
    ++unsent_;
  }
  return Sent{begun, 0};
}

void TcpTransport::release() noexcept {
  if (shown_ != 0) connections_[shown_port_].socket.consume(shown_);
  shown_ = 0;
  whole_count_ = 0;
  arrived_.clear();
}

Result<std::span<const Arrived>> TcpTransport::receive(std::size_t port, std::size_t most,
                                                       Instant deadline) noexcept {
  release();
  if (connections_.size() < expected_) {
    if (auto accepted = accept_some(deadline); !accepted) return tl::unexpected(accepted.error());
    return std::span<const Arrived>{};
  }
  send_all_unsent();
  if (unsent_ != 0) deadline = earlier(deadline, device::monotonic_now() + kUnsentInterval);
  if (connections_.size() == 1) port = 0;
  if (port != kAnyPort) {
    const bool for_ever = patient_ && unsent_ == 0 && deadline != kNow;
    return receive_from(port, most, for_ever ? kForever : deadline);
  }
  for (;;) {
    const auto next = ready_.next(connections_.size(), deadline, [this](std::size_t i) {
      return !connections_[i].ended && connections_[i].socket.readable() != 0;
    });
    if (!next) return tl::unexpected(next.error());
    if (!*next) return std::span<const Arrived>{};
    auto got = receive_from(**next, most, kNow);
    if (!got || !got->empty()) return got;
  }
}

Result<std::span<const Arrived>> TcpTransport::receive_from(std::size_t port, std::size_t most,
                                                            Instant deadline) noexcept {
  Connection& connection = connections_[port];
  if (connection.ended) {
    wait(earlier(deadline, device::monotonic_now() + kWriteTime));
    return std::span<const Arrived>{};
  }
  std::array<Bytes, kViews> views;
  const auto got = connection.socket.receive(views, deadline);
  if (!got && is_pause(got.error())) return std::span<const Arrived>{};
  if (!got && !listener_) return tl::unexpected(got.error());
  if (!got || *got == 0) return end_of(port);
  shown_port_ = port;
  cut(connection, port, views, most);
  return std::span<const Arrived>(arrived_);
}

Result<std::span<const Arrived>> TcpTransport::end_of(std::size_t port) noexcept {
  connections_[port].ended = true;
  (void)host_.poller().remove(connections_[port].socket);
  if (!listener_) return fail(ErrorCode::closed, "the far end closed a connection that is measured");
  return std::span<const Arrived>{};
}

void TcpTransport::cut(Connection& from, std::size_t port, std::span<const Bytes> views, std::size_t most) {
  for (Bytes view : views) {
    if (!whole_messages_) {
      if (!view.empty()) arrived_.push_back({view, 0, port});
      shown_ += view.size();
      continue;
    }
    while (!view.empty() && arrived_.size() < most) {
      const std::size_t before = view.size();
      if (from.kept.empty() && view.size() >= options_.size) {
        arrived_.push_back({view.first(options_.size), 0, port});
        view = view.subspan(options_.size);
      } else if (const Bytes message = put_together(from, view); !message.empty()) {
        arrived_.push_back({message, 0, port});
      }
      shown_ += before - view.size();
    }
  }
}

// Takes of the view what the kept message still lacks; the message, if it is whole then.
Bytes TcpTransport::put_together(Connection& from, Bytes& view) {
  const Bytes part = view.first(std::min(view.size(), options_.size - from.kept.size()));
  from.kept.insert(from.kept.end(), part.begin(), part.end());
  view = view.subspan(part.size());
  if (from.kept.size() < options_.size) return {};
  if (whole_count_ == whole_.size()) whole_.emplace_back();
  std::vector<std::byte>& whole = whole_[whole_count_++];
  whole.swap(from.kept);
  from.kept.clear();
  return whole;
}

std::size_t TcpTransport::send_back() noexcept {
  replies_.clear();
  for (const Arrived& request : arrived_) replies_.push_back(request.payload);
  const Instant deadline = patient_ ? kForever : device::monotonic_now() + kReplyTime;
  return write_all(connections_[shown_port_].socket, replies_, deadline) ? replies_.size() : 0;
}

bool TcpTransport::all_acknowledged() const {
  return unsent_ == 0 &&
         std::all_of(connections_.begin(), connections_.end(), [](const Connection& connection) {
           const TcpInfo info = connection.socket.info();
           return info.unacked == 0 && info.notsent_bytes == 0;
         });
}

void TcpTransport::finish_sending(Instant deadline) noexcept {
  while (!all_acknowledged() && !interrupted()) {
    const Instant now = device::monotonic_now();
    if (now >= deadline) return;
    send_all_unsent();
    wait(earlier(deadline, now + kUnsentInterval));
  }
}

std::vector<std::uint16_t> TcpTransport::ports() const {
  return std::vector<std::uint16_t>(listener_ ? options_.pairs : 0, listener_ ? listener_->local().port : 0);
}

}  // namespace netchannel::bench
