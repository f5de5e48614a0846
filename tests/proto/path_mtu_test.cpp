// What a router's word about a path's MTU does, and what it cannot do.
#include "proto/path_mtu.hpp"

#include <gtest/gtest.h>

namespace netchannel::proto {
namespace {

using namespace std::chrono_literals;
using Verdict = PathMtuTable::Verdict;
const IpAddress kV4 = IpAddress::v4(192, 0, 2, 1);
const IpAddress kV6 = *IpAddress::parse("2001:db8::2");

struct PathMtu : ::testing::Test {
  PathMtuTable table{64, {1, 2}};
  Instant now{1'000'000'000};
  Verdict lower(const IpAddress& to, std::uint32_t claimed) { return table.lower(to, claimed, 1500, now); }
};

TEST_F(PathMtu, IsLoweredForThatDestinationOnly) {
  EXPECT_EQ(lower(kV4, 1400), Verdict::lowered);
  EXPECT_EQ(table.mtu(kV4, 1500, now), 1400u);
  EXPECT_EQ(table.mtu(kV6, 1500, now), 1500u);
}

TEST_F(PathMtu, IsNeverRaised) {
  lower(kV4, 1300);
  EXPECT_EQ(lower(kV4, 1400), Verdict::unchanged);
  EXPECT_EQ(lower(kV4, 1300), Verdict::unchanged);
  EXPECT_EQ(lower(kV4, 9000), Verdict::impossible);
  EXPECT_EQ(table.mtu(kV4, 1500, now), 1300u);
  EXPECT_EQ(table.mtu(kV4, 1200, now), 1200u);  // the link's own is narrower
}

TEST_F(PathMtu, V4IsClampedToTheFloorAndBelowAnyLinkIgnored) {
  EXPECT_EQ(lower(kV4, 0), Verdict::impossible);
  EXPECT_EQ(lower(kV4, 1), Verdict::impossible);
  EXPECT_EQ(lower(kV4, 67), Verdict::impossible);
  EXPECT_EQ(table.mtu(kV4, 1500, now), 1500u);
  EXPECT_EQ(lower(kV4, 68), Verdict::lowered);
  EXPECT_EQ(table.mtu(kV4, 1500, now), kFloorMtuV4);
}

TEST_F(PathMtu, V6Below1280IsIgnored) {
  EXPECT_EQ(lower(kV6, 1279), Verdict::impossible);
  EXPECT_EQ(lower(kV6, 1280), Verdict::lowered);
  EXPECT_EQ(table.mtu(kV6, 1500, now), 1280u);
}

TEST_F(PathMtu, IsForgottenAfterTenMinutes) {
  lower(kV4, 1400);
  now = now + kPathMtuAge - 1ns;
  EXPECT_FALSE(table.expire(now));
  EXPECT_EQ(table.mtu(kV4, 1500, now), 1400u);
  now = now + 1ns;
  EXPECT_EQ(table.mtu(kV4, 1500, now), 1500u);
  EXPECT_TRUE(table.expire(now));
  EXPECT_EQ(table.next_expiry(), kForever);
}

TEST_F(PathMtu, ManyPathsNeedNoMoreMemoryAndTheNewestIsKnown) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    now = now + 1ms;
    const IpAddress to = IpAddress::v4(0x0a000000 + i);
    EXPECT_EQ(lower(to, 1400), Verdict::lowered);
    EXPECT_EQ(table.mtu(to, 1500, now), 1400u);
  }
}

}  // namespace
}  // namespace netchannel::proto
