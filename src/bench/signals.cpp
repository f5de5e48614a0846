#include "bench/signals.hpp"

#include <signal.h>
#include <sys/time.h>

#include <atomic>

namespace netchannel::bench {
namespace {

std::atomic<bool> g_interrupted{false};

void on_interrupt(int) { g_interrupted.store(true, std::memory_order_relaxed); }
void on_tick(int) {}

void set_ticker(suseconds_t microseconds) {
  const itimerval every{{0, microseconds}, {0, microseconds}};
  ::setitimer(ITIMER_REAL, &every, nullptr);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() noexcept { return g_interrupted.load(std::memory_order_relaxed); }

void start_ticker() {
  struct sigaction action{};
  action.sa_handler = on_tick;  // no SA_RESTART: ending the call is the point
  ::sigaction(SIGALRM, &action, nullptr);
  set_ticker(20'000);
}

void stop_ticker() { set_ticker(0); }

}  // namespace netchannel::bench
