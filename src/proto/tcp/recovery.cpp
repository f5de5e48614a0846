#include "proto/tcp/recovery.hpp"

#include <algorithm>

namespace netchannel::tcp {
namespace {

constexpr std::uint32_t kDupThresh = 3;
constexpr std::uint8_t kReorderingPersist = 16;

std::uint32_t flight_size(const TcpState& s) { return distance(s.snd_una, s.snd_nxt); }

bool sent_after(Instant time_a, Seq end_a, Instant time_b, Seq end_b) {
  return time_a > time_b || (time_a == time_b && end_a > end_b);
}

// RFC 8985 section 6.2, step 4.
void adapt_reordering_window(TcpState& s, const AckInfo& ack) {
  Rack& rack = s.recovery.rack;
  if (rack.in_dsack_round && s.snd_una >= rack.dsack_round) rack.in_dsack_round = false;
  if (!ack.dsack || rack.in_dsack_round) return;
  rack.in_dsack_round = true;
  rack.dsack_round = s.snd_nxt;
  if (rack.window_mult < 0xff) ++rack.window_mult;
  rack.window_persist = kReorderingPersist;
}

Duration reordering_window(const Connection& c) {
  const TcpState& s = c.state;
  const Rack& rack = s.recovery.rack;
  if (!rack.reordering) {
    if (s.recovery.phase == Phase::recovery || s.recovery.phase == Phase::loss) return Duration{0};
    // What was sacked is known in bytes; small segments show in the number of acknowledgements.
    if (c.sent.sacked() >= kDupThresh * s.congestion.mss || s.recovery.dup_acks >= kDupThresh)
      return Duration{0};
  }
  const Duration least = s.rtt.min() == RttEstimator::kNone ? s.rtt.srtt : s.rtt.min();
  return std::min(rack.window_mult * least / 4, s.rtt.srtt);
}

// Steps 1 to 3.
void update_rack(TcpState& s, const AckInfo& ack, Instant now) {
  Rack& rack = s.recovery.rack;
  const Delivery& d = ack.delivery;
  rack.reordering |= d.reordered;
  if (d.total() != 0 && (d.highest > rack.fack || rack.rtt == Duration{0})) rack.fack = d.highest;
  if (!d.has_rack) return;
  if (rack.rtt == Duration{0} || sent_after(d.rack_xmit, d.rack_end, rack.xmit, rack.end)) {
    rack.xmit = d.rack_xmit;
    rack.end = d.rack_end;
  }
  rack.rtt = std::max(now - d.rack_xmit, Duration{1});
}

// Step 5. True if something was found lost.
bool detect_losses(Connection& c, Instant now) {
  TcpState& s = c.state;
  const Rack& rack = s.recovery.rack;
  s.timers.reorder = kForever;
  if (rack.rtt == Duration{0}) return false;
  const Duration patience = rack.rtt + reordering_window(c);
  bool found = false;
  Instant latest{};
  bool waiting = false;
  for (auto at = c.sent.first(); !c.sent.done(at); at = c.sent.next(at)) {
    const TxRecord& record = c.sent[at];
    const bool sent_before = sent_after(rack.xmit, rack.end, record.time, record.end);
    // Beyond what has been delivered, what was sent once was sent in this order: all that follows is later.
    if (!sent_before && !record.retransmitted && record.begin >= rack.fack) break;
    if (!sent_before || record.fate != Fate::in_flight) continue;
    if (record.time + patience <= now) {
      c.sent.mark_lost(at);
      found = true;
    } else {
      latest = std::max(latest, record.time + patience);
      waiting = true;
    }
  }
  if (waiting) s.timers.reorder = latest;
  return found;
}

bool find_losses(Connection& c, const AckInfo& ack, Instant now) {
  TcpState& s = c.state;
  if (s.sack) return ack.delivery.total() != 0 && detect_losses(c, now);
  // RFC 6582 section 3.2, step 2: only for an acknowledgement beyond the last recovery.
  const bool open = s.recovery.phase == Phase::open || s.recovery.phase == Phase::reducing;
  if (open && s.recovery.dup_acks >= kDupThresh && s.snd_una > s.recovery.point) {
    c.sent.mark_head_lost(s.congestion.mss);
    return c.sent.lost() != 0;
  }
  // Partial acknowledgement: the next segment is missing too.
  if (s.recovery.phase == Phase::recovery && ack.advanced != 0) {
    c.sent.mark_head_lost(s.congestion.mss);
    return c.sent.lost() != 0;
  }
  return false;
}

// What the path has carried when it lost something: the window, where that has held the sender back, and else
// what was in flight before the burst that brought the news. A burst of acknowledgements is heard before
// anything is sent for the first of them, so what is in flight at its end says little.
std::uint32_t used_window(const TcpState& s, std::uint32_t flight) {
  return s.window_limited ? std::max(flight, s.congestion.cwnd) : flight;
}

// What was unacknowledged before the news, of that what was not sacked either, and what of that was delivered
// since something could be sent for it.
struct Before {
  std::uint32_t flight = 0, undelivered = 0, delivered = 0;
};

void begin_reduction(Connection& c, Phase phase, const Before& before) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  // A window that an ECN echo has reduced is not reduced again for loss in the same round trip.
  const bool reduced = r.phase == Phase::reducing;
  if (!reduced) reduce(s.congestion, used_window(s, before.flight));
  // With retransmissions of before still on their way an acknowledgement of them would look like one of the
  // originals.
  r.can_undo = !reduced && phase == Phase::recovery && !c.sent.has_retransmissions();
  r.phase = phase;
  r.point = s.snd_nxt;
  r.prr_delivered = before.delivered;
  r.prr_out = 0;
  r.prr_flight = std::max(before.undelivered, 1U);
  r.fast_retransmit = phase == Phase::recovery;
  r.undo_marker = s.snd_una;
  r.undo_bytes = 0;
  r.retransmit_stamp = 0;
  if (phase == Phase::recovery) s.timers.probe = kForever;
  s.cwr_due = s.ecn;  // RFC 3168 section 6.1.2: told for a reduction of any cause
}

// RFC 6937 section 3, with RecoverFS and, where no progress is seen, the bound of RFC 9937.
void proportional_rate_reduction(Connection& c, std::uint32_t delivered, bool safe) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  const std::uint32_t in_pipe = pipe(c);
  const std::uint32_t ssthresh = s.congestion.ssthresh;
  r.prr_delivered += delivered;
  std::uint32_t allowed = 0;
  if (in_pipe > ssthresh) {
    const std::uint64_t share = (std::uint64_t{r.prr_delivered} * ssthresh + r.prr_flight - 1) / r.prr_flight;
    allowed = share > r.prr_out ? static_cast<std::uint32_t>(share - r.prr_out) : 0;
  } else {
    const std::uint32_t owed = r.prr_delivered > r.prr_out ? r.prr_delivered - r.prr_out : 0;
    const std::uint32_t limit = safe ? std::max(owed, delivered) + s.congestion.mss : owed;
    allowed = std::min(ssthresh - in_pipe, limit);
  }
  if (r.fast_retransmit) allowed = std::max(allowed, s.congestion.mss);
  s.congestion.cwnd = std::max(in_pipe + allowed, s.congestion.mss);
}

// Exiting fast recovery or a timeout's: RFC 8985 section 6.2 step 4, RFC 6937.
void end_recovery(TcpState& s) {
  Recovery& r = s.recovery;
  if (r.phase != Phase::loss) s.congestion.cwnd = std::max(s.congestion.ssthresh, s.congestion.mss);
  if (r.rack.window_persist > 0 && --r.rack.window_persist == 0) r.rack.window_mult = 1;
  r.phase = Phase::open;
  r.frto = r.frto_new_data = r.fast_retransmit = false;  // can_undo stays: a D-SACK may come later
  r.dup_acks = 0;
}

void undo_recovery(Connection& c) {
  TcpState& s = c.state;
  undo(s.congestion);
  c.sent.revive_lost();
  s.recovery.rack.reordering = true;  // what looked lost was late
  s.recovery.phase = Phase::open;
  s.recovery.can_undo = s.recovery.frto = s.recovery.frto_new_data = s.recovery.fast_retransmit = false;
  s.recovery.dup_acks = 0;
  s.attempts = 0;
  c.shared->counters.add(Counter::tcp_undone);
}

// RFC 3522 (the acknowledgement answers a transmission before the first retransmission) and RFC 3708
// (everything that was sent again has been reported as a duplicate).
bool spurious(const TcpState& s, const AckInfo& ack) {
  const Recovery& r = s.recovery;
  if (!r.can_undo || r.retransmit_stamp == 0) return false;
  if (ack.dsack && r.undo_bytes == 0) return true;
  return ack.has_echo && ack.advanced != 0 && static_cast<std::int32_t>(ack.echo - r.retransmit_stamp) < 0;
}

void count_dsack(TcpState& s, const AckInfo& ack) {
  if (ack.dsack) s.recovery.undo_bytes -= std::min(s.recovery.undo_bytes, ack.dsack_bytes);
}

// With SACK an acknowledgement that reports something new as arrived (RFC 6675 section 2). Without it the
// duplicate acknowledgements stand for what has left the network (RFC 6582 section 3.2).
void count_duplicates(TcpState& s, const AckInfo& ack) {
  Recovery& r = s.recovery;
  if (ack.advanced == 0) {
    if (s.sack ? ack.delivery.sacked != 0 : ack.duplicate) ++r.dup_acks;
    return;
  }
  const bool keep = !s.sack && r.phase == Phase::recovery;
  const std::uint32_t segments = (ack.advanced + s.congestion.mss - 1) / s.congestion.mss;
  r.dup_acks = keep && r.dup_acks + 1 > segments ? r.dup_acks + 1 - segments : 0;
}

void grow(TcpState& s, const AckInfo& ack, Instant now) {
  // What is only sacked does not raise the window (RFC 3042). After a timeout the jump over what was sacked
  // before would raise it by a burst.
  const std::uint32_t acked = s.recovery.phase == Phase::loss ? ack.delivery.acked : ack.advanced;
  if (acked == 0) return;
  // A slow start that has filled half of its window may go on (RFC 7661 section 4.3).
  const bool half_used = s.congestion.slow_start() &&
                         s.congestion.cwnd < 2 * (std::uint64_t{ack.flight_before} + ack.unanswered);
  const AckSample sample{.now = now,
                         .acked = acked,
                         .rtt = ack.rtt,
                         .srtt = s.rtt.srtt,
                         .una = s.snd_una,
                         .nxt = s.snd_nxt,
                         .limited = s.window_limited || half_used || s.recovery.phase == Phase::loss};
  on_ack(s.congestion, sample);
}

// What PRR counts as delivered.
std::uint32_t delivered(const TcpState& s, const AckInfo& ack) {
  if (s.sack) return ack.delivery.total();
  return ack.advanced == 0 && ack.duplicate ? s.congestion.mss : std::min(ack.advanced, s.congestion.mss);
}

void begin_reduction(Connection& c, Phase phase, const AckInfo& ack) {
  const std::uint32_t missing = flight_size(c.state) - c.sent.sacked();
  begin_reduction(c, phase,
                  {.flight = ack.flight_before + ack.unanswered,
                   .undelivered = missing + ack.delivery.total() + ack.unanswered,
                   .delivered = ack.unanswered});
}

void begin_recovery(Connection& c, const AckInfo& ack) {
  begin_reduction(c, Phase::recovery, ack);
  c.shared->counters.add(Counter::tcp_recoveries);
  proportional_rate_reduction(c, delivered(c.state, ack), false);
}

// True if a recovery has begun.
bool begin_recovery_if_lost(Connection& c, const AckInfo& ack, Instant now) {
  if (!find_losses(c, ack, now)) return false;
  begin_recovery(c, ack);
  return true;
}

// A recovery or a timeout's slow start is over. What was found lost beyond its end belongs to a later window
// of data, which is a congestion event of its own (RFC 5681 section 3.1, RFC 6675 section 5.1).
bool next_recovery(Connection& c, const AckInfo& ack, Instant now) {
  end_recovery(c.state);
  if (c.sent.lost() == 0 && !c.sent.has_retransmissions()) return begin_recovery_if_lost(c, ack, now);
  find_losses(c, ack, now);
  begin_recovery(c, ack);
  return true;
}

void in_open(Connection& c, const AckInfo& ack, Instant now) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  if (ack.dsack && spurious(s, ack)) undo_recovery(c);
  if (begin_recovery_if_lost(c, ack, now)) return;
  if (r.phase == Phase::reducing) {
    if (s.snd_una >= r.point) return end_recovery(s);
    return proportional_rate_reduction(c, delivered(s, ack), true);
  }
  if (ack.ece) {  // RFC 3168 section 6.1.2: once a window of data
    begin_reduction(c, Phase::reducing, ack);
    return proportional_rate_reduction(c, delivered(s, ack), true);
  }
  grow(s, ack, now);
}

void in_recovery(Connection& c, const AckInfo& ack, Instant now) {
  TcpState& s = c.state;
  if (spurious(s, ack)) return undo_recovery(c);
  if (s.snd_una >= s.recovery.point) {
    next_recovery(c, ack, now);
    return;
  }
  const bool found = find_losses(c, ack, now);
  proportional_rate_reduction(c, delivered(s, ack), ack.advanced != 0 && (!found || !s.sack));
}

// RFC 5682 section 3.1, which is section 2.1 too where there is no SACK.
bool frto_finds_spurious(Connection& c, const AckInfo& ack) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  r.frto_new_data = false;
  // Without SACK a cumulative acknowledgement that covers the retransmission says nothing of what followed
  // it.
  const bool original = ack.delivery.original && (s.sack || !ack.delivery.retransmitted);
  if (original) return true;                                        // step 3b
  if (s.snd_nxt > r.point) {                                        // new data has been sent
    if (ack.delivery.sacked != 0 || ack.duplicate) r.frto = false;  // step 3a
  } else if (ack.advanced != 0 && s.snd_una < r.point) {            // step 2b
    r.point = s.snd_nxt;
    const bool can_send = c.send.end() > s.snd_nxt && s.snd_una + s.snd_wnd > s.snd_nxt;
    r.frto = r.frto_new_data = can_send;
  }
  return false;
}

void in_loss(Connection& c, const AckInfo& ack, Instant now) {
  TcpState& s = c.state;
  if (spurious(s, ack) || (s.recovery.frto && s.recovery.can_undo && frto_finds_spurious(c, ack))) {
    c.shared->counters.add(Counter::tcp_spurious_timeouts);
    return undo_recovery(c);
  }
  if (s.snd_una >= s.recovery.point) {
    if (!next_recovery(c, ack, now)) grow(s, ack, now);
    return;
  }
  find_losses(c, ack, now);
  grow(s, ack, now);
}

// RFC 8985 section 7.4.
void end_probe(Connection& c, const AckInfo& ack) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  if (!r.probe_out || s.snd_una < r.probe_end) return;
  // The FIN is in no block.
  const bool arrived_twice = ack.dsack && ack.dsack_right + 1 >= r.probe_end;
  if (!r.probe_was_retransmission || arrived_twice) {
    r.probe_out = false;
  } else if (s.snd_una > r.probe_end) {
    // The probe repaired a loss that nothing else has seen: the path was congested all the same.
    r.probe_out = false;
    if (r.phase != Phase::open) return;
    reduce(s.congestion, used_window(s, ack.flight_before + ack.unanswered));
    s.congestion.cwnd = s.congestion.ssthresh;
    s.cwr_due = s.ecn;
  } else if (ack.duplicate && ack.delivery.sacked == 0) {
    r.probe_out = false;
  }
}

}  // namespace

std::uint32_t pipe(const Connection& c) {
  const TcpState& s = c.state;
  const std::uint32_t in_flight = c.sent.in_flight();
  if (s.sack) return in_flight;
  return in_flight - static_cast<std::uint32_t>(std::min<std::uint64_t>(
                         in_flight, std::uint64_t{s.recovery.dup_acks} * s.congestion.mss));
}

void recover(Connection& c, const AckInfo& ack, Instant now) {
  TcpState& s = c.state;
  count_dsack(s, ack);
  count_duplicates(s, ack);
  update_rack(s, ack, now);
  adapt_reordering_window(s, ack);
  end_probe(c, ack);
  switch (s.recovery.phase) {
    case Phase::open:
    case Phase::reducing:
      return in_open(c, ack, now);
    case Phase::recovery:
      return in_recovery(c, ack, now);
    case Phase::loss:
      return in_loss(c, ack, now);
  }
}

void hear_late_news(Connection& c, const AckInfo& ack) {
  count_dsack(c.state, ack);
  adapt_reordering_window(c.state, ack);
  end_probe(c, ack);
  if (ack.dsack && spurious(c.state, ack)) undo_recovery(c);
}

void on_reordering_timeout(Connection& c, Instant now) {
  TcpState& s = c.state;
  if (!detect_losses(c, now)) return;
  if (s.recovery.phase == Phase::open || s.recovery.phase == Phase::reducing) {
    begin_reduction(c, Phase::recovery,
                    {.flight = flight_size(s), .undelivered = flight_size(s) - c.sent.sacked()});
    c.shared->counters.add(Counter::tcp_recoveries);
  }
  if (s.recovery.phase == Phase::recovery) proportional_rate_reduction(c, 0, false);
}

void on_retransmission_timeout(Connection& c, Instant now) {
  TcpState& s = c.state;
  Recovery& r = s.recovery;
  const bool in_trouble = r.phase == Phase::recovery || r.phase == Phase::loss;
  const bool again = r.phase == Phase::loss && s.attempts > 1;
  r.frto = !in_trouble || again;
  r.can_undo = !again || r.can_undo;
  on_timeout(s.congestion, flight_size(s), again);
  // RFC 2018 section 8: the receiver has dropped what it had reported, for the head cannot be both missing
  // and sacked.
  if (!c.sent.empty() && c.sent.front().fate == Fate::sacked) {
    c.sent.forget_sacks();
    c.shared->counters.add(Counter::tcp_peer_reneged);
  }
  // RFC 8985 section 6.3: the first segment, and whatever was sent long enough ago.
  const Duration patience = r.rack.rtt + reordering_window(c);
  for (auto at = c.sent.first(); !c.sent.done(at); at = c.sent.next(at)) {
    const TxRecord& record = c.sent[at];
    if (record.fate != Fate::in_flight) continue;
    const bool old = !s.sack || r.rack.rtt == Duration{0} || record.time + patience <= now;
    if (record.begin == s.snd_una || old) c.sent.mark_lost(at);
  }
  if (!again) {
    r.undo_marker = s.snd_una;
    r.undo_bytes = 0;
    r.retransmit_stamp = 0;
  }
  r.phase = Phase::loss;
  r.point = s.snd_nxt;
  r.dup_acks = 0;
  r.fast_retransmit = true;
  r.frto_new_data = false;
  r.probe_out = false;
  s.cwr_due = s.ecn;
  s.timers.probe = s.timers.reorder = kForever;
}

Instant probe_deadline(const Connection& c, Instant now) {
  const TcpState& s = c.state;
  const bool repairing = s.recovery.phase == Phase::recovery || s.recovery.phase == Phase::loss;
  if (!s.sack || s.recovery.probe_out || repairing) return kForever;
  if (c.sent.empty() || c.sent.sacked() != 0 || c.sent.lost() != 0) return kForever;
  constexpr Duration kWorstDelayedAck = std::chrono::milliseconds(200);
  constexpr Duration kSlack = std::chrono::milliseconds(2);
  Duration wait = std::chrono::seconds(1);
  if (s.rtt.has_sample()) {
    // RFC 8985 section 7.2. Deviation: 2 ms are added, for round trips that are shorter than a peer's time
    // slice.
    const bool single = c.sent.in_flight() <= s.congestion.mss;
    wait = 2 * s.rtt.srtt + (single ? kWorstDelayedAck : kSlack);
  }
  return std::min(now + wait, s.timers.retransmit);
}

}  // namespace netchannel::tcp
