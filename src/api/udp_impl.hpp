// What a UdpSocket stands on: one implementation for the channel paths, one for the kernel's.
#pragma once

#include "api/pollable.hpp"
#include "netchannel/udp_socket.hpp"

namespace netchannel {

class UdpSocketImpl : public Pollable {
 public:
  virtual Result<void> connect(const Endpoint& peer) = 0;
  virtual Endpoint local() const = 0;
  virtual Endpoint peer() const = 0;
  virtual Result<std::size_t> receive(std::span<Datagram> out, Wait wait) noexcept = 0;
  virtual Result<std::size_t> send(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                                   More more) noexcept = 0;
  virtual std::size_t pending() const noexcept = 0;
  virtual bool accelerated() const noexcept = 0;
};

}  // namespace netchannel
