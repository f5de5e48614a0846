// The commands. Each adds itself to the parser with its options, help and example; when it was chosen,
// `chosen` runs it and its exit status is the program's.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace netchannel::cli {

using Chosen = std::function<int()>;

// Thrown within main only, after parsing: an option's value makes no sense. Becomes kUsage.
struct UsageError {
  std::string text;
};

void add_doctor(CLI::App& app, Chosen& chosen);
void add_lab(CLI::App& app, Chosen& chosen);
void add_serve(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_compare(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);

}  // namespace netchannel::cli
