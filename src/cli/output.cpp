#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/console.hpp"
#include "report/report.hpp"

namespace netchannel::cli {
namespace {

bool write_all_formats(std::string_view command, const Json& document, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    complain(command, fmt::format("cannot make the folder {}: {}; choose another with --out", directory,
                                  error.message()));
    return false;
  }
  using report::Format;
  constexpr std::array kFiles = {
      std::pair{"compare.txt", Format::text}, std::pair{"compare.md", Format::markdown},
      std::pair{"compare.csv", Format::csv}, std::pair{"compare.netperf.txt", Format::netperf}};
  bool ok = write_file(command, directory + "/compare.json", to_lines(document));
  for (const auto& [name, format] : kFiles) {
    ok = write_file(command, directory + "/" + name, report::render(document, format)) && ok;
  }
  return ok;
}

}  // namespace

bool put_out(std::string_view command, const Json& document, const OutputOptions& options) {
  bool ok = true;
  const bool json_only = options.json == "-";
  if (json_only) {
    fmt::print("{}", to_lines(document));
  } else if (!options.quiet) {
    fmt::print("{}", report::render(document, report::Format::text, {.colour = stdout_colour()}));
  }
  if (!options.json.empty() && !json_only) ok = write_file(command, options.json, to_lines(document));
  if (!options.directory.empty()) {
    ok = write_all_formats(command, document, options.directory) && ok;
    if (ok && !json_only && !options.quiet)
      fmt::print("report: {}/compare.json, .txt, .md, .csv\n", options.directory);
  }
  if (std::fflush(stdout) != 0) {
    complain(command, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    ok = false;
  }
  return ok;
}

}  // namespace netchannel::cli
