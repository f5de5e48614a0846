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

CompareOptions::CompareOptions() {
  for (const Workload workload : kWorkloads) of(workload).sizes = {default_size(workload)};
  of(Workload::tcp_stream).sizes.insert(of(Workload::tcp_stream).sizes.begin(), 128);
}

std::optional<CompareOptions> preset(std::string_view name) {
  CompareOptions out;
  out.preset = name;
  out.lanes = lanes_of({"kernel", "kernel-batched", "xdp", "raw:xdp"});
  out.of(Workload::udp_stream).flows = 64;
  out.runs = 5;
  if (name == "demo") {
    out.workloads = {Workload::udp_rr, Workload::udp_stream, Workload::tcp_rr};
    out.seconds = 0.25;
    out.warmup = 0.08;
    return out;
  }
  if (name == "quick") {
    out.seconds = 0.8;
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
  Json out = {{"preset", options.preset},
              {"workloads", std::move(workloads)},
              {"paths", std::move(paths)},
              {"pairs", list_json(options.pairs)},
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
  for (const Workload workload : options.workloads) {
    const std::string name(to_string(workload));
    out["size_" + name] = list_json(options.of(workload).sizes);
    out["flows_" + name] = options.of(workload).flows;
  }
  return out;
}

Plan make_plan(const CompareOptions& options) {
  Plan plan;
  for (const Workload workload : options.workloads) {
    for (const std::uint32_t size : options.of(workload).sizes) {
      for (const std::uint32_t pairs : options.pairs) plan.cells.push_back({workload, size, pairs});
    }
  }
  for (const Lane& lane : options.lanes) {
    for (const WaitMode wait : waits_of(lane, options)) plan.contestants.push_back({lane, wait});
  }
  for (const Workload workload : options.workloads) {
    for (const Lane& lane : options.lanes) {
      if (auto why = why_not(lane, workload)) plan.left_out.push_back(std::move(*why));
    }
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
      for (const std::size_t contestant : order) {
        if (!why_not(plan.contestants[contestant].lane, plan.cells[cell].workload))
          plan.blocks.push_back({cell, contestant, round});
      }
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
  out.flows = options.of(cell.workload).flows;
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
  if (plan.blocks.empty() && !plan.left_out.empty()) return plan.left_out.front();
  if (plan.blocks.empty())
    return "nothing to measure: name at least one workload, path, size and number of pairs";
  for (const PlannedBlock& block : plan.blocks) {
    if (auto fault =
            fault_of(block_options(options, plan.cells[block.cell], plan.contestants[block.contestant])))
      return fault;
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
