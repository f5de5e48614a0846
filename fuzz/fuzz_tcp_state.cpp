// One connection against a peer that says anything at any time: sequences of segments, time steps, calls of
// the application and ICMP errors, from each state a connection begins in. After all of it a peer that
// behaves must be able to bring the connection to an end.
#include <array>
#include <memory>
#include <vector>

#include "fuzz/fuzz_tcp.hpp"
#include "proto/tcp/time_wait.hpp"

using namespace netchannel;
using namespace netchannel::tcp;

namespace {

constexpr std::uint32_t kFrames = 512;
constexpr Seq kIss{0xfffffe00}, kIrs{0x7ffffe00};

struct World {
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kFrames});
  FramePool tx{*region, 0, kFrames, FramePool::Start::all_free};
  FramePool rx{*region, kFrames, kFrames, FramePool::Start::all_free};
  CounterPage counters;
  Shared shared{{.frames = 2048, .records = 1024, .islands = 1024}, counters};
};

World& world() {
  static World instance;
  return instance;
}

// A sequence number near something that matters.
Seq near(fuzz::Choices& in, std::array<Seq, 4> places) {
  const std::uint8_t choice = in.byte();
  const Seq base = places[choice % 4];
  switch (choice >> 2 & 7) {
    case 0:
      return base;
    case 1:
      return base + 1;
    case 2:
      return base - 1;
    case 3:
      return base + in.byte();
    case 4:
      return base - in.byte();
    case 5:
      return base + in.word();
    case 6:
      return base - in.word();
    default:
      return base + in.number();
  }
}

void add_options(fuzz::Choices& in, const TcpState& s, Instant now, SegmentIn& segment) {
  const std::uint8_t bits = in.byte();
  if ((bits & 1) != 0 || s.timestamps) {
    wire::TcpTimestamps stamps{s.ts_recent + in.byte() % 4, timestamp_ms(now) + s.ts_offset - in.byte()};
    if ((bits & 2) != 0) stamps.value -= in.word();
    if ((bits & 4) != 0) stamps.echo += in.word();
    if ((bits & 8) == 0) segment.options.timestamps = stamps;
  }
  if (segment.flags.syn()) {
    if ((bits & 16) != 0) segment.options.mss = in.word();
    if ((bits & 32) != 0) segment.options.window_scale = static_cast<std::uint8_t>(in.byte() % 15);
    segment.options.sack_permitted = (bits & 64) != 0;
    return;
  }
  for (unsigned i = 0; i < (bits >> 4 & 7) && i < wire::kMaxSackBlocks; ++i) {
    const Seq left = near(in, {s.snd_una, s.snd_nxt, s.snd_una + 1448, s.snd_una + 2896});
    segment.options.sack.push_back({left.value, (left + in.word() % 4000).value});
  }
}

void give_segment(fuzz::Choices& in, Connection& c, Instant now) {
  const TcpState& s = c.state;
  SegmentIn segment;
  const std::uint8_t flags = in.byte();
  segment.flags = {(flags & 0x80) != 0
                       ? in.byte()
                       : static_cast<std::uint8_t>(wire::TcpFlags::kAck | (flags & wire::TcpFlags::kFin))};
  segment.seq = near(in, {s.rcv_nxt, s.rcv_adv, s.rcv_nxt, s.irs});
  segment.ack = near(in, {s.snd_nxt, s.snd_una, s.snd_nxt, s.iss});
  segment.window = (flags & 0x40) != 0 ? in.word() : std::uint16_t{0xffff};
  segment.ecn = static_cast<Ecn>(in.byte() % 4);
  add_options(in, s, now, segment);
  std::array<Frame, 4> frames;
  std::size_t used = 0;
  for (unsigned i = 0; i < (flags >> 4 & 3U); ++i) {
    auto frame = world().rx.allocate(in.byte() % 64);
    if (!frame) break;
    const std::size_t size = in.word() % 1900;
    frame->append(size);
    segment.length += static_cast<std::uint32_t>(size);
    frames[used++] = std::move(*frame);
  }
  segment.segments = static_cast<std::uint16_t>(1 + in.byte() % 64);
  segment.payload = std::span(frames).first(used);
  on_segment(c, segment, now);
}

void do_something(fuzz::Choices& in, Connection& c, Instant& now) {
  static const std::array<std::byte, 70000> kData{};
  switch (in.byte() % 14) {
    case 0:
      now = now + Duration(in.word());
      break;
    case 1:
      now = now + std::chrono::milliseconds(in.word() % 2000);
      break;
    case 2:
      now = std::max(now, next_deadline(c.state) == kForever ? now : next_deadline(c.state));
      break;
    case 3:
      write(c, Bytes(kData).first(in.number() % kData.size()), world().tx, 128);
      break;
    case 4:
      consume(c, std::min<std::size_t>(c.receive.readable(), in.word()), now);
      break;
    case 5:
      take(c, now);
      break;
    case 6:
      set_cork(c, in.flag());
      break;
    case 7:
      on_icmp(c, {.error = static_cast<IcmpError>(in.byte() % 3),
                  .quoted = near(in, {c.state.snd_una, c.state.snd_nxt, c.state.iss, c.state.snd_una}),
                  .mss = in.word()});
      break;
    case 8:
      if (in.byte() == 0x55) shutdown_write(c);
      if (in.byte() == 0x55) close(c, now);
      if (in.byte() == 0x55) abort(c);
      break;
    case 9:
      set_keepalive(c, in.flag(), now);
      break;
    case 10:
      if (in.byte() == 0x55) end_if_stalled(c, now - std::chrono::seconds(in.byte()));
      break;
    default:
      give_segment(in, c, now);
  }
  fuzz::require(useful_to_hold(c) <= c.state.snd_wnd);
}

void begin(fuzz::Choices& in, Connection& c, Instant now) {
  const Settings settings = fuzz::settings_from(in);
  const std::uint8_t choice = in.byte();
  if ((choice & 1) != 0) {
    Handshake h;
    h.iss = kIss;
    h.irs = kIrs;
    h.window = static_cast<std::uint16_t>(std::min<std::uint32_t>(settings.receive_buffer, 0xffff));
    h.peer_mss = static_cast<std::uint16_t>(wire::kMinMss + in.word() % 9000);
    h.timestamps = settings.timestamps;
    h.sack = settings.sack;
    h.window_scaling = settings.window_scaling;
    h.our_wscale = window_scale_for(settings);
    h.peer_wscale = settings.window_scaling ? static_cast<std::uint8_t>(in.byte() % 15) : std::uint8_t{0};
    accept(c, h, settings, now);
  } else {
    connect(c, {.settings = settings, .iss = kIss, .ts_offset = in.number()}, now);
  }
  TxBatch batch;
  poll_tx(c, batch, {}, now);
  if ((choice & 2) == 0) return;
  // Half of the inputs begin established.
  SegmentIn segment;
  segment.flags = {
      static_cast<std::uint8_t>(wire::TcpFlags::kAck | ((choice & 1) != 0 ? 0 : wire::TcpFlags::kSyn))};
  segment.seq = (choice & 1) != 0 ? kIrs + 1 : kIrs;
  segment.ack = kIss + 1;
  segment.window = 0xffff;
  if (settings.timestamps) segment.options.timestamps = {1000, 0};
  if (segment.flags.syn()) {
    segment.options.mss = 1460;
    segment.options.sack_permitted = settings.sack;
    segment.options.window_scale = 7;
  }
  on_segment(c, segment, now);
}

// A peer that acknowledges what it has been sent and sends nothing but its own FIN.
void finish_nicely(Connection& c, Instant now) {
  const auto drop = [](const SegmentOut&) {};
  shutdown_write(c);
  while (c.receive.readable() > 0) consume(c, c.receive.readable(), now);
  for (int i = 0; i < 20000 && c.state.state != State::closed; ++i) {
    fuzz::settle(c, now, {}, drop);
    const TcpState& s = c.state;
    SegmentIn segment;
    segment.flags = {wire::TcpFlags::kAck};
    // What it has sent before may have been ahead of its turn; a window in an older segment does not count.
    segment.seq = later(s.rcv_nxt, s.snd_wl1);
    segment.ack = s.snd_nxt;
    segment.window = 0xffff;
    if (s.timestamps) segment.options.timestamps = {s.ts_recent, timestamp_ms(now) + s.ts_offset};
    if (s.state == State::syn_sent) {
      segment.flags = {wire::TcpFlags::kAck | wire::TcpFlags::kSyn};
      segment.seq = kIrs;
    }
    if (s.state == State::fin_wait_2) {
      segment.flags = {wire::TcpFlags::kAck | wire::TcpFlags::kFin};
      segment.seq = s.rcv_nxt;
    }
    on_segment(c, segment, now);
    fuzz::check(c);
    now = now + std::chrono::seconds(1);
  }
  fuzz::require(c.state.state == State::closed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World& w = world();
  {
    fuzz::Choices in(data, size);
    Instant now{5'000'000'000};
    Connection c(w.shared);
    begin(in, c, now);
    const TxLimits limits{.segments = 1U + in.byte() % 32U, .super_frame = in.word()};
    while (!in.done()) {
      do_something(in, c, now);
      fuzz::check(c);
      fuzz::settle(c, now, limits, [&](const SegmentOut& segment) {
        // What is sent lies in what may be sent, and its bytes are there.
        if (segment.length == 0) return;
        fuzz::require(segment.seq >= c.send.begin() && segment.seq + segment.length <= c.send.end());
        std::array<SendQueue::Slice, 128> slices;
        std::size_t bytes = 0;
        for (const auto& slice : std::span(slices).first(c.send.slices(segment.seq, segment.length, slices)))
          bytes += slice.bytes.size();
        fuzz::require(bytes == segment.length);
      });
    }
    finish_nicely(c, now);
  }
  fuzz::require(w.shared.frames.used() == 0 && w.shared.records.used() == 0 && w.shared.islands.used() == 0);
  fuzz::require(w.tx.free_count() == kFrames && w.rx.free_count() == kFrames);
  return 0;
}
