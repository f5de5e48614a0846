// Two TCP connections joined by a link in virtual time: delay, rate, a bounded queue, loss, reordering,
// duplication. The streams that pass are checked byte by byte. Deterministic: the same options give the same
// run.
#pragma once

#include <cstdint>
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

struct LinkOptions {
  Duration delay = std::chrono::milliseconds(10);  // one way
  double loss = 0;
  double reorder = 0;  // share of packets that are held back by reorder_by
  Duration reorder_by = std::chrono::milliseconds(2);
  double duplicate = 0;
  std::uint64_t bits_per_second = 0;  // 0: no limit
  std::uint32_t queue = 1 << 20;      // bytes that may wait for the rate
  double mark_ce = 0;                 // share of ECT packets that are marked
  Duration spike{0};                  // one delay spike ...
  Duration spike_at{0};               // ... for packets sent in the second after this
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

struct Packet {
  SegmentOut segment;
  std::vector<std::byte> payload;
  bool ce = false;
};

inline std::byte pattern(std::uint64_t offset) {
  const std::uint64_t x = offset * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::byte>(x >> 56);
}

// One end: a connection, its pools and an application that writes a pattern and checks what it reads.
struct Side {
  Side(const SideOptions& side_options, CounterPage& page);

  SideOptions options;
  std::unique_ptr<FrameRegion> region;
  FramePool tx, rx;
  Shared shared;
  Connection c;
  std::uint64_t written = 0, read = 0;
  bool corrupt = false, peer_closed = false, closed = false, connected = false;
  Instant next_read;
  std::uint64_t segments_sent = 0, bytes_sent = 0, packets_in = 0;
  Events seen = 0;

  void on_packet(Packet& packet, Instant now);
  void application(Instant now);
  std::vector<Packet> poll(Instant now);
  Instant deadline() const;
  void note(Events events);
};

struct Result {
  bool finished = false;  // both streams complete and both ends closed or in TIME-WAIT
  Instant end;            // when the last byte was read
  std::string why;        // if not finished
};

class Simulation {
 public:
  Simulation(const SideOptions& a, const SideOptions& b, const LinkOptions& link, std::uint64_t seed);
  Result run(Duration limit);

  CounterPage counters_a, counters_b;
  Side a, b;
  std::function<void(Instant, const char*, const Packet&)> trace;
  std::uint64_t lost = 0, queue_drops = 0, delivered = 0;

 private:
  struct InFlight {
    Instant at;
    std::uint64_t order;
    int to;
    std::shared_ptr<Packet> packet;
    bool operator>(const InFlight& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  void transmit(int from, std::vector<Packet> packets, Instant now);
  void deliver(Instant now);
  void serve(Side& side, int index, Instant now);
  void through_listener(Packet& packet, Instant now);
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  LinkOptions link_;
  std::mt19937_64 random_;
  std::priority_queue<InFlight, std::vector<InFlight>, std::greater<>> flying_;
  std::uint64_t order_ = 0;
  Instant free_at_[2];  // when the link has sent what it holds, each way
  Listener listener_;
  bool accepted_ = false;
};

}  // namespace netchannel::tcp::sim
