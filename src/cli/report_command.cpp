// netchannel report: renders a saved run again.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/unique_fd.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "report/report.hpp"

namespace netchannel::cli {
namespace {

constexpr std::size_t kLargestFile = 256 << 20;

std::optional<std::string> read_whole(const std::string& path) {
  UniqueFd opened;
  if (path != "-") opened.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (path != "-" && !opened) return std::nullopt;
  const int fd = path == "-" ? STDIN_FILENO : opened.get();
  std::string text;
  std::array<char, 65536> chunk;
  while (text.size() < kLargestFile) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(n));
  }
  return text;
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
