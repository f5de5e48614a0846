// A UDP socket on a channel path: a socket of the stack, beside the kernel socket that reserves its port.
// What the stack cannot send (another interface's peer, this machine itself) leaves through the kernel's
// socket, and what the kernel receives for the port is injected into the stack: nothing is lost for being on
// the slow path.
#pragma once

#include <optional>

#include "api/claim_set.hpp"
#include "api/udp_impl.hpp"
#include "control/reservation.hpp"
#include "stack/stack.hpp"

namespace netchannel {

class ChannelHost;

class ChannelUdp final : public UdpSocketImpl {
 public:
  static Result<std::unique_ptr<ChannelUdp>> open(ChannelHost& host, const Endpoint& local,
                                                  const UdpOptions& options);
  ~ChannelUdp() override;

  Result<void> connect(const Endpoint& peer) override;
  Endpoint local() const override;
  Endpoint peer() const override;
  Result<std::size_t> receive(std::span<Datagram> out, Wait wait) noexcept override;
  Result<std::size_t> send(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                           More more) noexcept override;
  std::size_t pending() const noexcept override;
  bool accelerated() const noexcept override { return true; }
  std::uint32_t readiness() noexcept override;
  int fd() const noexcept override { return -1; }
  HostImpl& host() noexcept override;

  // The kernel's socket is readable. Bounded work. Returns the system calls made.
  std::uint64_t take_slow_path();

 private:
  ChannelUdp(ChannelHost& host, const UdpOptions& options)
      : host_(host), options_(options), claims_(host, Protocol::udp, options.v6_only) {}
  std::size_t take(std::span<Datagram> out);
  Result<void> connect_by_kernel(const Endpoint& peer);
  void send_by_kernel(std::span<const OutDatagram> in, std::span<SendStatus> statuses);

  ChannelHost& host_;
  UdpOptions options_;
  Endpoint bound_;
  Endpoint peer_;
  std::optional<control::Reservation> reservation_;  // none on a bare device
  std::optional<Error> slow_error_;                  // of the kernel's socket, not told yet
  stack::UdpHandle handle_;
  ClaimSet claims_;
};

}  // namespace netchannel
