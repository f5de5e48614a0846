// How long things took, as counts: a log-linear histogram of nanoseconds from 1 ns to 1000 s. Values below
// 128 ns have a bucket each; above, every power of two is cut into 128, so a bucket is at most 1/128 (0.8 %)
// wide and its middle at most 0.4 % from any value in it. Smallest, largest and mean are kept exactly.
//
//   bucket   0 .. 127 | 128 .. 255 | 256 .. 383 | ...        values 0..127 | 128..255 | 256..511 by 2 |
//   512..1023 by 4
//
// Fixed in size (36 KiB), no allocation while recording; one a thread, merged at the end. A percentile is
// told only if at least ten samples lie beyond it, else it would be one sample's accident.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace netchannel::bench {

class Histogram {
 public:
  static constexpr int kSubBucketBits = 7;
  static constexpr std::int64_t kLargest = 1'000'000'000'000;  // 1000 s; above: counted in the last bucket

  // Negative values count as 0.
  void record(std::int64_t nanoseconds, std::uint64_t times = 1) noexcept;
  void merge(const Histogram& other) noexcept;
  void clear() noexcept { *this = Histogram{}; }

  std::uint64_t count() const { return count_; }
  // Meaningful only if count() > 0.
  std::int64_t min() const { return min_; }
  std::int64_t max() const { return max_; }
  double mean() const { return static_cast<double>(sum_) / static_cast<double>(count_); }

  // The value that a share of at least `quantile` (0 to 1) of the samples does not exceed; nothing if fewer
  // than 10 / (1 - quantile) samples are there.
  std::optional<double> percentile(double quantile) const;

  // What was counted, as (a value of the bucket, count), for JSON and for another process; add_bucket() takes
  // it back into the same bucket. restore() brings back the exact figures that buckets cannot.
  std::vector<std::pair<std::int64_t, std::uint64_t>> buckets() const;
  void add_bucket(std::int64_t value, std::uint64_t times) noexcept { record(value, times); }
  void restore(std::int64_t min, std::int64_t max, double mean) noexcept;

 private:
  static constexpr std::int64_t kSubBuckets = std::int64_t{1} << kSubBucketBits;
  static std::size_t index_of(std::int64_t value) noexcept;
  static std::int64_t lowest_of(std::size_t index) noexcept;
  static std::int64_t width_of(std::size_t index) noexcept;
  static constexpr std::size_t kBuckets = 4352;  // index_of(kLargest) is 4328

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
  std::int64_t sum_ = 0;  // 2^63 ns are 292 years of samples added up
};

}  // namespace netchannel::bench
