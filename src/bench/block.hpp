// A block's JSON, made of the parts that its processes counted and of the machine's CPU time around them.
#pragma once

#include "base/json.hpp"
#include "bench/cpu.hpp"
#include "bench/options.hpp"

namespace netchannel::bench {

// Adds a worker's part (Worker::finish()) to others of the same block: counts and histograms add up, the time
// is the longest, what is wrong in one is wrong in all. `into` may be null.
void merge_part(Json& into, const Json& part);

// `cpu.own` is what this process itself used; the parts say the rest.
Json make_block(const BlockOptions& options, const Json& part, CpuUse cpu);

}  // namespace netchannel::bench
