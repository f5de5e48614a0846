// compare in a lab of its own: what it writes, and what it leaves behind when it is interrupted (nothing).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.hpp"
#include "tests/cli/run_program.hpp"

namespace netchannel::cli {
namespace {

// Labs of comparisons that have ended.
std::vector<std::string> orphans() {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("nccmp")) continue;
    if (::kill(std::atoi(name.c_str() + 5), 0) != 0) out.push_back(name);
  }
  return out;
}

std::string schema_faults(const std::string& document) {
  const std::string path =
      ::testing::TempDir() + "netchannel_document_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << document;
  const std::string root = NETCHANNEL_SOURCE_DIR;
  const std::string command =
      "python3 " + root + "/tests/report/check_schema.py " + root + "/docs/compare.schema.json " + path;
  std::string out;
  FILE* checker = ::popen(command.c_str(), "r");
  char line[512];
  while (std::fgets(line, sizeof line, checker) != nullptr) out += line;
  if (::pclose(checker) != 0 && out.empty()) out = "the checker failed";
  ::unlink(path.c_str());
  return out;
}

class Compare : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a lab needs root";
    ASSERT_TRUE(orphans().empty()) << "labs of earlier comparisons are left: " << orphans()[0];
  }
  void TearDown() override { EXPECT_TRUE(orphans().empty()); }
};

TEST_F(Compare, HoldsTheKernelAgainstItself) {
  const Ran ran = run_program({"compare", "--paths", "kernel,kernel", "--wait", "block", "--size", "100",
                               "--runs", "2", "--duration", "0.1", "--json", "-"});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_EQ(schema_faults(ran.output), "");
  const Json document = *parse_json(ran.output);
  EXPECT_EQ(get_text(document, "status"), "complete");
  ASSERT_GE(document["blocks"].size(), 8u);
  for (const Json& block : document["blocks"]) {
    EXPECT_GT(get_count(block, "received"), 0u);
    EXPECT_EQ(get_count(block, "corrupted") + get_count(block, "duplicates"), 0u) << block;
    EXPECT_EQ(get_text(block, "far_path"), "kernel");
  }
  std::size_t rates = 0;
  for (const Json& entry : document["compare"])
    rates += entry["metric"] == "rate_per_s" && entry["baseline"] == "kernel" ? 1 : 0;
  EXPECT_EQ(rates, 5u);  // one a workload
  EXPECT_EQ(get_text(document["config"], "wait"), "block");
}

TEST_F(Compare, MeasuresEveryPathItCanAndSaysWhatItCouldNot) {
  const Ran ran = run_program({"compare", "--paths", "kernel,kernel-batched,xdp,raw,tap", "--runs", "1",
                               "--duration", "0.1", "--json", "-"});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_EQ(schema_faults(ran.output), "");
  const Json document = *parse_json(ran.output);
  std::set<std::string> paths;
  for (const Json& block : document["blocks"]) {
    paths.insert(get_text(block, "path"));
    EXPECT_GT(get_count(block, "received"), 0u) << block;
  }
  EXPECT_EQ(paths, (std::set<std::string>{"kernel", "kernel-batched", "xdp", "raw", "tap"}))
      << document["warnings"];
}

TEST_F(Compare, WritesEveryFormatAndRendersItAgain) {
  const std::string folder = ::testing::TempDir() + "netchannel_report_" + std::to_string(::getpid());
  const Ran ran = run_program({"compare", "udp_rr", "--paths", "kernel", "--wait", "block", "--runs", "1",
                               "--duration", "0.1", "--out", folder});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_NE(ran.output.find("udp_rr: 1 byte each way"), std::string::npos) << ran.output;
  for (const char* name :
       {"compare.json", "compare.txt", "compare.md", "compare.csv", "compare.netperf.txt"}) {
    EXPECT_GT(std::filesystem::file_size(folder + "/" + name), 100u) << name;
  }
  for (const char* format : {"text", "md", "csv", "netperf"}) {
    const Ran again = run_program({"report", folder + "/compare.json", "--format", format});
    EXPECT_EQ(again.status, 0) << again.errors;
    EXPECT_NE(again.output.find("kernel"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(Compare, IsValidAndLeavesNothingWhereverItIsInterrupted) {
  for (const int after : {30, 300, 700, 1300}) {
    const std::string path =
        ::testing::TempDir() + "netchannel_interrupted_" + std::to_string(::getpid()) + ".json";
    RunOptions options;
    options.after = std::chrono::milliseconds(after);
    options.then = [](pid_t program) { ::kill(program, SIGINT); };
    const Ran ran = run_program(
        {"compare", "--paths", "kernel,xdp", "--runs", "5", "--duration", "0.2", "--json", path}, options);
    EXPECT_TRUE(ran.status == 1 || ran.status == 128 + SIGINT)
        << after << " " << ran.status << " " << ran.errors;
    EXPECT_TRUE(orphans().empty()) << after;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    // Before its handler is installed an interrupt kills it like any program, with nothing made yet.
    if (ran.status == 128 + SIGINT) continue;
    EXPECT_EQ(schema_faults(text.str()), "") << after;
    EXPECT_EQ(get_text(*parse_json(text.str()), "status"), "interrupted");
    ::unlink(path.c_str());
  }
}

TEST_F(Compare, CleansUpAfterOneThatWasKilled) {
  RunOptions options;
  options.after = std::chrono::milliseconds(700);
  options.then = [](pid_t program) { ::kill(program, SIGKILL); };
  run_program({"compare", "udp_rr", "--paths", "kernel", "--json", "/dev/null"}, options);
  EXPECT_FALSE(orphans().empty());
  const Ran ran = run_program({"compare", "udp_rr", "--paths", "kernel", "--wait", "block", "--runs", "1",
                               "--duration", "0.1", "--json", "/dev/null"});
  EXPECT_EQ(ran.status, 0) << ran.errors;
}

TEST_F(Compare, ExitsWith4UnderStrictIfOneRunCannotBeSure) {
  const Ran ran = run_program({"compare", "udp_rr", "--paths", "kernel", "--wait", "block", "--runs", "1",
                               "--duration", "0.1", "--strict", "--json", "-"});
  EXPECT_EQ(ran.status, 4) << ran.errors;
  EXPECT_NE(ran.errors.find("confidence not reached"), std::string::npos) << ran.errors;
}

TEST_F(Compare, SaysThatItCannotWriteItsReport) {
  const Ran ran = run_program({"compare", "udp_rr", "--paths", "kernel", "--wait", "block", "--runs", "1",
                               "--duration", "0.1", "--json", "/nonexistent/x.json"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.errors.find("/nonexistent/x.json"), std::string::npos) << ran.errors;
  EXPECT_NE(ran.output.find("udp_rr"), std::string::npos);  // the table is not lost with it
}

TEST_F(Compare, WithoutRootMeasuresKernelAndTapAndSaysWhyNotXdp) {
  RunOptions options;
  options.user = 65534;
  const Ran ran = run_program(
      {"compare", "udp_rr", "--preset", "demo", "--runs", "1", "--duration", "0.1", "--json", "-"}, options);
  if (ran.status == 1 && ran.errors.find("user namespace") != std::string::npos) GTEST_SKIP() << ran.errors;
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_EQ(schema_faults(ran.output), "");
  const Json document = *parse_json(ran.output);
  std::set<std::string> paths;
  for (const Json& block : document["blocks"]) paths.insert(get_text(block, "path"));
  struct stat node{};
  const bool tap = ::stat("/dev/net/tun", &node) == 0 && (node.st_mode & 0006) == 0006;
  std::set<std::string> expected = {"kernel", "kernel-batched"};
  if (tap) expected.insert("tap");
  EXPECT_EQ(paths, expected) << document["warnings"];
  EXPECT_EQ(ran.errors.find("chmod 666 /dev/net/tun") == std::string::npos, tap) << ran.errors;
  EXPECT_NE(ran.errors.find("not measured: xdp, raw:xdp"), std::string::npos) << ran.errors;
}

TEST(Lab, ComesGoesAndRunsCommands) {
  if (::geteuid() != 0) GTEST_SKIP() << "a lab needs root";
  const std::string name = "clitest" + std::to_string(::getpid() % 10000);
  EXPECT_EQ(run_program({"lab", "status", "--name", name}).status, 1);
  const Ran up = run_program({"lab", "up", "--name", name, "--mtu", "9000"});
  ASSERT_EQ(up.status, 0) << up.errors;
  const Ran status = run_program({"lab", "status", "--name", name});
  EXPECT_EQ(status.status, 0);
  EXPECT_NE(status.output.find("MTU 9000"), std::string::npos) << status.output;
  const Ran run =
      run_program({"lab", "exec", "--name", name, "b", "--", "sh", "-c", "ip -o link show eth0; exit 7"});
  EXPECT_EQ(run.status, 7);
  EXPECT_NE(run.output.find("mtu 9000"), std::string::npos) << run.output;
  EXPECT_EQ(run_program({"lab", "down", "--name", name}).status, 0);
  EXPECT_EQ(run_program({"lab", "status", "--name", name}).status, 1);
}

}  // namespace
}  // namespace netchannel::cli
