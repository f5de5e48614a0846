// The near end of a block: opens the lane, agrees with the far end's session (session.hpp), warms up,
// measures between two barriers, and makes the block's JSON of what both ends counted.
//
// On the kernel paths each pair is a process of its own, as the workloads are defined; on a channel path all
// pairs are flows of one host. The processes go through the same phases in step (connect, warm up, arm,
// measure, finish), so the machine's CPU time is read once, around the phase in which all of them measure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/control.hpp"
#include "bench/cpu.hpp"
#include "bench/options.hpp"
#include "bench/outcome.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

struct ClientOptions {
  BlockOptions block;
  Endpoint control;                             // of the far end's serve
  Duration patience = std::chrono::seconds(5);  // for the far end to be there
  std::vector<Prefix> addresses;                // tap: our own
  std::vector<IpAddress> gateways;              // tap
  XdpOptions xdp;
  HostHook on_host;
};

// Measures one block. Its JSON is as docs/compare.schema.json has it, without what only a plan knows (order,
// round). After an interrupt the block is what was measured until then, with the flag "interrupted".
Outcome<Json> run_block(const ClientOptions& options);

// One process's part, by phase; each phase is called once, in this order.
class Worker {
 public:
  explicit Worker(const ClientOptions& options);
  ~Worker();
  Outcome<void> connect();  // from its end on an interrupt shortens measure() and fails nothing
  Outcome<void> warm_up();
  Outcome<void> arm();
  Outcome<void> measure();
  Outcome<Json> finish();  // the part: counts, times, histograms

 private:
  struct Lane;
  Outcome<void> open_lane();
  Result<void> open_load(const Far& far);
  void add_received(const Json& report);
  void settle();
  Outcome<Json> ask(const char* what);
  Outcome<void> run(double seconds);

  ClientOptions options_;
  std::optional<Control> control_;
  std::unique_ptr<Lane> lane_;
  Json hello_;  // the far end's
  Json part_;
  CpuMeter meter_;
};

}  // namespace netchannel::bench
