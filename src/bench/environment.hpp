// Where figures were measured and with what: the machine and the program, as the "machine" and "tool" blocks
// of the JSON. Two saved runs are comparable only if these are alike. What cannot be found out is an empty
// string, never a guess.
#pragma once

#include "base/json.hpp"

namespace netchannel::bench {

Json machine_json();
Json tool_json();

// Of the running kernel's boot: equal at both ends of a connection if they are one machine, so that they
// share a clock and a /proc/stat. Empty if it cannot be read.
std::string boot_id();

std::string version();

}  // namespace netchannel::bench
