// Subscribes to market_publisher's updates and counts what came, and what is missing between.
//
//   market_subscriber xdp eth0 192.0.2.1:6000 10
#include "example.hpp"
#include "feed.hpp"

using namespace netchannel;

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 5, "PATH DEVICE PUBLISHER:PORT SECONDS");
  const Endpoint publisher = example::endpoint(argv[3]);
  const IpAddress any = publisher.address.is_v4() ? IpAddress::any_v4() : IpAddress::any_v6();
  UdpSocket socket = example::must(host.udp({any, 0}), "cannot bind");
  (void)example::must(socket.connect(publisher).map([] { return 0; }), "cannot reach the publisher");
  (void)socket.send_to(std::as_bytes(std::span("subscribe")));
  example::stop_on_signals();

  std::array<Datagram, 64> batch;
  std::uint64_t received = 0, missing = 0, expected = 0;
  const Instant end = host.now() + std::chrono::seconds(std::atoi(argv[4]));
  while (host.now() < end && example::stopped == 0) {
    const auto n = socket.receive(batch, {.least = 1, .deadline = end});
    if (!n) {
      std::fprintf(stderr, "%s\n", describe(n.error()).c_str());
      if (n.error().code == ErrorCode::refused) return 1;
      continue;
    }
    for (const Datagram& datagram : std::span(batch).first(*n)) {
      if (datagram.payload.size() != feed::kUpdateSize) continue;
      const std::uint64_t number = feed::number_of(datagram.payload);
      if (received != 0 && number > expected) missing += number - expected;
      expected = number + 1;
      ++received;
    }
  }
  std::printf("%llu updates received, %llu missing\n", static_cast<unsigned long long>(received),
              static_cast<unsigned long long>(missing));
  return received == 0;
}
