// Every script of this folder against our stack, each a test of its own, and against the kernel, a test for
// each folder (they wait in real time, side by side). Both with IPv4 and IPv6.
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/packets/kernel_runs.hpp"
#include "tests/packets/stack_target.hpp"

namespace netchannel::packets {
namespace {

using testkit::script::Net;
using testkit::script::Outcome;
using testkit::script::read_script;
using testkit::script::Script;

// The Linux that the scripts were written with. Another may behave otherwise, which is no fault of ours.
constexpr std::string_view kOracle = "6.18.";

struct Verdict {
  std::string failures;  // with the name of the run before each
  std::string skip;      // the first
  std::size_t passed = 0, skipped = 0;

  void add(const std::string& name, const Outcome& outcome) {
    if (outcome.kind == Outcome::Kind::passed) ++passed;
    if (outcome.kind == Outcome::Kind::failed) failures += name + ": " + outcome.message + "\n";
    if (outcome.kind == Outcome::Kind::skipped && skipped++ == 0) skip = name + ": " + outcome.message;
  }
};

std::string kernel_release() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

Script parsed(const std::string& path) {
  auto script = read_script(path);
  if (!script) {
    ADD_FAILURE() << script.error().text();
    return {};
  }
  return std::move(*script);
}

class OnOurStack : public ::testing::Test {
 public:
  explicit OnOurStack(std::string path) : path_(std::move(path)) {}
  void TestBody() override {
    const Script script = parsed(path_);
    Verdict verdict;
    for (const bool v6 : {false, true}) {
      if (!(v6 ? script.v6 : script.v4)) continue;
      const Net net = v6 ? Net::v6(script.mtu) : Net::v4(script.mtu);
      const auto target = open_stack_target(net);
      verdict.add(v6 ? "IPv6" : "IPv4", run_script(script, net, *target));
    }
    if (!verdict.failures.empty()) FAIL() << verdict.failures;
    if (verdict.passed == 0) GTEST_SKIP() << verdict.skip;
  }

 private:
  std::string path_;
};

class OnTheKernel : public ::testing::Test {
 public:
  explicit OnTheKernel(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  void TestBody() override {
    std::vector<Script> scripts;
    for (const std::string& path : paths_) scripts.push_back(parsed(path));
    std::vector<KernelRun> runs;
    for (const Script& script : scripts) {
      if (script.only == testkit::script::Whose::ours) continue;  // says why itself
      if (script.v4) runs.push_back({&script, false});
      if (script.v6) runs.push_back({&script, true});
    }
    const auto outcomes = run_on_kernel(runs);
    Verdict verdict;
    for (std::size_t i = 0; i < runs.size(); ++i)
      verdict.add(runs[i].script->name + (runs[i].v6 ? " (IPv6)" : " (IPv4)"), outcomes[i]);
    const std::string release = kernel_release();
    if (!verdict.failures.empty() && !release.starts_with(kOracle)) {
      GTEST_SKIP() << "Linux " << release << " is not the " << kOracle << "x of the scripts, and differs:\n"
                   << verdict.failures;
    }
    if (!verdict.failures.empty()) FAIL() << verdict.failures;
    if (verdict.skipped != 0)
      GTEST_SKIP() << verdict.skipped << " of " << runs.size() << " runs: " << verdict.skip;
  }

 private:
  std::vector<std::string> paths_;
};

// By folder, in alphabetical order.
std::map<std::string, std::vector<std::string>> all_scripts() {
  namespace fs = std::filesystem;
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& entry : fs::recursive_directory_iterator(NETCHANNEL_SOURCE_DIR "/tests/packets")) {
    if (entry.path().extension() == ".pkt")
      out[entry.path().parent_path().filename().string()].push_back(entry.path().string());
  }
  for (auto& [folder, paths] : out) std::sort(paths.begin(), paths.end());
  return out;
}

void register_all() {
  for (const auto& [folder, paths] : all_scripts()) {
    for (const std::string& path : paths) {
      const std::string name = folder + "_" + std::filesystem::path(path).stem().string();
      ::testing::RegisterTest("ours", name.c_str(), nullptr, nullptr, path.c_str(), 1,
                              [file = path]() -> ::testing::Test* { return new OnOurStack(file); });
    }
    ::testing::RegisterTest("linux", folder.c_str(), nullptr, nullptr, paths.front().c_str(), 1,
                            [all = paths]() -> ::testing::Test* { return new OnTheKernel(all); });
  }
}

}  // namespace
}  // namespace netchannel::packets

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  netchannel::packets::register_all();
  return RUN_ALL_TESTS();
}
