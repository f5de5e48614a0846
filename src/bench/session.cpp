#include "bench/session.hpp"

#include "bench/environment.hpp"
#include "bench/histogram_json.hpp"
#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kReceiveBatch = 64;
constexpr Duration kControlInterval = std::chrono::milliseconds(1);
constexpr Duration kTickInterval = std::chrono::milliseconds(10);
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

Session::Session(Transport& transport, Control& control, const BlockOptions& options)
    : transport_(transport),
      control_(control),
      options_(options),
      check_(options.size, options.flows * options.pairs) {}

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
  const auto arrived = transport_.receive(kAnyPort, kReceiveBatch, deadline);
  if (!arrived) {
    // An ICMP error of a client that has closed its port: the control connection will say the same.
    failed_ = arrived.error().code != ErrorCode::refused && arrived.error().code != ErrorCode::unreachable;
    return;
  }
  if (arrived->empty()) return;
  if (options_.workload == Workload::udp_rr) {
    replied_ += transport_.send_back();
    last_sign_of_life_ = deadline;
    return;
  }
  count(*arrived);
}

void Session::count(std::span<const Arrived> arrived) {
  const Instant now = device::monotonic_now();
  last_sign_of_life_ = now;
  for (const Arrived& message : arrived) {
    if (!check_.see(message.payload, message.peer_port)) continue;
    if (const std::int64_t stamp = read_stamp(message.payload); stamp != 0) latency_.record(now.ns - stamp);
  }
}

bool Session::obey() {
  const auto request = control_.receive(std::chrono::seconds(1));
  if (!request) return false;
  last_sign_of_life_ = device::monotonic_now();
  const std::string what = get_text(*request, "do");
  if (what == "start") {
    // What the warm-up left behind is not the measurement's.
    for (auto left = transport_.receive(kAnyPort, kReceiveBatch, Instant{}); left && !left->empty();
         left = transport_.receive(kAnyPort, kReceiveBatch, Instant{})) {
    }
    check_.reset();
    latency_.clear();
    replied_ = 0;
    syscalls_at_start_ = syscalls_at_stop_ = transport_.syscalls();
    started_ = stopped_ = meter_.sample();
  } else if (what == "stop") {
    stopped_ = meter_.sample();
    syscalls_at_stop_ = transport_.syscalls();
  } else if (what == "report") {
    return control_.send(report()).has_value();
  } else {
    (void)control_.send({{"error", "unknown request"}});
    return false;
  }
  return control_.send({{"ok", true}}).has_value();
}

Json Session::report() const {
  return {{"counts", to_json(check_.counts())},
          {"replied", replied_},
          {"syscalls", syscalls_at_stop_ - syscalls_at_start_},
          {"cpu_s", to_json(cpu_between(started_, stopped_, online_cpus()))},
          {"latency", to_json(latency_)}};
}

}  // namespace netchannel::bench
