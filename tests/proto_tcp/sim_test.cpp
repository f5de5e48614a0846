// Whole transfers over bad links in virtual time: every stream arrives byte for byte, and nothing hangs.
#include "sim.hpp"

#include <gtest/gtest.h>

namespace netchannel::tcp::sim {
namespace {

using namespace std::chrono_literals;

void expect_finished(Simulation& simulation, Duration limit) {
  const Result result = simulation.run(limit);
  EXPECT_TRUE(result.finished) << result.why;
}

TEST(Transfer, a_clean_link_carries_a_megabyte) {
  Simulation simulation({.settings = {}, .to_send = 1 << 20}, {.settings = {}}, {}, 1);
  expect_finished(simulation, 60s);
  EXPECT_EQ(simulation.counters_a.read(Counter::tcp_retransmitted), 0U);
}

TEST(Transfer, both_ways_at_once) {
  Simulation simulation({.settings = {}, .to_send = 1 << 20}, {.settings = {}, .to_send = 700000}, {}, 1);
  expect_finished(simulation, 60s);
}

}  // namespace
}  // namespace netchannel::tcp::sim
