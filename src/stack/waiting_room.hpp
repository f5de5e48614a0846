// Frames that wait for a neighbour's address (RFC 1122 section 2.3.2.2: at least one, here some; RFC 4861
// section 7.2.2: the newest replace the oldest). Filed under the neighbour cache's index, bounded together
// and for each neighbour; the parts of one packet enter and leave together.
#pragma once

#include <cstdint>
#include <vector>

#include "netchannel/address.hpp"
#include "netchannel/frame.hpp"
#include "stack/stack.hpp"
#include "stack/tcp.hpp"

namespace netchannel::stack {

class WaitingRoom {
 public:
  struct Guest {
    Frame frame;
    UdpHandle socket;      // whose it is, ...
    TcpHandle connection;  // ... or whose; or none
    Endpoint peer;
  };
  WaitingRoom(std::uint32_t neighbours, std::uint32_t frames, std::uint32_t of_neighbour)
      : queues_(neighbours), nodes_(frames), of_neighbour_(of_neighbour) {
    for (std::uint32_t i = frames; i-- > 0;) free_.push_back(i);
  }

  bool empty(std::uint32_t neighbour) const { return queues_[neighbour].head == kNone; }
  // Whether a packet of that many frames can be let in, after dropping older ones of this neighbour if need
  // be; `drop` is called for each packet that makes room.
  template <class Drop>
  bool make_room(std::uint32_t neighbour, std::uint32_t frames, Drop drop) {
    if (frames > of_neighbour_) return false;
    while (queues_[neighbour].count + frames > of_neighbour_) {
      drop_packet(neighbour);
      drop();
    }
    while (free_.size() < frames) {
      if (empty(neighbour)) return false;
      drop_packet(neighbour);
      drop();
    }
    return true;
  }
  // There is room (make_room).
  void enter(std::uint32_t neighbour, Guest guest) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    nodes_[index].guest = std::move(guest);
    nodes_[index].next = kNone;
    Queue& queue = queues_[neighbour];
    (queue.tail == kNone ? queue.head : nodes_[queue.tail].next) = index;
    queue.tail = index;
    ++queue.count;
  }
  // The oldest frame; there is one (not empty).
  Guest leave(std::uint32_t neighbour) {
    Queue& queue = queues_[neighbour];
    const std::uint32_t index = queue.head;
    queue.head = nodes_[index].next;
    if (queue.head == kNone) queue.tail = kNone;
    --queue.count;
    free_.push_back(index);
    return std::move(nodes_[index].guest);
  }
  const Guest& front(std::uint32_t neighbour) const { return nodes_[queues_[neighbour].head].guest; }
  std::uint32_t count(std::uint32_t neighbour) const { return queues_[neighbour].count; }
  // Frames of the oldest packet.
  std::uint32_t front_parts(std::uint32_t neighbour) const {
    std::uint32_t parts = 1;
    for (std::uint32_t i = queues_[neighbour].head; (nodes_[i].guest.frame.desc().flags & kContinues) != 0;
         ++parts) {
      i = nodes_[i].next;
    }
    return parts;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Node {
    Guest guest;
    std::uint32_t next = kNone;
  };
  struct Queue {
    std::uint32_t head = kNone, tail = kNone, count = 0;
  };
  void drop_packet(std::uint32_t neighbour) {
    while ((leave(neighbour).frame.desc().flags & kContinues) != 0) {
    }
  }
  std::vector<Queue> queues_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::uint32_t of_neighbour_;
};

}  // namespace netchannel::stack
