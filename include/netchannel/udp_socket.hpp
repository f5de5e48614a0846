// A UDP socket over any path. Batches in both directions; a call with one datagram costs no more than it
// must. Belongs to its Host's thread and must not outlive the Host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "netchannel/datagram.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

struct UdpOptions {
  std::uint32_t receive_buffer =
      1 << 20;  // bytes of frames that may wait unread, as SO_RCVBUF counts; above: counted drops
  bool reuse_address = false;  // SO_REUSEADDR, as the kernel has it
  bool reuse_port = false;     // SO_REUSEPORT
  bool v6_only = false;        // IPV6_V6ONLY: "::" does not take IPv4
  bool broadcast = false;      // SO_BROADCAST
};

// When a receive returns: `least` datagrams are there, or the deadline (absolute, Host::now()'s clock) has
// passed, whichever is first. The deadline is kept even if no datagram ever comes (recvmmsg's timeout is not,
// see its man page under BUGS). least = 0 never waits.
struct Wait {
  std::size_t least = 1;
  Instant deadline = kForever;
};

// More::yes says that more is coming at once: the burst may be kept back until a call with More::no.
enum class More : std::uint8_t { no, yes };

class UdpSocketImpl;

class UdpSocket {
 public:
  explicit UdpSocket(std::unique_ptr<UdpSocketImpl> impl);
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();

  // Fixes the peer: only its datagrams are received, and its ICMP errors are told. An unspecified peer
  // disconnects.
  Result<void> connect(const Endpoint& peer);
  Endpoint local() const;
  Endpoint peer() const;  // all zero if not connected

  // Returns how many of `out` were filled; what they held before is released. 0: the deadline passed (or
  // least = 0). A pending ICMP error is returned once, before datagrams that came after it, and loses none of
  // them. Errors: refused, unreachable, message_too_long, closed, interrupted (a signal came while asleep).
  Result<std::size_t> receive(std::span<Datagram> out, Wait wait = {}) noexcept;

  // Takes the first n datagrams and returns n; what was not taken can be sent again. `statuses`, if not
  // empty, is at least as long as `in` and gets a status for each. An error is returned only if nothing was
  // taken.
  Result<std::size_t> send(std::span<const OutDatagram> in, std::span<SendStatus> statuses = {},
                           More more = More::no) noexcept;
  // One payload to one peer (all zero: the connected one).
  Result<void> send_to(Bytes payload, const Endpoint& peer = {}) noexcept;
  // One payload to many peers; returns how many were taken.
  Result<std::size_t> send_to_all(Bytes payload, std::span<const Endpoint> peers) noexcept;

  // Datagrams waiting to be received, as known without a system call (a channel path), or 0.
  std::size_t pending() const noexcept;
  // True if the packets of this socket do not pass the kernel's socket path.
  bool accelerated() const noexcept;

  UdpSocketImpl& impl() { return *impl_; }

 private:
  std::unique_ptr<UdpSocketImpl> impl_;
};

}  // namespace netchannel
