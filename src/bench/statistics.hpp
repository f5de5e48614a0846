// What a handful of runs can and cannot say. The unit is the run (a block), never the packet: packets of one
// run share its luck. The number of runs is fixed ahead, so the intervals mean what they say; outliers are
// never dropped.
//
// Two paths are compared in pairs measured next to each other in time: the logarithm of each pair's ratio, a
// t-interval over those logarithms, and its exponential, so the ratio is a geometric mean and "twice" and
// "half" are equally far from 1. A percentile bootstrap of the same pairs stands beside it as a second
// opinion that assumes no distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace netchannel::bench {

struct Interval {
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The t of Student's distribution that a share `level` of it lies within, on both sides: 12.706 for 0.95 and
// 1 degree.
double t_quantile(double level, int degrees_of_freedom);

double mean_of(std::span<const double> values);                // values is not empty
double median_of(std::span<const double> values);              // values is not empty
double standard_deviation_of(std::span<const double> values);  // of the sample, n - 1; at least two values

struct Summary {
  std::size_t n = 0;
  double mean = 0;
  double median = 0;
  double min = 0;
  double max = 0;
  std::optional<Interval> interval{};  // of the mean, by t; needs two values
  std::optional<Interval>
      median_interval{};  // by order statistics; needs six values for 95 %, eight for 99 %
};
// Of at least one value. `level` is 0.95 or 0.99.
Summary summarise(std::span<const double> values, double level);

enum class Verdict : std::uint8_t { faster, slower, no_difference_shown };
std::string_view to_string(Verdict verdict);

struct Pair {
  double path = 0;
  double baseline = 0;
};

// Whether more is better (a rate) or less (a latency, a cost).
enum class Better : std::uint8_t { more, less };

struct Ratio {
  std::size_t n = 0;                    // pairs used: those of two positive, finite values
  double ratio = 0;                     // geometric mean of path / baseline
  std::optional<Interval> interval{};   // by t on the logarithms; needs two pairs
  std::optional<Interval> bootstrap{};  // percentile, kBootstrapResamples
  // The smallest relative difference whose interval would have excluded 1, given this run's scatter: 0.03 is
  // 3 %.
  std::optional<double> smallest_difference{};
  Verdict verdict = Verdict::no_difference_shown;
};
inline constexpr int kBootstrapResamples = 10'000;

// Nothing if no pair can be used.
std::optional<Ratio> compare_pairs(std::span<const Pair> pairs, Better better, double level,
                                   std::uint64_t seed);

}  // namespace netchannel::bench
