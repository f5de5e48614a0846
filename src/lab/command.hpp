// Runs ip(8) and tc(8): an argument list, never a shell, with what they print captured, so that their
// complaint can stand in ours.
#pragma once

#include <string>
#include <vector>

#include "lab/error.hpp"

namespace netchannel::lab {

using Arguments = std::vector<std::string>;

struct Finished {
  int status = 0;  // exit status; 128 + n if a signal n ended it
  std::string output;
  std::string errors;
};

// The full path of a program: in the system's directories first, which an ordinary user's PATH may lack.
LabResult<std::string> find_program(const std::string& name);

// Waits for it to end. An error only if it could not be started.
LabResult<Finished> run(const Arguments& command);
// An error also if it did not succeed: "`ip link add ...`: what it wrote".
LabResult<void> run_or_fail(const Arguments& command);

}  // namespace netchannel::lab
