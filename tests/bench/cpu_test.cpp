#include "bench/cpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace netchannel::bench {
namespace {

CpuSample sample(double at, double own, const HostTimes& host, std::optional<double> ksoftirqd = 0.0) {
  return {.at_ns = static_cast<std::int64_t>(at * 1e9), .own = own, .host = host, .ksoftirqd = ksoftirqd};
}

TEST(ProcStat, IsReadInSecondsWithoutCountingGuestsTwice) {
  const auto times =
      parse_proc_stat("cpu  1000 200 300 4000 50 60 70 80 900 100\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 100);
  ASSERT_TRUE(times.has_value());
  EXPECT_DOUBLE_EQ(times->user, 12.0);
  EXPECT_DOUBLE_EQ(times->system, 3.0);
  EXPECT_DOUBLE_EQ(times->idle, 40.5);
  EXPECT_DOUBLE_EQ(times->irq, 0.6);
  EXPECT_DOUBLE_EQ(times->softirq, 0.7);
  EXPECT_DOUBLE_EQ(times->steal, 0.8);
}

TEST(ProcStat, IsRefusedIfItIsSomethingElse) {
  for (const char* wrong : {"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "intr 12345 0 0 0 0 0 0 0"}) {
    EXPECT_FALSE(parse_proc_stat(wrong, 100)) << wrong;
  }
}

TEST(CpuUse, IsWhatWasNotIdleAndNotStolen) {
  const HostTimes before{.idle = 100, .softirq = 5, .steal = 1};
  const HostTimes after{.idle = 101, .softirq = 5.5, .steal = 1.2};
  const CpuUse use = cpu_between(sample(10, 2, before), sample(12, 3.5, after), 2);
  EXPECT_DOUBLE_EQ(use.wall, 2);
  EXPECT_DOUBLE_EQ(use.own, 1.5);
  EXPECT_NEAR(use.host, 2 * 2 - 1 - 0.2, 1e-9);
  EXPECT_NEAR(use.softirq, 0.5, 1e-9);
  EXPECT_NEAR(use.steal, 0.2, 1e-9);
  EXPECT_NEAR(use.foreign, use.host - 1.5, 1e-9);
}

TEST(CpuUse, CountsTheFarProcessAndKsoftirqdAsOurs) {
  const HostTimes before{.idle = 0}, after{.idle = 1};
  CpuUse use = cpu_between(sample(0, 0, before, 1.0), sample(2, 1, after, 1.25), 2);
  EXPECT_NEAR(use.ksoftirqd, 0.25, 1e-9);
  add_own(use, 1.5);
  EXPECT_NEAR(use.own, 2.5, 1e-9);
  EXPECT_NEAR(use.foreign, 3 - 2.5 - 0.25, 1e-9);
}

TEST(CpuUse, IsNeverNegative) {
  // Ticks of 10 ms: idle can seem to have been longer than the wall clock.
  const HostTimes before{.idle = 0}, after{.idle = 2.02};
  const CpuUse use = cpu_between(sample(0, 0, before), sample(1, 0.9, after), 2);
  EXPECT_GE(use.host, 0);
  EXPECT_GE(use.foreign, 0);
}

TEST(Contamination, IsStealAndOthersWorkButNotSoftirqOnAnIdleProcessor) {
  const auto flags = [](double steal, double foreign, double softirq) {
    return contamination({.wall = 1, .softirq = softirq, .steal = steal, .foreign = foreign}, 2);
  };
  EXPECT_TRUE(flags(0.03, 0.09, 0).empty());
  EXPECT_EQ(flags(0.05, 0, 0), std::vector<std::string>{"steal"});
  EXPECT_EQ(flags(0, 0.11, 0), std::vector<std::string>{"foreign cpu"});
  EXPECT_TRUE(flags(0, 0.5, 0.45).empty());
}

TEST(CpuMeter, SeesThisProcessWork) {
  const CpuMeter meter;
  const CpuSample start = meter.sample();
  volatile double sink = 0;
  CpuSample end = meter.sample();
  while (end.own - start.own < 0.05) {
    for (int i = 0; i < 100'000; ++i) sink = sink + i;
    end = meter.sample();
  }
  EXPECT_GT(end.at_ns, start.at_ns);
  EXPECT_GE(cpu_between(start, end, online_cpus()).own, 0.05);
}

}  // namespace
}  // namespace netchannel::bench
