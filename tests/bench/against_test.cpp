// Two saved runs held against each other.
#include "bench/against.hpp"

#include <gtest/gtest.h>

namespace netchannel::bench {
namespace {

Json block(const char* path, double rate) {
  return {{"workload", "udp_rr"},
          {"path", path},
          {"wait", "spin"},
          {"size", 1},
          {"pairs", 1},
          {"batch", 32},
          {"flows", 1},
          {"burst", 0},
          {"mode", "native copy"},
          {"rate_per_s", rate},
          {"service_demand_us", {{"own", 1e6 / rate}}},
          {"flags", Json::array()}};
}

Json document(std::initializer_list<double> rates, const char* path = "xdp") {
  Json out = {
      {"machine", {{"kernel", "Linux 6.18"}, {"cpu", "AMD EPYC"}, {"cpus", 2}, {"load_average", "0.1"}}},
      {"tool", {{"version", "1"}, {"flags", "-O2"}}},
      {"config", {{"duration_s", 1.0}, {"runs", 3}}},
      {"blocks", Json::array()}};
  for (const double rate : rates) out["blocks"].push_back(block(path, rate));
  return out;
}

const Json* entry_of(const Json& entries, const char* metric) {
  for (const Json& entry : entries) {
    if (get_text(entry, "metric") == metric) return &entry;
  }
  return nullptr;
}

TEST(Against, TellsTheRatioOfGeometricMeansWithWelchsInterval) {
  const Json entries = against(document({100, 110, 90}), document({200, 210, 190}), 0.95);
  const Json* rate = entry_of(entries, "rate_per_s");
  ASSERT_NE(rate, nullptr);
  // Worked out apart: 2.9 degrees of freedom, rounded down to 2, whose t is 4.3027.
  EXPECT_NEAR(get_number(*rate, "ratio"), 2.00504, 1e-5);
  EXPECT_NEAR(get_number(*rate, "ci_low"), 1.51746, 1e-4);
  EXPECT_NEAR(get_number(*rate, "ci_high"), 2.64928, 1e-4);
  EXPECT_EQ(get_text(*rate, "verdict"), "faster");
  const Json* demand = entry_of(entries, "service_demand_own_us");
  ASSERT_NE(demand, nullptr);
  EXPECT_NEAR(get_number(*demand, "ratio"), 1 / get_number(*rate, "ratio"), 1e-6);
  EXPECT_EQ(get_text(*demand, "verdict"), "faster");
}

TEST(Against, ShowsNoDifferenceWhereTheIntervalHoldsOneOrOneRunIsAll) {
  const Json same = against(document({100, 110, 90}), document({101, 111, 91}), 0.95);
  EXPECT_EQ(get_text(*entry_of(same, "rate_per_s"), "verdict"), "no difference shown");
  const Json one = against(document({100}), document({200}), 0.95);
  EXPECT_EQ(get_text(*entry_of(one, "rate_per_s"), "verdict"), "no difference shown");
  EXPECT_TRUE(get_part(*entry_of(one, "rate_per_s"), "ci_low").is_null());
}

TEST(Against, HoldsOnlyLikeAgainstLike) {
  EXPECT_TRUE(against(document({100}), document({100}, "kernel"), 0.95).empty());
  Json larger = document({100});
  larger["blocks"][0]["size"] = 1024;
  EXPECT_TRUE(against(document({100}), larger, 0.95).empty());
  Json superseded = document({100});
  superseded["blocks"][0]["flags"] = {"superseded"};
  EXPECT_TRUE(against(document({100}), superseded, 0.95).empty());
}

TEST(Unlike, NamesWhatForbidsAComparison) {
  const Json before = document({100});
  Json now = before;
  EXPECT_TRUE(unlike(before, now).empty());
  now["machine"]["load_average"] = "3.0";
  now["tool"]["version"] = "2";
  now["config"]["runs"] = 10;
  EXPECT_TRUE(unlike(before, now).empty());
  now["machine"]["cpus"] = 4;
  now["tool"]["flags"] = "-O0";
  now["blocks"][0]["mode"] = "generic copy";
  const auto all = unlike(before, now);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], "cpus: 2, 4");
  EXPECT_EQ(all[1], "flags: -O2, -O0");
  EXPECT_EQ(all[2], "mode of xdp: native copy, generic copy");
}

TEST(Against, SurvivesDocumentsOfAnyShape) {
  const Json broken[] = {Json(), Json(3), Json{{"blocks", {1, nullptr, {{"flags", 3}}}}},
                         Json{{"machine", 3}}};
  for (const Json& a : broken) {
    for (const Json& b : broken) {
      EXPECT_TRUE(against(a, b, 0.95).empty());
      (void)unlike(a, b);
    }
  }
}

}  // namespace
}  // namespace netchannel::bench
