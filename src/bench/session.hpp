// The far end of one block: lets it work (far_end.hpp), and obeys the control connection between bursts.
//
//   client                                    session
//     hello {protocol, version, block} ------>          opens its ports
//     <------ {ports, address, mode, ...}               and from here on works
//     (warm-up)
//     start ------> <------ ok                          counters to zero, CPU time read
//     (measured)
//     stop {sent} ----> <----- ok                       over TCP takes in what is still on its way;
//                                                       CPU time read; what comes later still counts
//     report -----> <------ {counts, cpu, ...}
//     closes                                            is over
//
// A client that dies ends its session; one that says nothing for a minute while nothing arrives, too.
#pragma once

#include <functional>

#include "bench/control.hpp"
#include "bench/cpu.hpp"
#include "bench/far_end.hpp"

namespace netchannel::bench {

// A client's hello: what it wants. Errors: invalid_argument, not_supported (another version).
Result<BlockOptions> read_hello(const Json& hello);
Json make_hello(const BlockOptions& options, const MacAddress& mac);

class Session {
 public:
  Session(FarEnd& end, Control& control, const BlockOptions& options);
  // Until the client is gone. `tick` is called about every ten milliseconds: the host's other sockets want to
  // live too.
  void run(const std::function<void()>& tick);

 private:
  void work(Instant deadline);
  bool obey();
  void take_rest(std::uint64_t sent);
  Json report() const;

  FarEnd& end_;
  Control& control_;
  BlockOptions options_;
  CpuMeter meter_;
  CpuSample started_, stopped_;
  std::uint64_t syscalls_at_start_ = 0;
  std::uint64_t syscalls_at_stop_ = 0;
  Instant last_sign_of_life_;
  bool failed_ = false;
};

}  // namespace netchannel::bench
