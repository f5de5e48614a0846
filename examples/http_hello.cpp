// An HTTP/1.1 server that says hello, with keep-alive and pipelining, for wrk or curl:
//
//   http_hello xdp eth0 0.0.0.0:8080        wrk -c 64 -d 5 http://192.0.2.1:8080/
//
// It reads no header but the end of them, so it is no model of a web server, only of a connection's life.
#include "example.hpp"

#include <array>
#include <map>
#include <string_view>

using namespace netchannel;

namespace {

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n";
constexpr std::string_view kEnd = "\r\n\r\n";
constexpr std::uint64_t kListener = 0;

struct Client {
  TcpSocket socket;
  std::size_t matched = 0;  // characters of kEnd that the request has ended with so far
  std::string unsent{};     // while there is any, no request is read
};

void read_requests(Client& client, std::span<const Bytes> views) {
  for (const Bytes view : views) {
    for (const std::byte byte : view) {
      const char c = static_cast<char>(byte);
      client.matched = c == kEnd[client.matched] ? client.matched + 1 : (c == kEnd[0] ? 1 : 0);
      if (client.matched != kEnd.size()) continue;
      client.matched = 0;
      client.unsent += kAnswer;
    }
  }
}

// False: it is over.
bool serve(Client& client) {
  if (client.unsent.empty()) {
    std::array<Bytes, 16> views{};
    const auto n = client.socket.receive(views, kNow);
    if (!n) return n.error().code == ErrorCode::would_block;
    if (*n == 0) return false;
    read_requests(client, views);
    client.socket.consume(*n);
  }
  if (client.unsent.empty()) return true;
  const auto wrote = client.socket.write(std::as_bytes(std::span(client.unsent)), More::no, kNow);
  if (!wrote) return wrote.error().code == ErrorCode::would_block;
  client.unsent.erase(0, *wrote);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 4, "PATH DEVICE ADDRESS:PORT");
  TcpListener listener =
      example::must(host.listen(example::endpoint(argv[3]), {.tcp = {.no_delay = true}}), "cannot listen");
  Poller& poller = host.poller();
  if (!poller.add(listener, kListener)) return 1;
  example::stop_on_signals();
  std::printf("serving http://%s/\n", listener.local().to_string().c_str());
  std::fflush(stdout);

  std::map<std::uint64_t, Client> clients;
  std::uint64_t next = kListener + 1;
  std::array<Event, 128> events;
  while (example::stopped == 0) {
    const auto ready = poller.wait(events);
    if (!ready) continue;
    for (const Event& event : std::span(events).first(*ready)) {
      if (event.token == kListener) {
        while (auto socket = listener.accept(kNow)) {
          Client& client = clients.emplace(next, Client{std::move(*socket)}).first->second;
          (void)poller.add(client.socket, next++);
        }
        continue;
      }
      const auto found = clients.find(event.token);
      if (found == clients.end()) continue;
      Client& client = found->second;
      const bool waited = !client.unsent.empty();
      if (!serve(client)) {
        clients.erase(found);
      } else if (!client.unsent.empty() != waited) {
        (void)poller.remove(client.socket);
        (void)poller.add(client.socket, event.token, waited ? kReadable : kWritable);
      }
    }
  }
}
