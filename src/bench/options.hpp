// What is to be measured, as values: a workload, a lane, and their sizes. A lane is what --paths names: a
// path of the API, or the device of a channel path alone ("raw:xdp"; "raw" is the same). One BlockOptions
// describes one block, and crosses the control connection to the far end as JSON, where it is untrusted:
// block_from_json() checks every bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "netchannel/host.hpp"

namespace netchannel::bench {

enum class Workload : std::uint8_t { udp_rr, udp_stream };
std::string_view to_string(Workload workload);
std::optional<Workload> parse_workload(std::string_view name);
// What one unit of its work is: "transaction", "message".
std::string_view unit_of(Workload workload);

struct Lane {
  std::string name = "kernel";  // as the user gave it; what reports print
  Path path = Path::kernel;
  bool raw = false;  // the device alone
  bool kernel() const { return path == Path::kernel || path == Path::kernel_batched; }
  // One call a message: a batch would be a lie.
  bool single() const { return path == Path::kernel; }
};
// "auto" is the path that the host chooses by itself.
std::optional<Lane> parse_lane(std::string_view name);
inline constexpr std::string_view kLaneNames = "kernel, kernel-batched, xdp, tap, raw, raw:xdp";

inline constexpr std::uint32_t kLargestSize = 65507;
inline constexpr std::uint32_t kMostPairs = 256;
inline constexpr std::uint32_t kMostFlows = 4096;  // over all pairs
inline constexpr std::uint32_t kMostBatch = 1024;
inline constexpr std::uint32_t kMostInFlight = 4096;

struct BlockOptions {
  Workload workload = Workload::udp_rr;
  Lane lane;
  WaitMode wait = WaitMode::adaptive;
  std::uint32_t size = 1;    // payload bytes of a message
  std::uint32_t pairs = 1;   // parallel flows
  std::uint32_t flows = 1;   // peers that each pair takes in turn
  std::uint32_t batch = 32;  // messages a call, where the lane can
  std::uint32_t burst = 0;   // udp_rr: requests in flight beyond one
  double rate = 0;           // messages a second over all pairs, open loop; 0: as fast as it goes
  double seconds = 2;        // measured
  double warmup = 0.2;       // before that, thrown away
  std::string device{};      // interface, or name of the TAP; empty: chosen by the path
  std::uint32_t mtu = 1500;  // tap
  std::uint32_t in_flight() const { return burst + 1; }
  std::uint32_t effective_batch() const { return lane.single() ? 1 : batch; }
};

// What is wrong with them, as a sentence for the user; nothing if they can be measured.
std::optional<std::string> fault_of(const BlockOptions& options);

Json to_json(const BlockOptions& options);
// Errors: invalid_argument.
Result<BlockOptions> block_from_json(const Json& json);

}  // namespace netchannel::bench
