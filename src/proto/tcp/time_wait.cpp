#include "proto/tcp/time_wait.hpp"

#include <algorithm>

#include "proto/tcp/scoreboard.hpp"

namespace netchannel::tcp {
namespace {

constexpr Duration kAnswerInterval = std::chrono::milliseconds(500);

// RFC 6191 section 2: a newer timestamp proves a newer connection; without one the sequence number must.
bool may_replace(const TimeWait& t, const SegmentIn& segment) {
  const bool beyond = segment.seq > t.rcv_nxt;
  if (!t.timestamps || !segment.options.timestamps) return beyond;
  const auto age = static_cast<std::int32_t>(segment.options.timestamps->value - t.ts_recent);
  return age > 0 || (age == 0 && beyond);
}

// As in every synchronized state (RFC 9293 section 3.10.7.4, first step).
bool acceptable(const TimeWait& t, const SegmentIn& segment) {
  if (segment.seq == t.rcv_nxt) return true;
  if (segment.sequence_length() == 0) return segment.seq > t.rcv_nxt && segment.seq <= t.rcv_adv;
  return segment.seq < t.rcv_adv && segment.end() > t.rcv_nxt;
}

TimeWaitVerdict answer(TimeWait& t, Instant now) {
  if (t.answered_at != Instant{} && now - t.answered_at < kAnswerInterval) return TimeWaitVerdict::ignore;
  t.answered_at = now;
  return TimeWaitVerdict::acknowledge;
}

}  // namespace

TimeWait time_wait_of(const TcpState& s) {
  return {.snd_nxt = s.snd_nxt,
          .rcv_nxt = s.rcv_nxt,
          .rcv_adv = s.rcv_adv,
          .ts_offset = s.ts_offset,
          .ts_recent = s.ts_recent,
          .ts_recent_at = s.ts_recent_at,
          .deadline = s.timers.lifetime,
          .answered_at = {},
          .length = s.settings.time_wait,
          .rcv_wscale = s.rcv_wscale,
          .timestamps = s.timestamps};
}

TimeWaitVerdict on_segment(TimeWait& t, const SegmentIn& segment, Instant now) {
  if (segment.flags.rst()) return TimeWaitVerdict::ignore;  // RFC 1337
  if (segment.flags.syn() && !segment.flags.ack()) {
    return may_replace(t, segment) ? TimeWaitVerdict::replace : answer(t, now);
  }
  const bool stamped = t.timestamps && segment.options.timestamps;
  const bool old = stamped && static_cast<std::int32_t>(segment.options.timestamps->value - t.ts_recent) < 0;
  if (stamped && !old && segment.flags.ack() && segment.seq <= t.rcv_nxt) {
    t.ts_recent = segment.options.timestamps->value;
    t.ts_recent_at = now;
  }
  // RFC 9293 section 3.10.7.4: the peer's FIN again, because our acknowledgement was lost. Restart 2 MSL.
  if (segment.flags.fin() && segment.flags.ack() && segment.end() == t.rcv_nxt && !old) {
    t.deadline = now + t.length;
    return TimeWaitVerdict::acknowledge;
  }
  const bool unexpected = old || segment.flags.syn() || !acceptable(t, segment);
  return unexpected ? answer(t, now) : TimeWaitVerdict::ignore;
}

SegmentOut time_wait_ack(const TimeWait& t, Instant now) {
  SegmentOut out;
  out.seq = t.snd_nxt;
  out.ack = t.rcv_nxt;
  out.flags = {wire::TcpFlags::kAck};
  const std::uint32_t window = t.rcv_adv > t.rcv_nxt ? distance(t.rcv_nxt, t.rcv_adv) : 0;
  out.window = static_cast<std::uint16_t>(std::min<std::uint32_t>(window >> t.rcv_wscale, 0xffff));
  if (t.timestamps) out.options.timestamps = {timestamp_ms(now) + t.ts_offset, t.ts_recent};
  return out;
}

}  // namespace netchannel::tcp
