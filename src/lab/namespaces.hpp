// Entering a lab's namespaces: for a foreign program, for a function in a child, for the calling thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "lab/command.hpp"
#include "lab/error.hpp"
#include "lab/plan.hpp"

namespace netchannel::lab {

// An open descriptor of /run/netns/NAME. The error says how to make the lab.
LabResult<UniqueFd> open_namespace(const std::string& lab, Side side);

// Moves the calling thread, and the threads and processes that it starts from then on, into a side.
LabResult<void> enter(const std::string& lab, Side side);

// Becomes the program: returns only if that failed. The program sees a /sys of its side's interfaces if a new
// sysfs can be mounted (in a mount namespace of its own), as under `ip netns exec`.
LabError exec(const std::string& lab, Side side, const Arguments& command);

// Starts the program as a child, which the caller waits for. Standard streams are the caller's.
LabResult<pid_t> spawn(const std::string& lab, Side side, const Arguments& command);

// Runs the function in a child that stands in the side, waits, and returns what the function returned (0 to
// 255), or 128 + n if a signal n ended the child. The caller should have no other threads: the child is a
// copy without them.
LabResult<int> run_in(const std::string& lab, Side side, const std::function<int()>& function);

// Runs the function in a thread of its own that stands in the namespace, and waits for it: nothing has to be
// copied back, but the function must not start anything that outlives it.
LabResult<void> call_in(const UniqueFd& network_namespace, const std::function<LabResult<void>()>& function);

// Processes that stand in the namespace, as far as the caller may see.
std::vector<pid_t> processes_in(const UniqueFd& network_namespace);

}  // namespace netchannel::lab
