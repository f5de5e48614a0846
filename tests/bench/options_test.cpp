#include "bench/options.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace netchannel::bench {
namespace {

BlockOptions good() {
  BlockOptions out;
  out.workload = Workload::udp_stream;
  out.lane = *parse_lane("xdp");
  out.wait = WaitMode::spin;
  out.size = 100;
  out.pairs = 2;
  out.flows = 64;
  out.rate = 1000.5;
  return out;
}

TEST(Lane, IsWhatThePathsOptionNames) {
  EXPECT_EQ(parse_lane("kernel")->path, Path::kernel);
  EXPECT_TRUE(parse_lane("kernel")->single());
  EXPECT_TRUE(parse_lane("kernel-batched")->kernel());
  EXPECT_FALSE(parse_lane("kernel-batched")->single());
  EXPECT_FALSE(parse_lane("xdp")->kernel());
  EXPECT_TRUE(parse_lane("raw")->raw);
  EXPECT_TRUE(parse_lane("raw:xdp")->raw);
  EXPECT_EQ(parse_lane("raw:xdp")->path, Path::xdp);
  for (const char* wrong : {"", "raw:", "raw:kernel", "XDP", "dpdk"})
    EXPECT_FALSE(parse_lane(wrong)) << wrong;
}

TEST(Workloads, AreKnownByTheirNames) {
  for (const Workload workload : kWorkloads) {
    EXPECT_EQ(parse_workload(to_string(workload)), workload);
    EXPECT_NE(kWorkloadNames.find(to_string(workload)), std::string_view::npos);
  }
  EXPECT_FALSE(parse_workload("tcp"));
  EXPECT_FALSE(is_tcp(Workload::udp_stream));
  EXPECT_TRUE(is_tcp(Workload::tcp_crr));
  EXPECT_EQ(unit_of(Workload::tcp_stream), "KB");
}

TEST(Workloads, NeedConnectionsThatABareDeviceDoesNotHave) {
  const Lane raw = *parse_lane("raw:xdp");
  for (const Workload workload : {Workload::udp_rr, Workload::udp_stream, Workload::tcp_rr})
    EXPECT_FALSE(why_not(raw, workload)) << to_string(workload);
  for (const Workload workload : {Workload::tcp_stream, Workload::tcp_crr})
    EXPECT_TRUE(why_not(raw, workload)) << to_string(workload);
  for (const Workload workload : kWorkloads) EXPECT_FALSE(why_not(*parse_lane("kernel"), workload));
}

TEST(BlockOptions, BoundWhatIsWrittenToAConnection) {
  const auto refused = [](Workload workload, std::uint32_t size, double rate = 0) {
    BlockOptions options;
    options.workload = workload;
    options.size = size;
    options.rate = rate;
    return fault_of(options).has_value();
  };
  EXPECT_FALSE(refused(Workload::tcp_stream, 1));
  EXPECT_TRUE(refused(Workload::tcp_stream, 0));
  EXPECT_FALSE(refused(Workload::tcp_stream, kLargestWrite));
  EXPECT_TRUE(refused(Workload::tcp_stream, kLargestWrite + 1));
  EXPECT_FALSE(refused(Workload::tcp_rr, 100, 50));
  EXPECT_TRUE(refused(Workload::tcp_crr, 100, 50));
}

TEST(BlockOptions, WriteNoMoreThan64KiBInOneCallButAlwaysOneMessage) {
  BlockOptions options;
  options.workload = Workload::tcp_stream;
  options.lane = *parse_lane("xdp");
  const auto batch = [&](std::uint32_t size) {
    options.size = size;
    return options.effective_batch();
  };
  EXPECT_EQ(batch(128), 32u);
  EXPECT_EQ(batch(2048), 32u);
  EXPECT_EQ(batch(4096), 16u);
  EXPECT_EQ(batch(65536), 1u);
  EXPECT_EQ(batch(200'000), 1u);
  options.lane = *parse_lane("kernel");
  EXPECT_EQ(batch(128), 1u);
}

TEST(BlockOptions, CrossTheControlConnectionUnchanged) {
  const auto read = block_from_json(to_json(good()));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(to_json(*read), to_json(good()));
}

TEST(BlockOptions, RefuseWhatCannotBeMeasured) {
  const auto refused = [](auto change) {
    BlockOptions options = good();
    change(options);
    return fault_of(options).has_value();
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_FALSE(refused([](auto& o) { o.size = 65507; }));
  EXPECT_TRUE(refused([](auto& o) { o.size = 65508; }));
  EXPECT_TRUE(refused([](auto& o) { o.pairs = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.pairs = kMostPairs + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.flows = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.flows = kMostFlows, o.pairs = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.flows = 0x80000001, o.pairs = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.batch = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.batch = kMostBatch + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.rate = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.rate = std::nan(""); }));
  EXPECT_TRUE(refused([](auto& o) { o.seconds = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.warmup = -0.1; }));
  EXPECT_TRUE(refused([](auto& o) { o.mtu = 100; }));
}

TEST(BlockOptions, KeepRequestsInFlightBelowWhatTheirNumberCanTellApart) {
  const auto refused = [](std::uint32_t size, std::uint32_t burst) {
    BlockOptions options = good();
    options.workload = Workload::udp_rr;
    options.size = size;
    options.burst = burst;
    return fault_of(options).has_value();
  };
  EXPECT_FALSE(refused(0, 0));
  EXPECT_TRUE(refused(0, 1));
  EXPECT_FALSE(refused(1, 127));
  EXPECT_TRUE(refused(1, 128));
  EXPECT_FALSE(refused(100, kMostInFlight - 1));
  EXPECT_TRUE(refused(100, kMostInFlight));
}

TEST(BlockOptions, KeepRawFramesWithinTheMtu) {
  BlockOptions options = good();
  options.lane = *parse_lane("raw");
  options.size = 1472;
  EXPECT_FALSE(fault_of(options));
  options.size = 1473;
  EXPECT_TRUE(fault_of(options));
}

TEST(BlockOptions, BelieveNothingFromTheNetwork) {
  const Json sound = to_json(good());
  for (const char* key : {"workload", "path", "wait", "size", "pairs", "flows", "batch", "burst",
                          "rate_per_s", "seconds", "mtu"}) {
    for (const Json& value :
         {Json(nullptr), Json(-1), Json("x"), Json::array(), Json(1e300), Json(UINT64_MAX)}) {
      Json changed = sound;
      changed[key] = value;
      EXPECT_FALSE(block_from_json(changed).has_value()) << key << " " << value;
    }
    Json missing = sound;
    missing.erase(key);
    EXPECT_FALSE(block_from_json(missing).has_value()) << key;
  }
  EXPECT_FALSE(block_from_json(Json()).has_value());
  EXPECT_FALSE(block_from_json(Json::array()).has_value());
}

}  // namespace
}  // namespace netchannel::bench
