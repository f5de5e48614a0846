// packet_script [--target ours|linux|both] [--ip 4|6|both] [--lenient] FILE...: runs packet scripts and says
// what became of each; for whoever writes one. --lenient ignores packets that the script does not mention.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/packets/kernel_runs.hpp"
#include "tests/packets/stack_target.hpp"

namespace {

using namespace netchannel;
using testkit::script::Outcome;
using testkit::script::Script;

struct Choice {
  bool ours = true, kernel = true;
  bool v4 = true, v6 = true;
  testkit::script::RunOptions run;
  std::vector<std::string> files;
};

bool choose(int count, char** arguments, Choice& choice) {
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const std::string value = i + 1 < count ? arguments[i + 1] : "";
    if (word == "--target") {
      choice.ours = value != "linux";
      choice.kernel = value != "ours";
      ++i;
    } else if (word == "--ip") {
      choice.v4 = value != "6";
      choice.v6 = value != "4";
      ++i;
    } else if (word == "--lenient") {
      choice.run.strict = false;
    } else if (word.starts_with("--")) {
      return false;
    } else {
      choice.files.push_back(word);
    }
  }
  return !choice.files.empty();
}

int report(const std::string& name, const Outcome& outcome) {
  constexpr const char* kWords[] = {"passed", "FAILED", "skipped"};
  std::printf("%s %s%s%s\n", kWords[static_cast<int>(outcome.kind)], name.c_str(),
              outcome.message.empty() ? "" : ": ", outcome.message.c_str());
  return outcome.kind == Outcome::Kind::failed ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  Choice choice;
  if (!choose(count, arguments, choice)) {
    std::fprintf(stderr,
                 "usage: packet_script [--target ours|linux|both] [--ip 4|6|both] [--lenient] FILE...\n");
    return 2;
  }
  int failures = 0;
  std::vector<Script> scripts;
  for (const std::string& file : choice.files) {
    auto script = testkit::script::read_script(file);
    if (!script) {
      std::printf("FAILED %s\n", script.error().text().c_str());
      ++failures;
      continue;
    }
    scripts.push_back(std::move(*script));
  }
  std::vector<packets::KernelRun> runs;
  for (const Script& script : scripts) {
    if (choice.v4 && script.v4) runs.push_back({&script, false});
    if (choice.v6 && script.v6) runs.push_back({&script, true});
  }
  for (const packets::KernelRun& run : runs) {
    if (!choice.ours) break;
    const auto net =
        run.v6 ? testkit::script::Net::v6(run.script->mtu) : testkit::script::Net::v4(run.script->mtu);
    const auto target = packets::open_stack_target(net);
    failures += report(std::string(run.v6 ? "ours v6 " : "ours v4 ") + run.script->name,
                       run_script(*run.script, net, *target, choice.run));
  }
  if (choice.kernel) {
    const auto outcomes = packets::run_on_kernel(runs, choice.run);
    for (std::size_t i = 0; i < runs.size(); ++i)
      failures +=
          report(std::string(runs[i].v6 ? "linux v6 " : "linux v4 ") + runs[i].script->name, outcomes[i]);
  }
  return failures == 0 ? 0 : 1;
}
