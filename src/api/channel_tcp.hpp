// TCP sockets on a channel path: connections and listeners of the stack, and the waiting for them.
#pragma once

#include <optional>

#include "api/tcp_impl.hpp"
#include "stack/tcp.hpp"

namespace netchannel {

class ChannelHost;

tcp::Settings tcp_settings(const ChannelHost& host, const TcpOptions& options);

class ChannelTcp final : public TcpSocketImpl {
 public:
  ChannelTcp(ChannelHost& host, stack::TcpHandle connection);
  ~ChannelTcp() override;
  // Errors as Host::connect, but those of the handshake.
  static Result<std::unique_ptr<TcpSocketImpl>> connect(ChannelHost& host, const Endpoint& peer,
                                                        const ConnectOptions& options);

  Result<void> finish_connect(Instant deadline) noexcept override;
  Result<std::size_t> receive(std::span<Bytes> out, Instant deadline) noexcept override;
  void consume(std::size_t bytes) noexcept override;
  Result<std::size_t> read(std::span<const MutableBytes> to, Instant deadline) noexcept override;
  Result<std::size_t> write(std::span<const Bytes> from, More more, Instant deadline) noexcept override;
  Result<void> shutdown_write() noexcept override;
  void close() noexcept override;
  Result<void> close_gracefully(Instant deadline) noexcept override;
  void abort() noexcept override;
  Result<void> set_options(const TcpOptions& options) noexcept override;
  Result<void> set_no_delay(bool on) noexcept override;
  TcpInfo info() const noexcept override;
  Endpoint local() const override { return kernel_ ? kernel_->local() : local_; }
  Endpoint peer() const override { return peer_; }
  std::size_t readable() const noexcept override;
  std::size_t writable() const noexcept override;
  bool accelerated() const noexcept override { return kernel_ == nullptr; }

  std::uint32_t readiness() noexcept override;
  int fd() const noexcept override { return kernel_ ? kernel_->fd() : -1; }
  HostImpl& host() noexcept override;

 private:
  const tcp::Connection* connection() const;
  bool left_to_kernel() noexcept;
  bool something_to_read();
  std::size_t write_some(Bytes from);
  void send_out();
  std::optional<Error> failure() const;
  void forget() noexcept;

  ChannelHost& host_;
  stack::TcpHandle handle_;
  Endpoint local_, peer_;
  std::optional<ConnectOptions> else_by_kernel_;  // local path, until connected: what to ask the kernel for
  std::unique_ptr<TcpSocketImpl> kernel_;         // which has it now
  std::optional<Error> refused_;                  // by the kernel too
  bool told_ = false;  // the failure has been returned once; then it is the end of the stream
};

class ChannelTcpListener final : public TcpListenerImpl {
 public:
  static Result<std::unique_ptr<TcpListenerImpl>> open(ChannelHost& host, const Endpoint& local,
                                                       const ListenOptions& options);
  ~ChannelTcpListener() override;

  Result<std::unique_ptr<TcpSocketImpl>> accept(Instant deadline) noexcept override;
  Endpoint local() const override { return local_; }
  std::size_t waiting() const noexcept override;
  bool accelerated() const noexcept override { return true; }

  std::uint32_t readiness() noexcept override;
  int fd() const noexcept override { return -1; }
  HostImpl& host() noexcept override;

 private:
  explicit ChannelTcpListener(ChannelHost& host) : host_(host) {}
  ChannelHost& host_;
  stack::TcpListenerHandle handle_;
  stack::LeaseId lease_ = 0;
  Endpoint local_;
};

}  // namespace netchannel
