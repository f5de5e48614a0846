// netchannel: the command line. main() parses, runs the command that was chosen and turns what went wrong
// into one line and an exit status (exit_status.hpp).
#include <fmt/format.h>

#include <exception>

#include "bench/environment.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "cli/help.hpp"

namespace {

using namespace netchannel;

std::string chosen_name(const CLI::App& app) {
  std::string name;
  for (const CLI::App* command : app.get_subcommands()) {
    name = command->get_name();
    for (const CLI::App* inner : command->get_subcommands()) name += " " + inner->get_name();
  }
  return name;
}

void give_version(CLI::App& app) {
  app.set_version_flag("--version", "netchannel " + bench::version());
  for (CLI::App* command : app.get_subcommands({})) give_version(*command);
}

int run(int argc, char** argv) {
  CLI::App app("Packets from the driver's ring to the thread that uses them.", "netchannel");
  app.formatter(std::make_shared<cli::HelpFormatter>());
  app.require_subcommand(1);
  app.footer("Example:\n  netchannel compare --preset demo\n\nEvery command has --help.");
  cli::Chosen chosen;
  cli::add_doctor(app, chosen);
  cli::add_compare(app, chosen);
  cli::add_serve(app, chosen);
  cli::add_bench(app, chosen);
  cli::add_lab(app, chosen);
  cli::add_report(app, chosen);
  give_version(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return cli::complain_usage(chosen_name(app), error.what());
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const cli::UsageError& error) {
    return cli::complain("", error.text, cli::kUsage);
  } catch (const std::exception& error) {
    return cli::complain("", fmt::format("failed: {}", error.what()));
  }
}
