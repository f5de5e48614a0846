#include "bench/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace netchannel::bench {
namespace {

std::size_t find(const Plan& plan, std::string_view lane, WaitMode wait, std::size_t from = 0) {
  for (std::size_t i = from; i < plan.contestants.size(); ++i) {
    if (plan.contestants[i].lane.name == lane && plan.contestants[i].wait == wait) return i;
  }
  ADD_FAILURE() << "no " << lane;
  return 0;
}

CompareOptions with_lanes(std::initializer_list<const char*> names) {
  CompareOptions out;
  out.workloads = {Workload::udp_rr};
  for (const char* name : names) out.lanes.push_back(*parse_lane(name));
  return out;
}

TEST(Plan, MeasuresTheKernelBlockingAndSpinningAndOursAdaptiveAndSpinning) {
  const Plan plan = make_plan(with_lanes({"kernel", "xdp", "raw:xdp"}));
  ASSERT_EQ(plan.contestants.size(), 5u);
  EXPECT_EQ(find(plan, "kernel", WaitMode::block), 0u);
  EXPECT_EQ(find(plan, "kernel", WaitMode::spin), 1u);
  EXPECT_EQ(find(plan, "xdp", WaitMode::adaptive), 2u);
  EXPECT_EQ(find(plan, "xdp", WaitMode::spin), 3u);
  EXPECT_EQ(find(plan, "raw:xdp", WaitMode::spin), 4u);
}

TEST(Plan, TakesOneWaitForAllOrTwoThatDiffer) {
  CompareOptions options = with_lanes({"kernel", "xdp"});
  options.wait = WaitMode::block;
  Plan plan = make_plan(options);
  ASSERT_EQ(plan.contestants.size(), 2u);
  EXPECT_EQ(plan.contestants[0].wait, WaitMode::block);
  EXPECT_EQ(plan.contestants[1].wait, WaitMode::block);
  options.wait = WaitMode::adaptive;
  options.baseline_wait = WaitMode::block;
  plan = make_plan(options);
  EXPECT_EQ(plan.contestants[0].wait, WaitMode::block);
  EXPECT_EQ(plan.contestants[1].wait, WaitMode::adaptive);
}

TEST(Plan, MeasuresEachContestantOfEachCellOnceARound) {
  CompareOptions options = with_lanes({"kernel", "xdp"});
  options.workloads = {Workload::udp_rr, Workload::udp_stream};
  options.of(Workload::udp_rr).sizes = {1, 1024};
  options.pairs = {1, 4};
  options.runs = 3;
  const Plan plan = make_plan(options);
  EXPECT_EQ(plan.cells.size(), 6u);
  std::set<std::tuple<std::uint32_t, std::size_t, std::size_t>> seen;
  for (const PlannedBlock& block : plan.blocks)
    EXPECT_TRUE(seen.emplace(block.round, block.cell, block.contestant).second);
  EXPECT_EQ(seen.size(), 6u * 4 * 3);
}

TEST(Plan, MirrorsEveryOtherRound) {
  CompareOptions options = with_lanes({"kernel", "kernel-batched", "xdp"});
  options.runs = 6;
  const Plan plan = make_plan(options);
  std::map<std::uint32_t, std::vector<std::size_t>> orders;
  for (const PlannedBlock& block : plan.blocks) orders[block.round].push_back(block.contestant);
  for (std::uint32_t round = 0; round < 6; round += 2) {
    std::vector<std::size_t> mirrored = orders[round + 1];
    std::reverse(mirrored.begin(), mirrored.end());
    EXPECT_EQ(orders[round], mirrored) << round;
  }
}

TEST(Plan, IsTheSameForTheSameSeed) {
  CompareOptions options = with_lanes({"kernel", "kernel-batched", "xdp", "raw"});
  options.seed = 9;
  const auto contestants = [](const Plan& plan) {
    std::vector<std::size_t> out;
    for (const PlannedBlock& block : plan.blocks) out.push_back(block.contestant);
    return out;
  };
  EXPECT_EQ(contestants(make_plan(options)), contestants(make_plan(options)));
  CompareOptions other = options;
  other.seed = 10;
  EXPECT_NE(contestants(make_plan(options)), contestants(make_plan(other)));
}

TEST(Plan, LeavesOutWhatALaneCannotDoAndSaysSoOnce) {
  CompareOptions options = with_lanes({"kernel", "raw:xdp"});
  options.workloads = {Workload::tcp_rr, Workload::tcp_stream};
  options.of(Workload::tcp_stream).sizes = {128, 65536};
  const Plan plan = make_plan(options);
  EXPECT_FALSE(fault_of(options, plan));
  for (const PlannedBlock& block : plan.blocks) {
    const bool raw = plan.contestants[block.contestant].lane.raw;
    EXPECT_TRUE(!raw || plan.cells[block.cell].workload == Workload::tcp_rr);
  }
  ASSERT_EQ(plan.left_out.size(), 1u);
  EXPECT_NE(plan.left_out[0].find("raw:xdp does not do tcp_stream"), std::string::npos);
  options.lanes = {*parse_lane("raw:xdp")};
  options.workloads = {Workload::tcp_stream};
  EXPECT_EQ(fault_of(options, make_plan(options)), plan.left_out[0]);
}

TEST(Plan, KeepsWhatIsMeasuredWithEachWorkloadApart) {
  CompareOptions options = with_lanes({"kernel"});
  options.workloads = {Workload::udp_stream, Workload::tcp_stream};
  options.of(Workload::udp_stream) = {{100}, 64};
  const Plan plan = make_plan(options);
  ASSERT_EQ(plan.cells.size(), 3u);
  EXPECT_EQ(block_options(options, plan.cells[0], plan.contestants[0]).flows, 64u);
  EXPECT_EQ(plan.cells[1], (Cell{Workload::tcp_stream, 128, 1}));
  EXPECT_EQ(plan.cells[2], (Cell{Workload::tcp_stream, 65536, 1}));
  EXPECT_EQ(block_options(options, plan.cells[1], plan.contestants[0]).flows, 1u);
  const Json config = to_json(options);
  EXPECT_EQ(config["size_tcp_stream"], (Json{128, 65536}));
  EXPECT_EQ(config["flows_udp_stream"], 64);
}

TEST(Comparisons, HoldSpinnersAgainstSpinners) {
  const Plan plan = make_plan(with_lanes({"kernel", "kernel-batched", "xdp", "raw:xdp"}));
  const auto kernel_block = find(plan, "kernel", WaitMode::block),
             kernel_spin = find(plan, "kernel", WaitMode::spin);
  const auto adaptive = find(plan, "xdp", WaitMode::adaptive), spin = find(plan, "xdp", WaitMode::spin);
  const auto raw = find(plan, "raw:xdp", WaitMode::spin);
  EXPECT_TRUE(is_compared(plan, spin, kernel_spin));
  EXPECT_FALSE(is_compared(plan, spin, kernel_block));
  EXPECT_TRUE(is_compared(plan, adaptive, kernel_block));
  EXPECT_FALSE(is_compared(plan, adaptive, kernel_spin));
  EXPECT_TRUE(is_compared(plan, spin, raw));
  EXPECT_TRUE(is_compared(plan, raw, kernel_spin));
  EXPECT_FALSE(is_compared(plan, kernel_spin, raw));
  EXPECT_FALSE(is_compared(plan, kernel_spin, spin));
  EXPECT_FALSE(is_compared(plan, kernel_spin, kernel_block));
  EXPECT_TRUE(is_compared(plan, find(plan, "kernel-batched", WaitMode::spin), kernel_spin));
}

TEST(Comparisons, UseTheOnlyKernelBaselineThereIs) {
  CompareOptions options = with_lanes({"kernel", "xdp"});
  options.wait = WaitMode::spin;
  options.baseline_wait = WaitMode::block;
  const Plan plan = make_plan(options);
  EXPECT_TRUE(is_compared(plan, 1, 0));
}

TEST(Comparisons, MeasureALaneThatIsListedTwiceAgainstItself) {
  const Plan plan = make_plan(with_lanes({"kernel", "kernel"}));
  ASSERT_EQ(plan.contestants.size(), 4u);
  int compared = 0;
  for (std::size_t who = 0; who < 4; ++who) {
    for (std::size_t base = 0; base < 4; ++base) compared += is_compared(plan, who, base) ? 1 : 0;
  }
  EXPECT_EQ(compared, 2);
  EXPECT_TRUE(is_compared(plan, 2, 0));
  EXPECT_TRUE(is_compared(plan, 3, 1));
}

TEST(Presets, AreWithinTheTimeTheyPromise) {
  for (const auto& [name, most] : {std::pair{"demo", 90.0}, std::pair{"quick", 300.0}}) {
    const auto options = preset(name);
    ASSERT_TRUE(options.has_value()) << name;
    const Plan plan = make_plan(*options);
    EXPECT_FALSE(fault_of(*options, plan));
    EXPECT_LT(static_cast<double>(plan.blocks.size()) * (options->seconds + options->warmup + 0.45), most)
        << name;
  }
  EXPECT_FALSE(preset("instant"));
}

TEST(Presets, MeasureTcpToo) {
  const auto has = [](const char* name, Workload workload) {
    const auto workloads = preset(name)->workloads;
    return std::count(workloads.begin(), workloads.end(), workload) == 1;
  };
  EXPECT_TRUE(has("demo", Workload::tcp_rr));
  for (const Workload workload : kWorkloads) EXPECT_TRUE(has("quick", workload));
}

TEST(Presets, StreamOver64Flows) {
  const CompareOptions demo = *preset("demo");
  EXPECT_EQ(block_options(demo, {Workload::udp_stream, 100, 1}, {}).flows, 64u);
  EXPECT_EQ(block_options(demo, {Workload::udp_rr, 1, 1}, {}).flows, 1u);
}

}  // namespace
}  // namespace netchannel::bench
