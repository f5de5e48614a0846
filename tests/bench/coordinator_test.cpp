// The coordinator with a runner that measures nothing and returns what the test wants.
#include "bench/coordinator.hpp"

#include <gtest/gtest.h>

#include <map>

#include "bench/analysis.hpp"

namespace netchannel::bench {
namespace {

CompareOptions small(std::initializer_list<const char*> lanes, std::uint32_t runs = 5) {
  CompareOptions out;
  out.workloads = {Workload::udp_rr};
  for (const char* name : lanes) out.lanes.push_back(*parse_lane(name));
  out.wait = WaitMode::spin;
  out.runs = runs;
  return out;
}

Json block_of(const BlockOptions& options, double rate, std::vector<std::string> flags = {}) {
  return {{"workload", to_string(options.workload)},
          {"path", options.lane.name},
          {"wait", to_string(options.wait)},
          {"size", options.size},
          {"pairs", options.pairs},
          {"seconds", 1.0},
          {"rate_per_s", rate},
          {"flags", std::move(flags)}};
}

tl::unexpected<Failure> refused(const char* why) { return fail_with({ErrorCode::not_permitted, 0, ""}, why); }

Json run(const CompareOptions& options, const BlockRunner& runner) {
  return run_plan(options, make_plan(options), runner, [](const Progress&) {});
}

const Json* comparison(const Json& document, const char* path, const char* metric = "rate_per_s") {
  for (const Json& entry : document["compare"]) {
    if (entry["path"] == path && entry["metric"] == metric) return &entry;
  }
  return nullptr;
}

TEST(Coordinator, ComparesWhatItMeasured) {
  int n = 0;
  const Json document = run(small({"kernel", "xdp"}), [&](const BlockOptions& options) -> Outcome<Json> {
    return block_of(options, (options.lane.kernel() ? 100.0 : 250.0) * (1 + 0.001 * (++n % 3)));
  });
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["blocks"].size(), 10u);
  const Json* entry = comparison(document, "xdp");
  ASSERT_NE(entry, nullptr);
  EXPECT_NEAR(get_number(*entry, "ratio"), 2.5, 0.01);
  EXPECT_EQ((*entry)["verdict"], "faster");
  EXPECT_EQ((*entry)["baseline"], "kernel");
}

TEST(Coordinator, PairsBlocksOfTheSameRound) {
  // A machine that slows down by half in each round: within rounds the ratio is exactly two.
  std::map<std::string, double> rate = {{"kernel", 100}, {"xdp", 200}};
  const Json document = run(small({"kernel", "xdp"}), [&](const BlockOptions& options) -> Outcome<Json> {
    const double now = rate[options.lane.name];
    rate[options.lane.name] /= 2;
    return block_of(options, now);
  });
  const Json* entry = comparison(document, "xdp");
  ASSERT_NE(entry, nullptr);
  EXPECT_NEAR(get_number(*entry, "ci_low"), 2, 1e-6);
  EXPECT_NEAR(get_number(*entry, "ci_high"), 2, 1e-6);
}

TEST(Coordinator, LeavesOutALaneThatCannotBeOpenedAndSaysWhy) {
  int tried = 0;
  const Json document = run(small({"kernel", "xdp"}), [&](const BlockOptions& options) -> Outcome<Json> {
    if (options.lane.kernel()) return block_of(options, 100);
    ++tried;
    return refused("needs CAP_BPF");
  });
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(document["blocks"].size(), 5u);
  EXPECT_EQ(document["status"], "complete");
  ASSERT_FALSE(document["warnings"].empty());
  EXPECT_NE(document["warnings"].back().get<std::string>().find("needs CAP_BPF"), std::string::npos);
}

TEST(Coordinator, LeavesALaneOutOfTheWorkloadsThatItCannotDoOnly) {
  CompareOptions options = small({"kernel", "xdp"});
  options.wait.reset();
  options.workloads = {Workload::udp_rr, Workload::tcp_rr, Workload::tcp_crr};
  int tried = 0;
  const Json document = run(options, [&](const BlockOptions& block) -> Outcome<Json> {
    if (block.lane.kernel() || !is_tcp(block.workload)) return block_of(block, 100);
    ++tried;
    return refused("no TCP on this path");
  });
  EXPECT_EQ(tried, 2);  // once a workload, whichever way it waits
  EXPECT_EQ(document["blocks"].size(), 5u * 2 * (3 + 1));
  EXPECT_EQ(document["warnings"], (Json{"xdp is left out of tcp_rr, tcp_crr: no TCP on this path"}));
}

TEST(Coordinator, SaysWhatNoBlockWasPlannedFor) {
  CompareOptions options = small({"kernel", "raw:xdp"});
  options.workloads = {Workload::tcp_crr};
  const Json document = run(options, [&](const BlockOptions& block) -> Outcome<Json> {
    EXPECT_FALSE(block.lane.raw);
    return block_of(block, 100);
  });
  EXPECT_EQ(document["blocks"].size(), 5u);
  ASSERT_EQ(document["warnings"].size(), 1u);
  EXPECT_NE(document["warnings"][0].get<std::string>().find("raw:xdp does not do tcp_crr"),
            std::string::npos);
}

TEST(Coordinator, ComparesTheBytesOfAByteStreamAndTheRateOfAllElse) {
  CompareOptions options = small({"kernel", "xdp"});
  options.workloads = {Workload::tcp_stream, Workload::udp_stream};
  const Json document = run(options, [&](const BlockOptions& block) -> Outcome<Json> {
    Json out = block_of(block, 100);
    out["received_bps"] = block.lane.kernel() ? 1e9 : 3e9;
    return out;
  });
  int compared = 0;
  for (const Json& entry : document["compare"]) {
    if (entry["metric"] != "received_bps") continue;
    ++compared;
    EXPECT_TRUE(entry["workload"] == "tcp_stream");
    EXPECT_NEAR(get_number(entry, "ratio"), 3, 1e-9);
  }
  EXPECT_EQ(compared, 2);  // of both sizes
}

TEST(Coordinator, GoesOnAfterABlockThatFailedOnce) {
  int n = 0;
  const Json document = run(small({"kernel", "xdp"}), [&](const BlockOptions& options) -> Outcome<Json> {
    if (++n == 4) return refused("hiccup");
    return block_of(options, 100);
  });
  EXPECT_EQ(document["blocks"].size(), 9u);
  EXPECT_EQ(get_count(*comparison(document, "xdp"), "n"), 4u);
}

TEST(Coordinator, HasFailedIfNothingCouldBeMeasured) {
  const Json document =
      run(small({"xdp"}), [](const BlockOptions&) -> Outcome<Json> { return refused("no"); });
  EXPECT_EQ(document["status"], "failed");
  EXPECT_TRUE(document["blocks"].empty());
}

TEST(Coordinator, MeasuresAContaminatedBlockOnceMoreAndKeepsBoth) {
  int n = 0;
  const Json document = run(small({"kernel", "xdp"}), [&](const BlockOptions& options) -> Outcome<Json> {
    const bool first = ++n == 1;
    return block_of(options, first ? 1.0 : 100.0,
                    first ? std::vector<std::string>{"foreign cpu"} : std::vector<std::string>{});
  });
  EXPECT_EQ(document["blocks"].size(), 11u);
  EXPECT_TRUE(has_flag(document["blocks"][0], "superseded"));
  for (const Json& entry : document["summary"]) EXPECT_EQ(get_number(entry, "min"), 100.0);
}

TEST(Coordinator, DoesNotMeasureForEverOnABusyMachine) {
  int n = 0;
  const Json document = run(small({"kernel", "xdp"}, 10), [&](const BlockOptions& options) -> Outcome<Json> {
    ++n;
    return block_of(options, 100, {"foreign cpu"});
  });
  EXPECT_EQ(n, 20 + 3);  // a tenth of the plan and one
  EXPECT_FALSE(doubts(document, 50).empty());
  EXPECT_NE(document["warnings"][0].get<std::string>().find("20 of 23 blocks are contaminated"),
            std::string::npos)
      << document["warnings"];
}

TEST(Coordinator, TellsHowFarItIs) {
  const CompareOptions options = small({"kernel"}, 3);
  std::vector<std::size_t> done;
  (void)run_plan(
      options, make_plan(options), [](const BlockOptions& o) -> Outcome<Json> { return block_of(o, 1); },
      [&](const Progress& progress) {
        done.push_back(progress.done);
        EXPECT_EQ(progress.total, 3u);
        EXPECT_GE(progress.seconds_left, 0);
      });
  EXPECT_EQ(done, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Coordinator, ShowsNoDifferenceInANullComparison) {
  const double noise[] = {100, 103, 98, 101, 99, 102, 97, 100, 101, 99};
  std::size_t n = 0;
  const Json document = run(small({"kernel", "kernel"}), [&](const BlockOptions& options) -> Outcome<Json> {
    return block_of(options, noise[n++ % 10]);
  });
  ASSERT_EQ(document["compare"].size(), 1u);
  EXPECT_EQ(document["compare"][0]["verdict"], "no difference shown");
  EXPECT_LT(get_number(document["compare"][0], "ci_low"), 1);
  EXPECT_GT(get_number(document["compare"][0], "ci_high"), 1);
}

TEST(Doubts, AreIntervalsThatAreTooWide) {
  std::size_t n = 0;
  const Json document = run(small({"kernel"}), [&](const BlockOptions& options) -> Outcome<Json> {
    return block_of(options, n++ % 2 == 0 ? 90 : 110);
  });
  EXPECT_FALSE(doubts(document, 5).empty());
  EXPECT_TRUE(doubts(document, 50).empty());
}

TEST(WrongStream, IsSeenInTheDocument) {
  const auto with = [](std::vector<std::string> flags) {
    return run(small({"kernel"}, 1),
               [&](const BlockOptions& options) -> Outcome<Json> { return block_of(options, 1, flags); });
  };
  EXPECT_TRUE(has_wrong_stream(with({"wrong stream"})));
  EXPECT_FALSE(has_wrong_stream(with({"reordered"})));
}

}  // namespace
}  // namespace netchannel::bench
