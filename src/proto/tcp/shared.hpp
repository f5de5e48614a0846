// What the connections of one stack have in common: the nodes of their queues and the page that they count
// on. Made once, before the first connection, and outlives the last. One thread's.
#pragma once

#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/time.hpp"
#include "proto/tcp/seq.hpp"
#include "proto/tcp/slab.hpp"

namespace netchannel::tcp {

// A frame in a send queue, in the ready part of a receive queue or in one of its islands. Its bytes stand at
// `begin` in sequence space.
struct FrameNode {
  Frame frame;
  Seq begin;
  std::uint32_t next = kNoNode;
  bool growable =
      false;  // the slot's bytes behind the frame belong to nobody else: small data may be copied there
};

// Data that has arrived beyond a hole: [left, right), its frames in order.
struct Island {
  Seq left, right;
  std::uint32_t first = kNoNode;  // FrameNodes
  std::uint32_t last = kNoNode;
  std::uint32_t next = kNoNode;  // the next Island to the right
};

enum class Fate : std::uint8_t { in_flight, sacked, lost };

// Bytes that were sent at the same time and have fared alike since.
struct TxRecord {
  Seq begin, end;
  Instant time;  // of the last transmission
  std::uint32_t next = kNoNode;
  Fate fate = Fate::in_flight;
  bool retransmitted = false;  // ever
  std::uint16_t spread_us =
      0;  // by how much the first transmission in it was earlier, if several were joined
};

struct SharedOptions {
  std::size_t frames = 16384;   // frames that may wait in all send and receive queues together
  std::size_t records = 16384;  // transmissions remembered at once, one for each connection besides
  std::size_t islands = 4096;
};

struct Shared {
  Shared(const SharedOptions& options, CounterPage& page)
      : frames(options.frames), records(options.records), islands(options.islands), counters(page) {}
  Slab<FrameNode> frames;
  Slab<TxRecord> records;
  Slab<Island> islands;
  CounterPage& counters;
};

}  // namespace netchannel::tcp
