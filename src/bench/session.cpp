#include "bench/session.hpp"

#include "bench/environment.hpp"
#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr Duration kControlInterval = std::chrono::milliseconds(1);
constexpr Duration kTickInterval = std::chrono::milliseconds(10);
// How long the rest of a stream may stay away before it is given up.
constexpr Duration kRestTime = std::chrono::seconds(2);
constexpr Duration kLongestSilence = std::chrono::seconds(60);

}  // namespace

Json make_hello(const BlockOptions& options, const MacAddress& mac) {
  return {{"protocol", kProtocol},
          {"version", version()},
          {"mac", netchannel::to_string(mac)},
          {"block", to_json(options)}};
}

Result<BlockOptions> read_hello(const Json& hello) {
  if (get_text(hello, "protocol") != kProtocol) {
    return fail(ErrorCode::invalid_argument,
                "the far end does not speak this control protocol; connect with `netchannel bench`");
  }
  if (get_text(hello, "version") != version()) {
    return fail(ErrorCode::not_supported,
                "the two ends are of different versions; install the same one on both");
  }
  return block_from_json(get_part(hello, "block"));
}

Session::Session(FarEnd& end, Control& control, const BlockOptions& options)
    : end_(end), control_(control), options_(options) {}

void Session::run(const std::function<void()>& tick) {
  last_sign_of_life_ = device::monotonic_now();
  Instant next_control = last_sign_of_life_, next_tick = last_sign_of_life_ + kTickInterval;
  while (!interrupted() && !failed_) {
    const Instant now = device::monotonic_now();
    if (now >= next_control) {
      next_control = now + kControlInterval;
      if (control_.readable() && !obey()) return;
    }
    if (now >= next_tick) {
      next_tick = now + kTickInterval;
      tick();
      if (now - last_sign_of_life_ > kLongestSilence) return;
    }
    work(now + kTickInterval);
  }
}

void Session::work(Instant deadline) {
  const FarEnd::Turn turn = end_.work(deadline);
  if (turn == FarEnd::Turn::worked) last_sign_of_life_ = deadline;
  failed_ = turn == FarEnd::Turn::failed;
}

// Over TCP all that was sent arrives: what full buffers hold is the measurement's as well.
void Session::take_rest(std::uint64_t sent) {
  Instant until = device::monotonic_now() + kRestTime;
  while (end_.received() < sent && !failed_ && !interrupted()) {
    const Instant now = device::monotonic_now();
    if (now >= until) return;
    const std::uint64_t before = end_.received();
    work(now + kTickInterval);
    if (end_.received() != before) until = now + kRestTime;
  }
}

bool Session::obey() {
  const auto request = control_.receive(std::chrono::seconds(1));
  if (!request) return false;
  last_sign_of_life_ = device::monotonic_now();
  const std::string what = get_text(*request, "do");
  if (what == "start") {
    end_.start();
    syscalls_at_start_ = syscalls_at_stop_ = end_.syscalls();
    started_ = stopped_ = meter_.sample();
  } else if (what == "stop") {
    if (options_.workload == Workload::tcp_stream) take_rest(get_count(*request, "sent"));
    stopped_ = meter_.sample();
    syscalls_at_stop_ = end_.syscalls();
  } else if (what == "report") {
    return control_.send(report()).has_value();
  } else {
    (void)control_.send({{"error", "unknown request"}});
    return false;
  }
  return control_.send({{"ok", true}}).has_value();
}

Json Session::report() const {
  Json out = end_.report();
  out["syscalls"] = syscalls_at_stop_ - syscalls_at_start_;
  out["cpu_s"] = to_json(cpu_between(started_, stopped_, online_cpus()));
  return out;
}

}  // namespace netchannel::bench
