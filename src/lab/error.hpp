// Failures in this room carry text made when they happen, because most of it is another program's: what ip(8)
// or tc(8) wrote. One line that says what, why and what to do.
#pragma once

#include <string>

#include <tl/expected.hpp>

namespace netchannel::lab {

struct LabError {
  std::string text;
};

template <class T>
using LabResult = tl::expected<T, LabError>;

inline tl::unexpected<LabError> failure(std::string text) {
  return tl::unexpected(LabError{std::move(text)});
}
// "`what`: its text", for errno.
tl::unexpected<LabError> failure(const std::string& what, int error);

}  // namespace netchannel::lab
