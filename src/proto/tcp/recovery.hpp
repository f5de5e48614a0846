// Loss: finding it (RACK, RFC 8985; three duplicate acknowledgements without SACK, RFC 6582), repairing it
// without starving or flooding the path (PRR, RFC 6937), doing what a timeout asks for (RFC 6298, RFC 5682),
// probing the tail (TLP, RFC 8985 section 7), and undoing it all when it was a mistake. Internal to
// proto/tcp.
//
//                      loss found                         una >= point
//      open / reducing ----------> recovery -----------------------------> open
//           |  ^                      |  ^ spurious: undo -> open
//           |  '--- una >= point      |
//           '------ timeout ----------+--> loss --- una >= point, or spurious: undo --> open
#pragma once

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {

// What one acknowledgement has said, gathered by sender.cpp.
struct AckInfo {
  Delivery delivery;
  std::uint32_t advanced = 0;       // bytes by which snd_una moved
  std::uint32_t flight_before = 0;  // snd_nxt - snd_una before it
  std::uint32_t unanswered = 0;     // acknowledged before it in the same burst: nothing was sent for it yet
  bool duplicate = false;           // RFC 5681 section 2
  bool dsack = false;               // RFC 2883
  Seq dsack_right;
  std::uint32_t dsack_bytes = 0;
  bool ece = false;
  bool has_echo = false;  // the timestamp of this acknowledgement may be compared
  std::uint32_t echo = 0;
  Duration rtt{0};  // newest sample; 0: none
};

// What may count as being in the network (RFC 6675 pipe; without SACK each duplicate acknowledgement takes a
// segment out).
std::uint32_t pipe(const Connection& c);

// Moves phase, window and scoreboard by one acknowledgement.
void recover(Connection& c, const AckInfo& ack, Instant now);
// The same when nothing was in flight: it can only tell that something was sent again in vain.
void hear_late_news(Connection& c, const AckInfo& ack);
// The retransmission timer has run out for data.
void on_retransmission_timeout(Connection& c, Instant now);
// The reordering timer has run out: what RACK waited for is lost.
void on_reordering_timeout(Connection& c, Instant now);

// RFC 8985 section 7.2: when to probe, if a probe makes sense now; kForever if not.
Instant probe_deadline(const Connection& c, Instant now);

}  // namespace netchannel::tcp
