// netchannel report: renders, writes whole folders, holds two runs against each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/run_program.hpp"
#include "tests/report/sample.hpp"

namespace netchannel::cli {
namespace {

using report::everything;
using report::holds;

class ReportCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string saved(const char* name, const Json& document) const {
    std::ofstream(folder_ + "/" + name) << to_lines(document);
    return folder_ + "/" + name;
  }
  std::string folder_ = ::testing::TempDir() + "netchannel_cli_report_" + std::to_string(::getpid());
};

TEST_F(ReportCommand, RendersEveryFormat) {
  const std::string file = saved("a.json", everything());
  for (const char* format : {"text", "md", "csv", "html", "netperf"}) {
    const Ran ran = run_program({"report", file, "--format", format});
    EXPECT_EQ(ran.status, 0) << ran.errors;
    EXPECT_TRUE(holds(ran.output, "wormhole")) << format;
  }
}

TEST_F(ReportCommand, WritesAFolderWithEveryFormatAndItsPlots) {
  const std::string out = folder_ + "/out";
  const Ran ran = run_program({"report", saved("a.json", everything()), "--out", out});
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_TRUE(holds(ran.output, "compare.html")) << ran.output;
  for (const char* name :
       {"compare.json", "compare.txt", "compare.md", "compare.csv", "compare.netperf.txt", "compare.html",
        "plots/udp_rr-ratios-rate_per_s.dat", "plots/udp_rr-ratios-rate_per_s.gp"})
    EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
  if (std::system("command -v gnuplot >/dev/null") != 0)
    GTEST_SKIP() << "gnuplot is not installed: no pictures";
  for (const auto& file : std::filesystem::directory_iterator(out + "/plots")) {
    if (file.path().extension() != ".gp") continue;
    for (const char* extension : {".svg", ".png"}) {
      const auto picture = std::filesystem::path(file.path()).replace_extension(extension);
      ASSERT_TRUE(std::filesystem::exists(picture)) << picture;
      EXPECT_GT(std::filesystem::file_size(picture), 1000u) << picture;
    }
  }
}

TEST_F(ReportCommand, SaysThatItCannotWrite) {
  const Ran ran = run_program({"report", saved("a.json", everything()), "--out", "/proc/nothing"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(holds(ran.errors, "--out")) << ran.errors;
}

TEST_F(ReportCommand, HoldsTwoRunsAgainstEachOther) {
  const std::string file = saved("a.json", everything());
  const Ran ran = run_program({"report", file, "--against", file});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_TRUE(holds(ran.output, "none shown")) << ran.output;
  EXPECT_FALSE(holds(ran.output, "faster")) << ran.output;
}

TEST_F(ReportCommand, RefusesUnlikeRunsUnlessForced) {
  Json other = everything();
  other["machine"]["cpus"] = 64;
  const std::string now = saved("now.json", everything()), before = saved("before.json", other);
  const Ran refused = run_program({"report", now, "--against", before});
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(refused.output.empty());
  EXPECT_TRUE(holds(refused.errors, "cpus: 64, 2")) << refused.errors;
  const Ran forced = run_program({"report", now, "--against", before, "--force"});
  EXPECT_EQ(forced.status, 0) << forced.errors;
  EXPECT_TRUE(holds(forced.errors, "not alike: cpus: 64, 2")) << forced.errors;
  EXPECT_TRUE(holds(forced.output, "none shown"));
}

TEST_F(ReportCommand, RefusesWhatCannotBeHeldAgainstEachOther) {
  const std::string file = saved("a.json", everything()), empty = saved("b.json", report::empty_document());
  EXPECT_EQ(run_program({"report", file, "--against", empty}).status, 1);
  EXPECT_EQ(run_program({"report", file, "--against", "/nonexistent"}).status, 1);
  EXPECT_EQ(run_program({"report", file, "--against", file, "--format", "html"}).status, 2);
  EXPECT_EQ(run_program({"report", file, "--against", file, "--out", folder_}).status, 2);
}

}  // namespace
}  // namespace netchannel::cli
