// What is to be sent now: one pass over all that may be due, in the order in which the peer should get it.
// Sending is the only place where acknowledgements are decided, so that a burst that came in is acknowledged
// once.
//
//      RST or challenge | SYN | tail loss probe | retransmissions | new data and FIN | zero-window probe |
//      pure ACK
#include <algorithm>
#include <utility>

#include "proto/tcp/connection.hpp"
#include "proto/tcp/receiver.hpp"
#include "proto/tcp/recovery.hpp"

namespace netchannel::tcp {
namespace {

using wire::TcpFlags;

constexpr Duration kCorkLimit = std::chrono::milliseconds(200);

// One poll_tx().
struct Pass {
  Connection& c;
  TxBatch& out;
  const TxLimits& limits;
  Instant now;
  std::size_t room = 0;        // segments that may still be appended
  wire::TcpOptions options{};  // of every segment of this pass
  std::uint32_t mss = 0;       // payload beside those options
  bool acked = false;          // something with the current acknowledgement is in the batch
  bool sent_data = false;
};

std::uint8_t bit(bool on, std::uint8_t flag) { return on ? flag : std::uint8_t{0}; }

wire::TcpOptions segment_options(const Connection& c, Instant now) {
  const TcpState& s = c.state;
  wire::TcpOptions options;
  if (s.timestamps) options.timestamps = {timestamp_ms(now) + s.ts_offset, s.ts_recent};
  if (!s.sack) return options;
  const std::size_t room = s.timestamps ? 3 : wire::kMaxSackBlocks;    // RFC 2018 section 3
  if (s.receiver.dsack_due) options.sack.push_back(s.receiver.dsack);  // RFC 2883 section 4: first
  if (c.receive.has_islands()) c.receive.sack_blocks(options.sack, room - options.sack.size());
  return options;
}

SegmentOut& emit(Pass& p, Seq seq, std::uint8_t flags) {
  TcpState& s = p.c.state;
  SegmentOut segment;
  segment.seq = seq;
  segment.ack = s.rcv_nxt;
  segment.flags = {static_cast<std::uint8_t>(flags | TcpFlags::kAck | bit(s.ece_due, TcpFlags::kEce))};
  segment.window = select_window(p.c);
  segment.options = p.options;
  p.out.push_back(segment);
  --p.room;
  ++s.segments_out;
  p.acked = true;
  if (std::exchange(s.receiver.dsack_due, false)) p.options = segment_options(p.c, p.now);  // once only
  return p.out[p.out.size() - 1];
}

// The acknowledgement is on its way with whatever was emitted.
void acknowledged(TcpState& s) {
  Receiver& r = s.receiver;
  if (r.ack != AckDue::none && r.quick_acks > 0) --r.quick_acks;
  r.ack = AckDue::none;
  r.unacked = 0;
  r.last_ack_sent = s.rcv_nxt;
  s.timers.delayed_ack = kForever;
}

// RST or an acknowledgement that depends on nothing but what provoked it.
void send_reset(Pass& p) {
  TcpState& s = p.c.state;
  if (!s.due.reset || p.room == 0) return;
  s.due.reset = false;
  SegmentOut segment;
  segment.seq = s.due.reset_seq;
  segment.ack = s.due.reset_acks ? s.due.reset_ack : Seq{};
  segment.flags = {static_cast<std::uint8_t>(TcpFlags::kRst | bit(s.due.reset_acks, TcpFlags::kAck))};
  p.out.push_back(segment);
  --p.room;
  p.c.shared->counters.add(Counter::tcp_resets_sent);
}

void send_syn(Pass& p) {
  TcpState& s = p.c.state;
  if (!s.due.syn || p.room == 0) return;
  s.due.syn = false;
  const bool answer = s.state == State::syn_received;
  SegmentOut segment;
  segment.seq = s.iss;
  segment.flags = {static_cast<std::uint8_t>(TcpFlags::kSyn | bit(answer, TcpFlags::kAck))};
  if (answer) segment.ack = s.rcv_nxt;
  segment.window = syn_window(s);
  segment.options.mss = s.offered_mss;
  if (answer ? s.window_scaling : s.settings.window_scaling) segment.options.window_scale = s.rcv_wscale;
  segment.options.sack_permitted = answer ? s.sack : s.settings.sack;
  if (answer ? s.timestamps : s.settings.timestamps) {
    segment.options.timestamps = {timestamp_ms(p.now) + s.ts_offset, answer ? s.ts_recent : 0};
  }
  // RFC 3168 section 6.1.1; not in a retransmission, since the flags may be what a middlebox drops (6.1.1.1).
  const bool first = s.attempts == 0;
  if (answer && s.ecn) segment.flags.bits |= TcpFlags::kEce;
  if (!answer && first && s.settings.ecn == EcnMode::request)
    segment.flags.bits |= TcpFlags::kEce | TcpFlags::kCwr;
  segment.retransmission = !first;
  p.out.push_back(segment);
  --p.room;
  if (first) s.sent_at = p.now;
  if (s.stalled_since == kForever) s.stalled_since = p.now;
  s.timers.retransmit = p.now + s.rtt.timeout();
}

// Payload that one item of the batch may carry.
std::uint32_t item_limit(const Pass& p) {
  const std::uint32_t whole = p.limits.super_frame / p.mss * p.mss;
  return std::max(whole, p.mss);
}

// [from, end) of the stream, its FIN included if it is in there.
void emit_range(Pass& p, Seq from, Seq end, bool retransmission) {
  TcpState& s = p.c.state;
  const bool fin = s.fin_queued && end > s.fin_seq;
  const Seq data_end = fin ? s.fin_seq : end;
  const bool push = data_end == p.c.send.end() && data_end != from;
  SegmentOut& segment =
      emit(p, from, static_cast<std::uint8_t>(bit(fin, TcpFlags::kFin) | bit(push, TcpFlags::kPsh)));
  segment.length = distance(from, data_end);
  if (segment.length > p.mss) {
    segment.segment_size = static_cast<std::uint16_t>(p.mss);
    s.segments_out += (segment.length - 1) / p.mss;
  }
  segment.retransmission = retransmission;
  s.sent_at = p.now;
  p.sent_data = true;
  if (s.timers.retransmit == kForever) s.timers.retransmit = p.now + s.rtt.timeout();
  if (s.recovery.phase == Phase::recovery || s.recovery.phase == Phase::reducing) {
    s.recovery.prr_out += distance(from, end);
  }
  if (retransmission) {
    const std::uint32_t count = std::max((segment.length + p.mss - 1) / p.mss, 1U);
    p.c.shared->counters.add(Counter::tcp_retransmitted, count);
    s.segments_retransmitted += count;
    s.bytes_retransmitted += segment.length;
    return;
  }
  if (!s.ecn || segment.length == 0) return;
  segment.ecn = Ecn::ect0;  // RFC 3168 section 6.1.5: new data only
  if (s.cwr_due) segment.flags.bits |= TcpFlags::kCwr;
  s.cwr_due = false;
}

void note_retransmission(Pass& p, std::uint32_t bytes) {
  Recovery& r = p.c.state.recovery;
  r.undo_bytes += bytes;
  if (r.retransmit_stamp == 0) r.retransmit_stamp = std::max(timestamp_ms(p.now) + p.c.state.ts_offset, 1U);
}

Seq window_edge(const TcpState& s) { return s.snd_una + s.snd_wnd; }

// How much of a lost record may be sent again now; 0: nothing.
std::uint32_t retransmittable(const Pass& p, const TxRecord& record) {
  const TcpState& s = p.c.state;
  const std::uint32_t in_pipe = pipe(p.c);
  std::uint32_t allowed = s.congestion.cwnd > in_pipe ? s.congestion.cwnd - in_pipe : 0;
  if (s.recovery.fast_retransmit) allowed = std::max(allowed, p.mss);
  const std::uint32_t length = distance(record.begin, record.end);
  std::uint32_t bytes = std::min(length, item_limit(p));
  if (allowed < std::min(bytes, p.mss)) return 0;
  bytes = std::min(bytes, allowed);
  // RFC 9293 section 3.8.6: what the window no longer covers is not sent, but for the first segment, which
  // keeps asking.
  const Seq edge = window_edge(s);
  const std::uint32_t covered = edge > record.begin ? distance(record.begin, edge) : 0;
  const std::uint32_t head = record.begin == s.snd_una ? std::min(length, p.mss) : 0;
  bytes = std::min(bytes, std::max(covered, head));
  return bytes < length && bytes > p.mss ? bytes - bytes % p.mss : bytes;
}

void retransmit(Pass& p) {
  Connection& c = p.c;
  TcpState& s = c.state;
  auto at = c.sent.next_lost(c.sent.first());
  while (p.room > 0 && !c.sent.done(at)) {
    const TxRecord record = c.sent[at];
    const std::uint32_t bytes = retransmittable(p, record);
    if (bytes == 0) return;
    emit_range(p, record.begin, record.begin + bytes, true);
    note_retransmission(p, bytes);
    s.recovery.fast_retransmit = false;
    // RFC 6675 section 6: repairing may take longer than a timeout, while acknowledgements keep coming.
    if (s.recovery.phase == Phase::recovery) s.timers.retransmit = p.now + s.rtt.timeout();
    at = c.sent.next_lost(c.sent.retransmitted(at, record.begin + bytes, p.now));
  }
}

// A partial segment goes at once if nothing smaller than a segment is on its way (Nagle's rule, RFC 9293
// section 3.7.4, in Minshall's form: only small segments wait for each other).
bool may_send_partial(const TcpState& s) {
  if (s.fin_queued || s.due.push_small) return true;
  if (s.settings.cork) return false;
  return s.settings.no_delay || s.small_end <= s.snd_una;
}

// Bytes of new data to send as one item, and whether the congestion window is what limits them.
struct NewData {
  std::uint32_t bytes = 0;
  bool congestion = false;
  bool held_small = false;  // Nagle or cork holds a partial segment back
};

NewData sendable(const Pass& p) {
  const TcpState& s = p.c.state;
  const std::uint32_t unsent = distance(s.snd_nxt, p.c.send.end());
  const Seq edge = window_edge(s);
  const std::uint32_t window = edge > s.snd_nxt ? distance(s.snd_nxt, edge) : 0;
  const std::uint32_t in_pipe = pipe(p.c);
  std::uint32_t allowed = s.congestion.cwnd > in_pipe ? s.congestion.cwnd - in_pipe : 0;
  if (in_pipe == 0) allowed = std::max(allowed, p.mss);
  const std::uint32_t wanted = std::min({unsent, window, item_limit(p)});
  NewData out;
  out.bytes = std::min(wanted, allowed);
  out.congestion = allowed < std::min(wanted, p.mss) || (allowed < wanted && allowed < unsent);
  const std::uint32_t partial = out.bytes % p.mss;
  if (partial == 0) return out;
  if (out.bytes == unsent && may_send_partial(s)) return out;
  out.held_small = out.bytes == unsent;
  // RFC 9293 section 3.8.6.2.1: less than a segment into the rest of a window, if that is much of all the
  // peer has.
  const bool fills_window = out.bytes == window && out.bytes < unsent && out.bytes < p.mss;
  if (fills_window && (s.due.push_small || out.bytes >= s.max_snd_wnd / 2)) return out;
  out.bytes -= partial;
  return out;
}

// RFC 5681 section 4.1.
void restart_after_idle(Pass& p) {
  TcpState& s = p.c.state;
  if (!p.c.sent.empty()) return;
  resume(s.congestion, p.now);
  if (p.now - s.sent_at > s.rtt.timeout()) after_idle(s.congestion, initial_window(s.congestion.mss, false));
}

// Whether the FIN may follow `bytes` of data now.
bool fin_follows(const Connection& c, std::uint32_t bytes) {
  const TcpState& s = c.state;
  if (!s.fin_queued || s.fin_sent || s.snd_nxt + bytes != c.send.end()) return false;
  return s.snd_nxt + bytes < window_edge(s);
}

// True if something was sent.
bool send_new_item(Pass& p, const NewData& data) {
  Connection& c = p.c;
  TcpState& s = c.state;
  const bool fin = fin_follows(c, data.bytes);
  if (data.bytes == 0 && !fin) return false;
  const Seq from = s.snd_nxt;
  const Seq end = from + data.bytes + (fin ? 1 : 0);
  if (c.sent.empty()) s.stalled_since = p.now;
  if (!c.sent.sent(end, p.now, s.rtt.srtt / 64)) return false;
  s.snd_nxt = end;
  s.fin_sent |= fin;
  if (data.bytes % p.mss != 0) s.small_end = end;
  emit_range(p, from, end, false);
  return true;
}

void send_new_data(Pass& p) {
  TcpState& s = p.c.state;
  if (s.fin_sent) return;
  if (p.c.send.end() > s.snd_nxt) restart_after_idle(p);
  bool limited = false;
  bool held = false;
  while (p.room > 0 && !s.fin_sent && (p.c.send.end() > s.snd_nxt || s.fin_queued)) {
    const NewData data = sendable(p);
    limited = data.congestion;
    held = data.held_small;
    if (!send_new_item(p, data)) break;
  }
  // A window that is full is used, whether or not there was more to send (RFC 7661 section 4.1).
  limited |= p.sent_data && pipe(p.c) >= s.congestion.cwnd;
  if (limited) {
    s.window_limited = true;
    s.limited_end = s.snd_nxt;
  } else if (s.snd_una >= s.limited_end) {
    s.window_limited = false;
  }
  if (p.room == 0) return;  // there may be more to do: what is to be pushed still is
  s.due.push_small = false;
  // Linux lets a corked segment go after 200 ms; the RFCs know no cork.
  if (!held || !s.settings.cork) {
    s.timers.cork = kForever;
  } else if (s.timers.cork == kForever) {
    s.timers.cork = p.now + kCorkLimit;
  }
}

// RFC 8985 section 7.3: new data if there is any, else the last segment again, whatever the congestion window
// says.
void send_tail_probe(Pass& p) {
  Connection& c = p.c;
  TcpState& s = c.state;
  if (!s.due.probe || p.room == 0) return;
  s.due.probe = false;
  if (c.sent.empty() || c.sent.last().fate != Fate::in_flight) return;
  const std::uint32_t unsent = s.fin_sent ? 0 : distance(s.snd_nxt, c.send.end());
  const std::uint32_t bytes = std::min(unsent, p.mss);
  const bool fits = bytes != 0 && s.snd_nxt + bytes <= window_edge(s);
  const bool fresh = fits && send_new_item(p, {.bytes = bytes});
  if (!fresh) {
    const std::uint32_t again = std::min(distance(c.sent.last().begin, c.sent.end()), p.mss);
    emit_range(p, c.sent.end() - again, c.sent.end(), true);
    note_retransmission(p, again);
    c.sent.probed(again, p.now);
  }
  s.recovery.probe_out = true;
  s.recovery.probe_was_retransmission = !fresh;
  s.recovery.probe_end = s.snd_nxt;
  s.timers.retransmit = p.now + s.rtt.timeout();
  c.shared->counters.add(Counter::tcp_tail_probes);
}

// A segment that is old news to the peer, so that it must answer.
// Deviation: RFC 9293 section 3.8.6.1 sends an octet of new data into a closed window; an empty segment one
// below snd_una, as Linux sends it and as keepalives are, draws the same answer and commits nothing.
void send_window_probe(Pass& p) {
  TcpState& s = p.c.state;
  if (!s.due.window_probe || p.room == 0) return;
  s.due.window_probe = false;
  emit(p, s.snd_una - 1, 0);
  p.c.shared->counters.add(Counter::tcp_window_probes);
}

void send_acks(Pass& p) {
  TcpState& s = p.c.state;
  Receiver& r = s.receiver;
  // A peer without SACK counts the acknowledgements themselves (RFC 5681 section 3.2).
  std::uint32_t due = r.dup_acks_due;
  if (due == 0 && !p.acked && (r.ack == AckDue::now || s.due.challenge)) due = 1;
  while (due > 0 && p.room > 0) {
    emit(p, s.snd_nxt, 0);
    --due;
  }
  r.dup_acks_due = static_cast<std::uint8_t>(r.dup_acks_due == 0 ? 0 : due);
  if (p.acked) s.due.challenge = false;
}

// RFC 9293 sections 3.8.6.1 and 3.8.6.2.1: nothing is in flight whose acknowledgement could open the window.
void arm_persist(Pass& p) {
  TcpState& s = p.c.state;
  const bool waiting = p.c.send.end() > s.snd_nxt || (s.fin_queued && !s.fin_sent);
  if (!waiting || !p.c.sent.empty() || s.timers.cork != kForever || p.room == 0) {
    s.timers.persist = kForever;
    return;
  }
  if (s.timers.persist != kForever) return;
  s.timers.persist = p.now + s.rtt.timeout();
  if (s.stalled_since == kForever) s.stalled_since = p.now;
}

bool more_to_send(const Pass& p) {
  const TcpState& s = p.c.state;
  if (p.room > 0) return false;
  const bool lost = p.c.sent.lost() != 0;
  const bool unsent = !s.fin_sent && (p.c.send.end() > s.snd_nxt || s.fin_queued);
  return lost || unsent || s.receiver.ack == AckDue::now || s.receiver.dup_acks_due != 0 || s.due.reset ||
         s.due.syn || s.due.probe || s.due.window_probe;
}

void note_interactive(Pass& p) {
  TcpState& s = p.c.state;
  if (p.now - s.receiver.data_at < s.settings.delayed_ack) s.receiver.interactive = true;
}

}  // namespace

bool poll_tx(Connection& c, TxBatch& out, const TxLimits& limits, Instant now) {
  TcpState& s = c.state;
  Pass p{.c = c, .out = out, .limits = limits, .now = now};
  p.room = std::min<std::size_t>(limits.segments, TxBatch::capacity()) -
           std::min<std::size_t>(out.size(), limits.segments);
  send_reset(p);
  if (s.state == State::closed) return s.due.reset;
  if (s.state == State::syn_sent || s.state == State::syn_received) {
    send_syn(p);
    if (s.state == State::syn_received) {
      p.options = segment_options(c, now);
      send_acks(p);
      if (p.acked) acknowledged(s);
    }
    return s.due.syn || s.due.reset;
  }
  p.options = segment_options(c, now);
  p.mss = segment_limit(s) - static_cast<std::uint32_t>(p.options.size());
  if (sending(s.state)) {
    send_tail_probe(p);
    // RFC 5682 step 2b: new data goes first, to find out whether the timeout was right; without any it was.
    const bool new_data_first = std::exchange(s.recovery.frto_new_data, false);
    if (!new_data_first) retransmit(p);
    send_new_data(p);
    if (new_data_first && !p.sent_data) retransmit(p);
    if (p.sent_data) {
      s.timers.probe = probe_deadline(c, now);
      note_interactive(p);
    }
    arm_persist(p);
    s.recovery.asked_flight = distance(s.snd_una, s.snd_nxt);
  }
  send_window_probe(p);
  send_acks(p);
  if (p.acked) acknowledged(s);
  return more_to_send(p);
}

}  // namespace netchannel::tcp
