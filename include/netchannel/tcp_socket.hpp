// TCP over any path: a listener and a connection. Both belong to their Host's thread and must not outlive the
// Host. A call that can wait takes an absolute deadline (Host::now()'s clock): kForever waits, kNow does not
// wait and fails with would_block when there is nothing to do; a deadline that passes fails with timed_out.
//
//   auto listener = host->listen({IpAddress::any_v4(), 80});
//   auto socket = listener->accept();
//   std::array<Bytes, 4> views;
//   auto ready = socket->receive(views);        // views over the frames as they came, no copy
//   socket->write(answer);
//   socket->consume(*ready);
//
// Errors are the kernel's, with its errno: refused (ECONNREFUSED), reset (ECONNRESET), timed_out (ETIMEDOUT:
// the peer or the path is gone), unreachable (EHOSTUNREACH, ENETUNREACH), closed (EPIPE: written after the
// end), interrupted (EINTR: a signal came while asleep). The end of the stream is no error: 0 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"
#include "netchannel/tcp_info.hpp"
#include "netchannel/time.hpp"
#include "netchannel/udp_socket.hpp"

namespace netchannel {

// A deadline that has passed: do not wait.
inline constexpr Instant kNow{};

enum class CongestionControl : std::uint8_t { cubic, reno };

struct TcpOptions {
  bool no_delay = false;             // TCP_NODELAY: Nagle's algorithm is off
  bool quick_ack = false;            // TCP_QUICKACK, for good: no acknowledgement is delayed
  std::uint32_t send_buffer = 0;     // bytes; 0: grows as the connection needs
  std::uint32_t receive_buffer = 0;  // bytes; 0: likewise
  std::uint16_t max_segment = 0;     // TCP_MAXSEG; 0: the path's
  Duration user_timeout{0};          // TCP_USER_TIMEOUT; 0: about a quarter of an hour
  bool keepalive = false;            // SO_KEEPALIVE
  Duration keepalive_idle = std::chrono::hours(2);
  Duration keepalive_interval = std::chrono::seconds(75);
  std::uint8_t keepalive_probes = 9;
  CongestionControl congestion = CongestionControl::cubic;
  bool ecn = false;  // ask for it; a peer that asks gets it anyway
  std::uint8_t ttl = 64, tos = 0;
};

struct ConnectOptions {
  Endpoint local{};             // unspecified address or port 0: chosen
  Instant deadline = kForever;  // kNow: the socket is returned while it connects; writable says that it has
  TcpOptions tcp{};
};

struct ListenOptions {
  std::uint32_t backlog = 4096;  // connections that may wait to be accepted
  bool reuse_address = true;     // SO_REUSEADDR
  bool reuse_port = false;       // SO_REUSEPORT
  bool v6_only = false;          // IPV6_V6ONLY
  TcpOptions tcp{};              // of the connections
};

struct HostImpl;
class TcpSocketImpl;
class TcpListenerImpl;

class TcpSocket {
 public:
  explicit TcpSocket(std::unique_ptr<TcpSocketImpl> impl);
  TcpSocket(TcpSocket&&) noexcept;
  TcpSocket& operator=(TcpSocket&&) noexcept;
  ~TcpSocket();  // close(), if that was not called

  // Waits until the handshake is over. Errors: refused, unreachable, timed_out, would_block.
  Result<void> finish_connect(Instant deadline = kForever) noexcept;

  // Waits until bytes are ready and fills `out` with views of them, in order; returns the sum of their sizes,
  // 0 at the end of the stream. They last until consume(). More bytes may be ready than views can show.
  Result<std::size_t> receive(std::span<Bytes> out, Instant deadline = kForever) noexcept;
  // Done with the first `bytes` ready bytes, at most what receive() has shown. Opens the window.
  void consume(std::size_t bytes) noexcept;
  // Copies; returns as soon as there is anything, at most what fits. 0: the end of the stream.
  Result<std::size_t> read(MutableBytes to, Instant deadline = kForever) noexcept;
  Result<std::size_t> read(std::span<const MutableBytes> to, Instant deadline = kForever) noexcept;

  // Copies into the send buffer, waiting for room until everything is in or the deadline has passed; returns
  // how much is in. An error only if nothing is. More::yes: more is coming at once, partial segments may wait
  // for it (200 ms at most).
  Result<std::size_t> write(Bytes from, More more = More::no, Instant deadline = kForever) noexcept;
  Result<std::size_t> write(std::span<const Bytes> from, More more = More::no,
                            Instant deadline = kForever) noexcept;

  // The peer sees the end of the stream behind what was written; reading goes on.
  Result<void> shutdown_write() noexcept;
  // What was written is sent and acknowledged in the background, as far as the host is polled; unread data
  // resets the connection (RFC 2525 section 2.17).
  void close() noexcept;
  // Waits until everything written, and the end, is acknowledged (SO_LINGER), and closes. Errors: timed_out,
  // reset.
  Result<void> close_gracefully(Instant deadline) noexcept;
  // RST at once; what was not sent is lost.
  void abort() noexcept;

  Result<void> set_no_delay(bool on) noexcept;
  // All options can be changed but the segment size and, once they are set, the buffers' way of growing.
  Result<void> set_options(const TcpOptions& options) noexcept;
  TcpInfo info() const noexcept;
  Endpoint local() const;
  Endpoint peer() const;
  // Bytes that are ready, and that write() would take at once; as known without a system call, or 0.
  std::size_t readable() const noexcept;
  std::size_t writable() const noexcept;
  bool accelerated() const noexcept;  // its segments do not pass the kernel's socket path

  TcpSocketImpl& impl() { return *impl_; }

 private:
  std::unique_ptr<TcpSocketImpl> impl_;
};

class TcpListener {
 public:
  explicit TcpListener(std::unique_ptr<TcpListenerImpl> impl);
  TcpListener(TcpListener&&) noexcept;
  TcpListener& operator=(TcpListener&&) noexcept;
  ~TcpListener();  // what was not accepted is reset

  // Errors: timed_out, would_block, interrupted.
  Result<TcpSocket> accept(Instant deadline = kForever) noexcept;
  Endpoint local() const;
  std::size_t waiting() const noexcept;  // connections to be accepted, as known without a system call
  bool accelerated() const noexcept;

  TcpListenerImpl& impl() { return *impl_; }

 private:
  std::unique_ptr<TcpListenerImpl> impl_;
};

}  // namespace netchannel
