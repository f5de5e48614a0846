// The same program on each path: a thousand round trips to a UDP echo server, and their median. A path that
// does not work here says why.
//
//   every_path eth0 192.0.2.1:7
#include "example.hpp"

#include <algorithm>
#include <array>
#include <vector>

using namespace netchannel;

namespace {

// Microseconds.
Result<double> median_round_trip(Host& host, const Endpoint& server) {
  const IpAddress any = server.address.is_v4() ? IpAddress::any_v4() : IpAddress::any_v6();
  auto socket = host.udp({any, 0});
  if (!socket) return tl::unexpected(socket.error());
  if (auto connected = socket->connect(server); !connected) return tl::unexpected(connected.error());
  std::vector<double> times;
  std::array<Datagram, 1> answer;
  for (int i = 0; i < 1000; ++i) {
    const Instant start = host.now();
    if (auto sent = socket->send_to(std::as_bytes(std::span("x", 1))); !sent)
      return tl::unexpected(sent.error());
    const auto n = socket->receive(answer, {.least = 1, .deadline = start + std::chrono::seconds(1)});
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) return fail(ErrorCode::timed_out, "no answer within a second; is the server there?");
    times.push_back(std::chrono::duration<double, std::micro>(host.now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 500, times.end());
  return times[500];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DEVICE SERVER:PORT\n", argv[0]);
    return 2;
  }
  const Endpoint server = example::endpoint(argv[2]);
  for (const Path path : {Path::kernel, Path::xdp, Path::bulk}) {
    auto host = Host::open({.path = path, .device = argv[1], .wait = WaitMode::spin});
    const auto time = host ? median_round_trip(*host, server) : tl::unexpected(host.error());
    const std::string name(to_string(path));
    if (time) {
      std::printf("%-8s %6.1f us  (%s)\n", name.c_str(), *time, host->mode().c_str());
    } else {
      std::printf("%-8s %s\n", name.c_str(), describe(time.error()).c_str());
    }
  }
}
