// TIME-WAIT (RFC 9293 section 3.6.1) in a few words instead of a whole connection: it answers what is left of
// the old connection and lets a new one begin early when that is safe (RFC 6191). RSTs are ignored (RFC 1337
// fix F1), so that an old duplicate cannot end the quiet time.
#pragma once

#include "proto/tcp/segment.hpp"
#include "proto/tcp/state.hpp"

namespace netchannel::tcp {

struct TimeWait {
  Seq snd_nxt;
  Seq rcv_nxt;
  Seq rcv_adv;
  std::uint32_t ts_offset = 0;
  std::uint32_t ts_recent = 0;
  Instant ts_recent_at;
  Instant deadline;     // when it is over
  Instant answered_at;  // the last acknowledgement that was not for a FIN
  Duration length{0};   // 2 MSL
  std::uint8_t rcv_wscale = 0;
  bool timestamps = false;
  friend bool operator==(const TimeWait&, const TimeWait&) = default;
};

enum class TimeWaitVerdict : std::uint8_t {
  ignore,
  acknowledge,  // send time_wait_ack()
  replace,      // a SYN that a listener may answer at once, with an ISS beyond snd_nxt
};

TimeWait time_wait_of(const TcpState& state);
TimeWaitVerdict on_segment(TimeWait& t, const SegmentIn& segment, Instant now);
SegmentOut time_wait_ack(const TimeWait& t, Instant now);

}  // namespace netchannel::tcp
