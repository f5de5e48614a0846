// A listener of a local host: the port is a listening kernel socket's, for everybody, and a listener of the
// stack's beside it, for local hosts, who find it by its name. Connections come from both.
#pragma once

#include "api/kernel_tcp.hpp"
#include "api/tcp_impl.hpp"
#include "stack/tcp.hpp"

namespace netchannel {

class ChannelHost;

class LocalTcpListener final : public TcpListenerImpl {
 public:
  static Result<std::unique_ptr<TcpListenerImpl>> open(ChannelHost& host, const Endpoint& local,
                                                       const ListenOptions& options);
  ~LocalTcpListener() override;

  Result<std::unique_ptr<TcpSocketImpl>> accept(Instant deadline) noexcept override;
  Endpoint local() const override { return kernel_->local(); }
  std::size_t waiting() const noexcept override;
  bool accelerated() const noexcept override { return true; }

  std::uint32_t readiness() noexcept override;
  int fd() const noexcept override { return kernel_->fd(); }
  HostImpl& host() noexcept override;

 private:
  LocalTcpListener(ChannelHost& host, std::unique_ptr<TcpListenerImpl> kernel, bool v6_only)
      : host_(host), kernel_(std::move(kernel)), v6_only_(v6_only) {}
  ChannelHost& host_;
  std::unique_ptr<TcpListenerImpl> kernel_;
  bool v6_only_;
  stack::TcpListenerHandle handle_;
};

}  // namespace netchannel
