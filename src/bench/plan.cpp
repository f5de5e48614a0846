#include "bench/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace netchannel::bench {
namespace {

std::vector<Lane> lanes_of(std::initializer_list<std::string_view> names) {
  std::vector<Lane> out;
  for (const std::string_view name : names) out.push_back(*parse_lane(name));
  return out;
}

std::vector<WaitMode> waits_of(const Lane& lane, const CompareOptions& options) {
  if (lane.raw) return {options.wait.value_or(WaitMode::spin)};
  if (lane.kernel()) {
    if (options.baseline_wait) return {*options.baseline_wait};
    if (options.wait) return {*options.wait};
    return {WaitMode::block, WaitMode::spin};
  }
  if (options.wait) return {*options.wait};
  return {WaitMode::adaptive, WaitMode::spin};
}

template <class T>
Json list_json(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(value);
  return out;
}

}  // namespace

std::optional<CompareOptions> preset(std::string_view name) {
  CompareOptions out;
  out.preset = name;
  out.lanes = lanes_of({"kernel", "kernel-batched", "xdp", "raw:xdp"});
  out.stream_flows = 64;
  if (name == "demo") {
    out.seconds = 0.4;
    out.warmup = 0.1;
    out.runs = 5;
    return out;
  }
  if (name == "quick") {
    out.rr_sizes = {1, 1024};
    out.stream_sizes = {100, 1400};
    out.seconds = 1;
    out.runs = 5;
    return out;
  }
  return std::nullopt;
}

Json to_json(const CompareOptions& options) {
  Json workloads = Json::array(), paths = Json::array();
  for (const Workload workload : options.workloads) workloads.push_back(to_string(workload));
  for (const Lane& lane : options.lanes) paths.push_back(lane.name);
  const auto wait = [](const std::optional<WaitMode>& mode) {
    return mode ? Json(to_string(*mode)) : Json(nullptr);
  };
  return {{"preset", options.preset},
          {"workloads", std::move(workloads)},
          {"paths", std::move(paths)},
          {"size_udp_rr", list_json(options.rr_sizes)},
          {"size_udp_stream", list_json(options.stream_sizes)},
          {"pairs", list_json(options.pairs)},
          {"flows_udp_rr", options.rr_flows},
          {"flows_udp_stream", options.stream_flows},
          {"batch", options.batch},
          {"burst", options.burst},
          {"rate_per_s", number(options.rate)},
          {"duration_s", number(options.seconds)},
          {"warmup_s", number(options.warmup)},
          {"runs", options.runs},
          {"wait", wait(options.wait)},
          {"baseline_wait", wait(options.baseline_wait)},
          {"mtu", options.mtu},
          {"offloads", options.offloads ? "default" : "off"},
          {"confidence", options.confidence},
          {"seed", options.seed}};
}

Plan make_plan(const CompareOptions& options) {
  Plan plan;
  for (const Workload workload : options.workloads) {
    for (const std::uint32_t size : workload == Workload::udp_rr ? options.rr_sizes : options.stream_sizes) {
      for (const std::uint32_t pairs : options.pairs) plan.cells.push_back({workload, size, pairs});
    }
  }
  for (const Lane& lane : options.lanes) {
    for (const WaitMode wait : waits_of(lane, options)) plan.contestants.push_back({lane, wait});
  }
  std::vector<std::size_t> order(plan.contestants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(options.seed);
  for (std::uint32_t round = 0; round < options.runs; ++round) {
    // Every other round in the mirror image of the one before; a new order for each two.
    if (round % 2 == 0) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    } else {
      std::reverse(order.begin(), order.end());
    }
    for (std::size_t cell = 0; cell < plan.cells.size(); ++cell) {
      for (const std::size_t contestant : order) plan.blocks.push_back({cell, contestant, round});
    }
  }
  return plan;
}

BlockOptions block_options(const CompareOptions& options, const Cell& cell, const Contestant& contestant) {
  BlockOptions out;
  out.workload = cell.workload;
  out.lane = contestant.lane;
  out.wait = contestant.wait;
  out.size = cell.size;
  out.pairs = cell.pairs;
  out.flows = cell.workload == Workload::udp_rr ? options.rr_flows : options.stream_flows;
  out.batch = options.batch;
  out.burst = options.burst;
  out.rate = options.rate;
  out.seconds = options.seconds;
  out.warmup = options.warmup;
  out.mtu = options.mtu;
  return out;
}

std::optional<std::string> fault_of(const CompareOptions& options, const Plan& plan) {
  if (options.runs < 1 || options.runs > 1000) return "--runs is from 1 to 1000";
  if (plan.blocks.empty())
    return "nothing to measure: name at least one workload, path, size and number of pairs";
  for (const Cell& cell : plan.cells) {
    for (const Contestant& contestant : plan.contestants) {
      if (auto fault = fault_of(block_options(options, cell, contestant))) return fault;
    }
  }
  return std::nullopt;
}

bool is_compared(const Plan& plan, std::size_t contestant, std::size_t baseline) {
  const auto& contestants = plan.contestants;
  const Contestant& who = contestants[contestant];
  const Contestant& base = contestants[baseline];
  if (contestant == baseline || !(base.lane.kernel() || base.lane.raw)) return false;
  const auto same_lane = [&](const Contestant& other) { return other.lane.name == base.lane.name; };
  // A lane that is listed twice is compared with itself (the null comparison), the later with the earlier.
  if (same_lane(who)) return contestant > baseline && who.wait == base.wait;
  // The bare device is the limit of the paths over it, and of nothing else.
  if (base.lane.raw && (who.lane.path != base.lane.path || who.lane.raw)) return false;
  if (who.lane.path == Path::kernel) return false;
  for (std::size_t i = 0; i < baseline; ++i) {
    if (same_lane(contestants[i]) && contestants[i].wait == base.wait) return false;
  }
  const bool one_way = std::all_of(contestants.begin(), contestants.end(), [&](const Contestant& other) {
    return !same_lane(other) || other.wait == base.wait;
  });
  const bool alike = (who.wait == WaitMode::spin) == (base.wait == WaitMode::spin);
  return alike || (one_way && base.lane.kernel());
}

}  // namespace netchannel::bench
