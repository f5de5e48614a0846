// Against printed tables of t and of the binomial distribution, and figures worked out by hand.
#include "bench/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace netchannel::bench {
namespace {

TEST(Statistics, KnowsStudentsTable) {
  EXPECT_NEAR(t_quantile(0.95, 1), 12.7062, 1e-4);
  EXPECT_NEAR(t_quantile(0.95, 2), 4.30265, 1e-5);
  EXPECT_NEAR(t_quantile(0.95, 4), 2.77645, 1e-5);
  EXPECT_NEAR(t_quantile(0.95, 9), 2.26216, 1e-5);
  EXPECT_NEAR(t_quantile(0.95, 30), 2.04227, 1e-5);
  EXPECT_NEAR(t_quantile(0.99, 1), 63.6567, 1e-3);
  EXPECT_NEAR(t_quantile(0.99, 4), 4.60409, 1e-5);
  EXPECT_NEAR(t_quantile(0.99, 29), 2.75639, 1e-5);
  EXPECT_NEAR(t_quantile(0.95, 100'000), 1.95998, 1e-4);
}

TEST(Statistics, GivesMeanMedianAndInterval) {
  // s = 0.236643, t(5) = 2.57058: the half width is t s / sqrt(6) = 0.24834.
  const std::vector<double> values = {9.8, 10.2, 10.4, 9.9, 10.0, 10.3};
  const Summary summary = summarise(values, 0.95);
  EXPECT_EQ(summary.n, 6u);
  EXPECT_NEAR(summary.mean, 10.1, 1e-12);
  EXPECT_NEAR(summary.median, 10.1, 1e-12);
  EXPECT_NEAR(standard_deviation_of(values), 0.236643, 1e-6);
  ASSERT_TRUE(summary.interval.has_value());
  EXPECT_NEAR(summary.interval->low, 9.85166, 1e-4);
  EXPECT_NEAR(summary.interval->high, 10.34834, 1e-4);
}

TEST(Statistics, GivesNoIntervalForOneRun) {
  const Summary summary = summarise(std::vector{5.0}, 0.95);
  EXPECT_EQ(summary.mean, 5.0);
  EXPECT_EQ(summary.median, 5.0);
  EXPECT_FALSE(summary.interval.has_value());
}

TEST(Statistics, TakesTheMediansIntervalFromTheOrder) {
  // Binomial(n, 1/2): n = 5 cannot reach 95 % (its range covers 93.75 %); 6 covers 96.9 %; 10 needs ranks 2
  // to 9.
  const auto interval_of = [](int n, double level) {
    std::vector<double> values;
    for (int i = 1; i <= n; ++i) values.push_back(i);
    return summarise(values, level).median_interval;
  };
  EXPECT_FALSE(interval_of(5, 0.95).has_value());
  EXPECT_EQ(interval_of(6, 0.95), (Interval{1, 6}));
  EXPECT_EQ(interval_of(10, 0.95), (Interval{2, 9}));
  EXPECT_FALSE(interval_of(7, 0.99).has_value());
  EXPECT_EQ(interval_of(8, 0.99), (Interval{1, 8}));
  EXPECT_EQ(interval_of(20, 0.95), (Interval{6, 15}));
}

TEST(Comparison, IsTheGeometricMeanOfThePairs) {
  const auto ratio = compare_pairs(std::vector<Pair>{{2, 1}, {8, 1}}, Better::more, 0.95, 1);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(ratio->ratio, 4, 1e-12);
}

TEST(Comparison, MatchesAPairedTTestOfTheLogarithms) {
  const std::vector<Pair> pairs = {{190, 100}, {210, 102}, {200, 99}, {205, 101}, {195, 98}};
  const auto ratio = compare_pairs(pairs, Better::more, 0.95, 1);
  ASSERT_TRUE(ratio && ratio->interval);
  double sum = 0, squares = 0;
  for (const Pair& pair : pairs) sum += std::log(pair.path / pair.baseline);
  const double mean = sum / 5;
  for (const Pair& pair : pairs) squares += std::pow(std::log(pair.path / pair.baseline) - mean, 2);
  const double half = 2.776445 * std::sqrt(squares / 4 / 5);
  EXPECT_NEAR(ratio->ratio, std::exp(mean), 1e-12);
  EXPECT_NEAR(ratio->interval->low, std::exp(mean - half), 1e-6);
  EXPECT_NEAR(ratio->interval->high, std::exp(mean + half), 1e-6);
  EXPECT_NEAR(*ratio->smallest_difference, std::expm1(half), 1e-6);
  EXPECT_EQ(ratio->verdict, Verdict::faster);
}

TEST(Comparison, CallsLessLatencyFaster) {
  const std::vector<Pair> halved = {{5.0, 10.0}, {5.1, 10.1}, {4.9, 9.9}};
  EXPECT_EQ(compare_pairs(halved, Better::less, 0.95, 1)->verdict, Verdict::faster);
  EXPECT_EQ(compare_pairs(halved, Better::more, 0.95, 1)->verdict, Verdict::slower);
}

TEST(Comparison, ShowsNoDifferenceBetweenAPathAndItself) {
  const std::vector<Pair> same = {{100, 103}, {102, 99}, {98, 101}, {101, 98}};
  const auto ratio = compare_pairs(same, Better::more, 0.95, 1);
  EXPECT_EQ(ratio->verdict, Verdict::no_difference_shown);
  EXPECT_LT(ratio->interval->low, 1);
  EXPECT_GT(ratio->interval->high, 1);
}

TEST(Comparison, ClaimsNothingFromOnePair) {
  const auto ratio = compare_pairs(std::vector<Pair>{{1000, 1}}, Better::more, 0.95, 1);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_FALSE(ratio->interval.has_value());
  EXPECT_EQ(ratio->verdict, Verdict::no_difference_shown);
}

TEST(Comparison, LeavesOutPairsThatHaveNoRatio) {
  const std::vector<Pair> pairs = {{2, 1}, {0, 1}, {2, 0}, {std::nan(""), 1}, {2, 1}};
  EXPECT_EQ(compare_pairs(pairs, Better::more, 0.95, 1)->n, 2u);
  EXPECT_FALSE(compare_pairs(std::vector<Pair>{{0, 0}}, Better::more, 0.95, 1).has_value());
}

TEST(Comparison, BootstrapsTheSameForTheSameSeed) {
  const std::vector<Pair> pairs = {{19, 10}, {21, 10}, {20, 11}, {22, 10}, {18, 10}};
  const auto one = compare_pairs(pairs, Better::more, 0.95, 42),
             two = compare_pairs(pairs, Better::more, 0.95, 42);
  EXPECT_EQ(one->bootstrap, two->bootstrap);
  EXPECT_GT(one->bootstrap->low, 1.5);
  EXPECT_LT(one->bootstrap->high, 2.5);
  EXPECT_LT(one->bootstrap->low, one->ratio);
  EXPECT_GT(one->bootstrap->high, one->ratio);
}

TEST(Comparison, CoversTheTruthAsOftenAsItClaims) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.03);
  int covered = 0;
  constexpr int kTrials = 2'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 5; ++i) pairs.push_back({1.5 * std::exp(noise(random)), std::exp(noise(random))});
    const auto ratio = compare_pairs(pairs, Better::more, 0.95, 1);
    covered += ratio->interval->low <= 1.5 && 1.5 <= ratio->interval->high ? 1 : 0;
  }
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.95, 0.015);
}

}  // namespace
}  // namespace netchannel::bench
