// The UDP sockets of a stack: their bindings, receive queues and pending errors. Knows nothing of the link.
//
// A queue is a list of nodes, one for each packet, taken from one array with room for every receive slot:
// nothing is allocated when a packet comes. A super-frame is one node and becomes datagrams when it is read.
// Two bounds keep one socket from starving the others: bytes that wait unread, and receive slots that it
// holds, in its queue or in its reader's hands. The second needs to know whose a slot was when it comes home:
// owners_.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "netchannel/datagram.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "stack/stack.hpp"
#include "stack/udp_table.hpp"

namespace netchannel::stack {

// What is known of a packet for a socket's queue, besides its frame.
struct UdpArrival {
  Endpoint peer, local;
  Instant when;
  std::uint32_t offset = 0;  // of the payload in the frame's bytes
  std::uint32_t length = 0;
  std::uint8_t tos = 0, ttl = 0;
  bool rx_slot = false;  // the frame is one of the receive slots, not a large one
  bool slow_path = false;
};

struct UdpSocketState {
  UdpHandle handle;  // none: the place is free
  UdpBinding binding;
  bool any_address = false;  // bound to any address: connecting chose the one in `binding`
  bool any_v4 = false;       // and that any was 0.0.0.0
  bool broadcast = false, dont_fragment = false, all_errors = false;
  bool ready_listed = false;
  std::uint8_t ttl = 64, tos = 0;
  std::uint16_t generation = 0;
  std::uint32_t receive_buffer = 0, receive_frames = 0;
  std::uint32_t waiting = 0, waiting_bytes = 0, held_frames = 0;
  std::uint32_t head = UdpTable::kNone, tail = UdpTable::kNone;  // of the queue
  std::optional<SocketError> error;
};

class UdpSockets {
 public:
  // `extra` packets can wait besides one for each receive slot (large slots).
  struct Sizes {
    std::uint32_t sockets = 0;
    SlotRange rx;
    std::uint32_t extra = 0;
  };
  UdpSockets(const Sizes& sizes, const SipKey& key, CounterPage& counters);

  // Errors: address_in_use, no_memory. The caller has judged the address.
  Result<UdpHandle> open(const UdpBind& bind);
  void close(UdpHandle socket);
  UdpSocketState* get(UdpHandle socket);
  const UdpSocketState* get(UdpHandle socket) const { return const_cast<UdpSockets*>(this)->get(socket); }
  void connect(UdpSocketState& socket, const IpAddress& source, const Endpoint& peer);
  void disconnect(UdpSocketState& socket);

  // Puts a packet into the queue of whom it is for; else counts why not, and says whether the sender may be
  // told that nobody listens.
  enum class Delivery : std::uint8_t { delivered, dropped, nobody };
  Delivery deliver(Frame&& frame, const UdpArrival& arrival);
  void deliver_broadcast(const Frame& frame, const UdpArrival& arrival);
  std::size_t receive(UdpHandle socket, std::span<Datagram> out);

  // `flow_local` and `error.peer` are the quoted packet's. `hard`: also to a connected socket that did not
  // ask for all errors. False: no socket of ours sent that.
  bool deliver_error(const Endpoint& flow_local, const SocketError& error, bool hard);
  bool has_flow(const Endpoint& local, const Endpoint& peer) const {
    return table_.find(local, peer).socket != UdpTable::kNone;
  }
  void raise(UdpSocketState& socket, const SocketError& error);

  // A receive slot is on its way home.
  void on_slot_home(std::uint32_t slot);
  std::size_t take_ready(std::span<UdpHandle> out);

 private:
  struct Node {
    Frame frame;
    UdpArrival packet;
    std::uint32_t charge = 0;  // bytes counted against the buffer
    std::uint32_t next = UdpTable::kNone;
  };
  static std::uint32_t index_of(UdpHandle socket) { return (socket.value & 0xffff) - 1; }
  bool enqueue(UdpSocketState& socket, Frame&& frame, const UdpArrival& arrival);
  void mark_ready(UdpSocketState& socket);
  Result<std::uint16_t> choose_port(const UdpBinding& binding);
  void drop_head(UdpSocketState& socket);

  SlotRange rx_;
  SipKey key_;
  CounterPage& counters_;
  UdpTable table_;
  std::vector<UdpSocketState> sockets_;
  std::vector<std::uint32_t> free_sockets_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_nodes_;
  std::vector<UdpHandle> owners_;  // by receive slot
  std::vector<UdpHandle> ready_;   // as a queue of at most one entry a socket
  std::uint64_t ports_chosen_ = 0;
};

}  // namespace netchannel::stack
