#include "netchannel/stats.hpp"

namespace netchannel {
namespace {
constexpr std::array<CounterDescription, kCounterCount> kDescriptions = {{
#define DROP_REASON(name, meaning, action) {#name, meaning, action},
#include "netchannel/drop_reasons.def"
#undef DROP_REASON
#define COUNTER(name, meaning, action) {#name, meaning, action},
#include "netchannel/counters.def"
#undef COUNTER
}};
}  // namespace

const CounterDescription& describe(Counter counter) {
  return kDescriptions[static_cast<std::size_t>(counter)];
}

}  // namespace netchannel
