#include "proto/tcp/congestion.hpp"

#include <algorithm>

#include "proto/tcp/cubic.hpp"
#include "proto/tcp/reno.hpp"

namespace netchannel::tcp {
namespace {

// RFC 9406 section 4.3.
constexpr Duration kMinRttThreshold = std::chrono::milliseconds(4);
constexpr Duration kMaxRttThreshold = std::chrono::milliseconds(16);
constexpr std::uint8_t kRttSamples = 8;
constexpr std::uint8_t kCssRounds = 5;
constexpr std::uint32_t kCssGrowthDivisor = 4;

// Only before the first congestion event: later slow starts have a threshold to stop at.
bool uses_hystart(const Congestion& c) { return c.ssthresh == kNoThreshold; }

void begin_round(Congestion& c, const AckSample& ack) {
  HyStart& h = c.hystart;
  if (ack.una < h.round_end) return;
  h.round_end = ack.nxt;
  h.last_round_min = h.round_min;
  h.round_min = Duration::max();
  h.samples = 0;
  if (h.in_css && ++h.css_rounds >= kCssRounds) c.ssthresh = c.cwnd;
}

// RFC 9406 section 4.2: a round trip that has grown by an eighth says that a queue builds up.
void watch_delay(Congestion& c, const AckSample& ack) {
  HyStart& h = c.hystart;
  if (ack.rtt == Duration{0}) return;
  h.round_min = std::min(h.round_min, ack.rtt);
  if (h.samples < kRttSamples) ++h.samples;
  if (h.samples < kRttSamples || h.last_round_min == Duration::max()) return;
  if (h.in_css) {
    if (h.round_min >= h.baseline) return;
    h.in_css = false;  // it was a passing delay
    h.baseline = Duration::max();
    return;
  }
  const Duration threshold = std::clamp(h.last_round_min / 8, kMinRttThreshold, kMaxRttThreshold);
  if (h.round_min < h.last_round_min + threshold) return;
  h.in_css = true;
  h.css_rounds = 0;
  h.baseline = h.round_min;
}

// Deviation: RFC 9406 limits the growth by one acknowledgement to 8 segments when segments are not paced.
// Here it is all that was acknowledged, for acknowledgements of 64 KiB are the rule with super-frames and
// large receive offload.
void slow_start(Congestion& c, const AckSample& ack) {
  if (uses_hystart(c)) {
    watch_delay(c, ack);
    begin_round(c, ack);
  }
  const bool conservative = uses_hystart(c) && c.hystart.in_css;
  const std::uint32_t grown = conservative ? ack.acked / kCssGrowthDivisor : ack.acked;
  c.cwnd += std::min(grown, c.ssthresh - std::min(c.cwnd, c.ssthresh));
}

}  // namespace

std::uint32_t initial_window(std::uint32_t mss, bool handshake_lost) {
  if (handshake_lost) return mss;
  return std::min(10 * mss, std::max<std::uint32_t>(2 * mss, 14600));
}

void start(Congestion& c, CongestionAlgorithm algorithm, std::uint32_t mss, std::uint32_t window) {
  c = Congestion{};
  c.algorithm = algorithm;
  c.mss = mss;
  c.cwnd = window;
}

void on_ack(Congestion& c, const AckSample& ack) {
  // RFC 9438 section 5.8 and RFC 7661: a window that is not used proves nothing.
  if (!ack.limited) return resume(c, ack.now);
  c.cubic.used_at = ack.now;
  constexpr std::uint32_t kMaxWindow = 1U << 30;
  if (c.cwnd >= kMaxWindow) return;
  if (c.slow_start()) {
    slow_start(c, ack);
  } else if (c.algorithm == CongestionAlgorithm::cubic) {
    cubic_grow(c, ack);
  } else {
    reno_grow(c, ack);
  }
}

void reduce(Congestion& c, std::uint32_t flight_size) {
  c.prior_cwnd = c.cwnd;
  c.prior_ssthresh = c.ssthresh;
  c.prior_w_max = c.cubic.w_max;
  // What is in flight counts what is sacked or lost too; one reduction after another must not begin with more
  // than the window that the one before left.
  flight_size = std::min(flight_size, c.cwnd);
  c.ssthresh =
      c.algorithm == CongestionAlgorithm::cubic ? cubic_reduce(c, flight_size) : reno_reduce(c, flight_size);
}

void on_timeout(Congestion& c, std::uint32_t flight_size, bool again) {
  if (!again) reduce(c, flight_size);
  c.cwnd = c.mss;
  c.growth = 0;
  // RFC 9438 section 4.8: the plateau of before says nothing about the path of now.
  c.cubic.w_max = 0;
  c.cubic.in_epoch = false;
}

void undo(Congestion& c) {
  c.cwnd = std::max(c.cwnd, c.prior_cwnd);
  c.ssthresh = std::max(c.ssthresh, c.prior_ssthresh);
  c.cubic.w_max = c.prior_w_max;
  c.cubic.in_epoch = false;
}

void resume(Congestion& c, Instant now) {
  Cubic& cubic = c.cubic;
  if (cubic.in_epoch) cubic.epoch = cubic.epoch + (now - cubic.used_at);
  cubic.used_at = now;
}

void after_idle(Congestion& c, std::uint32_t restart_window) {
  c.cwnd = std::min(c.cwnd, restart_window);
  c.growth = 0;
}

void set_mss(Congestion& c, std::uint32_t mss) {
  c.mss = mss;
  c.cubic.in_epoch = false;
}

}  // namespace netchannel::tcp
