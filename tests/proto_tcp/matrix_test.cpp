// Every state, every combination of flags, every place in sequence space, with and without data, every kind
// of acknowledgement: what we do against what RFC 9293 section 3.10.7 says, as told by a small oracle that
// follows its text step by step in plain integers. Where we differ on purpose the oracle says so and why
// ("Differs:").
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {
namespace {

using wire::TcpFlags;

constexpr int kWindow = 1000;
constexpr int kData = 100;  // in flight from us, where something is

// A segment in numbers relative to both SYNs: the peer's first byte is 1, ours too.
struct Segment {
  std::uint8_t flags = 0;
  int seq = 0, ack = 0, length = 0;
  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  int occupies() const { return length + (has(TcpFlags::kSyn) ? 1 : 0) + (has(TcpFlags::kFin) ? 1 : 0); }
};

enum class Reply : std::uint8_t { none, ack, syn_ack, rst };

struct Outcome {
  State state = State::closed;
  Reply reply = Reply::none;
  int advanced = 0;  // of rcv_nxt
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Where a connection stands when the segment comes.
struct Situation {
  State state = State::closed;
  int rcv_nxt = 1;
  int una = 1, nxt = 1;
  int fin = -1;  // our FIN's number, if sent
};

Situation situation_of(State state) {
  switch (state) {
    case State::syn_sent:
      return {state, 0, 0, 1};
    case State::syn_received:
      return {state, 1, 0, 1};
    case State::established:
      return {state, 1, 1, 1 + kData};
    case State::fin_wait_1:
      return {state, 1, 1, 2 + kData, 1 + kData};
    case State::fin_wait_2:
      return {state, 1, 2, 2, 1};
    case State::close_wait:
      return {state, 2, 1, 1 + kData};
    case State::closing:
      return {state, 2, 1, 2 + kData, 1 + kData};
    case State::last_ack:
      return {state, 2, 1, 2 + kData, 1 + kData};
    default:
      return {state, 2, 2, 2, 1};
  }
}

// Section 3.10.7.3.
Outcome oracle_syn_sent(const Segment& g) {
  const bool ack = g.has(TcpFlags::kAck);
  const bool acceptable = ack && g.ack > 0 && g.ack <= 1;
  if (ack && !acceptable) return {State::syn_sent, g.has(TcpFlags::kRst) ? Reply::none : Reply::rst};
  if (g.has(TcpFlags::kRst)) return {acceptable ? State::closed : State::syn_sent};
  if (!g.has(TcpFlags::kSyn)) return {State::syn_sent};
  // Differs: text and FIN that come with a SYN are not queued (no TCP Fast Open); the peer sends them again.
  return acceptable ? Outcome{State::established, Reply::ack} : Outcome{State::syn_received, Reply::syn_ack};
}

bool acceptable(const Situation& s, const Segment& g) {
  const int left = s.rcv_nxt,
            right = s.rcv_nxt + kWindow - (s.rcv_nxt - 1);  // the edge does not move with a FIN
  const int length = g.occupies();
  if (length == 0)
    return g.seq >= left && g.seq <= right;  // Differs: "<= right", a peer that has filled the window
  const bool begins = g.seq >= left && g.seq < right;
  const bool ends = g.seq + length - 1 >= left && g.seq + length - 1 < right;
  const bool covers = g.seq < left && g.seq + length - 1 >= right;  // Differs: taken and cut
  return begins || ends || covers;
}

// The acknowledgement step for states that have sent a FIN.
State after_ack(const Situation& s, const Segment& g) {
  const bool fin_acked = s.fin >= 0 && g.ack > s.fin;
  if (!fin_acked) return s.state;
  switch (s.state) {
    case State::fin_wait_1:
      return State::fin_wait_2;
    case State::closing:
      return State::time_wait;
    case State::last_ack:
      return State::closed;
    default:
      return s.state;
  }
}

// Seventh and eighth step.
Outcome oracle_text_and_fin(const Situation& s, State state, const Segment& g) {
  Outcome out{state};
  const bool receives =
      state == State::established || state == State::fin_wait_1 || state == State::fin_wait_2;
  if (!receives) {
    // The text should not occur and is ignored. Differs: it is acknowledged, so that the peer learns where we
    // are.
    if (g.length != 0 && state != State::closed && state != State::time_wait) out.reply = Reply::ack;
    if (s.state == State::closing && g.length != 0) out.reply = Reply::ack;
    return out;
  }
  if (g.length == 0 && !g.has(TcpFlags::kFin)) return out;
  out.reply = Reply::ack;  // at once: the first segments of a connection, and everything that is out of order
  const int right = 1 + kWindow;
  const int end = std::min(g.seq + g.length, right);
  if (g.seq <= s.rcv_nxt && end > s.rcv_nxt) out.advanced = end - s.rcv_nxt;
  const bool cut = g.seq + g.length > right;
  const bool fin_in_turn = g.has(TcpFlags::kFin) && !cut && g.seq + g.length == s.rcv_nxt + out.advanced;
  if (!fin_in_turn) return out;
  ++out.advanced;
  out.state = state == State::established  ? State::close_wait
              : state == State::fin_wait_1 ? State::closing
                                           : State::time_wait;
  return out;
}

Outcome oracle_time_wait(const Situation& s, const Segment& g) {
  if (g.has(TcpFlags::kRst)) return {s.state};  // Differs: RFC 1337
  if (g.has(TcpFlags::kSyn) && !g.has(TcpFlags::kAck)) {
    // RFC 6191: a new connection may begin; the listener answers.
    return {s.state, g.seq > s.rcv_nxt ? Reply::none : Reply::ack};
  }
  if (!acceptable(s, g)) return {s.state, Reply::ack};
  if (g.has(TcpFlags::kSyn)) return {s.state, Reply::ack};
  return {s.state};
}

// Section 3.10.7.4.
Outcome oracle(const Situation& s, const Segment& g) {
  if (s.state == State::syn_sent) return oracle_syn_sent(g);
  if (s.state == State::time_wait) return oracle_time_wait(s, g);
  // Differs: the SYN-ACK of a simultaneous open lies before the window and counts all the same (figure 8).
  const bool crossed = s.state == State::syn_received && g.has(TcpFlags::kSyn) && g.has(TcpFlags::kAck) &&
                       !g.has(TcpFlags::kRst) && g.seq == 0 && g.ack == s.nxt;
  Segment h = g;
  if (crossed) {
    h.flags = static_cast<std::uint8_t>(h.flags & ~TcpFlags::kSyn);
    h.seq = 1;
  }
  if (!acceptable(s, h)) return {s.state, h.has(TcpFlags::kRst) ? Reply::none : Reply::ack};
  if (h.has(TcpFlags::kRst)) {
    return h.seq == s.rcv_nxt ? Outcome{State::closed} : Outcome{s.state, Reply::ack};
  }
  if (h.has(TcpFlags::kSyn)) return {s.state, Reply::ack};
  if (!h.has(TcpFlags::kAck)) return {s.state};
  if (s.state == State::syn_received) {
    if (h.ack <= s.una || h.ack > s.nxt) return {s.state, Reply::rst};
    return oracle_text_and_fin(s, State::established, h);
  }
  if (h.ack > s.nxt || h.ack < s.una - 65535) return {s.state, Reply::ack};  // RFC 5961 section 5
  return oracle_text_and_fin(s, after_ack(s, h), h);
}

class Matrix : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kIss = 0xfffffff0, kIrs = 0x7fffff80;

  void inject(Connection& c, const Segment& g, std::uint16_t window = 65535) {
    SegmentIn in;
    in.flags = {g.flags};
    in.seq = Seq{kIrs} + static_cast<std::uint32_t>(g.seq);
    in.ack = Seq{kIss} + static_cast<std::uint32_t>(g.ack);
    in.window = window;
    in.length = static_cast<std::uint32_t>(g.length);
    Frame frame;
    if (g.length != 0) {
      frame = std::move(*pool.allocate(0));
      frame.append(static_cast<std::size_t>(g.length));
      in.payload = std::span(&frame, 1);
    }
    events = on_segment(c, in, now);
  }
  std::vector<SegmentOut> poll(Connection& c) {
    TxBatch batch;
    poll_tx(c, batch, {}, now);
    return {batch.begin(), batch.end()};
  }
  void write_data(Connection& c) {
    const std::array<std::byte, kData> bytes{};
    write(c, bytes, pool, 0);
    poll(c);
  }

  void reach(Connection& c, State state) {
    Settings settings;
    settings.receive_buffer = settings.receive_buffer_max = kWindow;
    settings.timestamps = settings.sack = settings.window_scaling = false;
    connect(c, {.settings = settings, .iss = {kIss}}, now);
    poll(c);
    if (state == State::syn_sent) return;
    if (state == State::syn_received) {
      inject(c, {.flags = TcpFlags::kSyn});
      poll(c);
      return;
    }
    inject(c, {.flags = TcpFlags::kSyn | TcpFlags::kAck, .seq = 0, .ack = 1});
    poll(c);
    const bool peer_closes_first = state == State::close_wait || state == State::last_ack;
    const bool quiet = state == State::fin_wait_2 || state == State::time_wait;
    if (!quiet) write_data(c);
    if (peer_closes_first) inject(c, {.flags = TcpFlags::kFin | TcpFlags::kAck, .seq = 1, .ack = 1});
    if (state != State::established && state != State::close_wait) shutdown_write(c);
    poll(c);
    if (state == State::closing) inject(c, {.flags = TcpFlags::kFin | TcpFlags::kAck, .seq = 1, .ack = 1});
    if (quiet) inject(c, {.flags = TcpFlags::kAck, .seq = 1, .ack = 2});
    if (state == State::time_wait) inject(c, {.flags = TcpFlags::kFin | TcpFlags::kAck, .seq = 1, .ack = 2});
    poll(c);
  }

  Outcome observe(State state, const Segment& g) {
    Connection c(shared);
    reach(c, state);
    EXPECT_EQ(c.state.state, state);
    const Seq before = c.state.rcv_nxt;
    inject(c, g);
    Outcome out;
    for (const SegmentOut& sent : poll(c)) {
      if (sent.flags.rst())
        out.reply = Reply::rst;
      else if (sent.flags.syn())
        out.reply = Reply::syn_ack;
      else if (out.reply == Reply::none)
        out.reply = Reply::ack;
    }
    out.state = c.state.state;
    out.advanced = state == State::syn_sent ? 0 : c.state.rcv_nxt - before;
    return out;
  }

  static std::string describe(State state, const Segment& g) {
    std::string out(to_string(state));
    out += " gets ";
    static constexpr std::string_view kNames = "FSRPAU";
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if ((g.flags >> i & 1) != 0) out += kNames[i];
    }
    return out + " seq " + std::to_string(g.seq) + " length " + std::to_string(g.length) + " ack " +
           std::to_string(g.ack);
  }

  CounterPage counters;
  Shared shared{{.frames = 64, .records = 64, .islands = 64}, counters};
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 64});
  FramePool pool{*region, 0, 64, FramePool::Start::all_free};
  Instant now{1'000'000'000};
  Events events = 0;
};

TEST_F(Matrix, every_state_answers_every_segment_as_the_rfc_says) {
  const std::array states{State::syn_sent,   State::syn_received, State::established,
                          State::fin_wait_1, State::fin_wait_2,   State::close_wait,
                          State::closing,    State::last_ack,     State::time_wait};
  int cases = 0, wrong = 0;
  for (const State state : states) {
    const Situation s = situation_of(state);
    const int right = 1 + kWindow;
    for (const int length : {0, 10, 1100}) {
      // Wholly left, touching, straddling the left edge, exact, inside, straddling the right edge, at it,
      // wholly right.
      for (const int seq : {-2000, s.rcv_nxt - length - 1, s.rcv_nxt - 5, s.rcv_nxt - 1, s.rcv_nxt,
                            s.rcv_nxt + 1, 500, right - 5, right - 1, right, right + 1, right + 100000}) {
        for (const int ack :
             {s.una - 70000, s.una - 1, s.una, s.una + 1, s.nxt - 1, s.nxt, s.nxt + 1, s.nxt + 100000}) {
          for (int flags = 0; flags < 64; ++flags) {
            const Segment g{static_cast<std::uint8_t>(flags), seq, ack, length};
            const Outcome expected = oracle(s, g);
            const Outcome actual = observe(state, g);
            ++cases;
            if (actual == expected) continue;
            if (++wrong <= 20) {
              ADD_FAILURE() << describe(state, g) << ": expected " << to_string(expected.state) << " reply "
                            << static_cast<int>(expected.reply) << " advanced " << expected.advanced
                            << ", got " << to_string(actual.state) << " reply "
                            << static_cast<int>(actual.reply) << " advanced " << actual.advanced;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 9 * 3 * 12 * 8 * 64);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace netchannel::tcp
