// Chance for the simulated faults: the same seed gives the same throws with every compiler and library (the
// standard's distributions do not). Not for secrets.
#pragma once

#include <cstdint>
#include <random>

namespace netchannel::device {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  // Throws only if there is something to decide.
  bool chance(double probability) {
    return probability > 0 && static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  // 0 to bound - 1; bound is not 0.
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_;
};

constexpr bool is_probability(double p) { return p >= 0 && p <= 1; }

}  // namespace netchannel::device
