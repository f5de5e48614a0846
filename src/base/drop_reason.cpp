#include "netchannel/drop_reason.hpp"

#include <array>

namespace netchannel {
namespace {
constexpr std::array kNames = {
#define DROP_REASON(name, meaning, action) std::string_view(#name),
#include "netchannel/drop_reasons.def"
#undef DROP_REASON
};
static_assert(kNames.size() == static_cast<std::size_t>(DropReason::kCount));
}  // namespace

std::string_view to_string(DropReason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace netchannel
