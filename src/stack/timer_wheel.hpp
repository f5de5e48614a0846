// A hierarchical timing wheel (Varghese and Lauck, 1987): any number of timers, of which arming, disarming
// and expiring each cost a few list operations. Ticks are 65.5 us; four levels of 256 slots reach 78 hours,
// and what lies beyond waits in the last slot and is put in its place then. A timer never fires early and at
// most a tick late.
//
//   level 0   256 slots of a tick        --> due, in the order of their ticks
//   level 1   256 slots of 256 ticks     --> cascades into level 0 when its slot begins
//   level 2, 3 likewise
//
// The links of a timer stand in whatever it belongs to: `Links` is called with its number and returns a
// TimerLinks&. One timer a number. Nothing allocates.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "netchannel/time.hpp"

namespace netchannel::stack {

struct TimerLinks {
  static constexpr std::uint16_t kIdle = 0xffff;
  Instant at = kForever;  // as armed
  std::uint32_t next = 0, previous = 0;
  std::uint16_t list = kIdle;
  bool armed() const { return list != kIdle; }
};

template <class Links>
class TimerWheel {
 public:
  explicit TimerWheel(Links links) : links_(links) { heads_.fill(kNone); }

  // Arms the timer, or moves it. `at` may be past: it is due with the next expire().
  void arm(std::uint32_t timer, Instant at) {
    disarm(timer);
    TimerLinks& links = links_(timer);
    links.at = at;
    push(list_of(tick_of(at)), timer);
  }
  void disarm(std::uint32_t timer) {
    if (links_(timer).armed()) unlink(timer);
  }

  // Calls fire(timer) for each that is due, disarmed, at most `budget` of them. fire() may arm and disarm.
  template <class Fire>
  void expire(Instant now, std::uint32_t budget, Fire&& fire) {
    const std::uint64_t target = floor_tick(now);
    for (std::uint64_t next = next_stop(); next <= target; next = next_stop()) {
      tick_ = next;
      cascade();
    }
    if (target > tick_) tick_ = target;
    while (budget-- > 0 && heads_[kDue] != kNone) {
      const std::uint32_t timer = heads_[kDue];
      unlink(timer);
      fire(timer);
    }
  }

  // Not after the next timer, and before it only where the wheel has to turn first.
  Instant next_deadline() const {
    if (heads_[kDue] != kNone) return Instant{};
    const std::uint64_t next = next_stop();
    return next == kNever ? kForever : Instant{static_cast<std::int64_t>(next << kTickBits)};
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static constexpr int kTickBits = 16, kSlotBits = 8, kLevels = 4;
  static constexpr std::uint64_t kSlots = 1 << kSlotBits, kMask = kSlots - 1;
  static constexpr std::uint16_t kDue = kLevels * kSlots;

  static std::uint64_t floor_tick(Instant at) {
    return at.ns <= 0 ? 0 : static_cast<std::uint64_t>(at.ns) >> kTickBits;
  }
  static std::uint64_t tick_of(Instant at) {
    if (at.ns <= 0) return 0;
    return (static_cast<std::uint64_t>(at.ns) + (1 << kTickBits) - 1) >> kTickBits;
  }
  std::uint16_t list_of(std::uint64_t tick) const {
    if (tick <= tick_) return kDue;
    for (int level = 0; level < kLevels; ++level) {
      const int shift = level * kSlotBits;
      if ((tick >> shift) - (tick_ >> shift) < kSlots)
        return static_cast<std::uint16_t>(level * static_cast<int>(kSlots) +
                                          static_cast<int>(tick >> shift & kMask));
    }
    // Beyond the last level: as far as it reaches.
    constexpr int shift = (kLevels - 1) * kSlotBits;
    return static_cast<std::uint16_t>((kLevels - 1) * kSlots + (((tick_ >> shift) + kSlots - 1) & kMask));
  }
  void push(std::uint16_t list, std::uint32_t timer) {
    TimerLinks& links = links_(timer);
    links.list = list;
    links.previous = kNone;
    links.next = heads_[list];
    if (links.next != kNone) links_(links.next).previous = timer;
    heads_[list] = timer;
    if (list != kDue) used_[list / 64] |= std::uint64_t{1} << list % 64;
  }
  void unlink(std::uint32_t timer) {
    TimerLinks& links = links_(timer);
    if (links.next != kNone) links_(links.next).previous = links.previous;
    if (links.previous != kNone) {
      links_(links.previous).next = links.next;
    } else {
      heads_[links.list] = links.next;
      if (links.next == kNone && links.list != kDue)
        used_[links.list / 64] &= ~(std::uint64_t{1} << links.list % 64);
    }
    links.list = TimerLinks::kIdle;
  }
  // Distance from slot `at` of a level to the next one after it that is in use; 0: none is.
  std::uint64_t distance_to_used(int level, std::uint64_t at) const {
    constexpr std::uint64_t kWords = kSlots / 64;
    const std::uint64_t* words = &used_[static_cast<std::size_t>(level) * kWords];
    const std::uint64_t start = (at + 1) & kMask;
    for (std::uint64_t i = 0; i <= kWords; ++i) {
      const std::uint64_t word = (start / 64 + i) % kWords;
      std::uint64_t bits = words[word];
      if (i == 0) bits &= ~std::uint64_t{0} << start % 64;
      if (i == kWords) bits &= start % 64 == 0 ? 0 : ~(~std::uint64_t{0} << start % 64);
      if (bits == 0) continue;
      const std::uint64_t slot = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      return ((slot - at - 1) & kMask) + 1;
    }
    return 0;
  }
  // The first tick after tick_ at which a list becomes due or cascades.
  std::uint64_t next_stop() const {
    std::uint64_t next = kNever;
    for (int level = 0; level < kLevels; ++level) {
      const int shift = level * kSlotBits;
      const std::uint64_t at = tick_ >> shift;
      const std::uint64_t distance = distance_to_used(level, at & kMask);
      if (distance != 0) next = std::min(next, (at + distance) << shift);
    }
    return next;
  }
  void cascade() {
    for (int level = kLevels - 1; level >= 0; --level) {
      const int shift = level * kSlotBits;
      if ((tick_ & ((std::uint64_t{1} << shift) - 1)) != 0) continue;
      const auto list =
          static_cast<std::uint16_t>(static_cast<std::uint64_t>(level) * kSlots + (tick_ >> shift & kMask));
      while (heads_[list] != kNone) {
        const std::uint32_t timer = heads_[list];
        unlink(timer);
        push(list_of(tick_of(links_(timer).at)), timer);
      }
    }
  }

  Links links_;
  std::uint64_t tick_ = 0;
  std::array<std::uint32_t, kLevels * kSlots + 1> heads_;
  std::array<std::uint64_t, kLevels * kSlots / 64> used_{};
};

}  // namespace netchannel::stack
