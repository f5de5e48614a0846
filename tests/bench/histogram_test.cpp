#include "bench/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace netchannel::bench {
namespace {

double exact_percentile(std::vector<std::int64_t> values, double quantile) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  return static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1]);
}

TEST(Histogram, KeepsPercentilesWithinItsResolution) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(std::log(20'000.0), 1.5);
  Histogram histogram;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 200'000; ++i) {
    values.push_back(static_cast<std::int64_t>(latency(random)));
    histogram.record(values.back());
  }
  for (const double quantile : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const double exact = exact_percentile(values, quantile);
    const auto told = histogram.percentile(quantile);
    ASSERT_TRUE(told.has_value()) << quantile;
    EXPECT_NEAR(*told, exact, exact / 128 + 0.5) << quantile;
  }
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
}

TEST(Histogram, IsExactBelow256Nanoseconds) {
  for (std::int64_t value = 0; value < 256; ++value) {
    Histogram histogram;
    histogram.record(value, 100);
    EXPECT_EQ(histogram.percentile(0.5), static_cast<double>(value));
  }
}

TEST(Histogram, TellsAPercentileOnlyWithTenSamplesBeyondIt) {
  Histogram histogram;
  histogram.record(100, 19);
  EXPECT_FALSE(histogram.percentile(0.5).has_value());
  histogram.record(100);
  EXPECT_TRUE(histogram.percentile(0.5).has_value());
  EXPECT_FALSE(histogram.percentile(0.99).has_value());
  histogram.record(100, 979);
  EXPECT_FALSE(histogram.percentile(0.99).has_value());
  histogram.record(100);
  EXPECT_TRUE(histogram.percentile(0.99).has_value());
  histogram.record(100, 8'999);
  EXPECT_FALSE(histogram.percentile(0.999).has_value());
  histogram.record(100);
  EXPECT_TRUE(histogram.percentile(0.999).has_value());
}

TEST(Histogram, TellsNothingWhenEmpty) { EXPECT_FALSE(Histogram().percentile(0).has_value()); }

TEST(Histogram, CountsNegativeAndEnormousValuesAtItsEnds) {
  Histogram histogram;
  histogram.record(-5, 10);
  histogram.record(3 * Histogram::kLargest, 10);
  EXPECT_EQ(histogram.count(), 20u);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 3 * Histogram::kLargest);
  EXPECT_EQ(histogram.percentile(0.5), 0.0);
}

TEST(Histogram, HasABucketForEveryPowerOfTwoUpToItsLargest) {
  for (std::int64_t value = 1; value <= Histogram::kLargest; value *= 2) {
    for (const std::int64_t near : {value - 1, value, value + 1}) {
      Histogram histogram;
      histogram.record(near, 100);
      const auto bucket = histogram.buckets();
      ASSERT_EQ(bucket.size(), 1u);
      EXPECT_LE(bucket[0].first, near);
      EXPECT_LE(static_cast<double>(near - bucket[0].first), static_cast<double>(near) / 128);
    }
  }
}

TEST(Histogram, MergesAsIfAllHadBeenRecordedInOne) {
  Histogram left, right, all;
  for (int i = 1; i < 5'000; ++i) {
    (i % 3 == 0 ? left : right).record(i * 37);
    all.record(i * 37);
  }
  left.merge(right);
  EXPECT_EQ(left.buckets(), all.buckets());
  EXPECT_EQ(left.count(), all.count());
  EXPECT_EQ(left.min(), all.min());
  EXPECT_EQ(left.max(), all.max());
  EXPECT_DOUBLE_EQ(left.mean(), all.mean());
}

TEST(Histogram, MergingAnEmptyOneChangesNothing) {
  Histogram some, none;
  some.record(500, 30);
  some.merge(none);
  EXPECT_EQ(some.min(), 500);
  none.merge(some);
  EXPECT_EQ(none.min(), 500);
  EXPECT_EQ(none.max(), 500);
}

}  // namespace
}  // namespace netchannel::bench
