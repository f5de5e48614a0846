// netchannel doctor: what this machine offers, what stands in the way, and the command that mends it.
#include <fmt/format.h>

#include <memory>

#include "base/json.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "report/view.hpp"

namespace netchannel::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTextAt = 11;

Json to_json(const Findings& findings) {
  Json checks = Json::array();
  for (const Check& check : findings.checks) {
    checks.push_back({{"group", check.group},
                      {"name", check.name},
                      {"state", to_string(check.state)},
                      {"text", check.text},
                      {"mend", check.mend.empty() ? Json(nullptr) : Json(check.mend)}});
  }
  return {{"schema", "netchannel.doctor/1"},
          {"device", findings.device},
          {"accelerated", findings.accelerated},
          {"checks", std::move(checks)}};
}

std::string painted(State state, bool colour) {
  std::string word = fmt::format("{:<8}", to_string(state));
  if (!colour) return word;
  switch (state) {
    case State::ok:
      return "\033[32m" + word + "\033[0m";
    case State::slow:
      return "\033[33m" + word + "\033[0m";
    case State::missing:
      return "\033[31m" + word + "\033[0m";
    case State::note:
      break;
  }
  return word;
}

void print(const Findings& findings) {
  const bool colour = stdout_colour();
  std::string group;
  for (const Check& check : findings.checks) {
    if (check.group != group)
      fmt::print("{}{}\n", group.empty() ? "" : "\n",
                 check.group == "machine" ? check.group : check.group + "s");
    group = check.group;
    const std::string text = report::wrapped(check.name + ": " + check.text, kWidth - kTextAt, 0);
    std::string indented;
    for (const char c : text) {
      indented += c;
      if (c == '\n') indented += std::string(kTextAt, ' ');
    }
    fmt::print("  {} {}\n", painted(check.state, colour), indented);
    if (!check.mend.empty()) fmt::print("{}mend: {}\n", std::string(kTextAt, ' '), check.mend);
  }
  fmt::print("\n{}\n", findings.accelerated
                           ? "An accelerated path works here: try `netchannel compare --preset demo`."
                           : "No accelerated path works here yet: see what is missing above.");
}

int examine_and_tell(const DoctorOptions& options, bool json) {
  const Findings findings = examine(options);
  if (json) {
    fmt::print("{}\n", to_text(to_json(findings), 1));
  } else {
    print(findings);
  }
  return findings.accelerated ? kDone : kFailed;
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  struct Arguments {
    DoctorOptions options;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine offers, what is missing or slow, and how to mend it.");
  command->add_option("--device", given->options.device, "the interface to look at")->option_text("IF");
  command->add_flag("--try", given->options.try_hardware,
                    "open the path for a moment, also where that may restart the interface's queues");
  command->add_flag("--json", given->json, "as JSON");
  command->footer(
      "Exit status: 0 if some accelerated path works, else 1.\n\nExample:\n  netchannel doctor --device "
      "eth0");
  command->callback(
      [given, &chosen] { chosen = [given] { return examine_and_tell(given->options, given->json); }; });
}

}  // namespace netchannel::cli
