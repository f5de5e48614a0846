// A hash table from small keys to small values whose hash is keyed (siphash.hpp), so that whoever
// chooses addresses and ports cannot choose collisions. Open addressing with linear probing in one array of a
// power of two; at most half full; erasing moves what follows back, so there are no tombstones and a look-up
// never degrades. Grows only in insert(), never on the packet path. One thread's.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/flow.hpp"

namespace netchannel {

// 16 random bytes from the system, for a table's secret.
SipKey random_hash_key();

// A flow as it is hashed: all of it and nothing else.
inline std::array<std::uint64_t, 5> packed(const FlowKey& flow) {
  std::array<std::uint64_t, 5> words;
  std::memcpy(words.data(), flow.local.address.bytes().data(), 16);
  std::memcpy(words.data() + 2, flow.peer.address.bytes().data(), 16);
  words[4] = std::uint64_t{flow.local.port} << 32 | std::uint64_t{flow.peer.port} << 16 |
             static_cast<std::uint64_t>(flow.protocol);
  return words;
}

// packed(key) must give bytes that differ if and only if keys differ.
template <class Key, class Value>
class KeyedTable {
 public:
  explicit KeyedTable(const SipKey& secret, std::size_t expected = 8)
      : secret_(secret), cells_(std::bit_ceil(expected * 2)) {}

  std::size_t size() const { return size_; }

  Value* find(const Key& key) {
    for (std::size_t at = home_of(key);; at = next(at)) {
      Cell& cell = cells_[at];
      if (!cell.used) return nullptr;
      if (cell.key == key) return &cell.value;
    }
  }
  const Value* find(const Key& key) const { return const_cast<KeyedTable*>(this)->find(key); }

  // False (nothing done) if the key is there.
  bool insert(const Key& key, Value value) {
    if (find(key) != nullptr) return false;
    if ((size_ + 1) * 2 > cells_.size()) grow();
    place(key, std::move(value));
    ++size_;
    return true;
  }

  // False if the key is not there.
  bool erase(const Key& key) {
    std::size_t hole = home_of(key);
    while (cells_[hole].used && !(cells_[hole].key == key)) hole = next(hole);
    if (!cells_[hole].used) return false;
    for (std::size_t at = next(hole); cells_[at].used; at = next(at)) {
      // A cell may move into the hole if its home is not between the hole and itself.
      const std::size_t from_home = distance(home_of(cells_[at].key), at);
      if (from_home < distance(hole, at)) continue;
      cells_[hole] = std::move(cells_[at]);
      hole = at;
    }
    cells_[hole] = Cell{};
    --size_;
    return true;
  }

  // Calls fn(key, value) for each; fn must not change the table.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const Cell& cell : cells_) {
      if (cell.used) fn(cell.key, cell.value);
    }
  }

 private:
  struct Cell {
    Key key{};
    Value value{};
    bool used = false;
  };

  std::size_t mask() const { return cells_.size() - 1; }
  std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
  std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & mask(); }
  std::size_t home_of(const Key& key) const {
    return static_cast<std::size_t>(siphash(secret_, packed(key))) & mask();
  }
  void place(const Key& key, Value value) {
    std::size_t at = home_of(key);
    while (cells_[at].used) at = next(at);
    cells_[at] = Cell{key, std::move(value), true};
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (Cell& cell : old) {
      if (cell.used) place(cell.key, std::move(cell.value));
    }
  }

  SipKey secret_;
  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace netchannel
