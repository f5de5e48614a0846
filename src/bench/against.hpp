// Two saved documents against each other: the same path then and now. Blocks of two documents were not
// measured side by side, so nothing pairs them: the interval is Welch's, over the logarithms of each side's
// runs, and a machine that was slower on one of the days looks like a program that was. Hence only documents
// of like environments are compared, unless the user insists.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace netchannel::bench {

// What differs between the machines, builds and options of two documents so that their figures cannot be held
// against each other, a phrase each: "kernel: Linux 6.1, Linux 6.18". How many runs there were, and of what,
// may differ, and so may the version.
std::vector<std::string> unlike(const Json& before, const Json& now);

// One entry for each contestant, shape and metric that is in both, in the order of the contestants of `now`:
// those of a block that tell it from others, "metric", "before" and "now" (geometric means), "n_before",
// "n_now", "ratio" (now over before), "ci_low", "ci_high", "verdict" of now. `level` is 0.95 or 0.99. Only
// blocks that count are used.
Json against(const Json& before, const Json& now, double level);

}  // namespace netchannel::bench
