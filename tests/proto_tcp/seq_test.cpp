// Sequence arithmetic (RFC 9293 section 3.4), as properties over random points of the circle.
#include "proto/tcp/seq.hpp"

#include <gtest/gtest.h>

#include <random>

namespace netchannel::tcp {
namespace {

class SeqProperties : public ::testing::Test {
 protected:
  std::mt19937 random{9293};
  Seq point() { return {static_cast<std::uint32_t>(random())}; }
  // Less than half of the circle.
  std::uint32_t step() { return static_cast<std::uint32_t>(random()) >> 1; }
};

TEST_F(SeqProperties, order_is_that_of_the_shorter_way) {
  for (int i = 0; i < 100000; ++i) {
    const Seq a = point();
    const std::uint32_t n = step();
    EXPECT_LE(a, a + n);
    EXPECT_EQ(a < a + n, n != 0);
    EXPECT_EQ(a + n > a, n != 0);
    EXPECT_FALSE(a + n < a);
    EXPECT_EQ((a + n) - a, static_cast<std::int32_t>(n));
    EXPECT_EQ(a - (a + n), -static_cast<std::int32_t>(n));
  }
}

TEST_F(SeqProperties, order_does_not_change_when_all_points_move) {
  for (int i = 0; i < 100000; ++i) {
    const Seq a = point(), b = a + step();
    const auto by = static_cast<std::uint32_t>(random());
    EXPECT_EQ(a < b, a + by < b + by);
    EXPECT_EQ(a <= b, a + by <= b + by);
    EXPECT_EQ(distance(a, b), distance(a + by, b + by));
  }
}

TEST_F(SeqProperties, adding_and_subtracting_cancel_out) {
  for (int i = 0; i < 100000; ++i) {
    const Seq a = point();
    const auto n = static_cast<std::uint32_t>(random());
    EXPECT_EQ(a + n - n, a);
    EXPECT_EQ(distance(a, a + n), n);
  }
}

TEST_F(SeqProperties, earlier_and_later_choose_between_the_two) {
  for (int i = 0; i < 100000; ++i) {
    const Seq a = point(), b = a + step();
    EXPECT_EQ(earlier(a, b), a);
    EXPECT_EQ(earlier(b, a), a);
    EXPECT_EQ(later(a, b), b);
    EXPECT_EQ(later(b, a), b);
  }
}

TEST_F(SeqProperties, a_window_holds_its_points_and_no_other) {
  for (int i = 0; i < 100000; ++i) {
    const Seq left = point();
    const std::uint32_t size = step() >> 1;
    const auto at = static_cast<std::uint32_t>(random());
    EXPECT_EQ(in_window(left + at, left, size), at < size);
  }
}

TEST(Seq, wraps_at_the_end_of_the_circle) {
  const Seq last{0xffffffff};
  EXPECT_EQ(last + 1, Seq{0});
  EXPECT_LT(last, Seq{0});
  EXPECT_GT(Seq{5}, last);
  EXPECT_EQ(distance(last, Seq{4}), 5U);
  EXPECT_TRUE(in_window(Seq{3}, Seq{0xfffffff0}, 20));
  EXPECT_FALSE(in_window(Seq{4}, Seq{0xfffffff0}, 20));
}

}  // namespace
}  // namespace netchannel::tcp
