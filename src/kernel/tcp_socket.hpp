// TCP on the kernel's own sockets: a listener and a connection as a plain program has them, one call each.
// What can block comes in two forms: Blocking::no never waits and fails with would_block, Blocking::yes waits
// in the call itself, as a plain program does, without a deadline. Whoever calls decides between them, and
// what to do in between (wait_for of socket_calls.hpp).
//
// A descriptor is made blocking or not only when a call needs the other kind (connect and accept look at it;
// reading and writing say it in the call), so a program that always waits in the same way makes no call more
// than a plain one.
//
// Left out on purpose: MSG_ZEROCOPY (docs/design/0006-kernel-tcp.md), the zone of link-local addresses.
// Called by api; belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"
#include "kernel/tcp_options.hpp"
#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"

namespace netchannel::kernel {

enum class Blocking : bool { no, yes };
inline constexpr std::size_t kMostPieces = 64;  // of one read or write

// A stream socket's descriptor, and how its calls block.
class TcpDescriptor {
 public:
  // Adds each call made to `syscalls`, which outlives it.
  TcpDescriptor(UniqueFd fd, Blocking blocking, std::uint64_t& syscalls)
      : fd_(std::move(fd)), blocking_(blocking), syscalls_(&syscalls) {}
  int get() const { return fd_.get(); }  // -1: closed
  void make(Blocking wanted) noexcept;
  void close() noexcept;
  std::uint64_t& syscalls() const { return *syscalls_; }

 private:
  UniqueFd fd_;
  Blocking blocking_;
  std::uint64_t* syscalls_;
};

class TcpSocket {
 public:
  // A socket for `peer`, bound to `local` if that names an address or a port. connect() is still to come;
  // `blocking` is how. Errors: invalid_argument, address_in_use, address_not_available, not_permitted,
  // no_memory, not_supported.
  static Result<TcpSocket> open(const Endpoint& peer, const Endpoint& local, const TcpKernelOptions& options,
                                Blocking blocking, std::uint64_t& syscalls);

  // Begins to connect, or goes on; returns once connected, at once if it was. Errors: would_block (not yet),
  // refused, unreachable, timed_out, address_not_available (no free port), not_permitted, interrupted (it
  // goes on); after any other error than would_block and interrupted the same again.
  Result<void> connect(Blocking blocking) noexcept;

  // One call, of at most kMostPieces. 0: the end of the stream. Errors: would_block, reset, timed_out,
  // unreachable, closed, interrupted.
  Result<std::size_t> read(std::span<const MutableBytes> to, Blocking blocking) noexcept;
  // One call, of at most kMostPieces; `more`: MSG_MORE. Returns how much is in; blocking, less than all only
  // after a signal or an error. Errors: as read(), closed (EPIPE) after the end.
  Result<std::size_t> write(std::span<const Bytes> from, bool more, Blocking blocking) noexcept;

  Result<void> shutdown_write() noexcept;
  void close() noexcept;  // the kernel goes on by itself; unread data resets
  void abort() noexcept;
  // The error that the kernel keeps for the socket, which is told once; code system and errno 0 if none.
  Error take_error() noexcept;

  Result<void> set_options(const TcpKernelOptions& wanted) noexcept;
  const TcpKernelOptions& options() const { return options_; }
  TcpInfo info() const { return tcp_info(descriptor_.get()); }
  Endpoint local() const;
  Endpoint peer() const { return peer_; }
  const TcpDescriptor& descriptor() const { return descriptor_; }

 private:
  friend class TcpListener;
  enum class State : std::uint8_t { opened, connecting, connected, failed };
  TcpSocket(TcpDescriptor descriptor, const TcpKernelOptions& options, const Endpoint& peer, State state)
      : descriptor_(std::move(descriptor)), options_(options), peer_(peer), state_(state) {}

  TcpDescriptor descriptor_;
  TcpKernelOptions options_;
  Endpoint peer_;
  State state_;
  Error failure_;
};

struct TcpListenerOptions {
  std::uint32_t backlog = 4096;
  bool reuse_address = true;
  bool reuse_port = false;
  bool v6_only = false;
  TcpKernelOptions tcp;  // of the connections, which inherit them
};

class TcpListener {
 public:
  // Errors: address_in_use, address_not_available, not_permitted, no_memory, not_supported, invalid_argument.
  static Result<TcpListener> open(const Endpoint& local, const TcpListenerOptions& options,
                                  std::uint64_t& syscalls);
  // Errors: would_block, no_memory (too many descriptors), interrupted, closed.
  Result<TcpSocket> accept(Blocking blocking) noexcept;
  const Endpoint& local() const { return local_; }
  const TcpDescriptor& descriptor() const { return descriptor_; }

 private:
  TcpListener(TcpDescriptor descriptor, const TcpKernelOptions& options)
      : descriptor_(std::move(descriptor)), options_(options) {}

  TcpDescriptor descriptor_;
  TcpKernelOptions options_;
  Endpoint local_;
};

}  // namespace netchannel::kernel
