// The commands. Each adds itself to the parser, with its options and an example, and leaves behind what is to
// be run if the user chose it. What they return is the exit status: 0 done, 1 failed, 2 usage, 3 a measured
// stream was not correct, 4 confidence not reached under --strict.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace netchannel::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

using Action = std::function<int()>;

void add_doctor(CLI::App& app, Action& action);
void add_lab(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);

// One line on standard error: what, why and what to do. Returns kFailed.
int complain(const std::string& what);
// A duration as a person writes it, "250us", "20ms", "1.5s"; a bare number is seconds. Nothing if it is none.
std::optional<double> parse_seconds(const std::string& text);
// Standard output is a terminal that wants colours (isatty, NO_COLOR).
bool wants_colour();

}  // namespace netchannel::cli
