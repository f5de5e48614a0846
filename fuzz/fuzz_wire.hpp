// What the fuzz targets of the wire room share. A target gives its parser any bytes; where a view comes out,
// every getter is called, every span must lie inside the input, and what the repr emits must parse to the
// same repr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netchannel/bytes.hpp"

namespace netchannel::fuzz {

inline void require(bool truth) {
  if (!truth) __builtin_trap();
}

// In a block of its own size, so that the address sanitizer sees a read one byte past the end.
inline std::vector<std::byte> copy_of(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  return {bytes.begin(), bytes.end()};
}

// `part` lies inside `whole`, and can be read.
inline void require_inside(Bytes part, Bytes whole) {
  if (part.empty()) return;
  require(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
  unsigned sum = 0;
  for (const std::byte byte : part) sum += std::to_integer<unsigned>(byte);
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

template <class T>
void use(const T& value) {
  volatile bool sink = value == value;
  static_cast<void>(sink);
}

}  // namespace netchannel::fuzz
