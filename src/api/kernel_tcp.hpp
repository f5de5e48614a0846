// TCP on the kernel path: the calls of tcp_socket.hpp over kernel sockets, waiting as the host's mode says.
//
//   block     with kForever in the call itself, as a plain program; with a deadline: ask, ppoll, ask
//   spin      ask again and again
//   adaptive  ask again and again for spin_time, then as block
//
// read() goes straight into the caller's memory. receive() has to show bytes that somebody holds: it reads
// into a buffer of the socket's own, and shows that.
//
//   buffer  | consumed | shown, ready .. | room for the next call |
//           0          begin_            end_                     kBuffer
//
// Its two kinds of sockets stand in a list of their host's, for Host::wait(): that is where they are put into
// the host's epoll instance, when somebody first sleeps there, so that a program that never does pays
// nothing for it.
#pragma once

#include <memory>
#include <vector>

#include "api/tcp_impl.hpp"
#include "kernel/tcp_socket.hpp"
#include "netchannel/poller.hpp"

namespace netchannel {

class KernelTcpBase;

// What a kernel host knows of its TCP sockets.
class KernelTcpSockets {
 public:
  std::uint64_t syscalls = 0;  // made by all of them, closed ones included
  // Before a sleep on `epoll`: all of them are in it. False: one holds bytes that nobody has read yet.
  bool prepare_sleep(int epoll);

 private:
  friend class KernelTcpBase;
  std::vector<KernelTcpBase*> members_;
};

class KernelTcpBase {
 public:
  KernelTcpBase(HostImpl& host, KernelTcpSockets& siblings);
  KernelTcpBase(const KernelTcpBase&) = delete;
  KernelTcpBase& operator=(const KernelTcpBase&) = delete;

 protected:
  virtual ~KernelTcpBase();
  // The descriptor is about to be closed; only once.
  void leave(Pollable& self) noexcept;
  // Asks until the answer is another than would_block or the deadline has passed. ask(Blocking) -> Result.
  template <class Ask>
  auto ask_until(Instant deadline, short events, const Ask& ask) noexcept
      -> decltype(ask(kernel::Blocking::no));
  template <class Ask>
  auto ask_and_turn(Instant deadline, short events, const Ask& ask) noexcept
      -> decltype(ask(kernel::Blocking::no));
  virtual bool holds_bytes() const noexcept { return false; }
  virtual int descriptor() const noexcept = 0;

  HostImpl& host_;
  KernelTcpSockets& siblings_;

 private:
  friend class KernelTcpSockets;
  std::size_t place_;     // among the siblings
  bool watched_ = false;  // is in the host's epoll instance
};

class KernelTcp final : public TcpSocketImpl, private KernelTcpBase {
 public:
  KernelTcp(HostImpl& host, KernelTcpSockets& siblings, kernel::TcpSocket socket);
  // The handshake has begun, or, where the host waits in the call itself, is over.
  static Result<std::unique_ptr<TcpSocketImpl>> connect(HostImpl& host, KernelTcpSockets& siblings,
                                                        const Endpoint& peer, const ConnectOptions& options);
  ~KernelTcp() override;

  Result<void> finish_connect(Instant deadline) noexcept override;
  Result<std::size_t> receive(std::span<Bytes> out, Instant deadline) noexcept override;
  void consume(std::size_t bytes) noexcept override;
  Result<std::size_t> read(std::span<const MutableBytes> to, Instant deadline) noexcept override;
  Result<std::size_t> write(std::span<const Bytes> from, More more, Instant deadline) noexcept override;
  Result<void> shutdown_write() noexcept override { return socket_.shutdown_write(); }
  void close() noexcept override;
  Result<void> close_gracefully(Instant deadline) noexcept override;
  void abort() noexcept override;
  Result<void> set_options(const TcpOptions& options) noexcept override;
  Result<void> set_no_delay(bool on) noexcept override;
  TcpInfo info() const noexcept override { return socket_.info(); }
  Endpoint local() const override { return socket_.local(); }
  Endpoint peer() const override { return socket_.peer(); }
  std::size_t readable() const noexcept override { return end_ - begin_; }
  std::size_t writable() const noexcept override { return 0; }
  bool accelerated() const noexcept override { return false; }

  std::uint32_t readiness() noexcept override { return holds_bytes() ? kReadable : 0u; }
  int fd() const noexcept override { return socket_.descriptor().get(); }
  HostImpl& host() noexcept override { return host_; }

 private:
  bool holds_bytes() const noexcept override { return begin_ != end_; }
  int descriptor() const noexcept override { return fd(); }
  Result<std::size_t> fill(Instant deadline) noexcept;
  Result<void> tell_failure() noexcept;
  std::size_t copy_out(std::span<const MutableBytes> to) noexcept;

  kernel::TcpSocket socket_;
  std::unique_ptr<std::byte[]> buffer_;  // none until the first receive()
  std::size_t begin_ = 0, end_ = 0;
  bool shown_all_ = false;        // and nothing of it was consumed since
  std::optional<Error> failure_;  // what follows the bytes that are held
};

class KernelTcpListener final : public TcpListenerImpl, private KernelTcpBase {
 public:
  KernelTcpListener(HostImpl& host, KernelTcpSockets& siblings, kernel::TcpListener listener);
  static Result<std::unique_ptr<TcpListenerImpl>> open(HostImpl& host, KernelTcpSockets& siblings,
                                                       const Endpoint& local, const ListenOptions& options);
  ~KernelTcpListener() override;

  Result<std::unique_ptr<TcpSocketImpl>> accept(Instant deadline) noexcept override;
  Endpoint local() const override { return listener_.local(); }
  std::size_t waiting() const noexcept override { return 0; }
  bool accelerated() const noexcept override { return false; }

  std::uint32_t readiness() noexcept override { return 0; }
  int fd() const noexcept override { return listener_.descriptor().get(); }
  HostImpl& host() noexcept override { return host_; }

 private:
  int descriptor() const noexcept override { return fd(); }
  kernel::TcpListener listener_;
};

}  // namespace netchannel
