// What floods take from a connection that exists: its goodput with and without an attacker at the same
// host, and the memory that the attacker gets. The link is the attackers' too where they send over it; the
// cost of each of their packets in time is measured in benchmarks/bench_tcp.cpp (syn_flood, sack_attack,
// out_of_order_attack).
#include <gtest/gtest.h>

#include <cstdio>

#include "sim.hpp"

namespace netchannel::tcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr LinkOptions kLink{.delay = 5ms, .bits_per_second = 100'000'000, .queue = 250'000};

// Mbit/s of the first flow, in whichever direction it sends.
double goodput(const Simulation& s) {
  const double bytes = static_cast<double>(s.a.read + s.b.read);
  return bytes * 8e-6 / (static_cast<double>((s.flows[0].end - kBegin).count()) * 1e-9);
}

void report(const char* attack, double without, double with, const std::string& memory) {
  std::printf("[ figures  ] %s: %.1f Mbit/s instead of %.1f; %s\n", attack, with, without, memory.c_str());
}

TEST(Flood, of_syns_leaves_more_than_half_and_new_connections_are_made) {  // row 93
  const FlowOptions flow{.a = {.settings = {}, .to_send = 16 << 20}, .b = {.settings = {}}};
  Simulation calm({flow}, kLink, 3);
  ASSERT_TRUE(calm.run(60s).finished);

  FlowOptions late = flow;
  late.a.to_send = 100'000;
  late.start = 1s;
  Simulation flooded({flow, late}, kLink, 3);
  std::uint32_t peer = 0;
  std::size_t most = 0;
  flooded.hook_every = 1ms;
  flooded.hook = [&](Instant now) {
    for (int i = 0; i < 50; ++i) {
      ++peer;
      SegmentIn syn;
      syn.flags = {wire::TcpFlags::kSyn};
      syn.seq = {peer * 2654435761U};
      syn.options.mss = 1460;
      flooded.send_to_listener({Protocol::tcp, flooded.flows[0].key.local, {IpAddress::v4(peer), 99}}, syn,
                               now);
    }
    most = std::max(most, flooded.listener.size());
  };
  const Result result = flooded.run(60s);
  EXPECT_TRUE(result.finished) << result.why;
  EXPECT_GT(goodput(flooded), goodput(calm) / 2);
  EXPECT_EQ(most, 64U) << "the queue's own length";
  EXPECT_EQ(flooded.counters_b.read(Counter::tcp_cookies_accepted), 2U) << "both flows begin under it";
  report("50000 SYNs a second", goodput(calm), goodput(flooded),
         std::to_string(most) + " handshakes kept of " + std::to_string(peer));
}

// Connections of b's host whose peers are attackers, without a link in between.
struct Victims {
  explicit Victims(Simulation& s) : simulation(s) {}

  Connection& add(std::uint16_t window, Instant now) {
    Connection& c = all.emplace_back(simulation.memory_b.shared);
    Handshake h;
    h.iss = {static_cast<std::uint32_t>(all.size()) * 104729};
    h.irs = {static_cast<std::uint32_t>(all.size()) * 7919};
    h.peer_mss = h.offered_mss = h.path_mss = 1460;
    h.window = 65535;
    h.sack = true;
    accept(c, h, {}, now);
    answer(c, window, now);
    return c;
  }
  static void answer(Connection& c, std::uint16_t window, Instant now) {
    SegmentIn in;
    in.flags = {wire::TcpFlags::kAck};
    in.seq = c.state.rcv_nxt;
    in.ack = c.state.snd_nxt;
    in.window = window;
    on_segment(c, in, now);
  }
  // Sends what is due to nobody; true if there was anything.
  static bool settle(Connection& c, Instant now) {
    bool sent = false;
    for (bool more = true; more;) {
      TxBatch batch;
      more = poll_tx(c, batch, {}, now);
      sent |= !batch.empty();
    }
    return sent;
  }

  Simulation& simulation;
  std::deque<Connection> all;
};

TEST(Flood, of_closed_windows_leaves_more_than_half) {  // row 95, sockstress
  const FlowOptions flow{.a = {.settings = {}}, .b = {.settings = {}, .to_send = 16 << 20}};
  Simulation calm({flow}, kLink, 3);
  ASSERT_TRUE(calm.run(60s).finished);

  Simulation crowded({flow}, kLink, 3);
  Victims victims(crowded);
  std::size_t most_frames = 0;
  crowded.hook_every = 10ms;
  const std::vector<std::byte> page(200'000);
  crowded.hook = [&](Instant now) {
    for (int i = 0; i < 50 && victims.all.size() < 5000; ++i) {
      Connection& c = victims.add(0, now);
      const std::size_t room = std::min<std::size_t>(page.size(), room_to_write(crowded.memory_b, c));
      write(c, Bytes(page).first(room), crowded.memory_b.tx, 128);
    }
    for (Connection& c : victims.all) {
      if (next_deadline(c.state) <= now) on_timer(c, now);
      if (Victims::settle(c, now)) Victims::answer(c, 0, now);
    }
    most_frames = std::max(most_frames, crowded.memory_b.shared.frames.used());
  };
  const Result result = crowded.run(60s);
  EXPECT_TRUE(result.finished) << result.why;
  EXPECT_GE(victims.all.size(), 5000U);
  EXPECT_GT(goodput(crowded), goodput(calm) / 2);
  EXPECT_LT(most_frames, crowded.memory_b.shared.frames.capacity() * 7 / 8);
  for (const Connection& c : victims.all)
    EXPECT_EQ(c.state.state, State::established) << "MUST-37: the application decides";
  report("5000 closed windows", goodput(calm), goodput(crowded),
         std::to_string(most_frames) + " frames of " +
             std::to_string(crowded.memory_b.shared.frames.capacity()) + " in use at most");
}

TEST(Flood, of_single_bytes_out_of_order_leaves_more_than_half) {  // row 96, SegmentSmack
  LinkOptions link = kLink;
  link.loss = 0.002;  // so that the flow needs room out of order too
  const FlowOptions flow{.a = {.settings = {}, .to_send = 16 << 20}, .b = {.settings = {}}};
  Simulation calm({flow}, link, 3);
  ASSERT_TRUE(calm.run(60s).finished);

  Simulation flooded({flow}, link, 3);
  Victims victims(flooded);
  std::size_t most_frames = 0, most_islands = 0, sent = 0;
  flooded.hook_every = 1ms;
  flooded.hook = [&](Instant now) {
    while (victims.all.size() < 200) Victims::settle(victims.add(65535, now), now);
    for (int i = 0; i < 200; ++i, ++sent) {
      Connection& c = victims.all[sent % 200];
      auto frame = flooded.memory_b.rx.allocate(0);
      if (!frame) break;
      frame->append(1);
      SegmentIn in;
      in.flags = {wire::TcpFlags::kAck};
      in.seq = c.state.rcv_nxt + 2 + 2 * static_cast<std::uint32_t>(sent / 200 % 30000);
      in.ack = c.state.snd_nxt;
      in.window = 65535;
      in.length = 1;
      in.payload = std::span(&*frame, 1);
      on_segment(c, in, now);
      Victims::settle(c, now);
    }
    most_frames = std::max(most_frames, flooded.memory_b.shared.frames.used());
    most_islands = std::max(most_islands, flooded.memory_b.shared.islands.used());
  };
  const Result result = flooded.run(60s);
  EXPECT_TRUE(result.finished) << result.why;
  EXPECT_GT(goodput(flooded), goodput(calm) / 2);
  EXPECT_LT(most_islands, flooded.memory_b.shared.islands.capacity());
  report("200000 lone bytes a second on 200 connections", goodput(calm), goodput(flooded),
         std::to_string(most_frames) + " frames and " + std::to_string(most_islands) +
             " islands in use at most, of " + std::to_string(flooded.memory_b.shared.frames.capacity()) +
             " and " + std::to_string(flooded.memory_b.shared.islands.capacity()));
}

}  // namespace
}  // namespace netchannel::tcp::sim
