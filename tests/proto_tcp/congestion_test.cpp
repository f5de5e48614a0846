// Round trips (RFC 6298) and congestion control by itself (RFC 5681, RFC 9438, RFC 9406).
#include "proto/tcp/congestion.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "proto/tcp/cubic.hpp"
#include "proto/tcp/rtt.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

TEST(RoundTrip, the_first_sample_sets_both_and_later_ones_are_smoothed) {  // RFC 6298 (2.2), (2.3)
  RttEstimator r;
  EXPECT_EQ(r.timeout(), 1s);
  r.sample(100ms, 1ms, {});
  EXPECT_EQ(r.srtt, 100ms);
  EXPECT_EQ(r.rttvar, 50ms);
  EXPECT_EQ(r.timeout(), 300ms);
  r.sample(200ms, 1ms, {});
  EXPECT_EQ(r.rttvar, 62500us);  // 3/4 of 50 ms and 1/4 of 100 ms
  EXPECT_EQ(r.srtt, 112500us);   // 7/8 of 100 ms and 1/8 of 200 ms
  EXPECT_EQ(r.timeout(), 362500us);
}

TEST(RoundTrip, the_timeout_keeps_its_distance_from_a_steady_round_trip) {
  RttEstimator r;
  for (int i = 0; i < 1000; ++i) r.sample(300ms, 200ms, {});
  EXPECT_EQ(r.timeout(), 500ms);
  for (int i = 0; i < 1000; ++i) r.sample(10us, 200ms, {});
  EXPECT_LT(r.timeout(), 201ms);
  EXPECT_GE(r.timeout(), 200ms);
}

TEST(RoundTrip, back_off_doubles_up_to_two_minutes_and_ends_with_a_sample) {
  RttEstimator r;
  r.back_off();
  EXPECT_EQ(r.timeout(), 2s);
  for (int i = 0; i < 100; ++i) r.back_off();
  EXPECT_EQ(r.timeout(), 120s);
  r.sample(100ms, 1ms, {});
  EXPECT_EQ(r.timeout(), 300ms);
}

TEST(RoundTrip, the_minimum_forgets_what_is_minutes_old) {
  RttEstimator r;
  Instant now{1};
  r.sample(10ms, 1ms, now);
  EXPECT_EQ(r.min(), 10ms);
  for (int i = 0; i < 100; ++i) r.sample(30ms, 1ms, now = now + 1s);
  EXPECT_EQ(r.min(), 10ms);
  for (int i = 0; i < 300; ++i) r.sample(30ms, 1ms, now = now + 1s);
  EXPECT_EQ(r.min(), 30ms);
}

TEST(InitialWindow, is_ten_segments_or_what_fits) {  // RFC 6928
  EXPECT_EQ(initial_window(1460, false), 14600U);
  EXPECT_EQ(initial_window(536, false), 5360U);
  EXPECT_EQ(initial_window(8960, false), 17920U);
  EXPECT_EQ(initial_window(4000, false), 14600U);
  EXPECT_EQ(initial_window(1460, true), 1460U);
}

// Windows of acknowledgements on a path of fixed round trip, one segment each.
struct Path {
  Congestion c;
  Instant now{1'000'000'000};
  Duration rtt = 100ms;
  Seq una{1};

  explicit Path(CongestionAlgorithm algorithm, std::uint32_t segments = 10) {
    start(c, algorithm, 1000, segments * 1000);
  }
  void round() {
    const std::uint32_t segments = c.cwnd / c.mss;
    const Seq end = una + segments * c.mss;
    for (std::uint32_t i = 0; i < segments; ++i) {
      una += c.mss;
      now = now + rtt / segments;
      on_ack(c, {.now = now,
                 .acked = c.mss,
                 .rtt = rtt,
                 .srtt = rtt,
                 .una = una,
                 .nxt = end + c.mss,
                 .limited = true});
    }
  }
  std::uint32_t segments() const { return c.cwnd / c.mss; }
};

TEST(SlowStart, doubles_every_round_trip_and_ends_at_the_threshold) {
  Path path(CongestionAlgorithm::reno);
  path.round();
  EXPECT_EQ(path.segments(), 20U);
  path.c.ssthresh = 30000;
  path.round();
  EXPECT_EQ(path.c.cwnd, 30000U);
}

TEST(Reno, grows_by_a_segment_a_round_trip_and_halves) {  // RFC 5681
  Path path(CongestionAlgorithm::reno);
  path.c.ssthresh = 10000;
  for (int i = 1; i <= 20; ++i) {
    path.round();
    EXPECT_EQ(path.segments(), 10U + static_cast<unsigned>(i));
  }
  reduce(path.c, 30000);
  EXPECT_EQ(path.c.ssthresh, 15000U);
  reduce(path.c, 1000);
  EXPECT_EQ(path.c.ssthresh, 2000U) << "at least two segments";
}

TEST(Window, an_unused_one_does_not_grow) {
  for (const auto algorithm : {CongestionAlgorithm::reno, CongestionAlgorithm::cubic}) {
    Path path(algorithm);
    on_ack(
        path.c,
        {.now = path.now, .acked = 10000, .rtt = 1ms, .srtt = 1ms, .una = {1}, .nxt = {2}, .limited = false});
    EXPECT_EQ(path.c.cwnd, 10000U);
  }
}

TEST(Cubic, goes_back_to_its_plateau_at_the_time_the_rfc_gives) {  // RFC 9438 section 4.2
  Path path(CongestionAlgorithm::cubic, 1000);
  path.c.ssthresh = 1;
  reduce(path.c, 1'000'000);
  EXPECT_EQ(path.c.ssthresh, 700'000U);
  path.c.cwnd = path.c.ssthresh;
  const double k = std::cbrt(1000 * 0.3 / 0.4);  // 9.09 s
  const Instant begin = path.now;
  while (path.now - begin < std::chrono::duration_cast<Duration>(std::chrono::duration<double>(k / 2)))
    path.round();
  // Half the way in time is seven eighths of the way in window.
  EXPECT_NEAR(path.segments(), 1000 - 300.0 / 8, 12);
  while (path.now - begin < std::chrono::duration_cast<Duration>(std::chrono::duration<double>(k)))
    path.round();
  EXPECT_NEAR(path.segments(), 1000, 3);
  const std::uint32_t plateau = path.segments();
  while (path.now - begin < std::chrono::duration_cast<Duration>(std::chrono::duration<double>(k * 1.5)))
    path.round();
  EXPECT_NEAR(path.segments() - plateau, 300.0 / 8, 12) << "as slowly away as it came near";
}

TEST(Cubic, a_second_loss_below_the_plateau_leaves_room) {  // section 4.7, fast convergence
  Path path(CongestionAlgorithm::cubic, 100);
  reduce(path.c, 100'000);
  EXPECT_FLOAT_EQ(path.c.cubic.w_max, 100);
  path.c.cwnd = 80'000;
  reduce(path.c, 80'000);
  EXPECT_FLOAT_EQ(path.c.cubic.w_max, 80 * 1.7F / 2);
}

TEST(Cubic, is_never_slower_than_reno_where_windows_are_small) {  // section 4.3
  Path path(CongestionAlgorithm::cubic, 10);
  path.rtt = 1ms;
  reduce(path.c, 10'000);
  path.c.cwnd = path.c.ssthresh;
  const std::uint32_t before = path.c.cwnd;
  for (int i = 0; i < 10; ++i) path.round();
  // alpha is 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments a round trip from 7 to 10, then one: 7.4 at most.
  EXPECT_GE(path.c.cwnd - before, 5300U);
  EXPECT_LE(path.c.cwnd - before, 7400U);
}

TEST(Cubic, grows_by_half_a_window_a_round_trip_at_most) {  // section 4.4
  Path path(CongestionAlgorithm::cubic, 100);
  path.c.ssthresh = 1;
  path.round();
  path.now = path.now + 1000s;
  const std::uint32_t before = path.c.cwnd;
  path.round();
  EXPECT_LE(path.c.cwnd, before + before / 2 + path.c.mss);
}

TEST(Cubic, idle_time_is_not_credited) {  // section 5.8
  Path busy(CongestionAlgorithm::cubic, 100), idle(CongestionAlgorithm::cubic, 100);
  for (Path* path : {&busy, &idle}) {
    reduce(path->c, 100'000);
    path->c.cwnd = path->c.ssthresh;
    path->round();
  }
  idle.now = idle.now + 1000s;
  resume(idle.c, idle.now);
  after_idle(idle.c, 1 << 30);
  busy.round();
  idle.round();
  EXPECT_NEAR(idle.c.cwnd, busy.c.cwnd, 1000);
}

TEST(Cubic, time_in_which_the_application_was_the_limit_is_not_credited) {  // section 5.8
  Path busy(CongestionAlgorithm::cubic, 100), limited(CongestionAlgorithm::cubic, 100);
  for (Path* path : {&busy, &limited}) {
    reduce(path->c, 100'000);
    path->c.cwnd = path->c.ssthresh;
    path->round();
  }
  // Ten minutes of a trickle, never idle for as long as a timeout.
  for (int i = 0; i < 6000; ++i) {
    limited.now = limited.now + 100ms;
    limited.una += 1000;
    on_ack(limited.c, {.now = limited.now,
                       .acked = 1000,
                       .rtt = 100ms,
                       .srtt = 100ms,
                       .una = limited.una,
                       .nxt = limited.una,
                       .limited = false});
  }
  busy.round();
  limited.round();
  EXPECT_NEAR(limited.c.cwnd, busy.c.cwnd, 1000);
}

TEST(Cubic, a_pause_shorter_than_a_timeout_is_not_credited) {
  Path busy(CongestionAlgorithm::cubic, 100), paused(CongestionAlgorithm::cubic, 100);
  for (Path* path : {&busy, &paused}) {
    reduce(path->c, 100'000);
    path->c.cwnd = path->c.ssthresh;
    path->round();
  }
  for (int i = 0; i < 50; ++i) {
    paused.now = paused.now + 150ms;
    resume(paused.c, paused.now);
    paused.round();
    busy.round();
  }
  EXPECT_NEAR(paused.c.cwnd, busy.c.cwnd, 1000);
}

TEST(Timeout, starts_from_one_segment_and_keeps_the_threshold_for_the_same_data) {
  Path path(CongestionAlgorithm::cubic, 100);
  on_timeout(path.c, 100'000, false);
  EXPECT_EQ(path.c.cwnd, 1000U);
  EXPECT_EQ(path.c.ssthresh, 70'000U);
  on_timeout(path.c, 1000, true);
  EXPECT_EQ(path.c.ssthresh, 70'000U);
}

TEST(Undo, restores_what_was_before) {
  for (const auto algorithm : {CongestionAlgorithm::reno, CongestionAlgorithm::cubic}) {
    Path path(algorithm, 100);
    path.c.ssthresh = 90'000;
    on_timeout(path.c, 100'000, false);
    undo(path.c);
    EXPECT_EQ(path.c.cwnd, 100'000U);
    EXPECT_EQ(path.c.ssthresh, 90'000U);
  }
}

// RFC 9406.
struct Delayed : Path {
  Delayed() : Path(CongestionAlgorithm::cubic) {}
};

TEST(HyStart, a_round_trip_grown_by_an_eighth_slows_the_start_and_five_rounds_later_ends_it) {
  Delayed path;
  path.rtt = 80ms;
  path.round();
  path.round();
  EXPECT_FALSE(path.c.hystart.in_css);
  path.rtt = 89ms;  // less than 10 ms more
  path.round();
  EXPECT_FALSE(path.c.hystart.in_css);
  path.rtt = 102ms;
  path.round();
  EXPECT_TRUE(path.c.hystart.in_css);
  EXPECT_EQ(path.c.ssthresh, kNoThreshold);
  const std::uint32_t before = path.c.cwnd;
  path.round();
  EXPECT_NEAR(path.c.cwnd, before * 1.25, before * 0.05);
  for (int i = 0; i < 5; ++i) path.round();
  EXPECT_NE(path.c.ssthresh, kNoThreshold);
  EXPECT_GE(path.c.cwnd, path.c.ssthresh);
}

TEST(HyStart, a_passing_delay_resumes_slow_start) {
  Delayed path;
  path.rtt = 80ms;
  path.round();
  path.round();
  path.rtt = 100ms;
  path.round();
  EXPECT_TRUE(path.c.hystart.in_css);
  path.rtt = 80ms;
  path.round();
  path.round();
  EXPECT_FALSE(path.c.hystart.in_css);
  EXPECT_EQ(path.c.ssthresh, kNoThreshold);
}

TEST(HyStart, does_not_watch_later_slow_starts) {
  Delayed path;
  on_timeout(path.c, 100'000, false);
  path.rtt = 10ms;
  path.round();
  path.rtt = 100ms;
  path.round();
  path.round();
  EXPECT_FALSE(path.c.hystart.in_css);
}

}  // namespace
}  // namespace netchannel::tcp
