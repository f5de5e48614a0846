// Which blocks a comparison measures, in which order. A cell is what is measured (workload, size, pairs); a
// contestant is who is (a lane and its way of waiting). Each round measures every contestant of every cell
// once; within a cell odd rounds go through the contestants backwards (A B C, C B A, ...), so that a drift of
// the machine meets all alike, and two blocks that are compared stand next to each other in time. The number
// of rounds is fixed before the first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"

namespace netchannel::bench {

// What a workload is measured with.
struct Shape {
  std::vector<std::uint32_t> sizes;
  std::uint32_t flows = 1;
};

struct CompareOptions {
  CompareOptions();
  std::string preset;  // its name, if there was one
  std::vector<Workload> workloads{kWorkloads.begin(), kWorkloads.end()};
  std::vector<Lane> lanes;
  std::array<Shape, kWorkloads.size()> shapes;
  Shape& of(Workload workload) { return shapes[static_cast<std::size_t>(workload)]; }
  const Shape& of(Workload workload) const { return shapes[static_cast<std::size_t>(workload)]; }
  std::vector<std::uint32_t> pairs = {1};
  std::uint32_t batch = 32;
  std::uint32_t burst = 0;
  double rate = 0;
  double seconds = 1;
  double warmup = 0.2;
  std::uint32_t runs = 5;
  std::optional<WaitMode> wait;           // of our lanes; else adaptive and spin
  std::optional<WaitMode> baseline_wait;  // of the kernel's; else `wait`, else block and spin
  std::uint32_t mtu = 1500;
  bool offloads = true;
  int confidence = 95;
  std::uint64_t seed = 1;
};
// "demo" (about a minute) or "quick" (a few minutes); nothing for another name.
std::optional<CompareOptions> preset(std::string_view name);
Json to_json(const CompareOptions& options);

struct Cell {
  Workload workload = Workload::udp_rr;
  std::uint32_t size = 1;
  std::uint32_t pairs = 1;
  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Contestant {
  Lane lane;
  WaitMode wait = WaitMode::spin;
};

struct PlannedBlock {
  std::size_t cell = 0;
  std::size_t contestant = 0;
  std::uint32_t round = 0;
};

struct Plan {
  std::vector<Cell> cells;
  std::vector<Contestant> contestants;
  std::vector<PlannedBlock> blocks;
  std::vector<std::string> left_out;  // what no block is planned for, a sentence each
};
Plan make_plan(const CompareOptions& options);
BlockOptions block_options(const CompareOptions& options, const Cell& cell, const Contestant& contestant);
// What is wrong with any block of the plan, as a sentence.
std::optional<std::string> fault_of(const CompareOptions& options, const Plan& plan);

// Whether a contestant is to be measured against a baseline: the kernel's lanes and the bare device are
// baselines, and those who spin are held against those who spin, unless the kernel was measured in one way
// only.
bool is_compared(const Plan& plan, std::size_t contestant, std::size_t baseline);

}  // namespace netchannel::bench
