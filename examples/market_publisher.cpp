// Sends each update to everybody who has subscribed: one payload, one call, one burst.
//
//   market_publisher xdp eth0 0.0.0.0:6000 1000 10      (a thousand updates a second, ten seconds)
#include "example.hpp"
#include "feed.hpp"

#include <algorithm>
#include <vector>

using namespace netchannel;

namespace {

void take_subscribers(UdpSocket& socket, std::vector<Endpoint>& subscribers) {
  std::array<Datagram, 32> batch;
  const auto n = socket.receive(batch, {.least = 0});
  if (!n) return;  // somebody's port is closed: it gets what UDP gives to closed ports
  for (const Datagram& datagram : std::span(batch).first(*n)) {
    if (std::find(subscribers.begin(), subscribers.end(), datagram.peer) != subscribers.end()) continue;
    subscribers.push_back(datagram.peer);
    std::printf("%s subscribed\n", datagram.peer.to_string().c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 6, "PATH DEVICE ADDRESS:PORT RATE SECONDS");
  UdpSocket socket = example::must(host.udp(example::endpoint(argv[3])), "cannot bind");
  const auto interval = std::chrono::nanoseconds(1'000'000'000 / std::max(1, std::atoi(argv[4])));
  example::stop_on_signals();
  std::printf("publishing at %s\n", socket.local().to_string().c_str());
  std::fflush(stdout);

  std::vector<Endpoint> subscribers;
  std::array<std::byte, feed::kUpdateSize> update;
  std::uint64_t number = 0, sent = 0;
  const Instant end = host.now() + std::chrono::seconds(std::atoi(argv[5]));
  for (Instant due = host.now(); due < end && example::stopped == 0; due = due + interval) {
    while (host.now() < due && example::stopped == 0) {
      host.wait(due);
      host.poll();
      take_subscribers(socket, subscribers);
    }
    if (subscribers.empty()) continue;
    feed::fill(update, number, 100'00 + number % 100);
    ++number;
    if (const auto n = socket.send_to_all(update, subscribers)) sent += *n;
  }
  std::printf("%llu updates, %llu datagrams to %zu subscribers, %llu system calls\n",
              static_cast<unsigned long long>(number), static_cast<unsigned long long>(sent),
              subscribers.size(), static_cast<unsigned long long>(host.syscalls()));
}
