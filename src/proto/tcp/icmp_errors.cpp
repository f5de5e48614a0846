// What ICMP says of a connection (RFC 9293 section 3.9.2.2, RFC 5927). An error counts only if it quotes a
// sequence number that is in flight; none of them ends a connection that is established, for anybody on the
// path can forge them.
#include <algorithm>

#include "proto/tcp/connection.hpp"
#include "proto/tcp/sender.hpp"

namespace netchannel::tcp {
namespace {

// RFC 5927 section 4.1.
bool quotes_what_is_in_flight(const TcpState& s, Seq quoted) {
  return quoted >= s.snd_una && quoted < s.snd_nxt;
}

Events note_soft(TcpState& s, Failure failure) {
  s.soft_failure = failure;
  return kSoftError;
}

}  // namespace

Events on_icmp(Connection& c, const IcmpReport& report) {
  TcpState& s = c.state;
  if (s.state == State::closed || s.state == State::time_wait ||
      !quotes_what_is_in_flight(s, report.quoted)) {
    c.shared->counters.add(Counter::tcp_icmp_ignored);
    return 0;
  }
  const bool handshake = s.state == State::syn_sent || s.state == State::syn_received;
  switch (report.error) {
    case IcmpError::soft:
      return note_soft(s, Failure::unreachable);  // MUST-56
    case IcmpError::hard:
      // Deviation: RFC 9293 SHLD-26 would abort in any state. RFC 5927 section 5.2: only while nothing is
      // established.
      return handshake ? finish(c, Failure::refused) : note_soft(s, Failure::unreachable);
    case IcmpError::too_big:
      if (report.mss < segment_limit(s)) set_path_mss(c, report.mss);
      return 0;
  }
  return 0;
}

Events on_unreachable(Connection& c) {
  TcpState& s = c.state;
  if (s.state == State::closed || s.state == State::time_wait) return 0;
  if (s.state == State::syn_sent) return finish(c, Failure::unreachable);
  return note_soft(s, Failure::unreachable);
}

// RFC 1191 section 6.4 and RFC 8201 section 5.4: what was too large is sent again at once, in smaller
// segments, and the congestion window is not reduced, for nothing was lost to congestion.
void set_path_mss(Connection& c, std::uint16_t mss) {
  TcpState& s = c.state;
  const std::uint32_t before = segment_limit(s);
  s.path_mss = std::max(mss, wire::kMinMss);
  s.black_hole_mss = 0;
  if (!synchronized(s.state)) return;
  set_mss(s.congestion, effective_mss(s));
  s.congestion.cwnd = std::max(s.congestion.cwnd, s.congestion.mss);
  if (segment_limit(s) >= before) return;
  for (auto at = c.sent.first(); !c.sent.done(at); at = c.sent.next(at)) {
    const TxRecord& record = c.sent[at];
    if (record.fate == Fate::in_flight && distance(record.begin, record.end) > s.congestion.mss)
      c.sent.mark_lost(at);
  }
}

}  // namespace netchannel::tcp
