// LISTEN and the SYN-RECEIVED that comes from it (RFC 9293 section 3.10.7.2). A handshake that has begun is a
// small entry of a bounded queue, not a connection; what the last acknowledgement makes of it is a Handshake,
// from which accept() (connection.hpp) makes one. When the queue is full handshakes go on with SYN cookies
// (RFC 4987), and only then.
//
//      SYN --> [SYN queue: SYN-ACK, 1 s, 3 s, 7 s ...] -- ACK --> Handshake --> the stack: Connection, accept
//      queue
//          \-> queue full: cookie in the SYN-ACK, nothing kept -- ACK --/
//
// One for each listening socket; all memory from the constructor. Time is a parameter, secrets come in
// through options.
#pragma once

#include <span>
#include <vector>

#include "base/keyed_table.hpp"
#include "netchannel/stats.hpp"
#include "proto/tcp/connection.hpp"
#include "proto/tcp/isn.hpp"

namespace netchannel::tcp {

struct ListenOptions {
  Settings settings;               // of the connections to come
  std::uint32_t syn_queue = 1024;  // handshakes under way at once
  std::uint8_t syn_ack_retries = 5;
  bool cookies = true;  // when the queue is full; false: new SYNs are dropped then
  Secrets secrets;
  SipKey table_key;
};

// What the stack knows of the place a segment came from.
struct Arrival {
  FlowKey flow;
  std::uint16_t path_mss = 1460;
  std::uint16_t default_mss = 536;
  bool accept_queue_full =
      false;  // no new handshakes, and none is finished (RFC 9293 leaves it open; Linux does so)
  std::optional<Seq> after;  // the ISS must lie beyond this: snd_nxt of the TIME-WAIT it replaces (RFC 6191)
};

enum class ListenAction : std::uint8_t {
  none,
  reply,   // send `reply` to the flow's peer
  accept,  // make a connection of `handshake`, then give it the segment
};

struct ListenResult {
  ListenAction action = ListenAction::none;
  SegmentOut reply;
  Handshake handshake;
};

class Listener {
 public:
  Listener(const ListenOptions& options, CounterPage& counters);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // A segment for the listening port that belongs to no connection.
  ListenResult on_segment(const Arrival& arrival, const SegmentIn& segment, Instant now);

  struct Retry {
    FlowKey flow;
    SegmentOut segment;
  };
  // SYN-ACKs to be sent again by now, at most out.size(); returns how many. Handshakes that were tried often
  // enough end.
  std::size_t on_timer(std::span<Retry> out, Instant now);
  Instant next_deadline() const;

  // An ICMP error or the stack's own reason ended the handshake. False: there is none.
  bool forget(const FlowKey& flow);
  std::size_t size() const { return table_.size(); }
  bool contains(const FlowKey& flow) const { return table_.find(flow) != nullptr; }

 private:
  // Handshakes with the same number of retries wait equally long, so each such list is in order of its
  // deadlines.
  static constexpr std::size_t kMaxRetries = 8;
  struct Entry {
    FlowKey flow;
    Handshake handshake;
    Instant deadline;
    Instant next_challenge;  // none before
    std::uint32_t next = kNoNode;
    std::uint32_t previous = kNoNode;
  };
  struct List {
    std::uint32_t first = kNoNode;
    std::uint32_t last = kNoNode;
  };

  ListenResult on_syn(const Arrival& arrival, const SegmentIn& segment, Instant now);
  ListenResult on_ack(const Arrival& arrival, const SegmentIn& segment, Instant now);
  ListenResult on_entry(std::uint32_t index, const Arrival& arrival, const SegmentIn& segment, Instant now);
  ListenResult challenge(Entry& entry, Instant now);
  Handshake negotiate(const Arrival& arrival, const SegmentIn& syn) const;
  void link(std::uint32_t index, Instant now);
  void unlink(std::uint32_t index);
  void remove(std::uint32_t index);

  ListenOptions options_;
  CounterPage& counters_;
  std::vector<Entry> entries_;
  std::uint32_t first_free_ = kNoNode;
  std::array<List, kMaxRetries + 1> waiting_;
  KeyedTable<FlowKey, std::uint32_t> table_;
  Instant last_cookie_;
  bool cookies_out_ = false;  // some may still come back
};

}  // namespace netchannel::tcp
