// A port, held by a real bound kernel socket, so that the kernel's own rules say whether it is free and
// nobody else gets it. The socket is also the slow path of UDP: what the interface's program passes
// (fragments, which the kernel puts together; datagrams of another interface) arrives here, and what has no
// route on our interface leaves here. A TCP reservation is bound and does not listen: a stray SYN to it is
// refused, as to any closed port.
//
// One thread's. The port is free again when this is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::control {

struct ReserveOptions {
  bool reuse_address = false;         // SO_REUSEADDR
  bool reuse_port = false;            // SO_REUSEPORT
  bool v6_only = false;               // IPV6_V6ONLY: "::" takes no IPv4; without it, it takes both
  bool broadcast = false;             // SO_BROADCAST, for send_to()
  bool coalesce = false;              // UDP_GRO: has the kernel join datagrams of a flow on their way in
  std::uint32_t receive_buffer = 0;   // bytes, SO_RCVBUF; 0: the system's default
  std::uint32_t interface_index = 0;  // the zone of link-local IPv6 addresses
};

struct SlowDatagram {
  Bytes payload;  // valid until the next receive()
  Endpoint peer;
  Endpoint local;  // the datagram's destination address; for a broadcast, that address
};

class Reservation {
 public:
  // A port of 0 lets the kernel choose. "::" without v6_only takes IPv4 too, "0.0.0.0" takes IPv4 only.
  // Errors: address_in_use, not_permitted (a port below 1024), address_not_available, invalid_argument
  // (neither TCP nor UDP), not_supported (no IPv6), system.
  static Result<Reservation> open(Protocol protocol, const Endpoint& local,
                                  const ReserveOptions& options = {});

  Protocol protocol() const { return protocol_; }
  const Endpoint& local() const { return local_; }  // as bound, with the port that the kernel chose
  int fd() const { return fd_.get(); }              // non-blocking; readable when receive() has something

  // UDP. From then on the kernel refuses other senders' datagrams as for any connected socket; a peer that is
  // all zero disconnects, and the port stays. Errors: unreachable, invalid_argument (the other family),
  // not_permitted (broadcast), address_in_use (on disconnecting, if a port that the kernel had chosen was
  // taken in that moment).
  Result<void> connect(const Endpoint& peer);
  // UDP. The address that a connected socket sends from; unspecified if it cannot be told.
  IpAddress source() const;
  // UDP. Never waits; no value: nothing there. What was joined on its way comes apart again, and until its last
  // datagram is taken the descriptor does not tell of it. Errors: refused, unreachable, message_too_long (told
  // once, by ICMP, to a connected socket), system.
  Result<std::optional<SlowDatagram>> receive();
  bool holds_more() const { return !rest_.empty(); }
  // UDP. Never waits; the kernel fragments what is larger than the path takes. Errors: would_block,
  // message_too_long, unreachable, refused, not_permitted, invalid_argument, system.
  Result<void> send_to(Bytes payload, const Endpoint& peer);

 private:
  Reservation(UniqueFd fd, Protocol protocol, int family, std::uint32_t zone)
      : fd_(std::move(fd)), protocol_(protocol), family_(family), zone_(zone) {}
  Result<void> set_options(const ReserveOptions& options);
  Result<void> bind(const Endpoint& local);
  Result<void> disconnect();
  Result<bool> receive_joined();
  UniqueFd fd_;
  Protocol protocol_;
  int family_;
  std::uint32_t zone_;
  Endpoint local_;
  std::unique_ptr<std::byte[]> buffer_;  // for one datagram of any size; made by the first receive()
  SlowDatagram last_;                    // its addresses are those of what has been joined with it
  std::size_t segment_size_ = 0;
  Bytes rest_;
};

}  // namespace netchannel::control
