#include "bench/block.hpp"

#include <gtest/gtest.h>

#include "bench/analysis.hpp"
#include "bench/histogram.hpp"
#include "bench/histogram_json.hpp"

namespace netchannel::bench {
namespace {

BlockOptions options_of(Workload workload) {
  BlockOptions out;
  out.workload = workload;
  out.lane = *parse_lane("kernel");
  out.size = 100;
  return out;
}

Histogram latencies(std::int64_t ns, std::uint64_t times) {
  Histogram out;
  out.record(ns, times);
  return out;
}

TEST(Block, CountsWhatWasReceivedNotWhatWasSent) {
  const Json part = {{"seconds", 2.0}, {"sent", 1000},     {"received", 800},  {"same_machine", true},
                     {"own_s", 0.5},   {"far_own_s", 0.3}, {"syscalls", 1000}, {"far_syscalls", 600}};
  const Json block = make_block(options_of(Workload::udp_stream), part, {.wall = 2, .host = 1.0});
  EXPECT_EQ(get_number(block, "rate_per_s"), 400);
  EXPECT_EQ(get_number(block, "received_bps"), 400 * 800);
  EXPECT_NEAR(get_number(block, "loss_share"), 0.2, 1e-9);
  EXPECT_NEAR(get_number(get_part(block, "service_demand_us"), "own"), 0.8e6 / 800, 1e-6);
  EXPECT_NEAR(get_number(get_part(block, "service_demand_us"), "host"), 1.0e6 / 800, 1e-6);
  EXPECT_EQ(get_text(get_part(block, "service_demand_us"), "per"), "message");
  EXPECT_NEAR(get_number(block, "syscalls_per_message"), 2.0, 1e-9);
}

TEST(Block, HasNullsWhereNothingWasMeasured) {
  const Json block = make_block(options_of(Workload::udp_stream), Json::object(), {});
  EXPECT_TRUE(block["rate_per_s"].is_null());
  EXPECT_TRUE(block["loss_share"].is_null());
  EXPECT_TRUE(block["service_demand_us"]["own"].is_null());
  EXPECT_TRUE(block["latency_us"]["p50"].is_null());
  EXPECT_EQ(to_text(block).find("nan"), std::string::npos);
}

TEST(Block, AddsBothMachinesUpWhenThereAreTwo) {
  const Json far = {{"host", 0.7},  {"own", 0.4},     {"softirq", 0.1},
                    {"steal", 0.0}, {"foreign", 0.3}, {"ksoftirqd", 0.0}};
  const Json part = {{"seconds", 1.0}, {"sent", 10},       {"received", 10},  {"same_machine", false},
                     {"own_s", 0.5},   {"far_own_s", 0.4}, {"far_cpu_s", far}};
  const Json block = make_block(options_of(Workload::udp_rr), part, {.wall = 1, .host = 0.6});
  EXPECT_NEAR(get_number(block["cpu_s"], "own"), 0.9, 1e-9);
  EXPECT_NEAR(get_number(block["cpu_s"], "host"), 1.3, 1e-9);
}

TEST(Block, FlagsAWrongStream) {
  const Json block =
      make_block(options_of(Workload::udp_rr), {{"seconds", 1.0}, {"wrong", true}}, {.wall = 1});
  EXPECT_TRUE(has_flag(block, "wrong stream"));
}

TEST(Block, FlagsAnOpenLoopThatFellBehind) {
  BlockOptions options = options_of(Workload::udp_stream);
  options.rate = 1000;
  const auto saturated = [&](std::uint64_t sent) {
    return has_flag(make_block(options, {{"seconds", 1.0}, {"sent", sent}, {"received", sent}}, {.wall = 1}),
                    "saturated");
  };
  EXPECT_FALSE(saturated(995));
  EXPECT_TRUE(saturated(980));
}

TEST(Block, FlagsFiguresThatFailLittlesLaw) {
  const auto flagged = [](double seconds) {
    const Json part = {{"seconds", seconds},
                       {"sent", 100000},
                       {"received", 100000},
                       {"latency", to_json(latencies(10'000, 100'000))}};
    return has_flag(make_block(options_of(Workload::udp_rr), part, {.wall = 1}), "little's law");
  };
  EXPECT_FALSE(flagged(1.0));  // 100,000 transactions of 10 us in a second: one in flight
  EXPECT_TRUE(flagged(0.9));
}

TEST(Parts, AddUp) {
  Json all;
  merge_part(all, {{"seconds", 1.0},
                   {"sent", 10},
                   {"received", 9},
                   {"own_s", 0.1},
                   {"wrong", false},
                   {"latency", to_json(latencies(1000, 9))}});
  merge_part(all, {{"seconds", 1.1},
                   {"sent", 20},
                   {"received", 18},
                   {"own_s", 0.2},
                   {"wrong", true},
                   {"latency", to_json(latencies(3000, 18))}});
  EXPECT_EQ(get_count(all, "sent"), 30u);
  EXPECT_EQ(get_count(all, "received"), 27u);
  EXPECT_NEAR(get_number(all, "own_s"), 0.3, 1e-9);
  EXPECT_EQ(get_number(all, "seconds"), 1.1);
  EXPECT_TRUE(get_bool(all, "wrong"));
  Histogram latency;
  from_json(all["latency"], latency);
  EXPECT_EQ(latency.count(), 27u);
  EXPECT_EQ(latency.min(), 1000);
  EXPECT_EQ(latency.max(), 3000);
}

TEST(HistogramJson, BringsBackWhatItWasMadeOf) {
  Histogram original;
  for (int i = 1; i < 3000; ++i) original.record(i * i);
  Histogram copy;
  from_json(*parse_json(to_text(to_json(original))), copy);
  EXPECT_EQ(copy.buckets(), original.buckets());
  EXPECT_EQ(copy.min(), original.min());
  EXPECT_EQ(copy.max(), original.max());
  EXPECT_NEAR(copy.mean(), original.mean(), 1);
}

TEST(HistogramJson, SkipsWhatIsNoBucket) {
  Histogram histogram;
  from_json(
      *parse_json(R"({"buckets_ns": [1, "x", null, [1, 2, 3], ["a", 2], [5, -1], [2.5, 1], [100, 3]]})"),
      histogram);
  EXPECT_EQ(histogram.count(), 3u);
}

}  // namespace
}  // namespace netchannel::bench
