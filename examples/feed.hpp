// What market_publisher and market_subscriber say to each other: a datagram from a subscriber, whatever it
// holds, subscribes; an update is a number, which grows by one, and a price, both in network order.
#pragma once

#include <netchannel/bytes.hpp>

#include <array>
#include <cstdint>

namespace feed {

constexpr std::size_t kUpdateSize = 16;

inline std::uint64_t number_of(netchannel::Bytes update) {
  return std::uint64_t{netchannel::load_be32(update, 0)} << 32 | netchannel::load_be32(update, 4);
}

inline void fill(std::array<std::byte, kUpdateSize>& update, std::uint64_t number, std::uint64_t price) {
  netchannel::store_be32(update, 0, static_cast<std::uint32_t>(number >> 32));
  netchannel::store_be32(update, 4, static_cast<std::uint32_t>(number));
  netchannel::store_be32(update, 8, static_cast<std::uint32_t>(price >> 32));
  netchannel::store_be32(update, 12, static_cast<std::uint32_t>(price));
}

}  // namespace feed
