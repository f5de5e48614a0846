// The real clock, for the two things that this room cannot be told: how long a wait in the kernel may still
// last and when a datagram came out of it. The same clock as device/clock, CLOCK_MONOTONIC, so instants of
// both compare.
#pragma once

#include <ctime>

#include "netchannel/time.hpp"

namespace netchannel::kernel {

inline Instant monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace netchannel::kernel
