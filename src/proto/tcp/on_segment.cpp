// A segment arrives (RFC 9293 section 3.10.7): one function a state. LISTEN is in listen.cpp, CLOSED in
// closed.cpp.
#include "proto/tcp/connection.hpp"
#include "proto/tcp/receiver.hpp"
#include "proto/tcp/sender.hpp"
#include "proto/tcp/time_wait.hpp"

namespace netchannel::tcp {
namespace {

bool our_fin_acked(const TcpState& s) { return s.fin_sent && s.snd_una > s.fin_seq; }

void note_alive(TcpState& s, Instant now) {
  s.received_at = now;
  s.keepalives = 0;
}

// Sections 3.10.7.4 first to fifth step, which all synchronized states share. False: nothing more to do.
bool admit(Connection& c, SegmentIn& segment, Instant now, Events& events) {
  TcpState& s = c.state;
  switch (check_segment(c, segment, now)) {
    case Verdict::drop:
      return false;
    case Verdict::reset:
      events |= finish(c, Failure::reset);
      return false;
    case Verdict::take:
      break;
  }
  if (!ack_in_range(c, segment, now)) return false;
  note_alive(s, now);
  update_ts_recent(s, segment, now);
  events |= process_ack(c, segment, now);
  return true;
}

// Section 3.10.7.4 seventh step for an application that is gone: what it would have to read is refused (RFC
// 1122 section 4.2.2.13).
bool refuses_data(Connection& c, const SegmentIn& segment, Events& events) {
  const TcpState& s = c.state;
  if (!s.orphaned || segment.length == 0 || segment.seq + segment.length <= s.rcv_nxt) return false;
  events |= abort(c);
  return true;
}

// In the states after the peer's FIN: nothing can follow it (section 3.10.7.4, seventh step). What does is
// dropped, and the peer is told where the stream has ended.
void refuse_beyond_fin(TcpState& s, const SegmentIn& segment) {
  if (segment.length != 0) acknowledge_now(s);
}

Events in_syn_sent(Connection& c, SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  const bool acks = segment.flags.ack();
  const bool acceptable = acks && segment.ack > s.iss && segment.ack <= s.snd_nxt;
  if (acks && !acceptable) {
    if (!segment.flags.rst()) {
      s.due.reset = true;
      s.due.reset_acks = false;
      s.due.reset_seq = segment.ack;
    }
    return 0;
  }
  if (segment.flags.rst()) return acceptable ? finish(c, Failure::refused) : Events{0};
  if (!segment.flags.syn()) return 0;

  s.irs = segment.seq;
  s.rcv_nxt = segment.seq + 1;
  s.rcv_adv = s.rcv_nxt + syn_window(s);
  s.receiver.last_ack_sent = s.rcv_nxt;
  c.receive.start(s.rcv_nxt);
  negotiate(s, segment, now);
  note_alive(s, now);
  s.snd_wnd = segment.window;  // RFC 7323 section 2.2: never scaled in a SYN
  s.max_snd_wnd = s.snd_wnd;
  s.snd_wl1 = segment.seq;
  s.snd_wl2 = segment.ack;
  if (!acks) {  // simultaneous open (MUST-10)
    s.state = State::syn_received;
    s.due.syn = true;
    return 0;
  }
  s.snd_una = segment.ack;
  const std::uint8_t retransmissions = s.attempts;
  if (retransmissions == 0) take_rtt_sample(s, now - s.sent_at, now);
  establish(c, retransmissions, now);
  if (s.settings.ack_gather == Duration{0}) {
    acknowledge_now(s);
  } else {
    // Who connects mostly has something to say, which can carry the acknowledgement.
    s.receiver.ack = AckDue::delayed;
    s.timers.delayed_ack = now + s.settings.ack_gather;
  }
  // Data or a FIN that came along is not taken: TCP Fast Open is off, and the peer will send it again.
  return kConnected | kWritable;
}

Events in_established(Connection& c, SegmentIn& segment, Instant now) {
  Events events = 0;
  if (!admit(c, segment, now, events)) return events;
  events |= receive_text(c, segment, now);
  if (fin_reached(c)) {
    c.state.state = State::close_wait;
    events |= kPeerClosed;
  }
  return events;
}

Events in_fin_wait_1(Connection& c, SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  Events events = 0;
  if (!admit(c, segment, now, events)) return events;
  if (refuses_data(c, segment, events)) return events;
  const bool acked = our_fin_acked(s);
  if (acked) {
    s.state = State::fin_wait_2;
    if (s.orphaned) s.timers.lifetime = now + s.settings.fin_wait_2;
  }
  events |= receive_text(c, segment, now);
  if (!fin_reached(c)) return events;
  events |= kPeerClosed;
  if (acked) {
    enter_time_wait(c, now);
    return static_cast<Events>(events | kTimeWait);
  }
  s.state = State::closing;
  return events;
}

Events in_syn_received(Connection& c, SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  // Simultaneous open (RFC 9293 figure 8): the peer's SYN again, now with the acknowledgement that we wait
  // for. The SYN itself lies before the window.
  const bool syn_ack = segment.flags.syn() && segment.flags.ack() && !segment.flags.rst();
  const bool crossed = syn_ack && segment.seq == s.irs && segment.ack == s.snd_nxt;
  if (crossed) {
    segment.seq += 1;
    segment.flags.bits &= static_cast<std::uint8_t>(~wire::TcpFlags::kSyn);
  }
  switch (check_segment(c, segment, now)) {
    case Verdict::drop:
      return 0;
    case Verdict::reset:
      return finish(c, s.passive ? Failure::reset : Failure::refused);
    case Verdict::take:
      break;
  }
  if (segment.ack <= s.snd_una || segment.ack > s.snd_nxt) {
    s.due.reset = true;
    s.due.reset_acks = false;
    s.due.reset_seq = segment.ack;
    return 0;
  }
  const bool closing = s.fin_queued;
  const std::uint8_t retransmissions = s.attempts;
  if (retransmissions == 0 && s.sent_at != kForever) take_rtt_sample(s, now - s.sent_at, now);
  s.snd_una = s.iss + 1;
  if (crossed)
    segment.window = static_cast<std::uint16_t>(segment.window >> s.snd_wscale);  // a SYN's is not scaled
  s.snd_wnd = std::uint32_t{segment.window} << s.snd_wscale;
  s.max_snd_wnd = s.snd_wnd;
  s.snd_wl1 = segment.seq;
  s.snd_wl2 = segment.ack;
  s.due.syn = false;
  establish(c, retransmissions, now);
  if (closing) s.state = State::fin_wait_1;
  const Events events = closing ? in_fin_wait_1(c, segment, now) : in_established(c, segment, now);
  return static_cast<Events>(events | kConnected | kWritable);
}

Events in_fin_wait_2(Connection& c, SegmentIn& segment, Instant now) {
  Events events = 0;
  if (!admit(c, segment, now, events)) return events;
  if (refuses_data(c, segment, events)) return events;
  events |= receive_text(c, segment, now);
  if (!fin_reached(c)) return events;
  enter_time_wait(c, now);
  return static_cast<Events>(events | kPeerClosed | kTimeWait);
}

Events in_close_wait(Connection& c, SegmentIn& segment, Instant now) {
  Events events = 0;
  if (admit(c, segment, now, events)) refuse_beyond_fin(c.state, segment);
  return events;
}

Events in_closing(Connection& c, SegmentIn& segment, Instant now) {
  Events events = 0;
  if (!admit(c, segment, now, events)) return events;
  refuse_beyond_fin(c.state, segment);
  if (!our_fin_acked(c.state)) return events;
  enter_time_wait(c, now);
  return static_cast<Events>(events | kTimeWait);
}

Events in_last_ack(Connection& c, SegmentIn& segment, Instant now) {
  Events events = 0;
  if (!admit(c, segment, now, events)) return events;
  refuse_beyond_fin(c.state, segment);
  if (our_fin_acked(c.state)) events |= finish(c, Failure::none);
  return events;
}

// The connection is kept here only while the application has something left to read; the rules are those of
// the small struct that takes its place otherwise.
Events in_time_wait(Connection& c, const SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  TimeWait remains = time_wait_of(s);
  const TimeWaitVerdict verdict = on_segment(remains, segment, now);
  s.timers.lifetime = remains.deadline;
  s.ts_recent = remains.ts_recent;
  s.ts_recent_at = remains.ts_recent_at;
  if (verdict == TimeWaitVerdict::acknowledge && segment.flags.fin()) acknowledge_now(s);
  if (verdict == TimeWaitVerdict::acknowledge && !segment.flags.fin()) challenge(c, now);
  return verdict == TimeWaitVerdict::replace ? Events{kReplaced} : Events{0};
}

}  // namespace

Events on_segment(Connection& c, SegmentIn& segment, Instant now) {
  c.state.segments_in += segment.segments;
  switch (c.state.state) {
    case State::closed:
    case State::listen:
      return 0;
    case State::syn_sent:
      return in_syn_sent(c, segment, now);
    case State::syn_received:
      return in_syn_received(c, segment, now);
    case State::established:
      return in_established(c, segment, now);
    case State::fin_wait_1:
      return in_fin_wait_1(c, segment, now);
    case State::fin_wait_2:
      return in_fin_wait_2(c, segment, now);
    case State::close_wait:
      return in_close_wait(c, segment, now);
    case State::closing:
      return in_closing(c, segment, now);
    case State::last_ack:
      return in_last_ack(c, segment, now);
    case State::time_wait:
      return in_time_wait(c, segment, now);
  }
  return 0;
}

}  // namespace netchannel::tcp
