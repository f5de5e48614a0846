#include "proto/tcp/receiver.hpp"

#include <algorithm>

namespace netchannel::tcp {
namespace {

constexpr std::uint8_t kChallengeBurst = 5;
constexpr Duration kChallengeInterval = std::chrono::milliseconds(500);
// RFC 7323 section 5.5: after this long TS.Recent may have wrapped and says nothing.
constexpr Duration kPawsIdle = std::chrono::hours(24 * 24);

// RFC 9293 section 3.10.7.4, first step, with two additions that Linux makes too. Deviation: a segment that
// covers the whole window and more is taken and cut; an empty one at the very right edge is taken, since that
// is where a peer acknowledges from that has filled the window.
bool acceptable(const TcpState& s, const SegmentIn& segment) {
  if (segment.seq == s.rcv_nxt) return true;  // also to a zero window: its ACK, RST and URG count (MUST-66)
  if (segment.sequence_length() == 0) return segment.seq >= s.rcv_nxt && segment.seq <= s.rcv_adv;
  return segment.seq < s.rcv_adv && segment.end() > s.rcv_nxt;
}

bool paws_rejects(const TcpState& s, const SegmentIn& segment, Instant now) {
  if (!s.timestamps || !segment.options.timestamps) return false;
  const auto age = static_cast<std::int32_t>(segment.options.timestamps->value - s.ts_recent);
  return age < 0 && now - s.ts_recent_at < kPawsIdle;
}

void note_dsack(TcpState& s, wire::SackBlock block) {
  if (!s.sack || s.receiver.dsack_due) return;
  s.receiver.dsack = block;
  s.receiver.dsack_due = true;
}

// The peer sends again what is here, perhaps because an acknowledgement was late or lost.
void acknowledge_quickly(TcpState& s) {
  s.receiver.quick_acks = kQuickAcks;
  s.receiver.interactive = false;
}

// A segment that is not acceptable is answered, so that a peer out of step learns where we are. Data is
// answered always (a lost acknowledgement is repaired by it); what carries none could be part of a war of
// acknowledgements.
void answer_unacceptable(Connection& c, const SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  c.shared->counters.add(Counter::tcp_out_of_window);
  if (segment.flags.syn() || (segment.length == 0 && !segment.flags.fin())) return challenge(c, now);
  if (segment.length != 0 && segment.seq < s.rcv_nxt) {
    note_dsack(s, {segment.seq.value, earlier(segment.seq + segment.length, s.rcv_nxt).value});
    acknowledge_quickly(s);
  }
  acknowledge_now(s);
}

}  // namespace

void acknowledge_now(TcpState& s) { s.receiver.ack = AckDue::now; }

void challenge(Connection& c, Instant now) {
  TcpState& s = c.state;
  while (s.challenges < kChallengeBurst && now - s.challenges_at >= kChallengeInterval) {
    ++s.challenges;
    s.challenges_at = s.challenges == kChallengeBurst ? now : s.challenges_at + kChallengeInterval;
  }
  if (s.challenges == 0) {
    c.shared->counters.add(Counter::tcp_challenges_limited);
    return;
  }
  if (s.challenges == kChallengeBurst) s.challenges_at = now;
  --s.challenges;
  s.due.challenge = true;
}

Verdict check_segment(Connection& c, const SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  // A SYN is challenged whatever it carries (RFC 5961 section 4.2): it may be a peer's that has restarted.
  if (!segment.flags.rst() && !segment.flags.syn()) {
    // RFC 7323 section 3.2: once negotiated, a segment without timestamps is not the peer's.
    if (s.timestamps && !segment.options.timestamps) {
      c.shared->counters.add(Counter::tcp_no_timestamp);
      return Verdict::drop;
    }
    if (paws_rejects(s, segment, now)) {  // section 5.3 (R1)
      c.shared->counters.add(Counter::tcp_paws);
      if (segment.sequence_length() == 0) {
        challenge(c, now);
      } else {
        acknowledge_now(s);
      }
      return Verdict::drop;
    }
  }
  if (!acceptable(s, segment)) {
    if (!segment.flags.rst()) answer_unacceptable(c, segment, now);
    return Verdict::drop;
  }
  if (segment.flags.rst()) {
    if (segment.seq == s.rcv_nxt) return Verdict::reset;
    challenge(c, now);  // RFC 5961 section 3.2
    return Verdict::drop;
  }
  if (segment.flags.syn()) {
    challenge(c, now);  // RFC 5961 section 4.2
    return Verdict::drop;
  }
  if (!segment.flags.ack()) {
    c.shared->counters.add(Counter::tcp_bad_flags);
    return Verdict::drop;
  }
  return Verdict::take;
}

bool ack_in_range(Connection& c, const SegmentIn& segment, Instant now) {
  const TcpState& s = c.state;
  if (segment.ack <= s.snd_nxt && segment.ack + s.max_snd_wnd >= s.snd_una) return true;
  c.shared->counters.add(Counter::tcp_bad_ack);
  challenge(c, now);
  return false;
}

void update_ts_recent(TcpState& s, const SegmentIn& segment, Instant now) {
  if (!s.timestamps || !segment.options.timestamps) return;
  if (segment.seq > s.receiver.last_ack_sent) return;
  s.ts_recent = segment.options.timestamps->value;
  s.ts_recent_at = now;
}

namespace {

void note_ecn(TcpState& s, const SegmentIn& segment) {
  if (!s.ecn) return;
  if (segment.flags.cwr()) s.ece_due = false;  // RFC 3168 section 6.1.3
  if (segment.ecn != Ecn::ce) return;
  if (!s.ece_due) acknowledge_now(s);
  s.ece_due = true;
}

// RFC 5681 section 4.2 and RFC 9293 section 3.8.6.3.
// Deviation: SHLD-19, an acknowledgement for every second segment, within ack_gather.
void schedule_ack(TcpState& s, std::uint32_t advanced, bool pushed, Instant now) {
  constexpr std::uint32_t kGathered = 8;  // segments
  Receiver& r = s.receiver;
  r.unacked += advanced;
  const bool quick = s.settings.quick_ack || (r.quick_acks > 0 && !r.interactive);
  const bool two = r.unacked >= 2U * r.mss;
  const bool gather = s.settings.ack_gather != Duration{0} && !pushed && r.unacked < kGathered * r.mss;
  if (quick || (two && !gather)) return acknowledge_now(s);
  if (r.ack == AckDue::now) return;
  const Instant due = now + (two ? s.settings.ack_gather : s.settings.delayed_ack);
  s.timers.delayed_ack = r.ack == AckDue::none ? due : std::min(s.timers.delayed_ack, due);
  r.ack = AckDue::delayed;
}

void note_segment_size(TcpState& s, const SegmentIn& segment) {
  const std::uint32_t size = segment.length / std::max<std::uint32_t>(segment.segments, 1);
  s.receiver.mss = static_cast<std::uint16_t>(
      std::clamp<std::uint32_t>(size, s.receiver.mss, std::max(s.offered_mss, s.receiver.mss)));
}

// Cuts the frame, which stands at `at`, to what is new and inside the window. False: nothing is left.
bool trim(TcpState& s, Seq at, Frame& frame, bool& duplicate) {
  const Seq end = at + static_cast<std::uint32_t>(frame.size());
  if (at < s.rcv_nxt) {
    const Seq upto = earlier(end, s.rcv_nxt);
    note_dsack(s, {at.value, upto.value});
    duplicate = true;
    if (end <= s.rcv_nxt) return false;
    frame.drop_front(distance(at, s.rcv_nxt));
  }
  if (end > s.rcv_adv) {
    const std::uint32_t beyond = distance(s.rcv_adv, end);
    if (beyond >= frame.size()) return false;
    frame.drop_back(beyond);
  }
  return frame.size() != 0;
}

}  // namespace

Events receive_text(Connection& c, SegmentIn& segment, Instant now) {
  TcpState& s = c.state;
  Receiver& r = s.receiver;
  note_ecn(s, segment);
  if (segment.length == 0 && !segment.flags.fin()) return 0;
  const Seq data_end = segment.seq + segment.length;
  // Data beyond a FIN that was announced ahead of its turn contradicts it: the stream goes on, and a true FIN
  // comes again.
  if (r.fin_known && data_end > r.fin) r.fin_known = false;
  // A FIN counts only if nothing before it was cut off by the window.
  if (segment.flags.fin() && data_end <= s.rcv_adv && data_end >= s.rcv_nxt) {
    r.fin_known = true;
    r.fin = data_end;
  }
  // As in Linux: a sender that was silent for so long begins with a small window, which waits for us.
  if (now - r.data_at > s.rtt.timeout()) r.quick_acks = kQuickAcks;
  r.data_at = now;
  note_segment_size(s, segment);
  bool urgent_ack = c.receive.has_islands();  // a hole is being filled, or there is one
  bool duplicate = false;
  std::uint32_t advanced = 0;
  Seq at = segment.seq;
  for (Frame& frame : segment.payload) {
    const Seq next = at + static_cast<std::uint32_t>(frame.size());
    const bool wanted = trim(s, at, frame, duplicate);
    const Seq begin = at < s.rcv_nxt ? s.rcv_nxt : at;
    at = next;
    if (!wanted) continue;
    const ReceiveQueue::Inserted in = c.receive.insert(begin, std::move(frame));
    if (in.duplicate) note_dsack(s, in.duplicates);
    if (in.lost) c.shared->counters.add(Counter::tcp_receive_full);
    duplicate |= in.duplicate;
    s.rcv_nxt += in.advanced;
    s.bytes_received += in.advanced;
    advanced += in.advanced;
    urgent_ack |= in.advanced == 0 || in.lost;
  }
  if (advanced == 0 && segment.length != 0 && !duplicate) {
    c.shared->counters.add(Counter::tcp_out_of_order);
    const std::uint32_t due = r.dup_acks_due + std::uint32_t{segment.segments};
    if (!s.sack) r.dup_acks_due = static_cast<std::uint8_t>(std::min(due, 16U));
  }
  if (duplicate) {
    c.shared->counters.add(Counter::tcp_duplicate);
    acknowledge_quickly(s);
  }
  if (urgent_ack || duplicate || advanced == 0) acknowledge_now(s);
  schedule_ack(s, advanced, segment.flags.psh(), now);
  return advanced != 0 ? Events{kReadable} : Events{0};
}

bool fin_reached(Connection& c) {
  TcpState& s = c.state;
  // A FIN that lies before what has arrived contradicts itself.
  if (s.rcv_nxt > s.receiver.fin) s.receiver.fin_known = false;
  if (!s.receiver.fin_known || s.rcv_nxt != s.receiver.fin) return false;
  s.rcv_nxt += 1;
  c.receive.drop_islands();  // from beyond the end: a peer that contradicts itself
  acknowledge_now(s);
  return true;
}

namespace {

// Where the window could end now, as far as the header's field can say it.
Seq right_edge(const Connection& c) {
  const TcpState& s = c.state;
  const std::uint32_t used = c.receive.readable();
  const std::uint32_t room = s.receiver.buffer > used ? s.receiver.buffer - used : 0;
  return s.rcv_nxt + std::min(room, 0xffffU << s.rcv_wscale);
}

// RFC 9293 section 3.8.6.2.2: the edge moves by a worthwhile step or not at all.
std::uint32_t worthwhile(const TcpState& s) {
  return std::min<std::uint32_t>(s.receiver.buffer / 2, std::max<std::uint16_t>(s.receiver.mss, 1));
}

}  // namespace

// RFC 7323 section 2.2: never scaled.
std::uint16_t syn_window(const TcpState& s) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(s.receiver.buffer, 0xffff));
}

std::uint16_t select_window(Connection& c) {
  TcpState& s = c.state;
  const Seq edge = right_edge(c);
  Seq right = s.rcv_adv;
  if (edge > right && distance(right, edge) >= worthwhile(s)) right = edge;
  const std::uint32_t window = right > s.rcv_nxt ? distance(s.rcv_nxt, right) : 0;
  // Rounding down takes the edge back by less than one step of the scale; what was promised before is still
  // accepted (RFC 7323 section 2.4).
  const std::uint32_t field = std::min<std::uint32_t>(window >> s.rcv_wscale, 0xffff);
  s.rcv_adv = later(s.rcv_adv, s.rcv_nxt + (field << s.rcv_wscale));
  return static_cast<std::uint16_t>(field);
}

bool window_update_due(const Connection& c) {
  const TcpState& s = c.state;
  if (!receiving(s.state)) return false;
  const Seq edge = right_edge(c);
  if (edge <= s.rcv_adv) return false;
  const std::uint32_t opened = distance(s.rcv_adv, edge);
  const std::uint32_t step = 1U << s.rcv_wscale;
  if (opened < step) return false;
  // A closed window opens as soon as it may; an open one is told with the next acknowledgement until it is
  // half empty.
  const bool closed = s.rcv_adv <= s.rcv_nxt + (step - 1);
  if (closed) return opened >= worthwhile(s);
  return opened >= std::min(std::max(2U * s.receiver.mss, s.receiver.buffer / 4), s.receiver.buffer / 2);
}

// Dynamic right-sizing: the buffer holds twice what the application takes in a round trip, so that the
// sender's window can double, and then some while the rate grows.
void tune_receive_buffer(Connection& c, std::uint32_t bytes, Instant now) {
  TcpState& s = c.state;
  Receiver& r = s.receiver;
  if (r.buffer >= s.settings.receive_buffer_max) return;
  r.copied += bytes;
  constexpr Duration kShortest = std::chrono::milliseconds(1);
  constexpr Duration kUnknown = std::chrono::milliseconds(100);
  const Duration round = s.rtt.has_sample() ? std::max(s.rtt.srtt, kShortest) : kUnknown;
  if (now - r.space_since < round) return;
  if (r.copied > r.space) {
    const std::uint64_t grown = r.space == 0 ? 0 : 2ULL * (r.copied - r.space);
    const std::uint64_t wanted = 2ULL * r.copied + grown + 16ULL * r.mss;
    const auto limited =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, s.settings.receive_buffer_max));
    r.buffer = std::max(r.buffer, limited);
    r.space = r.copied;
  }
  r.copied = 0;
  r.space_since = now;
}

}  // namespace netchannel::tcp
