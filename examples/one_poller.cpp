// One wait for everything: a socket of the host, a timer and standard input. Lines typed here go to the peer,
// what the peer sends is printed, and once a second stands what happened.
//
//   one_poller xdp eth0 0.0.0.0:5001 192.0.2.1:5001
#include "example.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <array>

using namespace netchannel;

namespace {

enum Token : std::uint64_t { kSocket, kTimer, kInput };

int every_second() {
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  const itimerspec times{{1, 0}, {1, 0}};
  if (fd < 0 || ::timerfd_settime(fd, 0, &times, nullptr) != 0) std::exit(1);
  return fd;
}

void print(UdpSocket& socket, std::size_t& received) {
  std::array<Datagram, 16> in;
  const auto n = socket.receive(in, {.least = 0});
  if (!n) return (void)std::printf("%s\n", describe(n.error()).c_str());
  received += *n;
  for (const Datagram& datagram : std::span(in).first(*n)) {
    std::fwrite(datagram.payload.data(), 1, datagram.payload.size(), stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Host host = example::open_host(argc, argv, 5, "PATH DEVICE ADDRESS:PORT PEER:PORT");
  UdpSocket socket = example::must(host.udp(example::endpoint(argv[3])), "cannot bind");
  (void)example::must(socket.connect(example::endpoint(argv[4])).map([] { return 0; }), "cannot connect");
  const int timer = every_second();
  Poller& poller = host.poller();
  if (!poller.add(socket, kSocket) || !poller.add(timer, kTimer) || !poller.add(STDIN_FILENO, kInput)) {
    std::fprintf(stderr, "standard input cannot be waited for; give a pipe or a terminal\n");
    return 1;
  }
  example::stop_on_signals();
  std::size_t received = 0, sent = 0;
  bool open = true;
  std::array<Event, 8> events;
  while (open && example::stopped == 0) {
    const auto ready = poller.wait(events);
    if (!ready) continue;
    for (const Event& event : std::span(events).first(*ready)) {
      if (event.token == kSocket) print(socket, received);
      if (event.token == kTimer) {
        std::uint64_t ticks = 0;
        if (::read(timer, &ticks, sizeof ticks) > 0) std::printf("%zu received, %zu sent\n", received, sent);
      }
      if (event.token == kInput) {
        std::array<std::byte, 1024> line;
        const ssize_t n = ::read(STDIN_FILENO, line.data(), line.size());
        if (n <= 0) open = false;
        if (n > 0 && socket.send_to(std::span(line).first(static_cast<std::size_t>(n)))) ++sent;
      }
      std::fflush(stdout);
    }
  }
  ::close(timer);
}
