// What goes to the terminal, and how: results to standard output, everything else to standard error as one
// line each; colour and progress only for a terminal, and no colour under NO_COLOR.
#pragma once

#include <string>
#include <string_view>

namespace netchannel::cli {

bool stdout_colour();
bool stderr_is_terminal();

// "netchannel COMMAND: text". Returns kFailed or what is given, so that a command can return it.
int complain(std::string_view command, std::string_view text, int status = 1);
int complain_usage(std::string_view command, std::string_view text);

// One line on standard error that the next one overwrites; nothing unless a terminal reads it.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(const std::string& text);
  void clear();

 private:
  bool shown_ = false;
};

// "1:05", "12 s".
std::string duration_text(double seconds);

// Writes the whole file or says why not. False: it could not be written, and standard error has been told.
bool write_file(std::string_view command, const std::string& path, std::string_view text);

}  // namespace netchannel::cli
