// All that a TCP connection knows besides the bytes it holds: a regular struct, comparable and printable,
// with the names of RFC 9293 section 3.3.1. The functions that move it stand in on_segment.hpp, poll_tx.hpp
// and timers.hpp; the queues that own frames stand beside it in Connection (connection.hpp).
//
//            snd_una            snd_nxt          snd_una + snd_wnd
//      ---------|------------------|-----------------|-----------      send: acknowledged | in flight |
//      allowed | not yet
//
//            rcv_nxt                             rcv_adv
//      ---------|-----------------------------------|-------------     receive: delivered | window, never
//      taken back
//
// Sequence numbers of the SYN and the FIN are counted in snd_nxt; iss is the SYN's, fin_seq the FIN's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "netchannel/time.hpp"
#include "netchannel/wire/tcp.hpp"
#include "proto/tcp/congestion.hpp"
#include "proto/tcp/rtt.hpp"
#include "proto/tcp/seq.hpp"
#include "proto/tcp/settings.hpp"

namespace netchannel::tcp {

enum class State : std::uint8_t {
  closed,
  listen,  // never a connection's own: listen.hpp
  syn_sent,
  syn_received,
  established,
  fin_wait_1,
  fin_wait_2,
  close_wait,
  closing,
  last_ack,
  time_wait,
};
std::string_view to_string(State state);

// Why a connection ended, or will not be made.
enum class Failure : std::uint8_t { none, refused, reset, timed_out, unreachable, aborted };
std::string_view to_string(Failure failure);

// Where the sender stands with losses. What Linux calls disorder is `open` with something sacked.
enum class Phase : std::uint8_t {
  open,
  reducing,  // after an ECN echo (RFC 3168): the window comes down, nothing is lost
  recovery,  // fast recovery (RFC 6675, RFC 6582)
  loss,      // after a timeout: slow start from one segment
};
std::string_view to_string(Phase phase);

// RFC 8985 section 5.
struct Rack {
  Instant xmit;     // RACK.xmit_ts: when the segment that was delivered and sent last was sent
  Seq end;          // RACK.end_seq of it
  Duration rtt{0};  // RACK.rtt; 0: nothing delivered yet
  Seq fack;         // the highest sequence delivered
  Seq dsack_round;  // one growth of the reordering window a round trip
  std::uint8_t window_mult = 1;
  std::uint8_t window_persist = 0;  // recoveries until the window shrinks again
  bool reordering = false;          // seen ever
  bool in_dsack_round = false;
  friend bool operator==(const Rack&, const Rack&) = default;
};

struct Recovery {
  Phase phase = Phase::open;
  Seq point;                        // RecoveryPoint: what was sent when the trouble began
  std::uint32_t dup_acks = 0;       // in a row
  std::uint32_t prr_delivered = 0;  // RFC 6937
  std::uint32_t prr_out = 0;
  std::uint32_t prr_flight = 0;    // RecoverFS
  std::uint32_t asked_flight = 0;  // snd_nxt - snd_una when poll_tx() was last asked
  bool fast_retransmit = false;    // the first retransmission of a recovery leaves whatever the window says

  // Undoing what turns out to have been spurious (RFC 3522 and 4015 by timestamps, RFC 3708 by D-SACK, RFC
  // 5682).
  bool can_undo = false;
  bool frto = false;                   // F-RTO watches the acknowledgements after a timeout
  bool frto_new_data = false;          // ... and wants new data sent before anything else (step 2b)
  Seq undo_marker;                     // snd_una when the trouble began
  std::uint32_t undo_bytes = 0;        // retransmitted since, not yet reported as duplicates
  std::uint32_t retransmit_stamp = 0;  // TSval of the first retransmission; 0: none yet

  // Tail loss probe (RFC 8985 section 7).
  bool probe_out = false;
  bool probe_was_retransmission = false;
  Seq probe_end;  // TLP.end_seq

  Rack rack;
  friend bool operator==(const Recovery&, const Recovery&) = default;
};

// Each is kForever when it is not running.
struct Timers {
  Instant retransmit = kForever;   // RFC 6298
  Instant probe = kForever;        // PTO of RFC 8985
  Instant reorder = kForever;      // the reordering window of RFC 8985
  Instant persist = kForever;      // RFC 9293 section 3.8.6.1, and the override of section 3.8.6.2.1
  Instant delayed_ack = kForever;  // RFC 9293 section 3.8.6.3
  Instant keepalive = kForever;    // RFC 9293 section 3.8.4
  Instant lifetime = kForever;     // TIME-WAIT, or FIN-WAIT-2 of an orphan
  Instant cork = kForever;
  friend bool operator==(const Timers&, const Timers&) = default;
};

enum class AckDue : std::uint8_t { none, delayed, now };
inline constexpr std::uint8_t kQuickAcks = 16;

// The receiving half besides rcv_nxt and rcv_adv.
struct Receiver {
  AckDue ack = AckDue::none;
  std::uint8_t quick_acks = kQuickAcks;  // acknowledgements that are not delayed, while a sender slow-starts
  std::uint8_t dup_acks_due =
      0;  // one for each out-of-order segment, to a peer without SACK (RFC 5681 section 4.2)
  bool interactive = false;  // we answer what we receive: an answer may carry the acknowledgement
  bool fin_known = false;    // a FIN has arrived, perhaps ahead of its turn
  bool dsack_due = false;
  Seq fin;                    // its sequence number
  wire::SackBlock dsack;      // RFC 2883
  Seq last_ack_sent;          // Last.ACK.sent (RFC 7323)
  std::uint32_t unacked = 0;  // bytes received in order since
  std::uint16_t mss = 536;    // the peer's segment size, as seen
  std::uint32_t buffer = 0;   // bytes that may be held
  Instant data_at;            // last data
  // Auto-tuning: what the application takes in one round trip, doubled, is what the buffer should hold.
  std::uint32_t copied = 0;
  std::uint32_t space = 0;  // taken in the best round trip so far
  Instant space_since;
  friend bool operator==(const Receiver&, const Receiver&) = default;
};

// Segments that wait for poll_tx() besides data and acknowledgements.
struct Due {
  bool syn = false;           // SYN or SYN-ACK
  bool probe = false;         // tail loss probe
  bool window_probe = false;  // zero-window or keepalive probe
  bool push_small = false;    // send what the window takes, however little (RFC 9293 section 3.8.6.2.1)
  bool challenge = false;     // RFC 5961
  bool reset = false;         // reset_seq and so on say which
  bool reset_acks = false;
  Seq reset_seq, reset_ack;
  friend bool operator==(const Due&, const Due&) = default;
};

struct TcpState {
  Settings settings;

  Seq iss;
  Seq snd_una;
  Seq snd_nxt;
  std::uint32_t snd_wnd = 0;      // scaled
  std::uint32_t max_snd_wnd = 0;  // the largest ever (RFC 5961 section 5, RFC 9293 section 3.8.6.2.1)
  Seq snd_wl1;
  Seq snd_wl2;
  Seq irs;
  Seq rcv_nxt;
  Seq rcv_adv;  // right edge of the window as advertised

  State state = State::closed;
  Failure failure = Failure::none;
  Failure soft_failure = Failure::none;  // told by ICMP; why, if it ends in a timeout (RFC 5461)

  std::uint16_t peer_mss = 536;   // MUST-15; the stack says 1220 for IPv6
  std::uint16_t path_mss = 1460;  // largest payload of a segment without options on the path, as known now
  std::uint16_t offered_mss = 1460;
  std::uint16_t default_mss = 536;
  std::uint16_t black_hole_mss = 0;  // path_mss before a black hole was suspected; 0: none is
  std::uint8_t snd_wscale = 0;
  std::uint8_t rcv_wscale = 0;
  bool window_scaling = false;  // negotiated, as the next three
  bool timestamps = false;
  bool sack = false;
  bool ecn = false;
  bool passive = false;     // came from LISTEN (MUST-11)
  bool ece_due = false;     // CE has come: echo until CWR (RFC 3168 section 6.1.3)
  bool cwr_due = false;     // the next new data says that the window was reduced
  bool fin_queued = false;  // nothing more will be written
  bool fin_sent = false;
  bool orphaned = false;  // the application has closed: nobody reads any more

  std::uint32_t ts_offset = 0;  // of our clock, a secret of the connection
  std::uint32_t ts_recent = 0;  // TS.Recent
  Instant ts_recent_at;

  Seq fin_seq;    // meaningful with fin_queued
  Seq small_end;  // end of the last segment below full size (Nagle, as Minshall has it)
  Seq limited_end;
  std::uint32_t send_buffer = 0;
  std::uint8_t attempts = 0;    // timeouts or unanswered probes in a row
  std::uint8_t keepalives = 0;  // unanswered
  std::uint8_t challenges = 5;  // tokens: challenge acknowledgements that may be sent
  bool window_limited = false;  // cwnd has held the sender back in the window of data up to limited_end
  Instant challenges_at;
  Instant sent_at;                   // last data
  Instant received_at;               // last segment that belonged to us
  Instant stalled_since = kForever;  // since when the oldest data has waited without progress (user timeout)

  // Totals, for TcpInfo.
  std::uint64_t bytes_acked = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t segments_in = 0;  // as they were on the wire
  std::uint32_t segments_out = 0;
  std::uint32_t segments_retransmitted = 0;
  std::uint64_t bytes_retransmitted = 0;

  RttEstimator rtt;
  Congestion congestion;
  Recovery recovery;
  Receiver receiver;
  Timers timers;
  Due due;

  friend bool operator==(const TcpState&, const TcpState&) = default;
};

// One line for a person.
std::string to_string(const TcpState& state);

// Payload that a segment to the peer may carry, before options are subtracted (RFC 9293 section 3.7.1).
constexpr std::uint32_t segment_limit(const TcpState& s) {
  std::uint32_t mss = std::min(s.peer_mss, s.path_mss);
  if (s.settings.mss_limit != 0) mss = std::min<std::uint32_t>(mss, s.settings.mss_limit);
  return std::max<std::uint32_t>(mss, wire::kMinMss);
}
// The same with the options that every segment carries subtracted: what congestion control counts in.
constexpr std::uint32_t effective_mss(const TcpState& s) {
  return segment_limit(s) - (s.timestamps ? 12 : 0);
}

constexpr bool synchronized(State state) { return state >= State::established; }
// Data may still come from the peer.
constexpr bool receiving(State state) {
  return state == State::established || state == State::fin_wait_1 || state == State::fin_wait_2;
}
// Data may still go out.
constexpr bool sending(State state) {
  return state == State::established || state == State::fin_wait_1 || state == State::close_wait ||
         state == State::closing || state == State::last_ack;
}

}  // namespace netchannel::tcp
