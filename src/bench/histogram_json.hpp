// A histogram as it crosses to another process and stands in a block.
#pragma once

#include "base/json.hpp"

namespace netchannel::bench {

class Histogram;
Json to_json(const Histogram& histogram);
void from_json(const Json& json, Histogram& histogram);
// Its summary as "latency_us": percentiles are null where there are too few samples.
Json latency_us(const Histogram& histogram);

}  // namespace netchannel::bench
