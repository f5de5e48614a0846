// The transport over the API's UDP sockets, on every path.
#pragma once

#include "bench/ready_ports.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

class UdpTransport final : public HostTransport {
 public:
  // A client's sockets, one a flow; connect_to() gives them their peers. `near`: an address to send from, or
  // unspecified of the family to use.
  static Result<std::unique_ptr<UdpTransport>> open_client(Host& host, const BlockOptions& options,
                                                           const IpAddress& near);
  static Result<std::unique_ptr<UdpTransport>> open_server(Host& host, const BlockOptions& options,
                                                           const IpAddress& near);
  Result<void> connect_to(const Far& far, std::uint32_t flows) override;

  Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept override;
  Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most,
                                           Instant deadline) noexcept override;
  std::size_t send_back() noexcept override;
  std::vector<std::uint16_t> ports() const override;
  bool gathers_ports() const override { return channel_; }

 private:
  UdpTransport(Host& host, const BlockOptions& options);
  static Result<std::unique_ptr<UdpTransport>> open(Host& host, const BlockOptions& options,
                                                    const IpAddress& near, std::size_t sockets);
  Result<std::span<const Arrived>> receive_from(std::size_t port, std::size_t most, Wait wait) noexcept;
  Result<std::span<const Arrived>> receive_from_any(std::size_t most, Instant deadline) noexcept;
  std::span<const Arrived> nothing();

  bool channel_;
  bool patient_;
  std::vector<UdpSocket> sockets_;
  std::vector<Datagram> datagrams_;
  std::vector<Arrived> arrived_;
  std::vector<OutDatagram> out_;
  std::vector<SendStatus> statuses_;
  std::size_t arrived_count_ = 0;
  std::size_t last_port_ = 0;
  ReadyPorts ready_;
};

}  // namespace netchannel::bench
