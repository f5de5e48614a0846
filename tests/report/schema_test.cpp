// The checker of docs/compare.schema.json itself: it must find what it is there to find.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/json.hpp"

namespace netchannel::report {
namespace {

bool is_valid(const std::string& text) {
  const std::string path = ::testing::TempDir() + "netchannel_schema_" + std::to_string(::getpid()) + ".json";
  FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(text.c_str(), file);
  std::fclose(file);
  const std::string root = NETCHANNEL_SOURCE_DIR;
  const std::string command = "python3 " + root + "/tests/report/check_schema.py " + root +
                              "/docs/compare.schema.json " + path + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  std::remove(path.c_str());
  return status == 0;
}

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

TEST(Schema, AcceptsARunInterruptedBeforeItsFirstBlock) { EXPECT_TRUE(is_valid(to_text(smallest()))); }

TEST(Schema, RefusesWhatIsMissingOrOfAnotherKind) {
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

TEST(Schema, RefusesNumbersThatAreNotFinite) {
  std::string text = to_text(smallest());
  text.replace(text.find("\"steal_share\":null"), 18, "\"steal_share\":NaN");
  EXPECT_FALSE(is_valid(text));
}

}  // namespace
}  // namespace netchannel::report
