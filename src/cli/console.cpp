#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/exit_status.hpp"

namespace netchannel::cli {

bool stdout_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = no_colour != nullptr && *no_colour != '\0';
  const bool dumb = terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
  return !refused && !dumb && ::isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

int complain(std::string_view command, std::string_view text, int status) {
  std::string line =
      command.empty() ? fmt::format("netchannel: {}", text) : fmt::format("netchannel {}: {}", command, text);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  fmt::print(stderr, "{}\n", line);
  return status;
}

int complain_usage(std::string_view command, std::string_view text) {
  const std::string help =
      command.empty() ? "netchannel --help" : fmt::format("netchannel {} --help", command);
  return complain(command, fmt::format("{} (see {})", text, help), kUsage);
}

void ProgressLine::show(const std::string& text) {
  if (!stderr_is_terminal()) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  return fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

bool write_file(std::string_view command, const std::string& path, std::string_view text) {
  FILE* file = std::fopen(path.c_str(), "we");
  bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  if (!ok)
    complain(command, fmt::format("cannot write {}: {}; choose another place", path, std::strerror(errno)));
  return ok;
}

}  // namespace netchannel::cli
