// netchannel report: renders a saved run again.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "report/report.hpp"

namespace netchannel::cli {
namespace {

constexpr std::size_t kLargestFile = 256 << 20;

std::optional<std::string> read_whole(const std::string& path) {
  FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  std::string text;
  char chunk[65536];
  for (std::size_t n = 1; n != 0 && text.size() < kLargestFile;) {
    n = std::fread(chunk, 1, sizeof chunk, file);
    text.append(chunk, n);
  }
  const bool bad = std::ferror(file) != 0;
  if (file != stdin) std::fclose(file);
  return bad ? std::nullopt : std::optional(std::move(text));
}

int render_file(const std::string& path, const std::string& format_name) {
  const auto format = report::parse_format(format_name);
  if (!format)
    return complain_usage("report",
                          fmt::format("no format '{}'; there are {}", format_name, report::kFormatNames));
  const auto text = read_whole(path);
  if (!text) return complain("report", fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  const auto document = parse_json(*text);
  if (!document)
    return complain("report",
                    fmt::format("{} is not JSON; give a file that `netchannel compare --json` wrote", path));
  if (const auto fault = report::check(*document))
    return complain("report", fmt::format("{}: {}", path, *fault));
  fmt::print("{}", report::render(*document, *format, {.colour = stdout_colour()}));
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
  struct Arguments {
    std::string file;
    std::string format = "text";
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "Renders a saved run again.");
  command->add_option("file", given->file, "JSON that compare or bench wrote; - is standard input")
      ->required()
      ->option_text("FILE.json");
  command->add_option("--format", given->format, "text, md, csv or netperf")->option_text("F (text)");
  command->footer("Example:\n  netchannel report netchannel-report/compare.json --format md");
  command->callback(
      [given, &chosen] { chosen = [given] { return render_file(given->file, given->format); }; });
}

}  // namespace netchannel::cli
