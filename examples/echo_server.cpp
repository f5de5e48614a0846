// Echo over UDP and TCP on one port, for any number of clients: one host, one poller, no copy on the way in.
//
//   echo_server xdp eth0 0.0.0.0:7
#include "example.hpp"

#include <array>
#include <map>

using namespace netchannel;

namespace {

constexpr std::uint64_t kUdp = 0, kListener = 1;

void echo(UdpSocket& socket) {
  std::array<Datagram, 64> in;  // each looks into the frame that it came in
  std::array<OutDatagram, 64> out;
  const auto n = socket.receive(in, {.least = 0});
  if (!n) return;  // an ICMP error of one client is no reason to stop
  for (std::size_t i = 0; i < *n; ++i) out[i] = {in[i].payload, in[i].peer};
  (void)socket.send(std::span(out).first(*n));  // one burst; what the queue does not take, UDP may lose
}

struct Client {
  TcpSocket socket;
  bool reads_nothing = false;  // and so it gets no more from us: it is waited for until it does
};

// False: it is over.
bool echo(Client& client) {
  std::array<Bytes, 16> views;
  const auto n = client.socket.receive(views, kNow);
  if (!n) return n.error().code == ErrorCode::would_block;
  if (*n == 0) return false;
  std::size_t done = 0;
  for (const Bytes view : views) {
    if (done == *n) break;
    const std::size_t written = client.socket.write(view, More::no, kNow).value_or(0);
    done += written;
    if (written < view.size()) break;
  }
  client.socket.consume(done);  // what is not consumed closes our window, and the client waits
  client.reads_nothing = done < *n;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 4, "PATH DEVICE ADDRESS:PORT");
  const Endpoint local = example::endpoint(argv[3]);
  UdpSocket udp = example::must(host.udp(local), "cannot bind UDP");
  TcpListener listener = example::must(host.listen(udp.local()), "cannot listen");
  Poller& poller = host.poller();
  (void)example::must(poller.add(udp, kUdp).map([] { return 0; }), "poller");
  (void)example::must(poller.add(listener, kListener).map([] { return 0; }), "poller");
  example::stop_on_signals();
  std::printf("serving %s\n", udp.local().to_string().c_str());
  std::fflush(stdout);

  std::map<std::uint64_t, Client> clients;
  std::uint64_t next = kListener + 1;
  std::array<Event, 64> events;
  while (example::stopped == 0) {
    const auto ready = poller.wait(events);
    if (!ready) continue;  // interrupted
    for (const Event& event : std::span(events).first(*ready)) {
      if (event.token == kUdp) {
        echo(udp);
      } else if (event.token == kListener) {
        while (auto socket = listener.accept(kNow)) {
          Client& client = clients.emplace(next, Client{std::move(*socket)}).first->second;
          (void)poller.add(client.socket, next++);
        }
      } else if (const auto found = clients.find(event.token); found != clients.end()) {
        Client& client = found->second;
        const bool waited = client.reads_nothing;
        if (!echo(client)) {
          clients.erase(found);
        } else if (client.reads_nothing != waited) {
          (void)poller.remove(client.socket);
          (void)poller.add(client.socket, event.token, client.reads_nothing ? kWritable : kReadable);
        }
      }
    }
  }
}
