#include "bench/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace netchannel::bench {

std::size_t Histogram::index_of(std::int64_t value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value < kSubBuckets) return static_cast<std::size_t>(value);
  const int shift = static_cast<int>(std::bit_width(bits)) - 1 - kSubBucketBits;
  return static_cast<std::size_t>(shift) * kSubBuckets + static_cast<std::size_t>(bits >> shift);
}

std::int64_t Histogram::lowest_of(std::size_t index) noexcept {
  const auto i = static_cast<std::int64_t>(index);
  if (i < 2 * kSubBuckets) return i;
  const std::int64_t shift = i / kSubBuckets - 1;
  return (kSubBuckets + i % kSubBuckets) << shift;
}

std::int64_t Histogram::width_of(std::size_t index) noexcept {
  const auto i = static_cast<std::int64_t>(index);
  return i < 2 * kSubBuckets ? 1 : std::int64_t{1} << (i / kSubBuckets - 1);
}

void Histogram::record(std::int64_t nanoseconds, std::uint64_t times) noexcept {
  if (times == 0) return;
  const std::int64_t value = std::max<std::int64_t>(nanoseconds, 0);
  counts_[index_of(std::min(value, kLargest))] += times;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value * static_cast<std::int64_t>(times);
  count_ += times;
}

void Histogram::merge(const Histogram& other) noexcept {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

std::optional<double> Histogram::percentile(double quantile) const {
  const double beyond = static_cast<double>(count_) * (1.0 - quantile);
  // The tolerance is for quantiles that have no exact binary form: 10,000 samples are enough for 0.999.
  if (count_ == 0 || beyond < 10.0 - 1e-6) return std::nullopt;
  const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_) - 1e-6));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen < std::max<std::uint64_t>(rank, 1)) continue;
    const double middle = static_cast<double>(lowest_of(i)) + static_cast<double>(width_of(i) - 1) / 2.0;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

std::vector<std::pair<std::int64_t, std::uint64_t>> Histogram::buckets() const {
  std::vector<std::pair<std::int64_t, std::uint64_t>> out;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (counts_[i] != 0) out.emplace_back(lowest_of(i), counts_[i]);
  }
  return out;
}

void Histogram::restore(std::int64_t min, std::int64_t max, double mean) noexcept {
  min_ = min;
  max_ = max;
  sum_ = static_cast<std::int64_t>(mean * static_cast<double>(count_));
}

}  // namespace netchannel::bench
