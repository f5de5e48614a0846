// From a flow to the number of what it belongs to. The keys stand in the connections themselves; here are
// only a keyed hash (siphash.hpp: whoever chooses addresses and ports cannot choose collisions) and the
// number, 8 bytes a cell, so that a look-up among a million connections is one cache line here and one there.
// Open addressing with linear probing, at most half full; erasing moves what follows back. The size is fixed:
// no look-up and no insertion ever waits for a rehash. One thread's.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/keyed_table.hpp"
#include "base/siphash.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::stack {

class ConnTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  ConnTable(const SipKey& key, std::uint32_t most)
      : key_(key), cells_(std::bit_ceil(std::size_t{most} * 2 + 2)) {}

  // `same(number)`: whether that one has the flow. kNone: nobody has.
  template <class Same>
  std::uint32_t find(const FlowKey& flow, Same&& same) const {
    const std::uint32_t hash = hash_of(flow);
    for (std::size_t at = hash & mask(); cells_[at].number != kNone; at = (at + 1) & mask()) {
      if (cells_[at].hash == hash && same(cells_[at].number)) return cells_[at].number;
    }
    return kNone;
  }
  // The flow is not in the table, and there are fewer than `most`.
  void insert(const FlowKey& flow, std::uint32_t number) {
    const std::uint32_t hash = hash_of(flow);
    std::size_t at = hash & mask();
    while (cells_[at].number != kNone) at = (at + 1) & mask();
    cells_[at] = {hash, number};
    ++size_;
  }
  // Nothing happens if it is not there.
  void erase(const FlowKey& flow, std::uint32_t number) {
    std::size_t hole = hash_of(flow) & mask();
    while (cells_[hole].number != number) {
      if (cells_[hole].number == kNone) return;
      hole = (hole + 1) & mask();
    }
    for (std::size_t at = (hole + 1) & mask(); cells_[at].number != kNone; at = (at + 1) & mask()) {
      // A cell may move into the hole if its home is not between the hole and itself.
      if (((at - cells_[at].hash) & mask()) < ((at - hole) & mask())) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole] = {};
    --size_;
  }
  std::size_t size() const { return size_; }

 private:
  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t number = kNone;
  };
  std::size_t mask() const { return cells_.size() - 1; }
  std::uint32_t hash_of(const FlowKey& flow) const {
    return static_cast<std::uint32_t>(siphash(key_, packed(flow)));
  }
  SipKey key_;
  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace netchannel::stack
