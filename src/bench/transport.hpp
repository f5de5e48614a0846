// What a workload is written against: numbered ports that send and receive messages in batches. One
// implementation stands over the public API's sockets (every path), the other over a bare device (raw), so
// that the same loops measure both and only the transport differs.
//
// A client has pairs x flows ports, port p x flows + f being flow f of pair p, each with one peer; a server
// has a port a pair and answers whoever asks. One thread's. Waiting is by the wait mode that the transport
// was opened with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/outcome.hpp"
#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"
#include "netchannel/host.hpp"
#include "netchannel/time.hpp"

namespace netchannel::bench {

inline constexpr std::size_t kAnyPort = static_cast<std::size_t>(-1);

struct Arrived {
  Bytes payload;
  std::uint16_t peer_port = 0;
  std::size_t port = 0;  // ours
};

struct Sent {
  std::size_t taken = 0;   // of those given; the others can be given again
  std::size_t failed = 0;  // of those taken: refused for good
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Sends from a port to its peer. `more`: the burst goes on with another call.
  virtual Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept = 0;
  // What has arrived at the port, at most `most`, valid until the next call; waits for the first until the
  // deadline. A transport may answer with other ports' messages. Empty: the deadline has passed, or a signal
  // came. Errors: those of UdpSocket::receive but interrupted.
  virtual Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most,
                                                   Instant deadline) noexcept = 0;
  // Sends all that the last receive() returned back to where it came from; says how many went.
  virtual std::size_t send_back() noexcept = 0;
  // Waits until a message of any port may have come or something can be sent, or the deadline.
  virtual void wait(Instant deadline) noexcept = 0;

  virtual std::vector<std::uint16_t> ports() const = 0;  // the UDP ports, in order
  virtual std::uint64_t syscalls() const = 0;            // made so far, on the packet path
  virtual std::string mode() const = 0;
  virtual std::vector<std::string> explain() const = 0;
  // Held back messages cost nothing and leave in one burst, whatever ports they are of.
  virtual bool gathers_ports() const = 0;
};

// Where the other end is. A raw transport needs its MAC too.
struct Far {
  IpAddress address;
  std::vector<std::uint16_t> ports;  // one a pair
  MacAddress mac;
};

// --- over the API ---

class HostTransport final : public Transport {
 public:
  // A client's sockets, one a flow; connect_to() gives them their peers. `near`: an address to send from, or
  // unspecified of the family to use.
  static Result<std::unique_ptr<HostTransport>> open_client(Host& host, const BlockOptions& options,
                                                            const IpAddress& near);
  static Result<std::unique_ptr<HostTransport>> open_server(Host& host, const BlockOptions& options,
                                                            const IpAddress& near);
  Result<void> connect_to(const Far& far, std::uint32_t flows);

  Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept override;
  Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most,
                                           Instant deadline) noexcept override;
  std::size_t send_back() noexcept override;
  void wait(Instant deadline) noexcept override {
    if (!host_.poll()) host_.wait(deadline);
  }
  std::vector<std::uint16_t> ports() const override;
  std::uint64_t syscalls() const override { return host_.syscalls(); }
  std::string mode() const override { return host_.mode(); }
  std::vector<std::string> explain() const override { return host_.explain(); }
  bool gathers_ports() const override { return channel_; }

 private:
  HostTransport(Host& host, const BlockOptions& options);
  static Result<std::unique_ptr<HostTransport>> open(Host& host, const BlockOptions& options,
                                                     const IpAddress& near, std::size_t sockets);
  Result<std::span<const Arrived>> receive_from(std::size_t port, std::size_t most, Wait wait) noexcept;
  Result<std::span<const Arrived>> receive_from_any(std::size_t most, Instant deadline) noexcept;
  Result<std::span<const Arrived>> receive_from_ready(std::size_t most, Instant deadline) noexcept;
  std::span<const Arrived> nothing();

  Host& host_;
  bool channel_;
  bool patient_;  // block without a deadline: the ticker (signals.hpp) interrupts
  std::vector<UdpSocket> sockets_;
  std::vector<Datagram> datagrams_;
  std::vector<Arrived> arrived_;
  std::vector<OutDatagram> out_;
  std::vector<SendStatus> statuses_;
  std::vector<std::size_t> ready_;  // kernel paths: what the poller named and was not received from yet
  std::size_t arrived_count_ = 0;
  std::size_t last_port_ = 0;
  std::size_t next_port_ = 0;
};

// Called when a host is open and before it is used: a TAP's kernel side is set up then.
using HostHook = std::function<Outcome<void>(const Host&)>;

// The host of a lane, as bench and serve both open it.
HostOptions host_options(const BlockOptions& options);

}  // namespace netchannel::bench
