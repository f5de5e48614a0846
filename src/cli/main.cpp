// netchannel, the program: a table of its commands.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.hpp"

namespace netchannel::cli {

int complain(const std::string& what) {
  std::fprintf(stderr, "netchannel: %s\n", what.c_str());
  return kFailed;
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

std::optional<double> parse_seconds(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string unit = end;
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value / 1e3;
  if (unit == "us") return value / 1e6;
  return std::nullopt;
}

namespace {

int run(int argc, char** argv) {
  CLI::App app("Network channels: packets from the driver's ring to the thread that uses them.",
               "netchannel");
  app.set_version_flag("--version", "netchannel " NETCHANNEL_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Start with: netchannel doctor, then: netchannel compare --preset demo\nEach command has --help.");
  Action action;
  add_doctor(app, action);
  add_lab(app, action);
  add_report(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    complain(std::string(error.what()) + "; see netchannel --help, or --help after a command");
    return kUsage;
  }
  return action();
}

}  // namespace
}  // namespace netchannel::cli

int main(int argc, char** argv) { return netchannel::cli::run(argc, argv); }
