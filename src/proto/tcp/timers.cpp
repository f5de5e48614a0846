// Time passes: which deadline is next, and what each of them does. A timer only decides; what it wants sent
// leaves with the next poll_tx().
#include <algorithm>

#include "proto/tcp/connection.hpp"
#include "proto/tcp/receiver.hpp"
#include "proto/tcp/recovery.hpp"
#include "proto/tcp/sender.hpp"

namespace netchannel::tcp {
namespace {

Instant user_deadline(const TcpState& s) {
  if (s.settings.user_timeout == Duration{0} || s.stalled_since == kForever) return kForever;
  return s.stalled_since + s.settings.user_timeout;
}

// What the last ICMP error said is a better reason than the timer (RFC 5461 section 2).
Events give_up(Connection& c) {
  const Failure why = c.state.soft_failure == Failure::none ? Failure::timed_out : c.state.soft_failure;
  c.shared->counters.add(Counter::tcp_timed_out);
  return finish(c, why);
}

// The peer may still be there and hold its half for ever.
Events give_up_with_reset(Connection& c) {
  c.shared->counters.add(Counter::tcp_timed_out);
  abort(c);
  c.state.failure = Failure::timed_out;
  return kClosed;
}

// RFC 2923 section 2.1: if only large segments vanish the path has a hole for them. Every other attempt is
// made with smaller ones; the attempt that gets through shows which it was.
void suspect_black_hole(Connection& c) {
  TcpState& s = c.state;
  if (!s.settings.mtu_black_holes || s.attempts < s.settings.path_retries) return;
  if (s.black_hole_mss != 0) {
    s.path_mss = s.black_hole_mss;
    s.black_hole_mss = 0;
    set_mss(s.congestion, effective_mss(s));
    return;
  }
  constexpr std::uint16_t kCautious = 1024;
  const std::uint16_t smaller = s.path_mss > kCautious ? std::max(kCautious, s.default_mss) : s.default_mss;
  if (smaller >= segment_limit(s)) return;
  const std::uint16_t before = s.path_mss;
  set_path_mss(c, smaller);
  s.black_hole_mss = before;
}

// RFC 6298 (5.4) to (5.7).
Events on_retransmit(Connection& c, Instant now) {
  TcpState& s = c.state;
  const bool handshake = s.state == State::syn_sent || s.state == State::syn_received;
  ++s.attempts;
  if (s.attempts > (handshake ? s.settings.syn_retries : s.settings.retries)) return give_up(c);
  c.shared->counters.add(Counter::tcp_timeouts);
  if (handshake) {
    s.due.syn = true;
  } else {
    on_retransmission_timeout(c, now);
    suspect_black_hole(c);
  }
  s.rtt.back_off();
  s.timers.retransmit = now + s.rtt.timeout();
  return s.attempts == s.settings.path_retries ? Events{kPathSuspect} : Events{0};
}

Events on_persist(Connection& c, Instant now) {
  TcpState& s = c.state;
  ++s.attempts;
  if (s.attempts > s.settings.retries) return give_up(c);
  // MUST-37 lets a peer that answers keep its window closed for ever, if the application wants that (RFC
  // 6429). An orphan has none: it ends when the back-off does, as in Linux.
  if (s.orphaned && s.rtt.timeout() >= RttEstimator::kMaxRto) return give_up_with_reset(c);
  // A window that takes something is filled; a closed one is asked (MUST-35, MUST-36).
  if (s.snd_una + s.snd_wnd > s.snd_nxt) {
    s.due.push_small = true;
  } else {
    s.due.window_probe = true;
  }
  s.rtt.back_off();
  s.timers.persist = now + s.rtt.timeout();
  return 0;
}

// RFC 9293 section 3.8.4: only while nothing else is going on, and a lost answer is not a dead peer
// (MUST-29).
Events on_keepalive(Connection& c, Instant now) {
  TcpState& s = c.state;
  const Instant due = s.received_at + s.settings.keepalive_idle;
  if (!s.settings.keepalive) {
    s.timers.keepalive = kForever;
    return 0;
  }
  if (s.keepalives == 0 && now < due) {
    s.timers.keepalive = due;
    return 0;
  }
  s.timers.keepalive = now + s.settings.keepalive_interval;
  if (!c.sent.empty() || s.timers.persist != kForever) return 0;
  const Duration patience = s.settings.user_timeout;
  const bool dead = patience == Duration{0} ? s.keepalives >= s.settings.keepalive_probes
                                            : s.keepalives > 0 && now - s.received_at >= patience;
  if (dead) return give_up_with_reset(c);
  ++s.keepalives;
  s.due.window_probe = true;
  return 0;
}

bool expired(Instant& timer, Instant now) {
  if (timer > now) return false;
  timer = kForever;
  return true;
}

}  // namespace

Instant next_deadline(const TcpState& s) {
  const Timers& t = s.timers;
  return std::min({t.retransmit, t.probe, t.reorder, t.persist, t.delayed_ack, t.keepalive, t.lifetime,
                   t.cork, user_deadline(s)});
}

Events on_timer(Connection& c, Instant now) {
  TcpState& s = c.state;
  if (s.state == State::closed) return 0;
  if (expired(s.timers.lifetime, now)) return finish(c, Failure::none);
  if (user_deadline(s) <= now) return give_up(c);
  Events events = 0;
  if (expired(s.timers.delayed_ack, now)) {
    acknowledge_now(s);
    s.receiver.interactive = false;
  }
  if (expired(s.timers.cork, now)) s.due.push_small = true;
  if (expired(s.timers.reorder, now)) on_reordering_timeout(c, now);
  if (expired(s.timers.probe, now)) {
    s.due.probe = true;
    s.timers.retransmit = now + s.rtt.timeout();  // RFC 8985 section 7.3
  }
  if (expired(s.timers.retransmit, now)) events |= on_retransmit(c, now);
  if (expired(s.timers.persist, now)) events |= on_persist(c, now);
  if (expired(s.timers.keepalive, now)) events |= on_keepalive(c, now);
  return events;
}

Events end_if_stalled(Connection& c, Instant before) {
  const TcpState& s = c.state;
  const bool stalled = s.timers.persist != kForever && s.stalled_since <= before;
  return stalled ? give_up_with_reset(c) : Events{0};
}

}  // namespace netchannel::tcp
