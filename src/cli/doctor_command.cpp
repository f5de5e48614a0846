#include <cstdio>

#include "cli/commands.hpp"
#include "cli/doctor.hpp"

namespace netchannel::cli {

void add_doctor(CLI::App& app, Action& action) {
  struct Options {
    std::string device;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine offers, what is in the way, and what mends it");
  command->add_option("--device", options->device,
                      "Interface to look at (default: that of the default route)");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Example:\n  netchannel doctor --device eth0\n\nExit status: 0 if some accelerated path works, else "
      "1.");
  command->callback([&action, options] {
    action = [options] {
      const Diagnosis diagnosis = diagnose(options->device);
      std::fputs((options->json ? to_json(diagnosis) : to_text(diagnosis)).c_str(), stdout);
      return diagnosis.accelerated() ? kDone : kFailed;
    };
  });
}

}  // namespace netchannel::cli
