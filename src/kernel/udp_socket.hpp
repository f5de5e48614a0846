// UDP on the kernel's own sockets, in the two ways a program can use them: the baseline that netchannel is
// measured against, and the path that is left when no other can be had.
//
//   plain    one recvfrom or sendto a datagram, nothing else: what a plain program does, and no dearer.
//   batched  the best the kernel has: recvmmsg and sendmmsg of up to 64 messages, and within a message up to
//   64
//            datagrams of one peer and size (UDP GSO when sending, UDP GRO when receiving).
//
//   one GRO message in one frame:  | 1000 | 1000 | 1000 | 300 |   -> four Datagrams that share the frame
//
// Invariants: a datagram that the kernel has handed over is handed on, whatever error stands beside it; an
// error is told once; a deadline is kept although nothing arrives (recvmmsg's own timeout is not, and is
// never used); GSO, where it is refused, costs a second call and never a datagram.
//
// The socket does not poll adaptively or spin: whoever calls receive() decides what to do when it returns 0.
// Left out on purpose: choosing the source address of a datagram sent from a socket bound to "any" (the
// kernel's route decides), and multicast membership. Called by api; belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/unique_fd.hpp"
#include "kernel/pending_errors.hpp"
#include "netchannel/datagram.hpp"
#include "netchannel/error.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/time.hpp"

namespace netchannel::kernel {

struct UdpKernelOptions {
  bool batched = false;
  std::uint32_t receive_buffer =
      1 << 20;                 // bytes, as SO_RCVBUF is asked for; receive_buffer() says what was got
  bool reuse_address = false;  // SO_REUSEADDR
  bool reuse_port = false;     // SO_REUSEPORT
  bool v6_only = false;        // IPV6_V6ONLY: "::" does not take IPv4
  bool broadcast = false;      // SO_BROADCAST
  bool gso = true;             // batched only: combine when sending
  bool gro = true;             // batched only: let the kernel combine; needs frames of 64 KiB
  bool tos_and_ttl = false;    // fill Datagram::tos and ::ttl; a plain receive then needs recvmsg
  std::uint32_t busy_poll_microseconds = 0;  // SO_BUSY_POLL, where the device and our permissions allow it
  std::uint32_t interface_index = 0;         // zone of link-local IPv6 addresses
};

struct Beside;
struct ReceiveBatch;
struct SendBatch;
struct SendPosition;
struct SocketAddress;

class UdpSocket {
 public:
  // A socket bound to `local` (port 0: the kernel chooses). Received datagrams live in frames of `pool`; a
  // batched socket keeps up to 64 of them to itself. Pool and counters must outlive the socket, and are this
  // thread's. Errors: address_in_use, address_not_available, not_permitted, no_memory, not_supported,
  // invalid_argument.
  static Result<UdpSocket> open(const Endpoint& local, const UdpKernelOptions& options, FramePool& pool,
                                CounterPage& counters);
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();

  // Fixes the peer: only its datagrams are received, and its ICMP errors are told. The local address becomes
  // the one that the route chooses. Errors: unreachable, not_permitted (broadcast), invalid_argument,
  // address_in_use.
  Result<void> connect(const Endpoint& peer);
  // Back to any peer and to the address that it was bound to; the port stays. Errors: address_in_use, if
  // another program has taken a port that the kernel had chosen in the moment in which it was free.
  Result<void> disconnect();
  const Endpoint& local() const { return local_; }
  const Endpoint& peer() const { return peer_; }  // all zero if not connected
  bool connected() const { return peer_.port != 0; }

  // What is there now, at most out.size(); never waits. Plain: one datagram, as one recvfrom gives it.
  // Batched: what is held back from the call before (pending()), else one recvmmsg. What `out` held before is
  // released. `now` becomes Datagram::arrival. 0: nothing there. An error is returned once and loses no
  // datagram. Errors: refused, unreachable, message_too_long, no_memory (all frames are in use: release
  // datagrams), closed.
  Result<std::size_t> receive(std::span<Datagram> out, Instant now) noexcept;
  // Waits in the kernel until `least` are there or the deadline (CLOCK_MONOTONIC) has passed, and says how
  // many. With kForever it blocks in the receiving call itself, as a plain program does; else in ppoll. What
  // was received before an error or a signal is returned first. Errors as receive(), and interrupted (a
  // signal came and nothing else had).
  Result<std::size_t> receive_blocking(std::span<Datagram> out, std::size_t least, Instant deadline) noexcept;
  // Datagrams that have left the kernel and wait here (the rest of a GRO message): look before sleeping on
  // fd().
  std::size_t pending() const noexcept;

  // Takes the first n datagrams and returns n: each of them has its status, good or bad; from n on, all are
  // would_block and can be sent again. `statuses` is at least as long as `in`. Never waits.
  std::size_t send(std::span<const OutDatagram> in, std::span<SendStatus> statuses) noexcept;
  // Sleeps until there is room to send. False: the deadline has passed. Errors: interrupted.
  Result<bool> wait_writable(Instant deadline) noexcept;

  int fd() const { return fd_.get(); }                          // to poll for POLLIN or POLLOUT
  std::uint64_t syscalls() const { return syscalls_; }          // made to send, receive and wait
  std::uint32_t receive_buffer() const { return got_buffer_; }  // bytes, in the unit of UdpKernelOptions
  std::uint64_t kernel_drops() const;           // datagrams that this socket's full buffer has dropped
  bool gso() const { return gso_limit_ != 0; }  // still used; false for good once refused
  bool gro() const { return gro_; }
  bool busy_poll() const { return busy_poll_; }
  std::string_view mode() const;  // "recvfrom, sendto", "recvmmsg + GRO, sendmmsg + GSO", ...

 private:
  UdpSocket(UniqueFd fd, int family, FramePool& pool, CounterPage& counters);
  Result<void> set_up(const Endpoint& local, const UdpKernelOptions& options);
  Result<void> set_flags(const UdpKernelOptions& options);
  void set_receive_buffer(std::uint32_t bytes);
  void set_up_batches(const UdpKernelOptions& options);
  Result<void> bind_to(const Endpoint& local);
  void want_local_address(bool on);
  void want_errors(bool on);
  Error told(int sys_errno) noexcept;
  void drain_errors() noexcept;

  Result<std::size_t> receive_some(std::span<Datagram> out, int flags) noexcept;
  Result<std::size_t> receive_plain(Datagram& out, int flags) noexcept;
  Result<std::size_t> receive_batch(std::span<Datagram> out, int flags) noexcept;
  std::size_t take_in(std::span<Datagram> filled, Instant arrival) noexcept;
  bool holds_back() const noexcept;
  std::size_t hand_out(std::span<Datagram> out) noexcept;
  std::size_t arm(std::size_t wanted) noexcept;
  bool take_spare_frame() noexcept;
  ssize_t call_plain(MutableBytes room, SocketAddress& sender, Beside& beside, int flags) noexcept;
  bool from_peer(const Endpoint& sender) noexcept;
  Result<bool> wait_for(short events, Instant deadline) noexcept;

  SendStatus check(const Endpoint& peer, std::size_t size) const noexcept;
  bool is_connected_peer(const Endpoint& peer) const noexcept;
  int send_one(const Endpoint& peer, Bytes payload) noexcept;
  SendStatus failure(int sys_errno) noexcept;
  bool was_pending(int sys_errno) noexcept;
  std::size_t send_plain(std::span<const OutDatagram> in, std::span<SendStatus> statuses) noexcept;
  std::size_t send_batched(std::span<const OutDatagram> in, std::span<SendStatus> statuses) noexcept;
  SendPosition plan(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                    SendPosition at) noexcept;
  bool joins(const Endpoint& peer, Bytes payload) const noexcept;
  void append(Bytes payload) noexcept;
  void begin(const Endpoint& peer, Bytes payload, std::size_t index) noexcept;
  int transmit() noexcept;
  void count_sent(std::size_t groups) noexcept;
  SendStatus why_stopped(std::size_t group, int sys_errno) noexcept;
  SendStatus first_alone(std::size_t group, int refusal) noexcept;

  UniqueFd fd_;
  int family_;
  FramePool* pool_;
  CounterPage* counters_;
  Endpoint
      bound_;  // as asked for, with the port that was got; connect() narrows local_, disconnect() restores it
  Endpoint local_;
  Endpoint peer_;
  PendingErrors errors_;
  Frame spare_;  // plain: the frame for the next datagram, kept over an empty receive
  std::unique_ptr<ReceiveBatch> receive_batch_;  // batched only, as is the next
  std::unique_ptr<SendBatch> send_batch_;
  std::uint64_t syscalls_ = 0;
  std::uint32_t zone_ = 0;
  std::uint32_t got_buffer_ = 0;
  std::uint32_t gso_limit_ = 0;  // largest segment that GSO may carry; 0: no GSO
  bool v6_only_ = false;
  bool local_from_kernel_ = false;  // bound to any: each datagram's local address comes with it
  bool tos_and_ttl_ = false;
  bool gro_ = false;
  bool busy_poll_ = false;
};

}  // namespace netchannel::kernel
