#include <cstdio>
#include <fstream>
#include <sstream>

#include "cli/commands.hpp"
#include "report/render.hpp"

namespace netchannel::cli {
namespace {

int print_report(const std::string& file, const std::string& format_name) {
  const auto format = report::parse_format(format_name);
  if (!format) {
    complain("no format " + format_name + "; there are: " + std::string(report::kFormatNames));
    return kUsage;
  }
  std::ifstream in(file);
  if (!in) return complain("cannot read " + file + "; is it the file that compare --json wrote?");
  std::stringstream text;
  text << in.rdbuf();
  const auto run = report::Json::parse(text.str(), nullptr, false);
  if (run.is_discarded()) return complain(file + " is not JSON, or is cut off; run compare again");
  const std::string schema = report::text_at(run, "schema");
  if (schema != "netchannel.compare/1") {
    return complain(file + " has the schema \"" + schema + "\"; this version reads netchannel.compare/1");
  }
  std::fputs(report::render(run, *format, wants_colour()).c_str(), stdout);
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  struct Options {
    std::string file, format = "text";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Renders a saved run again");
  command->add_option("file", options->file, "What compare --json wrote")->required();
  command->add_option("--format", options->format, "One of " + std::string(report::kFormatNames))
      ->capture_default_str();
  command->footer(
      "Example:\n  netchannel compare --preset demo --json run.json\n  netchannel report run.json --format "
      "md");
  command->callback(
      [&action, options] { action = [options] { return print_report(options->file, options->format); }; });
}

}  // namespace netchannel::cli
