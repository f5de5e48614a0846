// netchannel report: renders a saved run again, or holds two against each other.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/unique_fd.hpp"
#include "bench/against.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
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

struct Arguments {
  std::string file;
  std::string format = "text";
  std::string directory;
  std::string against;
  bool force = false;
};

// A whole document, or nothing and a complaint.
std::optional<Json> read_document(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) {
    complain("report", fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    return std::nullopt;
  }
  auto document = parse_json(*text);
  if (!document) {
    complain("report",
             fmt::format("{} is not JSON; give a file that `netchannel compare --json` wrote", path));
    return std::nullopt;
  }
  if (const auto fault = report::check(*document)) {
    complain("report", fmt::format("{}: {}", path, *fault));
    return std::nullopt;
  }
  return std::move(*document);
}

int hold_against(const Arguments& given, const Json& now, report::Format format) {
  const auto before = read_document(given.against);
  if (!before) return kFailed;
  const auto unlike = bench::unlike(*before, now);
  if (!unlike.empty() && !given.force) {
    return complain("report",
                    fmt::format("{} and {} were not measured alike ({}); --force compares them all the same",
                                given.against, given.file, fmt::join(unlike, "; ")));
  }
  const double level = get_number(get_part(now, "config"), "confidence", 95) == 99 ? 0.99 : 0.95;
  const Json entries = bench::against(*before, now, level);
  if (entries.empty())
    return complain("report",
                    fmt::format("nothing was measured in both {} and {}", given.against, given.file));
  for (const std::string& one : unlike) fmt::print(stderr, "netchannel report: not alike: {}\n", one);
  fmt::print("{}", report::render_against(entries, format, {.colour = stdout_colour()}));
  return kDone;
}

int render_file(const Arguments& given) {
  const auto format = report::parse_format(given.format);
  if (!format)
    return complain_usage("report",
                          fmt::format("no format '{}'; there are {}", given.format, report::kFormatNames));
  if (!given.against.empty() && (*format == report::Format::html || *format == report::Format::netperf))
    return complain_usage("report", "--against has the formats text, md and csv");
  if (!given.against.empty() && !given.directory.empty())
    return complain_usage("report", "--against prints its table; send it to a file with >, without --out");
  const auto document = read_document(given.file);
  if (!document) return kFailed;
  if (!given.against.empty()) return hold_against(given, *document, *format);
  if (given.directory.empty()) {
    fmt::print("{}", report::render(*document, *format, {.colour = stdout_colour()}));
    return kDone;
  }
  if (!write_report("report", *document, given.directory)) return kFailed;
  fmt::print("{}", report_line(given.directory));
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("report", "Renders a saved run again, or holds two against each other.");
  command->add_option("file", given->file, "JSON that compare or bench wrote; - is standard input")
      ->required()
      ->option_text("FILE.json");
  command->add_option("--format", given->format, "text, md, csv, html or netperf")->option_text("F (text)");
  command
      ->add_option("--out", given->directory, "write every format there, and plots if gnuplot is installed")
      ->option_text("DIR");
  command
      ->add_option("--against", given->against,
                   "an earlier run: the same paths then and now, text, md or csv")
      ->option_text("FILE.json");
  command->add_flag("--force", given->force, "with --against: even if machines or options differ");
  command->footer(
      "Examples:\n  netchannel report netchannel-report/compare.json --format md\n"
      "  netchannel report new.json --against old.json");
  command->callback([given, &chosen] { chosen = [given] { return render_file(*given); }; });
}

}  // namespace netchannel::cli
