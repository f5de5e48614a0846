// Counters. Each is declared once, in netchannel/counters.def, with its meaning and what to do about it; the
// first of them are the drop reasons, so a DropReason is a Counter of the same value. A CounterPage has one
// writer, a thread; any thread or process may read it, and sums pages if it wants totals. No counter is
// written by two threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "netchannel/drop_reason.hpp"

namespace netchannel {

enum class Counter : std::uint16_t {
#define DROP_REASON(name, meaning, action) name,
#include "netchannel/drop_reasons.def"
#undef DROP_REASON
#define COUNTER(name, meaning, action) name,
#include "netchannel/counters.def"
#undef COUNTER
  kCount
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

struct CounterDescription {
  std::string_view name;
  std::string_view meaning;
  std::string_view action;  // what to do about it, or "nothing"
};
const CounterDescription& describe(Counter counter);

class alignas(64) CounterPage {
 public:
  // The owner's only.
  void add(Counter counter, std::uint64_t n = 1) noexcept {
    auto& cell = cells_[static_cast<std::size_t>(counter)];
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void drop(DropReason reason, std::uint64_t n = 1) noexcept { add(static_cast<Counter>(reason), n); }
  // Sets a counter that mirrors a total kept elsewhere (the kernel's XDP statistics).
  void set(Counter counter, std::uint64_t total) noexcept {
    cells_[static_cast<std::size_t>(counter)].store(total, std::memory_order_relaxed);
  }
  std::uint64_t read(Counter counter) const noexcept {
    return cells_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }
  std::uint64_t read(DropReason reason) const noexcept { return read(static_cast<Counter>(reason)); }

 private:
  std::array<std::atomic<std::uint64_t>, kCounterCount> cells_{};
};

}  // namespace netchannel
