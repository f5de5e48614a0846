#include "proto/fragment.hpp"

#include <bit>

namespace netchannel::proto {

std::uint32_t IdentificationSource::next(const IpAddress& source, const IpAddress& destination) {
  const auto from = std::bit_cast<std::array<std::uint64_t, 2>>(source.bytes());
  const auto to = std::bit_cast<std::array<std::uint64_t, 2>>(destination.bytes());
  const std::uint64_t hash = siphash(key_, std::array{from[0], from[1], to[0], to[1]});
  return static_cast<std::uint32_t>(hash) + counters_[hash >> 56]++;
}

}  // namespace netchannel::proto
