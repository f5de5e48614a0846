// Runs a plan block by block and makes the document of what came out. It knows nothing of labs and processes:
// who calls it gives a function that measures one block. Whatever happens (a lane that cannot be opened, a
// block that fails, an interrupt) the document is whole and says so.
//
// A lane that fails in its first block of a workload is left out of it from then on, with the reason among
// the warnings. A contaminated block (somebody else's CPU use, steal) is measured once more, as often as the
// budget of a tenth of the plan allows; the first stays in the document with the flag "superseded" and is in
// no summary.
#pragma once

#include <functional>
#include <string>

#include "bench/outcome.hpp"
#include "bench/plan.hpp"

namespace netchannel::bench {

using BlockRunner = std::function<Outcome<Json>(const BlockOptions&)>;

struct Progress {
  std::size_t done = 0;  // blocks, of
  std::size_t total = 0;
  double seconds_left = 0;
  BlockOptions next;
};
using OnProgress = std::function<void(const Progress&)>;

// About how long it will take.
double estimated_seconds(const CompareOptions& options, const Plan& plan);

Json run_plan(const CompareOptions& options, const Plan& plan, const BlockRunner& runner,
              const OnProgress& on_progress);

// A document without a plan: what `bench` measured, by itself.
Json document(Json config, std::vector<Json> blocks, int confidence);

// What the exit status says about a document.
bool has_wrong_stream(const Json& document);
// Why confidence was not reached: contaminated blocks that no other replaced, or an interval of a rate that
// is wider than `width_percent` to each side. Empty if it was.
std::vector<std::string> doubts(const Json& document, double width_percent);

}  // namespace netchannel::bench
