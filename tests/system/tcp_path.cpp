// testkit::Wan as a program, for measurements: carries frames between two interfaces of its namespace until
// it is told to end, and says what became of them.
//
//   tcp_path x0 x1 --delay 10 --loss 0.01 --rate 50 --queue 125000
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "testkit/wan.hpp"

namespace netchannel {
namespace {

Duration milliseconds(double ms) { return Duration(static_cast<std::int64_t>(ms * 1e6)); }

void print(const char* way, const device::LinkStats& s) {
  std::printf("%s: %lu sent, %lu lost, %lu dropped, %lu reordered, %lu delivered\n", way, s.sent, s.lost,
              s.queue_drops, s.reordered, s.delivered);
}

int main(int argc, char** argv) {
  std::string left, right;
  double delay = 0, reorder_by = 1, rate = 0;
  device::LinkDirection direction;
  device::LinkOptions options;
  CLI::App app("a path with delay, loss, reordering and a rate between two interfaces");
  app.add_option("left", left)->required();
  app.add_option("right", right)->required();
  app.add_option("--delay", delay, "ms, each way");
  app.add_option("--loss", direction.loss, "probability, each way");
  app.add_option("--reorder", direction.reorder, "probability, each way");
  app.add_option("--reorder-by", reorder_by, "ms");
  app.add_option("--rate", rate, "Mbit/s, each way");
  app.add_option("--queue", direction.queue_bytes, "bytes, each way");
  app.add_option("--seed", options.seed);
  app.add_option("--mtu", options.mtu);
  CLI11_PARSE(app, argc, argv);
  direction.delay = milliseconds(delay);
  direction.reorder_by = milliseconds(reorder_by);
  direction.rate = static_cast<std::uint64_t>(rate * 1e6);
  options.a_to_b = options.b_to_a = direction;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);  // in the thread of the path too
  UniqueFd from = testkit::packet_port(left), to = testkit::packet_port(right);
  if (!from || !to) {
    std::fprintf(stderr, "tcp_path: no packet socket: %s\n", std::strerror(errno));
    return 1;
  }
  testkit::Wan wan(std::move(from), std::move(to), options);
  std::printf("carries\n");
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&ends, &signal);
  const auto stats = wan.stats();
  print("to the right", stats.to_right);
  print("to the left", stats.to_left);
  std::printf("%lu too large, %lu missed\n", stats.too_large, stats.missed);
  return 0;
}

}  // namespace
}  // namespace netchannel

int main(int argc, char** argv) { return netchannel::main(argc, argv); }
