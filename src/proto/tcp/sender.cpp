#include "proto/tcp/sender.hpp"

#include <algorithm>
#include <utility>

#include "proto/tcp/receiver.hpp"
#include "proto/tcp/recovery.hpp"

namespace netchannel::tcp {
namespace {

// RFC 9293 section 3.10.7.4: only news from a newer segment counts (SND.WL1, SND.WL2). An acknowledgement of
// new data is news too, even on data that was sent again: without its window the right edge would move by
// what it acknowledges.
bool update_window(TcpState& s, const SegmentIn& segment) {
  const bool newer = s.snd_wl1 < segment.seq || (s.snd_wl1 == segment.seq && s.snd_wl2 <= segment.ack);
  if (!newer && segment.ack <= s.snd_una) return false;
  const std::uint32_t window = std::uint32_t{segment.window} << s.snd_wscale;
  const bool changed = window != s.snd_wnd;
  s.snd_wnd = window;
  s.max_snd_wnd = std::max(s.max_snd_wnd, window);
  s.snd_wl1 = segment.seq;
  s.snd_wl2 = segment.ack;
  return changed;
}

// RFC 2883 section 4: the first block lies below the acknowledgement, or inside the second.
void find_dsack(TcpState& s, const SegmentIn& segment, AckInfo& ack) {
  const auto& blocks = segment.options.sack;
  if (blocks.empty()) return;
  const Seq left{blocks[0].left}, right{blocks[0].right};
  if (left >= right) return;
  const bool below = right <= segment.ack;
  const bool inside = blocks.size() > 1 && left >= Seq{blocks[1].left} && right <= Seq{blocks[1].right};
  if (!below && !inside) return;
  // Only of what this connection can have sent a short while ago (RFC 2883 section 4, last paragraph).
  if (right > s.snd_nxt || left + s.max_snd_wnd < s.snd_una) return;
  ack.dsack = true;
  ack.dsack_right = right;
  if (left >= s.recovery.undo_marker) ack.dsack_bytes = distance(left, right);
}

// RFC 2018 section 5; nonsense is ignored and counted. From left to right, so that one walk over the
// scoreboard serves them all.
void take_sacks(Connection& c, const SegmentIn& segment, const DeliveryRule& rule, AckInfo& ack) {
  const TcpState& s = c.state;
  auto blocks = segment.options.sack;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    for (std::size_t k = i; k > 0 && Seq{blocks[k].left} < Seq{blocks[k - 1].left}; --k) {
      std::swap(blocks[k], blocks[k - 1]);
    }
  }
  for (const wire::SackBlock& block : blocks) {
    const Seq left{block.left}, right{block.right};
    if (left < right && right <= segment.ack) continue;  // a D-SACK, or overtaken on its way
    const bool sane = left < right && left >= segment.ack && right <= s.snd_nxt && left >= s.snd_una;
    if (!sane || !c.sent.sack(left, right, rule, ack.delivery))
      c.shared->counters.add(Counter::tcp_sack_ignored);
  }
}

// The round trip by the timestamp that comes back (RFC 7323 section 4); nothing if it cannot be ours. Nothing
// either if it is older than the last transmission of what was acknowledged: the acknowledgement may answer
// that one and only repeat the timestamp of an earlier one, whose own acknowledgement was lost.
std::optional<Duration> echoed_rtt(const TcpState& s, const SegmentIn& segment, const Delivery& d,
                                   Instant now) {
  if (!s.timestamps || !segment.options.timestamps) return std::nullopt;
  const std::uint32_t last = timestamp_ms(d.retransmitted_at) + s.ts_offset;
  if (d.retransmitted && static_cast<std::int32_t>(segment.options.timestamps->echo - last) < 0)
    return std::nullopt;
  const std::uint32_t age = timestamp_ms(now) - (segment.options.timestamps->echo - s.ts_offset);
  constexpr std::uint32_t kOldest = 10 * 60 * 1000;
  if (age > kOldest) return std::nullopt;  // from the future, or of another life
  return std::chrono::milliseconds(std::max(age, 1U));
}

void sample_rtt(TcpState& s, const SegmentIn& segment, AckInfo& ack, Instant now) {
  const Delivery& d = ack.delivery;
  if (!d.retransmitted && d.has_last) {
    ack.rtt = std::max(now - d.last_sent, Duration{1});
    if (d.has_first) {
      take_rtt_sample(s, now - d.first_sent, now);
      s.rtt.note_min(ack.rtt, now);
    } else {
      take_rtt_sample(s, ack.rtt, now);
    }
    return;
  }
  if (ack.advanced == 0) return;
  if (const auto rtt = echoed_rtt(s, segment, d, now)) {
    take_rtt_sample(s, *rtt, now);
    ack.rtt = *rtt;
  }
}

// What is remembered and not compared for long must stay in the past: half around the circle it would be the
// future.
void keep_in_the_past(TcpState& s) {
  constexpr std::uint32_t kFar = 1U << 30;
  const auto far = [&s](Seq past) { return s.snd_una - past > static_cast<std::int32_t>(kFar); };
  Recovery& r = s.recovery;
  if (far(r.undo_marker)) r.can_undo = false;
  for (Seq* past :
       {&s.small_end, &s.limited_end, &r.point, &r.undo_marker, &s.congestion.hystart.round_end}) {
    if (far(*past)) *past = s.snd_una - kFar;
  }
}

void advance(Connection& c, const SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  s.bytes_acked += distance(s.snd_una, segment.ack);
  s.snd_una = segment.ack;
  keep_in_the_past(s);
  c.send.release(earlier(s.snd_una, c.send.end()));
  s.attempts = 0;
  s.black_hole_mss = 0;  // the smaller segments get through: keep to them
  s.stalled_since = s.snd_una == s.snd_nxt ? kForever : now;
  s.soft_failure = Failure::none;
}

// RFC 6298 (5.2) and (5.3); RFC 8985 section 7.2.
void restart_timers(Connection& c, bool advanced, Instant now) {
  TcpState& s = c.state;
  if (s.snd_una == s.snd_nxt) {
    s.timers.retransmit = s.timers.probe = s.timers.reorder = kForever;
    return;
  }
  if (advanced) {
    s.timers.retransmit = now + s.rtt.timeout();
    s.timers.probe = probe_deadline(c, now);
  } else if (c.sent.sacked() != 0) {
    s.timers.probe = kForever;
  }
}

}  // namespace

Events process_ack(Connection& c, const SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  if (segment.ack < s.snd_una) return 0;  // old news: a duplicate (RFC 9293 section 3.10.7.4)
  const Duration min_rtt = s.rtt.min();
  AckInfo ack;
  ack.advanced = distance(s.snd_una, segment.ack);
  ack.flight_before = distance(s.snd_una, s.snd_nxt);
  ack.unanswered = s.recovery.asked_flight - std::min(s.recovery.asked_flight, ack.flight_before);
  ack.ece = s.ecn && segment.flags.ece();
  ack.has_echo = s.timestamps && segment.options.timestamps.has_value();
  ack.echo = ack.has_echo ? segment.options.timestamps->echo : 0;
  const bool was_closed = s.snd_wnd == 0;
  const bool window_changed = update_window(s, segment);
  const DeliveryRule rule{.now = now,
                          .min_rtt = min_rtt,
                          .has_echo = ack.has_echo,
                          .echo = ack.echo,
                          .offset = s.ts_offset,
                          .fack = s.recovery.rack.fack,
                          .point = s.recovery.point};
  if (s.sack && !segment.options.sack.empty()) {
    find_dsack(s, segment, ack);
    take_sacks(c, segment, rule, ack);
  }
  ack.duplicate = ack.advanced == 0 && segment.sequence_length() == 0 && !window_changed;
  Events events = 0;
  if (ack.advanced != 0) {
    c.sent.acknowledge(segment.ack, rule, ack.delivery);
    const std::uint32_t held = c.send.size();
    advance(c, segment, now);
    if (c.send.size() != held) events |= kWritable;
    if (s.snd_una == s.snd_nxt && c.send.size() == 0) events |= kAllAcked;
  }
  if (ack.advanced != 0 || ack.delivery.sacked != 0) sample_rtt(s, segment, ack, now);
  if (ack.flight_before != 0) {
    recover(c, ack, now);
  } else {
    hear_late_news(c, ack);
  }
  restart_timers(c, ack.advanced != 0, now);
  // MUST-37: a peer that answers our probes is alive, however long its window stays shut.
  if (s.timers.persist != kForever || s.snd_wnd == 0) s.attempts = 0;
  if (was_closed && s.snd_wnd != 0) {
    events |= kWritable;
    s.timers.persist = kForever;
    s.rtt.backoff = 0;
    s.stalled_since = s.snd_una == s.snd_nxt ? kForever : now;
  }
  return events;
}

void negotiate(TcpState& s, const SegmentIn& segment, Instant now) {
  const wire::TcpOptions& options = segment.options;
  s.peer_mss = options.mss ? wire::usable_mss(*options.mss) : s.default_mss;
  s.window_scaling = s.settings.window_scaling && options.window_scale.has_value();
  s.snd_wscale = s.window_scaling ? *options.window_scale : 0;
  if (!s.window_scaling) s.rcv_wscale = 0;
  s.timestamps = s.settings.timestamps && options.timestamps.has_value();
  s.sack = s.settings.sack && options.sack_permitted;
  if (s.timestamps) {
    s.ts_recent = options.timestamps->value;
    s.ts_recent_at = now;
  }
  const bool both = segment.flags.ece() && segment.flags.cwr();
  const bool answer = segment.flags.ece() && !segment.flags.cwr();
  s.ecn = segment.flags.ack() ? s.settings.ecn == EcnMode::request && answer
                              : s.settings.ecn != EcnMode::off && both;
}

void establish(Connection& c, std::uint8_t retransmissions, Instant now) {
  TcpState& s = c.state;
  s.state = State::established;
  const std::uint32_t mss = effective_mss(s);
  // RFC 6928 section 2: one lost SYN is forgiven.
  start(s.congestion, s.settings.congestion, mss, initial_window(mss, retransmissions > 1));
  s.congestion.hystart.round_end = s.snd_nxt;
  // RFC 6298 (5.7)
  if (retransmissions > 0 && !s.rtt.has_sample()) s.rtt.rto = std::chrono::seconds(3);
  s.rtt.backoff = 0;
  s.attempts = 0;
  s.stalled_since = kForever;
  s.timers.retransmit = kForever;
  s.recovery.point = s.recovery.undo_marker = s.iss;
  s.recovery.rack.fack = s.snd_una;
  s.small_end = s.limited_end = s.snd_una;
  s.sent_at = s.receiver.space_since = now;
  s.receiver.data_at = now - std::chrono::hours(1);
  s.challenges_at = now;
  if (s.settings.keepalive) s.timers.keepalive = now + s.settings.keepalive_idle;
}

void take_rtt_sample(TcpState& s, Duration rtt, Instant now) { s.rtt.sample(rtt, s.settings.min_rto, now); }

Events finish(Connection& c, Failure failure) {
  TcpState& s = c.state;
  if (s.state == State::closed) return 0;
  s.state = State::closed;
  s.failure = failure;
  s.timers = Timers{};
  s.stalled_since = kForever;
  const Due due = s.due;
  s.due = Due{};
  if (due.reset) s.due = due;
  s.receiver.ack = AckDue::none;
  s.receiver.dup_acks_due = 0;
  c.sent.clear();
  c.send.clear();
  return kClosed;
}

void enter_time_wait(Connection& c, Instant now) {
  TcpState& s = c.state;
  s.state = State::time_wait;
  s.timers = Timers{};
  s.stalled_since = kForever;
  s.timers.lifetime = now + s.settings.time_wait;  // MUST-13
}

}  // namespace netchannel::tcp
