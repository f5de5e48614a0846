#include "bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace netchannel::bench {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double result = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double step = d * c;
    result *= step;
    if (std::abs(step - 1.0) < 1e-14) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The share of Student's distribution within -t .. t.
double t_share_within(double t, double degrees) {
  return 1 - incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

// The ranks (from 0) of the ordered values between which the median lies with at least `level`; nothing if
// even the smallest and the largest are not enough.
std::optional<std::pair<std::size_t, std::size_t>> median_ranks(std::size_t n, double level) {
  std::optional<std::pair<std::size_t, std::size_t>> found;
  double below = 0;  // chance that at most r of n values lie below the median
  for (std::size_t r = 0; 2 * r + 1 < n; ++r) {
    const auto size = static_cast<double>(n), k = static_cast<double>(r);
    below += std::exp(std::lgamma(size + 1) - std::lgamma(k + 1) - std::lgamma(size - k + 1) -
                      size * std::log(2.0));
    if (1 - 2 * below < level) break;
    found = {r, n - 1 - r};
  }
  return found;
}

Interval bootstrap_of_mean(std::span<const double> values, double level, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> means(kBootstrapResamples);
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  const auto tail = static_cast<std::size_t>((1 - level) / 2 * kBootstrapResamples);
  return {means[tail], means[means.size() - 1 - tail]};
}

Verdict judge(const Interval& interval, Better better) {
  if (interval.low > 1) return better == Better::more ? Verdict::faster : Verdict::slower;
  if (interval.high < 1) return better == Better::more ? Verdict::slower : Verdict::faster;
  return Verdict::no_difference_shown;
}

}  // namespace

double t_quantile(double level, int degrees_of_freedom) {
  double low = 0, high = 1;
  while (t_share_within(high, degrees_of_freedom) < level) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (t_share_within(middle, degrees_of_freedom) < level ? low : high) = middle;
  }
  return (low + high) / 2;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double standard_deviation_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Summary summarise(std::span<const double> values, double level) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  Summary out{.n = sorted.size(), .mean = mean_of(sorted), .median = median_of(sorted)};
  out.min = sorted.front();
  out.max = sorted.back();
  if (out.n >= 2) {
    const double half = t_quantile(level, static_cast<int>(out.n) - 1) * standard_deviation_of(sorted) /
                        std::sqrt(static_cast<double>(out.n));
    out.interval = {out.mean - half, out.mean + half};
  }
  if (const auto ranks = median_ranks(out.n, level))
    out.median_interval = {sorted[ranks->first], sorted[ranks->second]};
  return out;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::no_difference_shown:
      break;
  }
  return "no difference shown";
}

std::optional<Ratio> compare_pairs(std::span<const Pair> pairs, Better better, double level,
                                   std::uint64_t seed) {
  const auto usable = [](double value) { return std::isfinite(value) && value > 0; };
  std::vector<double> logs;
  for (const Pair& pair : pairs) {
    if (usable(pair.path) && usable(pair.baseline)) logs.push_back(std::log(pair.path / pair.baseline));
  }
  if (logs.empty()) return std::nullopt;
  Ratio out{.n = logs.size(), .ratio = std::exp(mean_of(logs))};
  if (logs.size() < 2) return out;
  const double centre = mean_of(logs);
  const double half = t_quantile(level, static_cast<int>(logs.size()) - 1) * standard_deviation_of(logs) /
                      std::sqrt(static_cast<double>(logs.size()));
  out.interval = {std::exp(centre - half), std::exp(centre + half)};
  const Interval resampled = bootstrap_of_mean(logs, level, seed);
  out.bootstrap = {std::exp(resampled.low), std::exp(resampled.high)};
  out.smallest_difference = std::expm1(half);
  out.verdict = judge(*out.interval, better);
  return out;
}

}  // namespace netchannel::bench
