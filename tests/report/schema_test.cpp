// The checker of docs/compare.schema.json itself: it must find what it is there to find.
#include <gtest/gtest.h>

#include "tests/report/sample.hpp"

namespace netchannel::report {
namespace {

class Schema : public ::testing::Test {
 protected:
  void SetUp() override {
    const Checked checked = check(to_text(empty_document()));
    if (checked.status == 77) GTEST_SKIP() << checked.output;
  }
  static Checked check(const std::string& text) {
    return check_with("check_schema.py", NETCHANNEL_SOURCE_DIR "/docs/compare.schema.json", text);
  }
  static bool is_valid(const std::string& text) { return check(text).status == 0; }
};

Json smallest() {
  return {{"schema", "netchannel.compare/1"},
          {"status", "interrupted"},
          {"tool", {{"version", ""}, {"git", ""}, {"compiler", ""}, {"flags", ""}}},
          {"machine",
           {{"kernel", ""},
            {"cpu", ""},
            {"cpus", 1},
            {"governor", ""},
            {"virtualised", ""},
            {"steal_share", nullptr},
            {"irq_time_accounting", nullptr}}},
          {"config", Json::object()},
          {"blocks", Json::array()},
          {"summary", Json::array()},
          {"compare", Json::array()},
          {"warnings", Json::array()}};
}

TEST_F(Schema, AcceptsARunInterruptedBeforeItsFirstBlock) { EXPECT_TRUE(is_valid(to_text(smallest()))); }

TEST_F(Schema, RefusesWhatIsMissingOrOfAnotherKind) {
  Json missing = smallest();
  missing.erase("blocks");
  EXPECT_FALSE(is_valid(to_text(missing)));
  Json kind = smallest();
  kind["machine"]["cpus"] = "2";
  EXPECT_FALSE(is_valid(to_text(kind)));
  Json status = smallest();
  status["status"] = "done";
  EXPECT_FALSE(is_valid(to_text(status)));
  Json block = smallest();
  block["blocks"].push_back(Json::object());
  EXPECT_FALSE(is_valid(to_text(block)));
}

TEST_F(Schema, RefusesBrokenSeries) {
  const auto with = [](const char* key, Json value) {
    Json document = empty_document();
    document["blocks"].push_back(block_of("timeline", "xdp", "spin", 1000));
    document["blocks"][0][key] = std::move(value);
    return to_text(document);
  };
  EXPECT_TRUE(is_valid(with("timeline", nullptr)));
  EXPECT_TRUE(is_valid(with("timeline", {{"interval_s", 0.1}, {"rate_per_s", {1, nullptr}}})));
  EXPECT_FALSE(is_valid(with("timeline", {{"interval_s", 0}})));
  EXPECT_FALSE(is_valid(with("timeline", {{"interval_s", 0.1}, {"rate_per_s", {"1"}}})));
  EXPECT_FALSE(is_valid(with("curve", {{{"offered_per_s", 5}}})));
  EXPECT_FALSE(is_valid(with("ndr", Json::object())));
}

TEST_F(Schema, RefusesNumbersThatAreNotFinite) {
  std::string text = to_text(smallest());
  text.replace(text.find("\"steal_share\":null"), 18, "\"steal_share\":NaN");
  EXPECT_FALSE(is_valid(text));
}

}  // namespace
}  // namespace netchannel::report
