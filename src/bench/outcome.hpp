// A failure as a person needs it: an Error and the sentence of what was being done, which the Error's static
// text cannot hold ("cannot serve echo on port 7"). Off the packet path only.
#pragma once

#include <string>
#include <utility>

#include "netchannel/error.hpp"

namespace netchannel::bench {

struct Failure {
  Error error;
  std::string context;
};

template <class T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> fail_with(Error error, std::string context) {
  return tl::unexpected<Failure>(Failure{error, std::move(context)});
}

// "context: what (ERRNO: its text)", in one line.
inline std::string describe(const Failure& failure) {
  const std::string cause = netchannel::describe(failure.error);
  if (cause.empty()) return failure.context;
  return failure.context.empty() ? cause : failure.context + ": " + cause;
}

}  // namespace netchannel::bench
