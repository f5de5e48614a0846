// From blocks to what they say together: "summary" and "compare" of the document. Only blocks that count are
// used: not superseded, not interrupted.
#pragma once

#include <vector>

#include "bench/plan.hpp"

namespace netchannel::bench {

bool has_flag(const Json& block, std::string_view flag);
bool counts(const Json& block);

// One entry a cell, contestant and metric. `level` is 0.95 or 0.99. Blocks carry "contestant" and "round".
Json summary_json(const std::vector<Json>& blocks, double level);
// One entry a cell, contestant, baseline and metric.
Json compare_json(const Plan& plan, const std::vector<Json>& blocks, double level, std::uint64_t seed);

}  // namespace netchannel::bench
