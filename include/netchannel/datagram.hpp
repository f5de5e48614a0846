// One UDP datagram as the application sees it, on every path: received without a copy, over the frame it
// arrived in, or given to send as a span over the caller's own bytes.
#pragma once

#include <cstdint>

#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

// Received. Owns a reference to the memory that `payload` looks at: it lasts until the Datagram is destroyed
// or received into again. Must not outlive its Host, and stays in the host's thread. A datagram kept for long
// keeps a frame from the device: copy the bytes out instead.
struct Datagram {
  Frame frame;
  Bytes payload;  // may be empty: a zero-length datagram is a datagram
  Endpoint peer;  // who sent it
  Endpoint
      local;  // where it was sent to: the address may differ from the socket's if that is "any" or a group
  Instant arrival;         // when the stack (or, on the kernel path, this call) took it in
  std::uint8_t tos = 0;    // TOS or traffic class, ECN in the low two bits
  std::uint8_t ttl = 0;    // TTL or hop limit; 0: not known
  bool truncated = false;  // the datagram was longer than the path could hold; payload is its beginning
  bool slow_path = false;  // came through the kernel's socket (a fragmented datagram, for instance)
};

// To be sent. `same` with an empty payload sends the payload of the datagram before it in the batch once
// more: one buffer, many peers.
struct OutDatagram {
  Bytes payload;
  Endpoint peer;  // all zero: the connected peer
  bool same = false;
};

enum class SendStatus : std::uint8_t {
  queued,            // on its way, in order
  would_block,       // no room now: this one and all after it were not taken
  no_peer,           // neither a peer here nor a connected one
  bad_peer,          // port 0, other family, or broadcast without permission
  unreachable,       // no route, or the neighbour does not answer
  message_too_long,  // above 65507 bytes (IPv4) or 65527 (IPv6), or above the path's limit
  refused,           // an earlier datagram of this socket met ICMP port unreachable; told once, and not sent
  not_on_wire,  // the way to this peer is not through this device (this machine itself): use the kernel's
                // socket
  failed,       // the kernel refused for another reason
};

}  // namespace netchannel
