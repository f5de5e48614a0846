// TCP connections joined by a link in virtual time: delay, rate, a bounded queue, loss, reordering,
// duplication, corruption. One flow or many that share the link and, at each end, a host's memory. The
// streams that pass are checked byte by byte. Deterministic: the same options give the same run.
//
//      a of flow 0 ---.                            .--- b of flow 0
//      a of flow 1 ---+-- [queue, rate, delay] ----+--- b of flow 1
//      ...            |                            |    ...
//      memory of a ---'                            '--- memory of b, which has the listener
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "proto/tcp/connection.hpp"
#include "proto/tcp/isn.hpp"
#include "proto/tcp/listen.hpp"

namespace netchannel::tcp::sim {

inline constexpr Instant kBegin{1'000'000'000};

struct LinkOptions {
  Duration delay = std::chrono::milliseconds(10);  // one way
  double loss = 0;
  double reorder = 0;  // share of packets that are held back by reorder_by
  Duration reorder_by = std::chrono::milliseconds(2);
  double duplicate = 0;
  double corrupt = 0;                 // share of packets in which some bits of a byte are turned over
  std::uint64_t bits_per_second = 0;  // 0: no limit
  std::uint32_t queue = 1 << 20;      // bytes that may wait for the rate
  double mark_ce = 0;                 // share of ECT packets that are marked
  Duration spike{0};                  // a delay spike ...
  Duration spike_at{0};               // ... for packets sent in the second after this ...
  Duration spike_every{0};            // ... and again each time this has passed; 0: once
};

struct SideOptions {
  Settings settings;
  std::uint32_t super_frame = 0;  // bytes
  std::uint64_t to_send = 0;      // bytes
  std::uint32_t write_size = 1 << 30;
  std::uint32_t read_size = 1 << 30;  // at most, each time it may read
  Duration read_every{0};             // 0: at once
  bool close_when_done = true;
};

struct FlowOptions {
  SideOptions a, b;
  Duration start{0};
};

struct Packet {
  SegmentOut segment;
  std::vector<std::byte> payload;
  std::vector<std::byte> wire;  // the packet as bytes, on a link that corrupts
  bool ce = false;
};

inline std::byte pattern(std::uint64_t offset) {
  const std::uint64_t x = offset * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::byte>(x >> 56);
}

// What the connections of one host share.
struct Memory {
  explicit Memory(CounterPage& page);
  std::unique_ptr<FrameRegion> region;
  FramePool tx, rx;
  Shared shared;
};

// Bytes that an application may write now, as a stack decides that shares its frames among connections: no
// connection holds more than it leaves free, an eighth stays for all, and when a quarter is left a connection
// gets only what its windows let it send.
std::size_t room_to_write(const Memory& memory, const Connection& c);

// One end: a connection and an application that writes a pattern and checks what it reads.
struct Side {
  Side(const SideOptions& side_options, Memory& of_host);

  SideOptions options;
  Memory& memory;
  Connection c;
  std::uint64_t written = 0, read = 0;
  bool corrupt = false, peer_closed = false, closed = false, connected = false;
  bool touched = false;
  Instant next_read;
  std::uint64_t segments_sent = 0, bytes_sent = 0, packets_in = 0;
  Events seen = 0;

  void on_packet(const Packet& packet, Instant now);
  void application(Instant now);
  std::vector<Packet> poll(Instant now);
  Instant deadline() const;
  void note(Events events);
};

struct Flow {
  Flow(const FlowOptions& options, Memory& memory_a, Memory& memory_b)
      : a(options.a, memory_a), b(options.b, memory_b), start(kBegin + options.start) {}
  Side a, b;
  Instant start;
  FlowKey key;  // as b sees it
  bool accepted = false;
  Instant end;  // when the last byte was read
};

struct Result {
  bool finished = false;  // all streams complete and all ends closed or in TIME-WAIT
  Instant end;            // when the last byte was read
  std::string why;        // if not finished
};

class Simulation {
 public:
  Simulation(const std::vector<FlowOptions>& flows, const LinkOptions& link, std::uint64_t seed);
  Simulation(const SideOptions& of_a, const SideOptions& of_b, const LinkOptions& link, std::uint64_t seed)
      : Simulation(std::vector<FlowOptions>{{of_a, of_b}}, link, seed) {}
  Result run(Duration limit);

  // Called each hook_every of virtual time: an attacker.
  std::function<void(Instant)> hook;
  Duration hook_every{0};
  // Hands b a segment of nobody's, over the link; its answer goes the same way back and to nobody.
  void send_to_listener(const FlowKey& flow, const SegmentIn& segment, Instant now);

  CounterPage counters_a, counters_b;
  Memory memory_a, memory_b;
  std::deque<Flow> flows;
  Side &a, &b;  // of the first flow
  Listener listener;
  std::function<void(Instant, const char*, const Packet&)> trace;
  std::uint64_t lost = 0, queue_drops = 0, delivered = 0, found_corrupt = 0;

 private:
  struct InFlight {
    Instant at;
    std::uint64_t order;
    int to;
    std::uint32_t flow;
    std::shared_ptr<Packet> packet;
    bool operator>(const InFlight& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  void transmit(int from, std::uint32_t flow, std::vector<Packet> packets, Instant now);
  std::optional<Instant> through_the_queue(int from, std::size_t bytes, Instant now);
  void corrupt(int from, std::uint32_t flow, Packet& packet);
  bool read_wire(int to, std::uint32_t flow, Packet& packet);
  void deliver(Instant now);
  void serve(std::uint32_t flow, Side& side, int index, Instant now);
  void begin(std::uint32_t flow, Instant now);
  void through_listener(std::uint32_t flow, const Packet& packet, Instant now);
  void retry_handshakes(Instant now);
  Instant next_event() const;
  bool finished() const;
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  LinkOptions link_;
  std::mt19937_64 random_;
  std::priority_queue<InFlight, std::vector<InFlight>, std::greater<>> flying_;
  std::uint64_t order_ = 0;
  Instant free_at_[2];  // when the link has sent what it holds, each way
  Instant hook_at_ = kForever;
};

}  // namespace netchannel::tcp::sim
