// Reno above ssthresh (RFC 5681 section 3.1): a segment more for each window acknowledged, counted in bytes
// (RFC 3465), so that dividing an acknowledgement into many gains a receiver nothing.
#pragma once

#include <algorithm>

#include "proto/tcp/congestion.hpp"

namespace netchannel::tcp {

constexpr void reno_grow(Congestion& c, const AckSample& ack) {
  c.growth += ack.acked;
  if (c.growth < c.cwnd) return;
  c.growth -= c.cwnd;
  c.cwnd += c.mss;
}

// RFC 5681, equation 4.
constexpr std::uint32_t reno_reduce(Congestion& c, std::uint32_t flight_size) {
  c.growth = 0;
  return std::max(flight_size / 2, 2 * c.mss);
}

}  // namespace netchannel::tcp
