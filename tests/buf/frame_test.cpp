#include "netchannel/frame.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>

#include "base/mapping.hpp"

namespace netchannel {
namespace {

using Start = FramePool::Start;

std::unique_ptr<FrameRegion> region_of(std::uint32_t slots, std::uint32_t slot_size = 2048) {
  auto region = FrameRegion::open({.slot_size = slot_size, .slot_count = slots});
  EXPECT_TRUE(region);
  return std::move(*region);
}

TEST(FrameRegion, IsCutIntoSlots) {
  const auto region = region_of(8);
  EXPECT_EQ(region->memory().size(), 8u * 2048);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region->memory().data()) % 4096, 0u);
  EXPECT_EQ(region->slot(3).data(), region->memory().data() + 3 * 2048);
  EXPECT_EQ(region->slot(3).size(), 2048u);
  EXPECT_EQ(region->fd(), -1);
}

TEST(FrameRegion, RefusesSizesThatAreNoPowersOfTwo) {
  for (const RegionOptions& bad : {RegionOptions{.slot_size = 2000}, RegionOptions{.slot_size = 128},
                                   RegionOptions{.slot_size = 0}, RegionOptions{.slot_count = 0}}) {
    const auto region = FrameRegion::open(bad);
    ASSERT_FALSE(region);
    EXPECT_EQ(region.error().code, ErrorCode::invalid_argument);
  }
}

TEST(FrameRegion, SaysThatMemoryIsShortInsteadOfDying) {
  const auto region = FrameRegion::open({.slot_size = 1u << 31, .slot_count = 0xffffffff});
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, ErrorCode::no_memory);
}

TEST(FrameRegion, AShareableRegionIsTheSameMemoryThroughItsDescriptor) {
  auto region = FrameRegion::open({.slot_count = 4, .shareable = true});
  ASSERT_TRUE(region);
  ASSERT_GE((*region)->fd(), 0);
  const auto other = Mapping::of_fd((*region)->fd(), (*region)->memory().size());
  ASSERT_TRUE(other);
  (*region)->slot(2)[5] = std::byte{42};
  EXPECT_EQ(other->bytes()[2 * 2048 + 5], std::byte{42});
}

TEST(FrameRegion, HoldsOnlyDescriptorsWithinOneSlot) {
  const auto region = region_of(4);
  EXPECT_TRUE(region->holds({.slot = 3, .length = 2048, .offset = 0}));
  EXPECT_TRUE(region->holds({.slot = 0, .length = 0, .offset = 2048}));
  EXPECT_TRUE(region->holds({.slot = 0, .length = 1948, .offset = 100}));
  EXPECT_FALSE(region->holds({.slot = 4, .length = 1, .offset = 0}));
  EXPECT_FALSE(region->holds({.slot = 0xffffffff, .length = 1, .offset = 0}));
  EXPECT_FALSE(region->holds({.slot = 0, .length = 2049, .offset = 0}));
  EXPECT_FALSE(region->holds({.slot = 0, .length = 1949, .offset = 100}));
  EXPECT_FALSE(region->holds({.slot = 0, .length = 0xffffffff, .offset = 1}));  // the sum would wrap
  EXPECT_FALSE(region->holds({.slot = 0, .length = 0, .offset = 2049}));
}

TEST(FramePool, AllocatesEachSlotOnceAndThenNone) {
  const auto region = region_of(8);
  FramePool pool(*region, 2, 4, Start::all_free);
  std::set<std::uint32_t> slots;
  std::vector<Frame> frames;
  for (int i = 0; i < 4; ++i) {
    auto frame = pool.allocate(0);
    ASSERT_TRUE(frame);
    slots.insert(frame->desc().slot);
    frames.push_back(std::move(*frame));
  }
  EXPECT_EQ(slots, (std::set<std::uint32_t>{2, 3, 4, 5}));
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_FALSE(pool.allocate(0));
  frames.pop_back();
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_TRUE(pool.allocate(0));
}

TEST(FramePool, ReusesTheSlotThatIsWarm) {
  const auto region = region_of(8);
  FramePool pool(*region, 0, 8, Start::all_free);
  const std::uint32_t first = pool.allocate(0)->desc().slot;
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(pool.allocate(0)->desc().slot, first);
}

TEST(FramePool, RefusesAHeadroomThatIsNotInTheSlot) {
  const auto region = region_of(2, 256);
  FramePool pool(*region, 0, 2, Start::all_free);
  EXPECT_FALSE(pool.allocate(257));
  EXPECT_EQ(pool.free_count(), 2u);
  auto whole = pool.allocate(256);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->tailroom(), 0u);
  EXPECT_EQ(whole->headroom(), 256u);
}

TEST(Frame, GrowsAndShrinksAtBothEnds) {
  const auto region = region_of(1, 256);
  FramePool pool(*region, 0, 1, Start::all_free);
  Frame frame = *pool.allocate(100);
  EXPECT_EQ(frame.size(), 0u);
  EXPECT_EQ(frame.headroom(), 100u);
  EXPECT_EQ(frame.tailroom(), 156u);

  MutableBytes payload = frame.append(10);
  ASSERT_EQ(payload.size(), 10u);
  EXPECT_EQ(payload.data(), region->slot(0).data() + 100);
  payload[0] = std::byte{1};
  MutableBytes header = frame.prepend(20);
  ASSERT_EQ(header.size(), 20u);
  header[0] = std::byte{2};
  EXPECT_EQ(frame.size(), 30u);
  EXPECT_EQ(frame.bytes()[0], std::byte{2});
  EXPECT_EQ(frame.bytes()[20], std::byte{1});
  frame.drop_front(20);
  EXPECT_EQ(frame.bytes()[0], std::byte{1});
  frame.drop_back(9);
  EXPECT_EQ(frame.size(), 1u);
  EXPECT_EQ(frame.headroom(), 100u);
}

TEST(Frame, GrowsOnlyWhereThereIsRoom) {
  const auto region = region_of(1, 256);
  FramePool pool(*region, 0, 1, Start::all_free);
  Frame frame = *pool.allocate(100);
  EXPECT_TRUE(frame.prepend(101).empty());
  EXPECT_TRUE(frame.append(157).empty());
  EXPECT_EQ(frame.size(), 0u);
  EXPECT_EQ(frame.append(156).size(), 156u);
  EXPECT_TRUE(frame.append(1).empty());
  EXPECT_EQ(frame.prepend(100).size(), 100u);
  EXPECT_EQ(frame.size(), 256u);
}

TEST(Frame, GoesHomeOnceHoweverItIsMoved) {
  const auto region = region_of(2);
  FramePool pool(*region, 0, 2, Start::all_free);
  {
    Frame a = *pool.allocate(0);
    Frame b = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): what is left is what is tested
    EXPECT_TRUE(b);
    Frame& alias = b;
    b = std::move(alias);
    EXPECT_TRUE(b);
    Frame c = *pool.allocate(0);
    EXPECT_EQ(pool.free_count(), 0u);
    c = std::move(b);  // c's own slot goes home here
    EXPECT_EQ(pool.free_count(), 1u);
  }
  EXPECT_EQ(pool.free_count(), 2u);
}

TEST(Frame, ASharedSlotGoesHomeWithItsLastReference) {
  const auto region = region_of(1);
  FramePool pool(*region, 0, 1, Start::all_free);
  auto first = std::optional<Frame>(pool.allocate(10));
  first->append(100)[0] = std::byte{7};
  Frame second = first->share();
  second.drop_front(50);
  EXPECT_EQ(first->size(), 100u) << "offset and length are each reference's own";
  EXPECT_EQ(second.size(), 50u);
  first.reset();
  EXPECT_EQ(pool.free_count(), 0u);
  second = Frame();
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(FramePool, ASentSlotIsFreeWhenBothTheDeviceAndTheProtocolHaveLetGo) {
  const auto region = region_of(1);
  FramePool pool(*region, 0, 1, Start::all_free);
  for (const bool device_first : {true, false}) {
    auto frame = pool.allocate(0);
    ASSERT_TRUE(frame);
    const FrameDesc sent = pool.lend(*frame);
    EXPECT_EQ(sent, frame->desc());
    if (device_first) {
      EXPECT_TRUE(pool.reclaim(sent.slot));
      EXPECT_EQ(pool.free_count(), 0u);
      frame.reset();
    } else {
      frame.reset();
      EXPECT_EQ(pool.free_count(), 0u);
      EXPECT_TRUE(pool.reclaim(sent.slot));
    }
    EXPECT_EQ(pool.free_count(), 1u);
  }
}

TEST(FramePool, AReleasedReferenceIsTheDevicesUntilItReturns) {
  const auto region = region_of(1);
  FramePool pool(*region, 0, 1, Start::all_free);
  const FrameDesc sent = std::move(*pool.allocate(0)).release();
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_TRUE(pool.reclaim(sent.slot));
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_FALSE(pool.reclaim(sent.slot));
}

TEST(FramePool, LentTwiceIsReturnedTwice) {
  const auto region = region_of(1);
  FramePool pool(*region, 0, 1, Start::all_free);
  {
    const Frame frame = *pool.allocate(0);
    pool.lend(frame);
    pool.lend(frame);  // a retransmission while the first copy is still in the device's ring
  }
  EXPECT_TRUE(pool.reclaim(0));
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_TRUE(pool.reclaim(0));
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(FramePool, ADeviceCannotReturnWhatItWasNotLent) {
  const auto region = region_of(8);
  FramePool pool(*region, 2, 4, Start::all_free);
  EXPECT_FALSE(pool.reclaim(0)) << "another pool's";
  EXPECT_FALSE(pool.reclaim(6)) << "another pool's";
  EXPECT_FALSE(pool.reclaim(0xffffffff));
  EXPECT_FALSE(pool.reclaim(2)) << "free";
  const Frame held = *pool.allocate(0);
  // A hostile driver that could free a slot somebody writes to would have two owners write to it.
  EXPECT_FALSE(pool.reclaim(held.desc().slot)) << "allocated and not lent";
  EXPECT_EQ(pool.free_count(), 3u);
  pool.lend(held);
  EXPECT_TRUE(pool.reclaim(held.desc().slot));
  EXPECT_FALSE(pool.reclaim(held.desc().slot)) << "returned already";
  EXPECT_EQ(pool.free_count(), 3u);
}

TEST(FramePool, AdoptsReceivedSlotsAndSendsThemHome) {
  const auto region = region_of(8);
  FramePool pool(*region, 0, 4, Start::all_lent);
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_FALSE(pool.allocate(0)) << "a receive slot that is out is not free";
  region->slot(1)[64] = std::byte{9};
  {
    auto frame = pool.adopt({.slot = 1, .length = 60, .offset = 64});
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->bytes()[0], std::byte{9});
    EXPECT_EQ(frame->size(), 60u);
  }
  EXPECT_EQ(pool.free_count(), 1u);
  std::array<std::uint32_t, 4> home{};
  ASSERT_EQ(pool.take_free(home), 1u);
  EXPECT_EQ(home[0], 1u);
  EXPECT_TRUE(pool.adopt({.slot = 1, .length = 60, .offset = 64})) << "out again, so it can come again";
}

TEST(FramePool, RefusesHostileDescriptors) {
  const auto region = region_of(8);
  FramePool pool(*region, 2, 4, Start::all_lent);
  const auto adopted = [&](const FrameDesc& desc) { return pool.adopt(desc).has_value(); };
  EXPECT_FALSE(adopted({.slot = 1, .length = 60})) << "a slot of another pool";
  EXPECT_FALSE(adopted({.slot = 6, .length = 60})) << "a slot of another pool";
  EXPECT_FALSE(adopted({.slot = 0xffffffff, .length = 60}));
  EXPECT_FALSE(adopted({.slot = 2, .length = 2049}));
  EXPECT_FALSE(adopted({.slot = 2, .length = 2000, .offset = 100}));
  EXPECT_FALSE(adopted({.slot = 2, .length = 0xffffffff, .offset = 1}));
  EXPECT_EQ(pool.free_count(), 0u) << "a refused slot stays out";

  const auto held = pool.adopt({.slot = 2, .length = 60});
  ASSERT_TRUE(held);
  EXPECT_FALSE(adopted({.slot = 2, .length = 60})) << "the same slot twice";
  EXPECT_FALSE(pool.reclaim(2)) << "received, not sent";
  EXPECT_FALSE(pool.reclaim(3)) << "at the device, as a receive slot";
}

TEST(FramePool, ASlotOnItsWayHomeCannotComeAgainBeforeItIsLent) {
  const auto region = region_of(2);
  FramePool pool(*region, 0, 2, Start::all_lent);
  {
    const auto frame = pool.adopt({.slot = 0, .length = 60});
  }
  EXPECT_FALSE(pool.adopt({.slot = 0, .length = 60}));
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(FramePool, AReceivedSlotCanBeSentOn) {
  const auto region = region_of(1);
  FramePool pool(*region, 0, 1, Start::all_lent);
  {
    const Frame frame = *pool.adopt({.slot = 0, .length = 60});
    pool.lend(frame);
  }
  EXPECT_EQ(pool.free_count(), 0u) << "the device still reads it";
  EXPECT_TRUE(pool.reclaim(0));
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(FramePool, TakesNoMoreThanAskedFor) {
  const auto region = region_of(4);
  FramePool pool(*region, 0, 4, Start::all_free);
  std::array<std::uint32_t, 3> home{};
  EXPECT_EQ(pool.take_free(home), 3u);
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(pool.take_free(home), 1u);
  EXPECT_EQ(pool.take_free(home), 0u);
}

}  // namespace
}  // namespace netchannel
