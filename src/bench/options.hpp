// What is to be measured, as values: a workload, a lane, and their sizes. A lane is what --paths names: a
// path of the API, or the device of a channel path alone ("raw:xdp"; "raw" is the same). One BlockOptions
// describes one block, and crosses the control connection to the far end as JSON, where it is untrusted:
// block_from_json() checks every bound.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "netchannel/host.hpp"

namespace netchannel::bench {

enum class Workload : std::uint8_t { udp_rr, udp_stream, tcp_rr, tcp_stream, tcp_crr };
inline constexpr std::array kWorkloads = {Workload::udp_rr, Workload::udp_stream, Workload::tcp_rr,
                                          Workload::tcp_stream, Workload::tcp_crr};
inline constexpr std::string_view kWorkloadNames = "udp_rr, udp_stream, tcp_rr, tcp_stream, tcp_crr";
std::string_view to_string(Workload workload);
std::optional<Workload> parse_workload(std::string_view name);
constexpr bool is_tcp(Workload workload) { return workload >= Workload::tcp_rr; }
// A message that asks and one that answers, several of them in flight.
constexpr bool is_rr(Workload workload) {
  return workload == Workload::udp_rr || workload == Workload::tcp_rr;
}
// What one unit of its work is: "transaction", "message", "KB" (1024 bytes).
std::string_view unit_of(Workload workload);
// Bytes of a message if nothing is said.
std::uint32_t default_size(Workload workload);

struct Lane {
  std::string name = "kernel";  // as the user gave it; what reports print
  Path path = Path::kernel;
  bool raw = false;  // the device alone
  bool kernel() const { return path == Path::kernel || path == Path::kernel_batched; }
  // It works on an interface that the kernel goes on using.
  bool shares_interface() const { return path == Path::xdp || path == Path::bulk || path == Path::automatic; }
  // Its two ends are on one machine.
  bool local() const { return path == Path::local; }
  // One call a message: a batch would be a lie.
  bool single() const { return path == Path::kernel; }
};
// "auto" is the path that the host chooses by itself.
std::optional<Lane> parse_lane(std::string_view name);
inline constexpr std::string_view kLaneNames =
    "kernel, kernel-batched, xdp, bulk, local, tap, raw, raw:xdp, raw:bulk";

// Why a lane cannot do a workload at all, as a sentence; nothing if it may be tried.
std::optional<std::string> why_not(const Lane& lane, Workload workload);

inline constexpr std::uint32_t kLargestDatagram = 65507;
inline constexpr std::uint32_t kLargestWrite = 1 << 20;
inline constexpr std::uint32_t kMostBatchBytes = 64 << 10;  // of one TCP write
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
  std::uint32_t burst = 0;   // *_rr: requests in flight beyond one
  double rate = 0;           // messages a second over all pairs, open loop; 0: as fast as it goes
  double seconds = 2;        // measured
  double warmup = 0.2;       // before that, thrown away
  std::string device{};      // interface, or name of the TAP; empty: chosen by the path
  std::uint32_t mtu = 1500;  // tap
  std::uint32_t in_flight() const { return burst + 1; }
  std::uint32_t effective_batch() const;
};

// What is wrong with them, as a sentence for the user; nothing if they can be measured.
std::optional<std::string> fault_of(const BlockOptions& options);

// The host of a lane, as bench and serve both open it.
HostOptions host_options(const BlockOptions& options);

Json to_json(const BlockOptions& options);
// Errors: invalid_argument.
Result<BlockOptions> block_from_json(const Json& json);

}  // namespace netchannel::bench
