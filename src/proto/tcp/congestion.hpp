// Congestion control: how much may be in flight. Slow start with HyStart++ (RFC 9406) is common to both
// algorithms; what they do above ssthresh and after a loss differs: cubic.hpp (RFC 9438), reno.hpp (RFC
// 5681). All in bytes.
//
// Recovery decides when to call what: on_ack() for acknowledged data while nothing is being repaired,
// reduce() once a window of data with loss or an ECN echo, on_timeout() when the timer has run out, undo()
// when that was a mistake. How the window moves within a recovery is not here but in PRR (recovery.hpp).
#pragma once

#include <cstdint>
#include <limits>

#include "netchannel/time.hpp"
#include "proto/tcp/seq.hpp"

namespace netchannel::tcp {

enum class CongestionAlgorithm : std::uint8_t { cubic, reno };

inline constexpr std::uint32_t kNoThreshold = std::numeric_limits<std::uint32_t>::max();

// Of single precision where nothing is summed up: a connection should be small.
struct Cubic {
  double w_est = 0;       // segments: where Reno would be
  Instant epoch;          // meaningful while in_epoch, as the next
  Instant used_at;        // until when the window was used, so that it may grow for it
  float w_max = 0;        // segments; 0: no congestion event yet in this life
  float cwnd_prior = 0;   // segments, at the last congestion event
  float k = 0;            // seconds from the epoch to w_max
  float origin = 0;       // segments: the plateau that the cubic runs through
  float fraction = 0;     // bytes of growth below one
  bool in_epoch = false;  // false: the next acknowledgement in congestion avoidance starts one
  friend bool operator==(const Cubic&, const Cubic&) = default;
};

struct HyStart {
  Duration round_min = Duration::max();
  Duration last_round_min = Duration::max();
  Duration baseline = Duration::max();  // of conservative slow start
  Seq round_end;
  std::uint8_t samples = 0;  // in this round, counted up to 8
  std::uint8_t css_rounds = 0;
  bool in_css = false;
  friend bool operator==(const HyStart&, const HyStart&) = default;
};

struct Congestion {
  CongestionAlgorithm algorithm = CongestionAlgorithm::cubic;
  std::uint32_t mss = 536;
  std::uint32_t cwnd = 0;
  std::uint32_t ssthresh = kNoThreshold;
  std::uint32_t growth = 0;      // reno: bytes acknowledged towards the next segment of cwnd
  std::uint32_t prior_cwnd = 0;  // before the last reduction, for undo()
  std::uint32_t prior_ssthresh = 0;
  float prior_w_max = 0;
  Cubic cubic;
  HyStart hystart;

  bool slow_start() const { return cwnd < ssthresh; }
  friend bool operator==(const Congestion&, const Congestion&) = default;
};

struct AckSample {
  Instant now;
  std::uint32_t acked = 0;  // bytes newly acknowledged or sacked
  Duration rtt{0};          // the newest round trip, 0: none
  Duration srtt{0};
  Seq una, nxt;
  bool limited = false;  // the window was what held the sender back
};

// RFC 6928: min(10 MSS, max(2 MSS, 14600)); one segment if the SYN or SYN-ACK was lost (RFC 5681
// section 3.1).
std::uint32_t initial_window(std::uint32_t mss, bool handshake_lost);
void start(Congestion& c, CongestionAlgorithm algorithm, std::uint32_t mss, std::uint32_t window);
void on_ack(Congestion& c, const AckSample& ack);
// A new loss or ECN event: sets ssthresh, remembers what was before. cwnd stays for PRR to bring down.
void reduce(Congestion& c, std::uint32_t flight_size);
// The retransmission timer has run out. `again`: for data that had its timeout already, so that ssthresh
// stays (RFC 5681 section 3.1, equation 4).
void on_timeout(Congestion& c, std::uint32_t flight_size, bool again);
void undo(Congestion& c);
// Nothing was in flight until now: the time since then is not credited as growth (RFC 9438 section 5.8).
void resume(Congestion& c, Instant now);
// Nothing was sent for longer than a timeout (RFC 5681 section 4.1).
void after_idle(Congestion& c, std::uint32_t restart_window);
// The path takes segments of another size now.
void set_mss(Congestion& c, std::uint32_t mss);

}  // namespace netchannel::tcp
