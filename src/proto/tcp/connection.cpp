#include "proto/tcp/connection.hpp"

#include <algorithm>

#include "proto/tcp/receiver.hpp"
#include "proto/tcp/sender.hpp"

namespace netchannel::tcp {
namespace {

// A frame of the receive buffer holds at least this much on average before the queue stops taking more.
constexpr std::uint32_t kBytesPerFrame = 512;
constexpr std::uint32_t kFewFrames = 64;

void begin(Connection& c, const Settings& settings, Seq iss) {
  TcpState& s = c.state;
  s = TcpState{};
  s.settings = settings;
  s.iss = s.snd_una = iss;
  s.snd_nxt = iss + 1;
  s.send_buffer = settings.send_buffer;
  s.receiver.buffer = settings.receive_buffer;
  s.receiver.last_ack_sent = Seq{};
  c.send.start(iss + 1);
  c.sent.start(iss + 1);
  c.receive.set_frame_limit(kFewFrames + settings.receive_buffer_max / kBytesPerFrame);
}

std::uint16_t offered(const Settings& settings, std::uint16_t path_mss) {
  return settings.mss_limit == 0 ? path_mss : std::min(settings.mss_limit, path_mss);
}

void reset_peer(TcpState& s) {
  s.due.reset = s.due.reset_acks = true;
  s.due.reset_seq = s.snd_nxt;
  s.due.reset_ack = s.rcv_nxt;
}

// The states in which the peer has a connection that it would keep for ever (RFC 9293 section 3.10.5).
bool reset_is_owed(State state) {
  switch (state) {
    case State::syn_received:
    case State::established:
    case State::fin_wait_1:
    case State::fin_wait_2:
    case State::close_wait:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint8_t window_scale_for(const Settings& settings) {
  if (!settings.window_scaling) return 0;
  std::uint8_t shift = 0;
  while (shift < wire::kMaxWindowScale && (settings.receive_buffer_max >> shift) > 0xffff) ++shift;
  return shift;
}

void connect(Connection& c, const OpenOptions& options, Instant now) {
  begin(c, options.settings, options.iss);
  TcpState& s = c.state;
  s.state = State::syn_sent;
  s.ts_offset = options.ts_offset;
  s.path_mss = options.path_mss;
  s.default_mss = options.default_mss;
  s.offered_mss = offered(options.settings, options.path_mss);
  s.rcv_wscale = window_scale_for(options.settings);
  s.due.syn = true;
  s.sent_at = s.received_at = now;
}

void accept(Connection& c, const Handshake& h, const Settings& settings, Instant now) {
  begin(c, settings, h.iss);
  TcpState& s = c.state;
  s.state = State::syn_received;
  s.passive = true;
  s.irs = h.irs;
  s.rcv_nxt = h.irs + 1;
  s.rcv_adv = s.rcv_nxt + h.window;
  s.receiver.last_ack_sent = s.rcv_nxt;
  c.receive.start(s.rcv_nxt);
  s.peer_mss = h.peer_mss;
  s.offered_mss = h.offered_mss;
  s.path_mss = h.path_mss;
  s.default_mss = h.default_mss;
  s.snd_wscale = h.peer_wscale;
  s.rcv_wscale = h.our_wscale;
  s.window_scaling = h.window_scaling;
  s.timestamps = h.timestamps;
  s.sack = h.sack;
  s.ecn = h.ecn;
  s.ts_offset = h.ts_offset;
  s.ts_recent = h.ts_recent;
  s.ts_recent_at = s.received_at = now;
  s.attempts = h.retransmissions;
  s.sent_at = h.syn_ack_at;
  s.challenges_at = now;
}

std::uint32_t writable(const Connection& c) {
  const TcpState& s = c.state;
  const bool open = s.state == State::established || s.state == State::close_wait ||
                    s.state == State::syn_sent || s.state == State::syn_received;
  if (!open || s.fin_queued) return 0;
  // Twice the congestion window, so that a window can be written while one is in flight.
  const std::uint32_t wanted =
      std::min(2 * std::min(s.congestion.cwnd, 1U << 29), s.settings.send_buffer_max);
  const std::uint32_t buffer = std::max(s.send_buffer, wanted);
  return buffer > c.send.size() ? buffer - c.send.size() : 0;
}

std::uint32_t useful_to_hold(const Connection& c) {
  return std::min(c.state.congestion.cwnd, c.state.snd_wnd);
}

std::size_t write(Connection& c, Bytes data, FramePool& pool, const WriteFrames& frames) {
  const TcpState& s = c.state;
  const std::uint32_t room = writable(c);
  const Bytes part = data.first(std::min<std::size_t>(data.size(), room));
  // Segments begin anywhere in a frame.
  const std::uint32_t slot = std::min(pool.region().slot_size(), kFrameReach) - frames.headroom;
  const std::uint32_t mss = effective_mss(s);
  const bool all_sent = s.snd_nxt == c.send.end();
  // Small writes would each take a frame of their own: up to a point that is worth it, for the frame can then
  // be sent as it stands.
  const bool few = c.send.frames() < kFewFrames;
  const bool whole_segments = mss < slot && !frames.fill_slots;
  return c.send.write(part, pool,
                      {.headroom = frames.headroom,
                       .fill = whole_segments ? slot / mss * mss : slot,
                       .most_frames = frames.most_frames,
                       .new_frame = all_sent && few && !frames.sparing});
}

void set_cork(Connection& c, bool on) {
  c.state.settings.cork = on;
  if (on) return;
  c.state.timers.cork = kForever;
  c.state.due.push_small = true;
}

void set_no_delay(Connection& c, bool on) {
  c.state.settings.no_delay = on;
  if (on) c.state.due.push_small = true;
}

void set_keepalive(Connection& c, bool on, Instant now) {
  TcpState& s = c.state;
  s.settings.keepalive = on;
  s.keepalives = 0;
  const bool runs = on && synchronized(s.state) && s.state != State::time_wait;
  s.timers.keepalive = runs ? now + s.settings.keepalive_idle : kForever;
}

void consume(Connection& c, std::size_t bytes, Instant now) {
  c.receive.consume(bytes);
  tune_receive_buffer(c, static_cast<std::uint32_t>(bytes), now);
  if (window_update_due(c)) acknowledge_now(c.state);
}

Frame take(Connection& c, Instant now) {
  Frame out = c.receive.take();
  tune_receive_buffer(c, static_cast<std::uint32_t>(out ? out.size() : 0), now);
  if (window_update_due(c)) acknowledge_now(c.state);
  return out;
}

void shutdown_write(Connection& c) {
  TcpState& s = c.state;
  if (s.fin_queued) return;
  switch (s.state) {
    case State::syn_sent:
      finish(c, Failure::none);
      return;
    case State::syn_received:
      break;
    case State::established:
      s.state = State::fin_wait_1;
      break;
    case State::close_wait:
      s.state = State::last_ack;
      break;
    default:
      return;
  }
  s.fin_queued = true;
  s.fin_seq = c.send.end();
}

Events close(Connection& c, Instant now) {
  TcpState& s = c.state;
  if (s.state == State::closed || s.orphaned) return 0;
  const bool unread = c.receive.readable() != 0 || c.receive.has_islands();
  if (unread && s.state != State::time_wait) return abort(c);
  if (s.state == State::syn_sent) return finish(c, Failure::none);
  s.orphaned = true;
  shutdown_write(c);
  if (s.state == State::fin_wait_2) s.timers.lifetime = now + s.settings.fin_wait_2;
  return s.state == State::time_wait ? Events{kTimeWait} : Events{0};
}

Events on_peer_gone(Connection& c) {
  const TcpState& s = c.state;
  switch (s.state) {
    case State::syn_sent:
      return finish(c, Failure::refused);
    case State::close_wait:
    case State::closing:
    case State::last_ack:
    case State::time_wait:
      return finish(c, Failure::none);
    default:
      return finish(c, s.orphaned ? Failure::none : Failure::reset);
  }
}

Events abort(Connection& c) {
  TcpState& s = c.state;
  if (reset_is_owed(s.state)) reset_peer(s);
  return finish(c, Failure::aborted);
}

}  // namespace netchannel::tcp
