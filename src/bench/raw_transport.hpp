// The device alone: frames bounced or blasted with no stack above it, the limit of what any path over it can
// reach. IPv4 and UDP headers are made once, without a UDP checksum (RFC 768 allows 0); what arrives is
// looked at no further than the ports and lengths. Its ports are claimed like anybody's, so the kernel keeps
// everything else.
//
// Every slot of the region is alike: lent for receiving, bounced in place, or filled and sent; what the
// device gives back is free for either.
#pragma once

#include "base/unique_fd.hpp"
#include "bench/transport.hpp"
#include "netchannel/raw.hpp"

namespace netchannel::bench {

class RawTransport final : public Transport {
 public:
  // `near` is this end's IPv4 address on the device. Errors: as Host::open, and not_supported for IPv6.
  static Result<std::unique_ptr<RawTransport>> open(const BlockOptions& options, const IpAddress& near,
                                                    std::size_t ports);
  ~RawTransport() override;
  MacAddress mac() const override { return device().info().mac; }
  Result<void> connect_to(const Far& far, std::uint32_t flows) override;
  Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept override;
  Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most,
                                           Instant deadline) noexcept override;
  std::size_t send_back() noexcept override;
  void wait(Instant deadline) noexcept override;
  std::vector<std::uint16_t> ports() const override { return ports_; }
  std::uint64_t syscalls() const override;
  std::string mode() const override { return device().info().mode; }
  std::vector<std::string> explain() const override;
  bool gathers_ports() const override { return true; }

 private:
  RawTransport(RawDevice opened, const BlockOptions& options, const IpAddress& near);
  Device& device() const { return *opened_.device; }
  Result<void> claim_ports(std::size_t count);
  void lend() noexcept;
  void take_back() noexcept;
  std::size_t flush(std::span<const FrameDesc> frames) noexcept;
  bool take_in(const FrameDesc& desc) noexcept;

  RawDevice opened_;
  WaitMode wait_;
  IpAddress near_;
  std::uint32_t size_;
  std::vector<UniqueFd> reservations_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::size_t> index_of_port_;
  std::vector<std::array<std::byte, 42>> headers_;  // of each port's frames
  std::vector<std::uint32_t> free_;                 // slots
  std::size_t lent_ = 0;
  std::vector<FrameDesc> held_;     // to be sent, kept back by `more`
  std::vector<FrameDesc> current_;  // of the last receive
  std::vector<Arrived> arrived_;
  std::uint64_t sleeps_ = 0;
  Instant idle_since_{};
};

}  // namespace netchannel::bench
