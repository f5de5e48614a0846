// What the far end of a block does while it is measured, by workload: answers what is asked (*_rr), checks
// and counts what arrives (*_stream), or takes connection after connection (tcp_crr). A session (session.hpp)
// drives it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/outcome.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

class FarEnd {
 public:
  enum class Turn : std::uint8_t { idle, worked, failed };
  virtual ~FarEnd() = default;
  // Does what has come, or waits for it until the deadline.
  virtual Turn work(Instant deadline) = 0;
  // The measurement begins: what the warm-up left behind is not the measurement's.
  virtual void start() = 0;
  // Messages that have arrived since then.
  virtual std::uint64_t received() const = 0;
  // For the client, which knows what of it means something.
  virtual Json report() const = 0;

  virtual std::uint64_t syscalls() const = 0;
  virtual std::vector<std::uint16_t> ports() const = 0;  // where it is asked, one a pair
  virtual MacAddress mac() const { return {}; }          // of a bare device
  virtual std::string mode() const = 0;
  virtual std::vector<std::string> explain() const = 0;
};

// `host` is null on a raw path. `address`: where it is asked. Errors: what opening a device or a socket of
// that path says.
Result<std::unique_ptr<FarEnd>> open_far_end(Host* host, const BlockOptions& block, const IpAddress& address);

}  // namespace netchannel::bench
