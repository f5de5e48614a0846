// CUBIC above ssthresh (RFC 9438): the window follows a cubic of the time since the last congestion event,
// flat around the window of that event, and never less than Reno would have. Computed in segments and
// seconds, as the RFC does.
#pragma once

#include "proto/tcp/congestion.hpp"

namespace netchannel::tcp {

inline constexpr double kCubicBeta = 0.7;
inline constexpr double kCubicC = 0.4;

// Congestion avoidance: sections 4.2 to 4.5.
void cubic_grow(Congestion& c, const AckSample& ack);
// A congestion event: sections 4.6 and 4.7. Returns the new ssthresh in bytes.
std::uint32_t cubic_reduce(Congestion& c, std::uint32_t flight_size);

}  // namespace netchannel::tcp
