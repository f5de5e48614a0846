#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/console.hpp"
#include "report/report.hpp"

namespace netchannel::cli {
namespace {

bool make_folder(std::string_view command, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return true;
  complain(command, fmt::format("cannot make the folder {}: {}; choose another with --out", directory,
                                error.message()));
  return false;
}

// All scripts in one process, in the folder where their pictures go. What gnuplot says goes to a log beside
// them.
bool draw(std::string_view command, const std::string& directory, std::vector<std::string> scripts) {
  constexpr const char* kLog = "gnuplot.log";
  std::vector<char*> arguments = {const_cast<char*>("gnuplot")};
  for (std::string& script : scripts) arguments.push_back(script.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, kLog, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t program = 0;
  const int fault = ::posix_spawnp(&program, "gnuplot", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (fault == ENOENT) return true;  // the tables and scripts are there for another day
  int status = 0;
  if (fault == 0) {
    while (::waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
  }
  const std::string log = directory + "/" + kLog;
  if (fault == 0 && status == 0) {
    ::unlink(log.c_str());
    return true;
  }
  complain(command, fmt::format("gnuplot could not draw every picture; see {}", log));
  return false;
}

bool write_plots(std::string_view command, const Json& document, const std::string& directory) {
  const auto files = report::plots(document);
  if (files.empty()) return true;
  if (!make_folder(command, directory)) return false;
  std::vector<std::string> scripts;
  for (const report::File& file : files) {
    if (!write_file(command, directory + "/" + file.name, file.text)) return false;
    if (file.name.ends_with(".gp")) scripts.push_back(file.name);
  }
  return draw(command, directory, std::move(scripts));
}

}  // namespace

bool write_report(std::string_view command, const Json& document, const std::string& directory) {
  if (!make_folder(command, directory)) return false;
  using report::Format;
  constexpr std::array kFiles = {
      std::pair{"compare.txt", Format::text}, std::pair{"compare.md", Format::markdown},
      std::pair{"compare.csv", Format::csv}, std::pair{"compare.netperf.txt", Format::netperf},
      std::pair{"compare.html", Format::html}};
  bool ok = write_file(command, directory + "/compare.json", to_lines(document));
  for (const auto& [name, format] : kFiles) {
    ok = write_file(command, directory + "/" + name, report::render(document, format)) && ok;
  }
  return ok && write_plots(command, document, directory + "/plots");
}

std::string report_line(const std::string& directory) {
  return fmt::format("report: {}/compare.html, .json, .txt, .md, .csv, and plots\n", directory);
}

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
    ok = write_report(command, document, options.directory) && ok;
    if (ok && !json_only && !options.quiet) fmt::print("{}", report_line(options.directory));
  }
  if (std::fflush(stdout) != 0) {
    complain(command, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    ok = false;
  }
  return ok;
}

}  // namespace netchannel::cli
