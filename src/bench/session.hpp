// The far end of one block: answers (udp_rr) or checks and counts (udp_stream) what arrives, and obeys the
// control connection between bursts.
//
//   client                                    session
//     hello {protocol, version, block} ------>          opens its ports
//     <------ {ports, address, mode, ...}               and from here on works
//     (warm-up)
//     start ------> <------ ok                          counters to zero, CPU time read
//     (measured)
//     stop  ------> <------ ok                          CPU time read; what is still on its way is still
//     counted report -----> <------ {counts, cpu, ...} closes                                            is
//     over
//
// A client that dies ends its session; one that says nothing for a minute while nothing arrives, too.
#pragma once

#include <functional>

#include "bench/control.hpp"
#include "bench/cpu.hpp"
#include "bench/histogram.hpp"
#include "bench/message.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

// A client's hello: what it wants. Errors: invalid_argument, not_supported (another version).
Result<BlockOptions> read_hello(const Json& hello);
Json make_hello(const BlockOptions& options, const MacAddress& mac);

class Session {
 public:
  Session(Transport& transport, Control& control, const BlockOptions& options);
  // Until the client is gone. `tick` is called about every ten milliseconds: the host's other sockets want to
  // live too.
  void run(const std::function<void()>& tick);

 private:
  void work(Instant deadline);
  void count(std::span<const Arrived> arrived);
  bool obey();
  Json report() const;

  Transport& transport_;
  Control& control_;
  BlockOptions options_;
  StreamCheck check_;
  Histogram latency_;  // stamp to arrival; meaningful only on one machine
  CpuMeter meter_;
  CpuSample started_, stopped_;
  std::uint64_t syscalls_at_start_ = 0;
  std::uint64_t syscalls_at_stop_ = 0;
  std::uint64_t replied_ = 0;
  Instant last_sign_of_life_;
  bool failed_ = false;
};

}  // namespace netchannel::bench
