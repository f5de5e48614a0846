// What a TcpSocket and a TcpListener stand on: one implementation for the channel paths, one for the
// kernel's. The calls are those of tcp_socket.hpp.
#pragma once

#include <memory>

#include "api/pollable.hpp"
#include "netchannel/tcp_socket.hpp"

namespace netchannel {

class TcpSocketImpl : public Pollable {
 public:
  virtual Result<void> finish_connect(Instant deadline) noexcept = 0;
  virtual Result<std::size_t> receive(std::span<Bytes> out, Instant deadline) noexcept = 0;
  virtual void consume(std::size_t bytes) noexcept = 0;
  virtual Result<std::size_t> read(std::span<const MutableBytes> to, Instant deadline) noexcept = 0;
  virtual Result<std::size_t> write(std::span<const Bytes> from, More more, Instant deadline) noexcept = 0;
  virtual Result<void> shutdown_write() noexcept = 0;
  virtual void close() noexcept = 0;
  virtual Result<void> close_gracefully(Instant deadline) noexcept = 0;
  virtual void abort() noexcept = 0;
  virtual Result<void> set_options(const TcpOptions& options) noexcept = 0;
  virtual Result<void> set_no_delay(bool on) noexcept = 0;
  virtual TcpInfo info() const noexcept = 0;
  virtual Endpoint local() const = 0;
  virtual Endpoint peer() const = 0;
  virtual std::size_t readable() const noexcept = 0;
  virtual std::size_t writable() const noexcept = 0;
  virtual bool accelerated() const noexcept = 0;
};

class TcpListenerImpl : public Pollable {
 public:
  virtual Result<std::unique_ptr<TcpSocketImpl>> accept(Instant deadline) noexcept = 0;
  virtual Endpoint local() const = 0;
  virtual std::size_t waiting() const noexcept = 0;
  virtual bool accelerated() const noexcept = 0;
};

}  // namespace netchannel
