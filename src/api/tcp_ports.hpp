// The TCP ports of a host on an interface that it shares with the kernel. Each is reserved by a bound kernel
// socket, so that nobody else gets it and a stray segment is answered by the kernel's rules, and claimed on
// the device. The stack's connections stand on leases of these ports; one that no listener and no connection
// stands on any more, TIME-WAIT included, is free again.
//
// A port that a connection went out from is kept for the next one: connecting again to another pair costs no
// system call. On a bare device there is no kernel to ask and the stack chooses ports itself.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/claim_set.hpp"
#include "control/reservation.hpp"
#include "stack/tcp.hpp"

namespace netchannel {

class ChannelHost;

class TcpPorts {
 public:
  explicit TcpPorts(ChannelHost& host) : host_(host) {}

  struct Port {
    Endpoint local;
    stack::LeaseId lease = 0;
  };
  // For a listener. Errors: those of control::Reservation and of ChannelHost::claim.
  Result<Port> reserve(const Endpoint& local, const control::ReserveOptions& options);
  // For a connection to `peer`: a port of `local`'s, which may be 0.
  Result<Port> for_connection(const Endpoint& local, const Endpoint& peer);
  // The listener has gone; its connections may not have.
  void leave(stack::LeaseId lease);
  // Gives back what nobody stands on. Cheap when there is nothing.
  void tidy();

 private:
  struct Lease {
    Lease(ChannelHost& host, control::Reservation port, bool v6_only)
        : reservation(std::move(port)), claims(host, Protocol::tcp, v6_only) {}
    control::Reservation reservation;
    ClaimSet claims;
    bool kept = false;  // for going out, or by a listener
    bool outgoing = false;
  };
  Result<Port> open(const Endpoint& local, const control::ReserveOptions& options, bool outgoing);

  static constexpr std::size_t kKept = 256;  // idle ports kept for the next connection
  ChannelHost& host_;
  std::vector<std::unique_ptr<Lease>> leases_;  // by number; the first is nobody's
  std::size_t next_ = 0;                        // where the search for a port begins
  std::size_t leaving_ = 0;                     // leases that end when nobody stands on them
};

}  // namespace netchannel
