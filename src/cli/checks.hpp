// What doctor found, check by check, as values: for the terminal and for --json alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace netchannel::cli {

enum class State : std::uint8_t {
  ok,
  slow,     // works, not as well as it could
  missing,  // does not work
  note,     // to know
};
std::string_view to_string(State state);

struct Check {
  std::string group;  // "path", "privilege", "trap", "machine"
  std::string name;
  State state = State::ok;
  std::string text;
  std::string mend;  // a command or a sentence; empty: nothing to mend
};

struct Findings {
  std::string device;  // the interface that was looked at; empty: none
  std::vector<Check> checks;
  bool accelerated = false;  // some path but the kernel's works
};

struct DoctorOptions {
  std::string device;         // empty: the default one
  bool try_hardware = false;  // open the path on any interface, for a moment
};
Findings examine(const DoctorOptions& options);

}  // namespace netchannel::cli
