#include "bench/crr_server.hpp"

#include "bench/ready_ports.hpp"
#include "bench/tcp_transport.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {

CrrServer::CrrServer(Host& host, const BlockOptions& options, TcpListener listener)
    : host_(host),
      options_(options),
      patient_(waits_without_deadline(host, options)),
      listener_(std::move(listener)) {}

Result<std::unique_ptr<FarEnd>> CrrServer::open(Host& host, const BlockOptions& options,
                                                const IpAddress& near) {
  auto listener = host.listen({near, 0});
  if (!listener) return tl::unexpected(listener.error());
  return std::unique_ptr<FarEnd>(new CrrServer(host, options, std::move(*listener)));
}

FarEnd::Turn CrrServer::work(Instant deadline) {
  const bool alone = options_.pairs == 1;
  const Instant wait = !alone ? kNow : patient_ && deadline != kNow ? kForever : deadline;
  Turn turn = !alone || clients_.empty() ? accept(wait) : Turn::idle;
  for (auto client = clients_.begin(); client != clients_.end();) {
    const std::size_t before = client->read + client->written;
    const bool more = go_on(*client, wait);
    if (!more || client->read + client->written != before) turn = Turn::worked;
    const auto here = client++;
    if (!more) clients_.erase(here);
  }
  if (turn == Turn::idle && !alone && !host_.poll()) host_.wait(deadline);
  return turn;
}

FarEnd::Turn CrrServer::accept(Instant deadline) {
  auto socket = listener_.accept(deadline);
  if (!socket) return is_pause(socket.error()) ? Turn::idle : Turn::failed;
  clients_.push_back({std::move(*socket), std::vector<std::byte>(options_.size)});
  return Turn::worked;
}

// False: it is over, by its end or by the client's.
bool CrrServer::go_on(Client& client, Instant deadline) {
  if (client.read < client.request.size()) {
    const auto got = client.socket.read(MutableBytes(client.request).subspan(client.read), deadline);
    if (!got) return is_pause(got.error());
    client.read += *got;
    return *got != 0;
  }
  const auto wrote = client.socket.write(Bytes(client.request).subspan(client.written), More::no, deadline);
  if (!wrote) return is_pause(wrote.error());
  client.written += *wrote;
  if (client.written < client.request.size()) return true;
  ++served_;
  return false;
}

}  // namespace netchannel::bench
