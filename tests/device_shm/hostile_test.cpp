// A peer that writes nonsense into everything that it can write to: it is counted and cut off, nothing
// outside the shared memory is touched, no slot is lost, and other links do not notice.
#include <fcntl.h>
#include <sys/mman.h>

#include <random>

#include "tests/device_shm/shm_rig.hpp"

namespace netchannel::device {
namespace {

// b is honest; the test lies to it in a's place. c is another peer of b's.
class ShmHostile : public ShmTest {
 protected:
  void SetUp() override {
    liar_ = join(a, b);
    other_ = join(c, b);
    there_ = liar_.spy.bytes().first(kCellRingSize);
    back_ = liar_.spy.bytes().subspan(kCellRingSize, kCellRingSize);
  }
  // A cell as the liar likes it, in the next place.
  void put(CellHeader header) {
    header.turn = turn_ + 1;
    const MutableBytes cell =
        there_.subspan(sizeof(CellControl) + std::size_t{turn_ % kCells} * kCellSize, kCellSize);
    std::memcpy(cell.data(), &header, sizeof header);
    ++turn_;
  }
  void expect_cut_off() {
    EXPECT_TRUE(b.receive().empty());
    EXPECT_EQ(b.counter(Counter::channel_hostile), 1u);
    EXPECT_EQ(b.gone(), std::vector{liar_.at_b});
    b.device().remove(liar_.at_b);
    expect_others_well();
  }
  void expect_others_well() {
    ASSERT_TRUE(c.send(other_.at_a, pattern(2000, 5)));
    const auto got = b.receive();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].payload, pattern(2000, 5));
    ASSERT_TRUE(b.send(other_.at_b, pattern(20)));
    EXPECT_EQ(c.receive().size(), 1u);
    EXPECT_EQ(b.slots_here(), kSlots);
  }

  ShmHost c;
  Link liar_, other_;
  MutableBytes there_, back_;
  std::uint32_t turn_ = 0;
};

TEST_F(ShmHostile, ALengthThatNoCellHolds) {
  put({.length = kInlineBytes + 1});
  expect_cut_off();
}

TEST_F(ShmHostile, ALengthThatNoHeaderHas) {
  put({.length = 13});
  expect_cut_off();
}

TEST_F(ShmHostile, ASlotThatItHasNot) {
  put({.length = 100, .slot = kSlots});
  expect_cut_off();
}

TEST_F(ShmHostile, AFrameThatReachesOutOfItsSlot) {
  put({.length = kSlotSize - 10, .slot = 1, .offset = 11});
  expect_cut_off();
}

TEST_F(ShmHostile, AFrameOfFourGigabytes) {
  put({.length = 0xffffffff, .slot = 1, .offset = 0xffff});
  expect_cut_off();
}

TEST_F(ShmHostile, ATransportHeaderBehindTheFrame) {
  put({.length = 60, .flags = kChecksumPartial, .l4_offset = 60});
  expect_cut_off();
}

TEST_F(ShmHostile, GoodFramesBeforeTheLieAreTaken) {
  put({.length = 60});
  put({.length = 60, .slot = 0x7fffffff});
  EXPECT_EQ(b.receive().size(), 1u);
  EXPECT_EQ(b.gone().size(), 1u);
}

TEST_F(ShmHostile, ASlotComesHomeThatItWasNotGiven) {
  ASSERT_TRUE(b.send(liar_.at_b, pattern(1000)));
  // Ring of slots home to the acceptor: the last part of the memory.
  const MutableBytes ring = liar_.spy.bytes().last(kSlotRingSize);
  ring::Producer<std::uint32_t> home(ring, kMostShownSlots);
  ASSERT_TRUE(home.push(kSlots - 7));
  EXPECT_EQ(b.slots_here(), kSlots - 1);
  EXPECT_EQ(b.counter(Counter::channel_hostile), 1u);
  b.device().remove(liar_.at_b);
  expect_others_well();
}

TEST_F(ShmHostile, ASlotComesHomeTwice) {
  ASSERT_TRUE(b.send(liar_.at_b, pattern(1000)));
  ASSERT_TRUE(b.send(liar_.at_b, pattern(1000)));
  ring::Producer<std::uint32_t> home(liar_.spy.bytes().last(kSlotRingSize), kMostShownSlots);
  const std::uint32_t first = kSlots - 1;  // the last of the free is used first
  ASSERT_TRUE(home.push(first) && home.push(first));
  EXPECT_EQ(b.slots_here(), kSlots - 1);
  EXPECT_EQ(b.counter(Counter::channel_hostile), 1u);
  b.device().remove(liar_.at_b);
  expect_others_well();
}

TEST_F(ShmHostile, AnIndexOfSlotsThatCannotBe) {
  ASSERT_TRUE(b.send(liar_.at_b, pattern(1000)));
  const MutableBytes ring = liar_.spy.bytes().last(kSlotRingSize);
  const std::uint32_t nonsense = 0x80000000;
  std::memcpy(ring.data() + ring::kCacheLine, &nonsense, sizeof nonsense);  // Header::produced
  EXPECT_EQ(b.slots_here(), kSlots - 1);
  EXPECT_EQ(b.gone().size(), 1u);
}

TEST_F(ShmHostile, AReaderWhoseIndexCannotBe) {
  for (std::uint32_t i = 0; i < kCells; ++i) ASSERT_TRUE(b.send(liar_.at_b, pattern(20)));
  const std::uint32_t nonsense = 0xdeadbeef;
  std::memcpy(back_.data(), &nonsense, sizeof nonsense);
  EXPECT_TRUE(b.send(liar_.at_b, pattern(20))) << "lost, not waited for";
  EXPECT_EQ(b.counter(Counter::channel_hostile), 1u);
  EXPECT_EQ(b.gone().size(), 1u);
  b.device().remove(liar_.at_b);
  expect_others_well();
}

TEST_F(ShmHostile, AllOfTheLinkIsNoiseWhileBothWork) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Link link = join(a, b);
    for (int turn = 0; turn < 20; ++turn) {
      const MutableBytes all = link.spy.bytes();
      for (int i = 0; i < 40; ++i) {
        const std::uint64_t noise = random();
        const std::size_t at = random() % 2 == 0 ? random() % 512 : random() % (all.size() - sizeof noise);
        std::memcpy(all.data() + at, &noise, 1 + random() % sizeof noise);
      }
      (void)b.send(link.at_b, pattern(20 + random() % 2000));
      (void)b.receive();
      (void)b.slots_here();
      (void)b.device().look();
      if (b.device().prepare_sleep()) (void)b.receive();
    }
    a.device().remove(link.at_a);
    b.device().remove(link.at_b);
    (void)b.gone();
  }
  expect_others_well();
}

TEST_F(ShmHostile, MemoryThatCouldShrinkIsNotMapped) {
  UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kLinkMemory), 0);
  EXPECT_FALSE(Mapping::of_stranger(unsealed.get(), kLinkMemory, Mapping::Access::read_write));
  UniqueFd file(::open(".", O_TMPFILE | O_RDWR, 0600));
  if (file) {
    EXPECT_FALSE(Mapping::of_stranger(file.get(), 0, Mapping::Access::read));
  }
  auto sealed = make_link_memory();
  EXPECT_FALSE(Mapping::of_stranger(sealed->fd.get(), kLinkMemory - 4096, Mapping::Access::read_write));
  EXPECT_TRUE(Mapping::of_stranger(sealed->fd.get(), kLinkMemory, Mapping::Access::read_write));
  EXPECT_NE(::ftruncate(sealed->fd.get(), 0), 0);
}

TEST_F(ShmHostile, NobodyElseCanWriteIntoFramesThatAreShown) {
  EXPECT_FALSE(
      Mapping::of_stranger(a.region().fd(), std::size_t{kSlots} * kSlotSize, Mapping::Access::read_write));
  const std::byte one{1};
  EXPECT_LT(::pwrite(a.region().fd(), &one, 1, 0), 0);
  EXPECT_TRUE(a.send(liar_.at_a, pattern(1000))) << "but its owner can";
}

}  // namespace
}  // namespace netchannel::device
