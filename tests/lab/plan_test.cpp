// The address plan, a pure function.
#include "lab/plan.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netchannel::lab {
namespace {

TEST(PlanTest, TheDefaultLabIsAsDocumented) {
  const Plan plan("default");
  EXPECT_EQ(plan.namespace_name(Side::a), "ncdefault-a");
  EXPECT_EQ(plan.namespace_name(Side::b), "ncdefault-b");
  EXPECT_EQ(plan.v4(Side::a).to_string(), "10.77.1.1/24");
  EXPECT_EQ(plan.v4(Side::b).to_string(), "10.77.1.2/24");
  EXPECT_EQ(plan.v6(Side::a).to_string(), "fd77:0:0:1::1/64");
  EXPECT_EQ(plan.v6(Side::b).to_string(), "fd77:0:0:1::2/64");
  EXPECT_EQ(plan.link_v4().to_string(), "10.77.1.0/24");
  EXPECT_EQ(plan.link_v6().to_string(), "fd77:0:0:1::/64");
  const TapPlan tap = plan.tap(Side::b, 1);
  EXPECT_EQ(tap.kernel_v4.to_string(), "10.78.1.133/30");
  EXPECT_EQ(tap.stack_v4.to_string(), "10.78.1.134/30");
  EXPECT_EQ(tap.kernel_v6.to_string(), "fd78:0:1:b01::1/64");
  EXPECT_EQ(tap.stack_v6.to_string(), "fd78:0:1:b01::2/64");
  EXPECT_EQ(plan.taps_v4(Side::b).to_string(), "10.78.1.128/25");
  EXPECT_EQ(plan.taps_v6(Side::b).to_string(), "fd78:0:1:b00::/56");
}

TEST(PlanTest, EveryNameHasAValidNumber) {
  for (int i = 0; i < 10000; ++i) {
    const unsigned number = Plan("lab" + std::to_string(i)).number();
    ASSERT_TRUE(number >= 2 && number <= 254) << number;
  }
  EXPECT_EQ(Plan("x").number(), Plan("x").number());
  EXPECT_NE(Plan("left").number(), Plan("right").number());
}

TEST(PlanTest, TapsAreDisjointAndWithinTheirSidesNetwork) {
  const Plan plan("default");
  std::vector<TapPlan> all;
  for (const Side side : {Side::a, Side::b}) {
    for (unsigned i = 0; i < kTapsPerSide; ++i) {
      const TapPlan tap = plan.tap(side, i);
      EXPECT_TRUE(plan.taps_v4(side).contains(tap.stack_v4.address));
      EXPECT_TRUE(plan.taps_v6(side).contains(tap.stack_v6.address));
      EXPECT_FALSE(plan.taps_v4(other(side)).contains(tap.stack_v4.address));
      EXPECT_FALSE(plan.taps_v6(other(side)).contains(tap.stack_v6.address));
      EXPECT_TRUE(tap.kernel_v4.contains(tap.stack_v4.address));
      EXPECT_TRUE(tap.kernel_v6.contains(tap.stack_v6.address));
      for (const TapPlan& earlier : all) {
        EXPECT_FALSE(earlier.kernel_v4.contains(tap.kernel_v4.address));
        EXPECT_FALSE(earlier.kernel_v6.contains(tap.kernel_v6.address));
      }
      all.push_back(tap);
    }
  }
}

TEST(PlanTest, SidesAreNamedAOrB) {
  EXPECT_EQ(parse_side("a"), Side::a);
  EXPECT_EQ(parse_side("b"), Side::b);
  EXPECT_FALSE(parse_side("c").has_value());
  EXPECT_FALSE(parse_side("").has_value());
  EXPECT_EQ(to_string(other(Side::a)), "b");
}

}  // namespace
}  // namespace netchannel::lab
