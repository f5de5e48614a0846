#include "bench/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace netchannel::bench {
namespace {

// The largest number of requests whose sequence numbers a message of that size can tell apart.
std::uint32_t distinguishable(std::uint32_t size) { return size >= 2 ? kMostInFlight : size == 1 ? 128 : 1; }

template <class T>
bool within(const T& value, const T& low, const T& high) {
  return value >= low && value <= high;
}

}  // namespace

std::string_view to_string(Workload workload) {
  switch (workload) {
    case Workload::udp_rr:
      return "udp_rr";
    case Workload::udp_stream:
      return "udp_stream";
    case Workload::tcp_rr:
      return "tcp_rr";
    case Workload::tcp_stream:
      return "tcp_stream";
    case Workload::tcp_crr:
      return "tcp_crr";
  }
  return "unknown";
}

std::optional<Workload> parse_workload(std::string_view name) {
  for (const auto workload : kWorkloads) {
    if (to_string(workload) == name) return workload;
  }
  return std::nullopt;
}

std::string_view unit_of(Workload workload) {
  if (workload == Workload::udp_stream) return "message";
  return workload == Workload::tcp_stream ? "KB" : "transaction";
}

std::uint32_t default_size(Workload workload) {
  if (workload == Workload::udp_stream) return 100;
  return workload == Workload::tcp_stream ? 65536 : 1;
}

std::optional<std::string> why_not(const Lane& lane, Workload workload) {
  if (!lane.raw || is_rr(workload)) return std::nullopt;
  if (lane.path == Path::bulk) {
    return fmt::format("{} does not do {}: a super-frame is not one message", lane.name, to_string(workload));
  }
  if (!is_tcp(workload)) return std::nullopt;
  return fmt::format("{} does not do {}: bare frames are no connection", lane.name, to_string(workload));
}

std::uint32_t BlockOptions::effective_batch() const {
  if (lane.single()) return 1;
  if (!is_tcp(workload)) return batch;
  return std::clamp(kMostBatchBytes / std::max(size, 1u), 1u, batch);
}

std::optional<Lane> parse_lane(std::string_view name) {
  Lane lane{.name = std::string(name)};
  if (name == "raw" || name == "raw:xdp") {
    lane.path = Path::xdp;
    lane.raw = true;
    return lane;
  }
  if (name == "raw:bulk") {
    lane.path = Path::bulk;
    lane.raw = true;
    return lane;
  }
  const auto path = parse_path(name);
  if (!path) return std::nullopt;
  lane.path = *path;
  return lane;
}

std::optional<std::string> fault_of(const BlockOptions& options) {
  if (auto why = why_not(options.lane, options.workload)) return why;
  const bool tcp = is_tcp(options.workload);
  if (!tcp && options.size > kLargestDatagram)
    return fmt::format("--size is at most {} bytes, the largest UDP payload", kLargestDatagram);
  if (tcp && !within(options.size, 1u, kLargestWrite))
    return fmt::format("--size is from 1 to {} bytes over TCP", kLargestWrite);
  if (!within(options.pairs, 1u, kMostPairs)) return fmt::format("--pairs is from 1 to {}", kMostPairs);
  if (options.flows < 1 || std::uint64_t{options.flows} * options.pairs > kMostFlows) {
    return fmt::format("--flows is at least 1, and flows times pairs at most {}", kMostFlows);
  }
  if (!within(options.batch, 1u, kMostBatch)) return fmt::format("--batch is from 1 to {}", kMostBatch);
  const std::uint32_t most = is_rr(options.workload) ? distinguishable(options.size) : kMostInFlight;
  if (options.burst >= most) {
    return fmt::format("--burst is at most {} with messages of {} bytes, whose number must tell them apart",
                       most - 1, options.size);
  }
  if (options.rate != 0 && options.workload == Workload::tcp_crr)
    return "--rate is not for tcp_crr, whose next connection begins when the last has ended";
  if (!within(options.rate, 0.0, 1e9)) return "--rate is at most 1e9 messages a second";
  if (!within(options.seconds, 0.05, 3600.0)) return "--duration is from 0.05 to 3600 seconds";
  if (!within(options.warmup, 0.0, 60.0)) return "--warmup is from 0 to 60 seconds";
  if (!within(options.mtu, 576u, 65535u)) return "--mtu is from 576 to 65535 bytes";
  if (options.lane.raw && options.size + 28 > options.mtu) {
    return fmt::format("{} sends whole frames: --size is at most {} at MTU {}", options.lane.name,
                       options.mtu - 28, options.mtu);
  }
  return std::nullopt;
}

HostOptions host_options(const BlockOptions& options) {
  HostOptions out;
  out.path = options.lane.path;
  out.device = options.device;
  out.wait = options.wait;
  out.mtu = options.mtu;
  return out;
}

Json to_json(const BlockOptions& options) {
  return {{"workload", to_string(options.workload)},
          {"path", options.lane.name},
          {"wait", to_string(options.wait)},
          {"size", options.size},
          {"pairs", options.pairs},
          {"flows", options.flows},
          {"batch", options.batch},
          {"burst", options.burst},
          {"rate_per_s", number(options.rate)},
          {"seconds", number(options.seconds)},
          {"warmup_s", number(options.warmup)},
          {"mtu", options.mtu}};
}

Result<BlockOptions> block_from_json(const Json& json) {
  const auto workload = parse_workload(get_text(json, "workload"));
  const auto lane = parse_lane(get_text(json, "path"));
  const auto wait = parse_wait_mode(get_text(json, "wait"));
  if (!workload || !lane || !wait) {
    return fail(ErrorCode::invalid_argument,
                "a block names an unknown workload, path or wait; use the same version at both ends");
  }
  const auto count = [&](const char* key) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(get_count(json, key, UINT32_MAX), UINT32_MAX));
  };
  BlockOptions out{.workload = *workload, .lane = *lane, .wait = *wait};
  out.size = count("size");
  out.pairs = count("pairs");
  out.flows = count("flows");
  out.batch = count("batch");
  out.burst = count("burst");
  out.rate = get_number(json, "rate_per_s", -1);
  out.seconds = get_number(json, "seconds", -1);
  out.warmup = get_number(json, "warmup_s", -1);
  out.mtu = count("mtu");
  if (fault_of(out))
    return fail(ErrorCode::invalid_argument, "a block's figures are out of range; look at who sent it");
  return out;
}

}  // namespace netchannel::bench
