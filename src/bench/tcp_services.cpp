#include "bench/tcp_services.hpp"

#include <array>

namespace netchannel::bench {
namespace {

constexpr int kMostTurns = 4;  // pieces of one connection before the others' turn

}  // namespace

Result<void> TcpServices::open(Kind kind, const Endpoint& local) {
  ListenOptions wanted;
  wanted.v6_only = true;
  wanted.tcp.no_delay = true;
  auto socket = host_.listen(local, wanted);
  if (!socket) return tl::unexpected(socket.error());
  const std::uint64_t token = next_token_++;
  Listener& listener = listeners_.emplace(token, Listener{kind, std::move(*socket)}).first->second;
  return host_.poller().add(listener.socket, token);
}

void TcpServices::handle(const Event& event) {
  if (const auto listener = listeners_.find(event.token); listener != listeners_.end())
    return accept(listener->second);
  const auto connection = connections_.find(event.token);
  if (connection == connections_.end()) return;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (serve(event.token, connection->second)) continue;
    connections_.erase(connection);
    return;
  }
}

void TcpServices::accept(Listener& listener) {
  for (auto socket = listener.socket.accept(kNow); socket; socket = listener.socket.accept(kNow)) {
    if (connections_.size() >= kMostConnections) continue;
    const std::uint64_t token = next_token_++;
    Connection& made =
        connections_.emplace(token, Connection{listener.kind, std::move(*socket)}).first->second;
    if (!host_.poller().add(made.socket, token)) connections_.erase(token);
  }
}

// One piece. False: the connection is over.
bool TcpServices::serve(std::uint64_t token, Connection& connection) {
  std::array<Bytes, 16> views;
  const auto got = connection.socket.receive(views, kNow);
  if (!got) return got.error().code == ErrorCode::would_block;
  if (*got == 0) return false;
  if (connection.kind == Kind::discard) {
    connection.socket.consume(*got);
    return true;
  }
  const auto wrote = connection.socket.write(views, More::no, kNow);
  if (!wrote && wrote.error().code != ErrorCode::would_block) return false;
  connection.socket.consume(wrote.value_or(0));
  const bool full = wrote.value_or(0) < *got;
  if (full != connection.waits_for_room) {
    connection.waits_for_room = full;
    watch(token, connection);
  }
  return true;
}

void TcpServices::watch(std::uint64_t token, Connection& connection) {
  (void)host_.poller().remove(connection.socket);
  (void)host_.poller().add(connection.socket, token, connection.waits_for_room ? kWritable : kReadable);
}

}  // namespace netchannel::bench
