// Receives datagrams in batches and says once a second how many came and how many one call brought.
//
//   udp_receiver bulk eth0 0.0.0.0:5000 10
#include "example.hpp"

#include <array>

using namespace netchannel;

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 5, "PATH DEVICE ADDRESS:PORT SECONDS");
  UdpSocket socket =
      example::must(host.udp(example::endpoint(argv[3]), {.receive_buffer = 8 << 20}), "cannot bind");
  example::stop_on_signals();
  std::printf("receiving at %s\n", socket.local().to_string().c_str());
  std::fflush(stdout);

  std::array<Datagram, 256> batch;
  for (int second = 0; second < std::atoi(argv[4]) && example::stopped == 0; ++second) {
    const Instant end = host.now() + std::chrono::seconds(1);
    std::size_t datagrams = 0, bytes = 0, calls = 0;
    while (host.now() < end && example::stopped == 0) {
      // One or more, but no later than the end of the second, also if none comes.
      const auto n = socket.receive(batch, {.least = 1, .deadline = end});
      if (!n) continue;
      calls += *n != 0;
      datagrams += *n;
      for (const Datagram& datagram : std::span(batch).first(*n)) bytes += datagram.payload.size();
    }
    std::printf("%zu datagrams, %zu bytes, %.1f a call\n", datagrams, bytes,
                calls == 0 ? 0.0 : static_cast<double>(datagrams) / static_cast<double>(calls));
    std::fflush(stdout);
  }
}
