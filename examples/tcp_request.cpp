// One request and its answer over TCP, every step with a deadline: a server that is away, silent or slow
// costs the time that was given to it and no more.
//
//   tcp_request xdp eth0 192.0.2.1:7 "hello" 500        (half a second for all of it)
#include "example.hpp"

#include <string_view>
#include <vector>

using namespace netchannel;

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 6, "PATH DEVICE SERVER:PORT TEXT MILLISECONDS");
  const Endpoint server = example::endpoint(argv[3]);
  const std::string_view text = argv[4];
  const Instant deadline = host.now() + std::chrono::milliseconds(std::atoi(argv[5]));

  TcpSocket socket =
      example::must(host.connect(server, {.deadline = deadline, .tcp = {.no_delay = true}}), "connecting");
  const Bytes request = std::as_bytes(std::span(text));
  if (example::must(socket.write(request, More::no, deadline), "sending") != request.size()) {
    std::fprintf(stderr, "sending: the deadline passed with a part of the request unsent\n");
    return 1;
  }
  std::vector<std::byte> answer(request.size());
  for (std::size_t have = 0; have < answer.size();) {
    const std::size_t n =
        example::must(socket.read(std::span(answer).subspan(have), deadline), "waiting for the answer");
    if (n == 0) {
      std::fprintf(stderr, "the server closed after %zu of %zu bytes\n", have, answer.size());
      return 1;
    }
    have += n;
  }
  std::printf("%.*s\n", static_cast<int>(answer.size()), reinterpret_cast<const char*>(answer.data()));
  const TcpInfo info = socket.info();
  std::fprintf(stderr, "round trip %.1f us by TCP's clock, %s\n",
               std::chrono::duration<double, std::micro>(info.rtt).count(),
               socket.accelerated() ? "accelerated" : "over the kernel");
  (void)socket.close_gracefully(deadline);
}
