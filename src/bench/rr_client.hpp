// The asking side of udp_rr and tcp_rr. A transaction is one request and its whole reply, of the same size.
// Closed loop: each pair has 1 + burst requests in flight and sends the next when a reply comes; what is
// timed is the service, from the send call to the reply. Open loop (a rate): requests leave by a plan
// whatever comes back, and a reply is timed from the moment its request was planned for, so that a stall
// counts for all that it delayed.
//
// Over TCP nothing is asked twice. A lost datagram never stops it: after 200 ms the same request is sent
// again, which counts as a timeout; its sample then holds the wait. A reply that nobody waits for counts as a
// duplicate; more of those than there were timeouts, or a reply of the wrong length or content, makes the
// stream wrong.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/histogram.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

inline constexpr Duration kRequestTimeout = std::chrono::milliseconds(200);

struct RrResult {
  double seconds = 0;
  std::uint64_t sent = 0;  // requests, repeats not counted
  std::uint64_t completed = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t planned = 0;    // open loop: requests whose time had come
  std::uint64_t in_flight = 0;  // left when the time was over
  Histogram latency;            // closed loop: send to reply; open loop: plan to reply
  Histogram service;            // open loop: send to reply
  Histogram send_lag;           // open loop: plan to send
  std::optional<Error> error;   // ended it early
  bool wrong() const { return corrupted != 0 || duplicates > timeouts; }
};

class RrClient {
 public:
  RrClient(Transport& transport, const BlockOptions& options);
  // Runs for that long, or until an interrupt, and waits for what is still on its way. Can be called again.
  RrResult run(double seconds);

 private:
  struct Slot {
    bool open = false;
    std::uint32_t number = 0;
    Instant planned;  // latency is counted from here
    Instant sent;
  };
  struct Pair {
    std::vector<Slot> slots;  // a power of two of them; request n is in slot n mod their number
    std::uint32_t next = 0;
    std::uint32_t open = 0;
  };

  void begin(double seconds);
  void start_due(Instant now);
  bool start(std::size_t pair, Instant planned, Instant now);
  void on_arrival(const Arrived& arrived, Instant now);
  void repeat_lost(Instant now);
  void queue(std::size_t pair, std::uint32_t number, Instant now);
  void flush();
  std::size_t send(std::size_t port, bool more);
  void drain();
  Instant plan(std::uint64_t request) const;
  Instant wake_at(Instant now) const;
  std::size_t port_of(std::size_t pair, std::uint32_t number) const {
    return pair * options_.flows + number % options_.flows;
  }
  MutableBytes message_of(std::size_t pair, std::uint32_t number);

  Transport& transport_;
  BlockOptions options_;
  std::uint32_t window_;  // requests in flight of one pair
  std::vector<Pair> pairs_;
  std::vector<std::byte> messages_;  // one a slot
  struct Queued {
    std::size_t port;
    Bytes message;
  };
  std::vector<Queued> queued_;
  std::vector<Bytes> batch_;
  std::size_t expected_port_ = kAnyPort;
  Instant start_, end_, next_timeout_;
  bool measuring_ = false;
  RrResult result_;
};

}  // namespace netchannel::bench
