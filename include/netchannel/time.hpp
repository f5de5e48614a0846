// Time as the protocols see it: an Instant has no now(). Whoever runs protocol code passes the instant in, so
// all of it runs in virtual time in tests; only device/clock reads a real clock (CLOCK_MONOTONIC).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace netchannel {

using Duration = std::chrono::nanoseconds;

// Nanoseconds since an arbitrary origin that only ever moves forward.
struct Instant {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant at, Duration by) { return {at.ns + by.count()}; }
  friend constexpr Instant operator-(Instant at, Duration by) { return {at.ns - by.count()}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return Duration{a.ns - b.ns}; }
};

// The deadline that never comes. Adding to it is not allowed.
inline constexpr Instant kForever{std::numeric_limits<std::int64_t>::max()};

constexpr Instant earlier(Instant a, Instant b) { return a < b ? a : b; }

}  // namespace netchannel
