#include "proto/tcp/cubic.hpp"

#include <algorithm>
#include <cmath>

namespace netchannel::tcp {
namespace {

double segments(const Congestion& c, std::uint32_t bytes) { return static_cast<double>(bytes) / c.mss; }
double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// The beginning of a congestion avoidance stage: section 4.2, and 4.8 and 4.10 where no event of its own led
// here.
void begin_epoch(Congestion& c, Instant now) {
  Cubic& cubic = c.cubic;
  const double cwnd = segments(c, c.cwnd);
  cubic.in_epoch = true;
  cubic.epoch = now;
  cubic.w_est = cwnd;
  if (cwnd < cubic.w_max) {
    cubic.k = static_cast<float>(std::cbrt((cubic.w_max - cwnd) / kCubicC));
    cubic.origin = cubic.w_max;
  } else {
    cubic.k = 0;
    cubic.origin = static_cast<float>(cwnd);
  }
}

double window_at(const Cubic& cubic, double t) {
  const double x = t - cubic.k;
  return kCubicC * x * x * x + cubic.origin;
}

}  // namespace

void cubic_grow(Congestion& c, const AckSample& ack) {
  Cubic& cubic = c.cubic;
  if (!cubic.in_epoch) begin_epoch(c, ack.now);
  const double cwnd = segments(c, c.cwnd);
  const double acked = segments(c, ack.acked);
  const double t = seconds(ack.now - cubic.epoch);

  // Section 4.3: Reno's window, with the growth that gives the same average at this beta.
  const double alpha = cubic.w_est < cubic.cwnd_prior ? 3 * (1 - kCubicBeta) / (1 + kCubicBeta) : 1.0;
  cubic.w_est += alpha * acked / cwnd;

  double grown = 0;  // segments
  if (window_at(cubic, t) < cubic.w_est) {
    grown = std::max(0.0, cubic.w_est - cwnd);
  } else {
    // Sections 4.2, 4.4 and 4.5: towards where the cubic will be in one round trip, at most half as much
    // again.
    const double target = std::clamp(window_at(cubic, t + seconds(ack.srtt)), cwnd, 1.5 * cwnd);
    grown = (target - cwnd) / cwnd * acked;
  }
  grown = grown * c.mss + cubic.fraction;  // bytes
  const double whole = std::floor(grown);
  cubic.fraction = static_cast<float>(grown - whole);
  c.cwnd += static_cast<std::uint32_t>(std::min(whole, static_cast<double>(ack.acked)));
}

std::uint32_t cubic_reduce(Congestion& c, std::uint32_t flight_size) {
  Cubic& cubic = c.cubic;
  const double cwnd = segments(c, c.cwnd);
  // Section 4.7, fast convergence: a flow that lost below its last plateau leaves room to others.
  cubic.w_max = static_cast<float>(cwnd < cubic.w_max ? cwnd * (1 + kCubicBeta) / 2 : cwnd);
  cubic.cwnd_prior = static_cast<float>(cwnd);
  cubic.in_epoch = false;
  cubic.fraction = 0;
  // Section 4.6, which asks for the flight size instead of a window that the application did not use.
  const double reduced = kCubicBeta * static_cast<double>(flight_size);
  return std::max(static_cast<std::uint32_t>(reduced), 2 * c.mss);
}

}  // namespace netchannel::tcp
