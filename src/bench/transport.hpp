// What a workload is written against: numbered ports that send and receive messages in batches. One
// implementation stands over the public API's UDP sockets, one over its TCP connections (every path), and one
// over a bare device (raw), so that the same loops measure all and only the transport differs.
//
// A client has pairs x flows ports, port p x flows + f being flow f of pair p, each with one peer; a server
// has a port a pair and answers whoever asks, or over TCP a port a connection. One thread's. Waiting is by
// the wait mode that the transport was opened with.
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

// Where the other end is. A raw transport needs its MAC too.
struct Far {
  IpAddress address;
  std::vector<std::uint16_t> ports;  // one a pair
  MacAddress mac;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // A client's peers; a server needs none.
  virtual Result<void> connect_to(const Far& far, std::uint32_t flows) = 0;
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

  // Waits until all that was sent has arrived at the far end's host, as far as the transport can know.
  virtual void finish_sending(Instant) noexcept {}
  // What was sent arrives, however long it takes: to send it again would be wrong.
  virtual bool reliable() const { return false; }

  virtual MacAddress mac() const { return {}; }          // a raw transport's own
  virtual std::vector<std::uint16_t> ports() const = 0;  // where the server is asked, one a pair, in order
  virtual std::uint64_t syscalls() const = 0;            // made so far, on the packet path
  virtual std::string mode() const = 0;
  virtual std::vector<std::string> explain() const = 0;
  // Held back messages cost nothing and leave in one burst, whatever ports they are of.
  virtual bool gathers_ports() const = 0;
};

// What the transports over a host have in common.
class HostTransport : public Transport {
 public:
  void wait(Instant deadline) noexcept override {
    if (!host_.poll()) host_.wait(deadline);
  }
  std::uint64_t syscalls() const override { return host_.syscalls(); }
  std::string mode() const override { return host_.mode(); }
  std::vector<std::string> explain() const override { return host_.explain(); }

 protected:
  explicit HostTransport(Host& host) : host_(host) {}
  Host& host_;
};

// Called when a host is open and before it is used: a TAP's kernel side is set up then.
using HostHook = std::function<Outcome<void>(const Host&)>;

}  // namespace netchannel::bench
