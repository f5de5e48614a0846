// Round-trip time and the retransmission timeout (RFC 6298), and the least round trip of the recent past,
// which RACK and HyStart++ measure reordering and queueing against. Samples come from segments that were sent
// once only, or from timestamps (Karn's rule; RFC 7323 section 4): who calls sample() has seen to that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "netchannel/time.hpp"

namespace netchannel::tcp {

struct RttEstimator {
  Duration srtt{0};  // 0: no sample yet
  Duration rttvar{0};
  Duration rto{std::chrono::seconds(1)};  // RFC 6298 (2.1); without the back-off
  Duration min_recent = kNone;            // least sample since min_since
  Duration min_before = kNone;            // least sample of the window before
  Instant min_since;
  std::uint8_t backoff = 0;  // timeouts since the last sample: each doubles the timeout (5.5)

  static constexpr Duration kNone = Duration::max();
  static constexpr Duration kMaxRto = std::chrono::seconds(120);  // (2.5) allows 60 s or more
  static constexpr Duration kMinWindow = std::chrono::seconds(150);

  // `floor` is the least distance that the timeout keeps from the smoothed round trip.
  // Deviation: RFC 6298 (2.4) asks for a timeout of at least 1 s. Here it is SRTT + max(4 RTTVAR, floor), by
  // default 200 ms as Linux has it: enough for any delayed acknowledgement of ours or of Linux.
  constexpr void sample(Duration rtt, Duration floor, Instant now) {
    rtt = std::max(rtt, Duration{1});
    if (srtt == Duration{0}) {  // (2.2)
      srtt = rtt;
      rttvar = rtt / 2;
    } else {  // (2.3), with alpha = 1/8 and beta = 1/4
      const Duration error = srtt > rtt ? srtt - rtt : rtt - srtt;
      rttvar += (error - rttvar) / 4;
      srtt += (rtt - srtt) / 8;
    }
    rto = std::min(srtt + std::max(4 * rttvar, floor), kMaxRto);
    backoff = 0;  // Karn: a back-off lasts until the next sample
    note_min(rtt, now);
  }

  // A sample that is good for the minimum only.
  constexpr void note_min(Duration rtt, Instant now) {
    if (now - min_since > kMinWindow) {
      min_before = min_recent;
      min_recent = kNone;
      min_since = now;
    }
    min_recent = std::min(min_recent, std::max(rtt, Duration{1}));
  }
  constexpr Duration min() const { return std::min(min_recent, min_before); }
  constexpr bool has_sample() const { return srtt != Duration{0}; }

  // With the back-off.
  constexpr Duration timeout() const {
    Duration out = rto;
    for (std::uint8_t i = 0; i < backoff && out < kMaxRto; ++i) out *= 2;
    return std::min(out, kMaxRto);
  }
  constexpr void back_off() {
    if (backoff < 32) ++backoff;
  }

  friend constexpr bool operator==(const RttEstimator&, const RttEstimator&) = default;
};

}  // namespace netchannel::tcp
