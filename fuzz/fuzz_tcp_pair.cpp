// Two connections over a link whose every loss, delay and duplication the input chooses: what is read is what
// was written, and once the link behaves both ends come to an end.
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "fuzz/fuzz_tcp.hpp"

using namespace netchannel;
using namespace netchannel::tcp;

namespace {

constexpr std::uint32_t kFrames = 2048;

std::byte pattern(std::uint64_t at) { return static_cast<std::byte>(at * 167 + (at >> 8)); }

struct Packet {
  SegmentOut segment;
  std::vector<std::byte> payload;
};

struct World {
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kFrames});
  FramePool tx{*region, 0, kFrames, FramePool::Start::all_free};
  FramePool rx{*region, kFrames, kFrames, FramePool::Start::all_free};
  CounterPage counters;
  Shared shared{{.frames = 8192, .records = 4096, .islands = 1024}, counters};
};

World& world() {
  static World instance;
  return instance;
}

struct End {
  explicit End(World& w) : c(w.shared) {}
  Connection c;
  std::uint64_t written = 0, read = 0;
  std::deque<Packet> towards;  // packets on their way to this end

  void receive(Packet packet, Instant now) {
    SegmentIn in;
    in.seq = packet.segment.seq;
    in.ack = packet.segment.ack;
    in.flags = packet.segment.flags;
    in.window = packet.segment.window;
    in.options = packet.segment.options;
    in.ecn = packet.segment.ecn;
    in.length = packet.segment.length;
    if (packet.segment.segment_size != 0) {
      in.segments = static_cast<std::uint16_t>((in.length + packet.segment.segment_size - 1) /
                                               packet.segment.segment_size);
    }
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < packet.payload.size();) {
      auto frame = world().rx.allocate(0);
      if (!frame) return;
      const std::size_t part = std::min<std::size_t>(packet.payload.size() - at, 1700);
      std::copy_n(packet.payload.begin() + static_cast<std::ptrdiff_t>(at), part,
                  frame->append(part).begin());
      frames.push_back(std::move(*frame));
      at += part;
    }
    in.payload = frames;
    on_segment(c, in, now);
    fuzz::check(c);
  }

  void read_some(std::size_t bytes, Instant now) {
    while (bytes > 0 && c.receive.readable() > 0) {
      std::array<Bytes, 1> span;
      c.receive.spans(span);
      const std::size_t part = std::min(bytes, span[0].size());
      for (std::size_t i = 0; i < part; ++i) fuzz::require(span[0][i] == pattern(read + i));
      consume(c, part, now);
      read += part;
      bytes -= part;
    }
  }

  void write_some(std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(written + i);
    written += write(c, data, world().tx, 128);
  }
};

void settle(End& from, End& to, Instant now, const TxLimits& limits) {
  fuzz::settle(from.c, now, limits, [&](const SegmentOut& segment) {
    Packet packet{segment, {}};
    std::array<SendQueue::Slice, 128> slices;
    if (segment.length != 0) {
      for (const auto& slice :
           std::span(slices).first(from.c.send.slices(segment.seq, segment.length, slices))) {
        packet.payload.insert(packet.payload.end(), slice.bytes.begin(), slice.bytes.end());
      }
    }
    fuzz::require(packet.payload.size() == segment.length);
    if (to.towards.size() < 1000) to.towards.push_back(std::move(packet));
  });
}

void act(fuzz::Choices& in, End& a, End& b, Instant& now) {
  End& me = in.flag() ? a : b;
  switch (in.byte() % 9) {
    case 0:
      now = now + std::chrono::microseconds(in.word());
      break;
    case 1:
      now = now + std::chrono::milliseconds(in.word() % 1000);
      break;
    case 2:
      me.write_some(in.word() % 20000);
      break;
    case 3:
      me.read_some(in.word(), now);
      break;
    case 4:  // lost
      if (!me.towards.empty()) me.towards.pop_front();
      break;
    case 5:  // overtaken
      if (me.towards.size() > 1) {
        me.towards.push_back(std::move(me.towards.front()));
        me.towards.pop_front();
      }
      break;
    case 6:  // duplicated
      if (!me.towards.empty() && me.towards.size() < 1000) me.towards.push_back(me.towards.front());
      break;
    default:
      for (unsigned i = in.byte() % 8U; i-- > 0 && !me.towards.empty();) {
        Packet packet = std::move(me.towards.front());
        me.towards.pop_front();
        me.receive(std::move(packet), now);
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World& w = world();
  {
    fuzz::Choices in(data, size);
    Instant now{5'000'000'000};
    Settings of_a = fuzz::settings_from(in), of_b = fuzz::settings_from(in);
    of_a.user_timeout = of_b.user_timeout = Duration{0};
    of_a.retries = of_b.retries = of_a.syn_retries = of_b.syn_retries = 200;
    const TxLimits limits{.super_frame = in.word()};
    End a(w), b(w);
    // Both open: the simultaneous open is a handshake too.
    connect(a.c, {.settings = of_a, .iss = {in.number()}, .ts_offset = in.number()}, now);
    connect(b.c, {.settings = of_b, .iss = {in.number()}, .ts_offset = in.number()}, now);
    while (!in.done()) {
      settle(a, b, now, limits);
      settle(b, a, now, limits);
      act(in, a, b, now);
    }
    // From here on the link is perfect.
    for (int i = 0; i < 100000; ++i) {
      settle(a, b, now, limits);
      settle(b, a, now, limits);
      for (End* end : {&a, &b}) {
        while (!end->towards.empty()) {
          Packet packet = std::move(end->towards.front());
          end->towards.pop_front();
          end->receive(std::move(packet), now);
        }
        end->read_some(1 << 30, now);
        if (end->c.state.state == State::established || end->c.state.state == State::close_wait)
          shutdown_write(end->c);
      }
      settle(a, b, now, limits);
      settle(b, a, now, limits);
      const auto over = [](const End& end) { return end.c.state.state == State::closed; };
      if (over(a) && over(b)) break;
      if (a.towards.empty() && b.towards.empty())
        now = std::max(now, std::min(next_deadline(a.c.state), next_deadline(b.c.state)));
      fuzz::require(now != kForever || (over(a) && over(b)));
    }
    fuzz::require(a.c.state.state == State::closed && b.c.state.state == State::closed);
    fuzz::require(a.read == b.written && b.read == a.written);
  }
  fuzz::require(w.shared.frames.used() == 0 && w.shared.records.used() == 0 && w.shared.islands.used() == 0);
  fuzz::require(w.tx.free_count() == kFrames && w.rx.free_count() == kFrames);
  return 0;
}
