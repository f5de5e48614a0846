// What TCP costs by itself, without headers, checksums or a device: segments between two connections in
// memory, among many idle ones, and under the attacks whose work must be bounded.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "proto/tcp/connection.hpp"
#include "proto/tcp/listen.hpp"

namespace netchannel::tcp {
namespace {

constexpr std::uint32_t kFrames = 8192;

struct Memory {
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kFrames});
  FramePool tx{*region, 0, kFrames, FramePool::Start::all_free};
  FramePool rx{*region, kFrames, kFrames, FramePool::Start::all_free};
  CounterPage counters;
  Shared shared{{}, counters};
};

Memory& memory() {
  static Memory instance;
  return instance;
}

SegmentIn arriving(const SegmentOut& out) {
  SegmentIn in;
  in.seq = out.seq;
  in.ack = out.ack;
  in.flags = out.flags;
  in.window = out.window;
  in.options = out.options;
  in.length = out.length;
  return in;
}

// Hands everything that `from` has to send to `to`; the payload's bytes are not looked at. Returns how many
// segments.
std::size_t pass(Connection& from, Connection& to, Instant now) {
  TxBatch batch;
  poll_tx(from, batch, {}, now);
  for (const SegmentOut& out : batch) {
    SegmentIn in = arriving(out);
    Frame frame;
    if (out.length != 0) {
      frame = std::move(*memory().rx.allocate(64));
      frame.append(out.length);
      in.payload = std::span(&frame, 1);
    }
    on_segment(to, in, now);
  }
  return batch.size();
}

void establish(Connection& a, Connection& b, Instant now, std::uint32_t number = 1) {
  Settings settings;
  settings.no_delay = true;
  connect(a, {.settings = settings, .iss = {number * 7919}, .ts_offset = number}, now);
  connect(b, {.settings = settings, .iss = {number * 104729}, .ts_offset = number + 1}, now);
  for (int i = 0; i < 4; ++i) {
    pass(a, b, now);
    pass(b, a, now);
  }
  if (a.state.state != State::established || b.state.state != State::established) std::abort();
}

void drain(Connection& c, Instant now) {
  while (c.receive.readable() > 0) consume(c, c.receive.readable(), now);
}

// Both ends' work for a full segment of bulk data, acknowledgements included.
void bulk(benchmark::State& state) {
  Instant now{1'000'000'000};
  Connection a(memory().shared), b(memory().shared);
  establish(a, b, now);
  const std::vector<std::byte> data(1448 * 8);
  std::size_t segments = 0;
  for (auto _ : state) {
    write(a, data, memory().tx, 128);
    segments += pass(a, b, now);
    drain(b, now);
    now = now + Duration(20'000);
    pass(b, a, now);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(segments));
}
BENCHMARK(bulk);

// One byte there and one back.
void ping_pong(benchmark::State& state) {
  Instant now{1'000'000'000};
  Connection a(memory().shared), b(memory().shared);
  establish(a, b, now);
  const std::array<std::byte, 1> byte{};
  for (auto _ : state) {
    write(a, byte, memory().tx, 128);
    pass(a, b, now);
    drain(b, now);
    write(b, byte, memory().tx, 128);
    now = now + Duration(10'000);
    pass(b, a, now);
    drain(a, now);
    now = now + Duration(10'000);
  }
}
BENCHMARK(ping_pong);

// Bytes of this process that are in memory.
std::size_t resident() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0, pages = 0;
  in >> total >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A one-byte exchange on one of a hundred busy connections among many idle ones; two connections of the core
// for each, since both ends are here. An item is a segment: made by one end and taken by the other.
void among_many(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  Instant now{1'000'000'000};
  const std::size_t before = resident();
  std::deque<Connection> all;
  for (std::size_t i = 0; i + 1 < std::max<std::size_t>(count, 2); i += 2) {
    all.emplace_back(memory().shared);
    all.emplace_back(memory().shared);
    establish(all[i], all[i + 1], now, static_cast<std::uint32_t>(i));
  }
  const std::size_t pairs = all.size() / 2;
  // The first run of several: later ones get memory back that is resident already.
  static std::map<std::size_t, double> bytes;
  bytes.try_emplace(count, static_cast<double>(resident() - before) / static_cast<double>(all.size()));
  if (count >= 10'000) state.counters["bytes_a_connection"] = bytes[count];
  std::mt19937 random(1);
  std::vector<std::size_t> busy;
  for (std::size_t i = 0; i < std::min<std::size_t>(pairs, 50); ++i) busy.push_back(random() % pairs);
  const std::array<std::byte, 1> byte{};
  std::size_t turn = 0, segments = 0;
  for (auto _ : state) {
    const std::size_t at = busy[turn++ % busy.size()];
    Connection &a = all[2 * at], &b = all[2 * at + 1];
    write(a, byte, memory().tx, 128);
    segments += pass(a, b, now);
    drain(b, now);
    write(b, byte, memory().tx, 128);
    now = now + Duration(10'000);
    segments += pass(b, a, now);
    drain(a, now);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(segments));
  state.counters["ns_a_segment"] = benchmark::Counter(
      static_cast<double>(segments), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(among_many)->Arg(1)->Arg(100)->Arg(10'000)->Arg(1'000'000);

// A third of the segments of a flight of 1000 is lost; every acknowledgement carries SACK blocks.
void heavy_loss(benchmark::State& state) {
  Instant now{1'000'000'000};
  Connection a(memory().shared), b(memory().shared);
  establish(a, b, now);
  a.state.congestion.cwnd = 1448 * 1000;
  a.state.snd_wnd = 1 << 30;
  b.state.receiver.buffer = 1 << 24;
  b.state.rcv_adv = b.state.rcv_nxt + (1U << 24);
  const std::vector<std::byte> data(1448 * 64);
  std::uint32_t count = 0;
  std::size_t segments = 0;
  for (auto _ : state) {
    a.state.congestion.cwnd = 1448 * 1000;
    a.state.send_buffer = 1448 * 1500;
    write(a, data, memory().tx, 128);
    TxBatch batch;
    poll_tx(a, batch, {}, now);
    for (const SegmentOut& out : batch) {
      if (!out.retransmission && ++count % 3 == 0) continue;
      SegmentIn in = arriving(out);
      Frame frame = std::move(*memory().rx.allocate(64));
      frame.append(out.length);
      in.payload = std::span(&frame, 1);
      on_segment(b, in, now);
      ++segments;
      pass(b, a, now);
    }
    drain(b, now);
    now = now + Duration(100'000);
    if (next_deadline(a.state) <= now) on_timer(a, now);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(segments));
}
BENCHMARK(heavy_loss);

// CVE-2019-11478: acknowledgements that sack every other byte, in no order.
void sack_attack(benchmark::State& state) {
  Instant now{1'000'000'000};
  Connection a(memory().shared), b(memory().shared);
  establish(a, b, now);
  a.state.congestion.cwnd = 1 << 20;
  const std::vector<std::byte> data(14'000);
  write(a, data, memory().tx, 128);
  TxBatch batch;
  while (poll_tx(a, batch, {}, now)) batch.clear();
  SegmentIn in;
  in.seq = a.state.rcv_nxt;
  in.ack = a.state.snd_una;
  in.flags = {wire::TcpFlags::kAck};
  in.window = 0xffff;
  in.options.timestamps = {a.state.ts_recent, 0};
  std::mt19937 random(3);
  for (auto _ : state) {
    in.options.sack.clear();
    for (int i = 0; i < 3; ++i) {
      const Seq at = a.state.snd_una + 2 * (static_cast<std::uint32_t>(random()) % 7000);
      in.options.sack.push_back({at.value, (at + 1).value});
    }
    on_segment(a, in, now);
  }
}
BENCHMARK(sack_attack);

// SegmentSmack: one byte at a time ahead of a hole, every other byte, in no order.
void out_of_order_attack(benchmark::State& state) {
  Instant now{1'000'000'000};
  Connection a(memory().shared), b(memory().shared);
  establish(a, b, now);
  std::mt19937 random(2);
  SegmentIn in;
  in.ack = b.state.snd_una;
  in.flags = {wire::TcpFlags::kAck};
  in.window = 0xffff;
  in.options.timestamps = {b.state.ts_recent, 0};
  in.length = 1;
  for (auto _ : state) {
    in.seq = b.state.rcv_nxt + 2 + 2 * (static_cast<std::uint32_t>(random()) % 30'000);
    Frame frame = std::move(*memory().rx.allocate(64));
    frame.append(1);
    in.payload = std::span(&frame, 1);
    on_segment(b, in, now);
    TxBatch batch;
    poll_tx(b, batch, {}, now);
  }
}
BENCHMARK(out_of_order_attack);

// A SYN with the queue full: a cookie.
void syn_flood(benchmark::State& state) {
  static CounterPage counters;
  ListenOptions options;
  options.syn_queue = 16;
  Listener listener(options, counters);
  SegmentIn syn;
  syn.flags = {wire::TcpFlags::kSyn};
  syn.options.mss = 1460;
  std::uint32_t peer = 0;
  for (auto _ : state) {
    const FlowKey flow{Protocol::tcp, {IpAddress::v4(1), 80}, {IpAddress::v4(++peer), 1000}};
    benchmark::DoNotOptimize(listener.on_segment({.flow = flow, .after = {}}, syn, Instant{1'000'000'000}));
  }
}
BENCHMARK(syn_flood);

}  // namespace
}  // namespace netchannel::tcp
