// The finished headers of datagrams to recent peers, so that sending to one again is a look-up, a copy of the
// payload and four stamped fields. An entry holds until its generation is past (addresses, routes, neighbours
// or a path's MTU have changed) or its time is over (the neighbour must be verified).
//
// Two ways a set, the one not used last makes room: a collision costs time and nothing else.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/address.hpp"
#include "netchannel/time.hpp"
#include "proto/udp.hpp"
#include "stack/stack.hpp"

namespace netchannel::stack {

struct alignas(64) CachedHeader {
  std::uint32_t generation = 0;  // 0: empty
  UdpHandle socket;
  Endpoint peer;
  std::uint16_t max_payload = 0;  // that fits one packet
  Instant valid_until;
  proto::UdpHeader header;
};

class HeaderCache {
 public:
  HeaderCache(std::uint32_t entries, const SipKey& key)
      : key_(key), sets_(std::bit_ceil(entries < 2 ? 1u : entries / 2)) {}

  // The entry for that pair, or null. `now` and `generation` are those of the moment.
  CachedHeader* find(UdpHandle socket, const Endpoint& peer, std::uint32_t generation, Instant now) {
    Set& set = sets_[place(socket, peer)];
    for (std::uint8_t way = 0; way < 2; ++way) {
      CachedHeader& entry = set.ways[way];
      if (entry.generation != generation || entry.socket != socket || !(entry.peer == peer)) continue;
      if (entry.valid_until <= now) return nullptr;
      set.last = way;
      return &entry;
    }
    return nullptr;
  }
  // A place for that pair, to be filled by the caller.
  CachedHeader& make(UdpHandle socket, const Endpoint& peer) {
    Set& set = sets_[place(socket, peer)];
    set.last ^= 1;
    for (std::uint8_t way = 0; way < 2; ++way) {
      if (set.ways[way].socket == socket && set.ways[way].peer == peer) set.last = way;
    }
    CachedHeader& entry = set.ways[set.last];
    entry.socket = socket;
    entry.peer = peer;
    return entry;
  }

 private:
  struct Set {
    std::array<CachedHeader, 2> ways;
    std::uint8_t last = 0;
  };
  // Not a strong hash: the worst that chosen collisions can do is a miss.
  std::size_t place(UdpHandle socket, const Endpoint& peer) const {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(peer.address.bytes());
    std::uint64_t hash = (words[0] ^ key_.k0) + std::rotl(words[1] ^ key_.k1, 23);
    hash ^= std::uint64_t{socket.value} << 16 | peer.port;
    hash *= 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
    return static_cast<std::size_t>(hash >> 40) & (sets_.size() - 1);
  }
  SipKey key_;
  std::vector<Set> sets_;
};

}  // namespace netchannel::stack
