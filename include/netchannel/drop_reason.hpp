// Why a packet was not delivered. Every drop has one of these names, and every name has a counter of the same
// name (stats/counters.def takes this list in first), a meaning and what to do about it.
#pragma once

#include <cstdint>
#include <string_view>

namespace netchannel {

enum class DropReason : std::uint16_t {
#define DROP_REASON(name, meaning, action) name,
#include "netchannel/drop_reasons.def"
#undef DROP_REASON
  kCount
};

std::string_view to_string(DropReason reason);

}  // namespace netchannel
