// Frames through a link: whole, in order, from whom the link says, and every slot comes home.
#include "tests/device_shm/shm_rig.hpp"

namespace netchannel::device {
namespace {

using ShmTransfer = ShmTest;

TEST_F(ShmTransfer, AFrameOfAnySizeArrivesWhole) {
  const Link link = join(a, b);
  for (const std::size_t size : {0, 1, 46, 221, 222, 223, 236, 1500, 4096, 65400}) {
    const Packet payload = pattern(size, size);
    ASSERT_TRUE(a.send(link.at_a, payload));
    const auto got = b.receive();
    ASSERT_EQ(got.size(), 1u) << size;
    EXPECT_EQ(got[0].payload, payload) << size;
    ASSERT_TRUE(b.send(link.at_b, payload));
    const auto back = a.receive();
    ASSERT_EQ(back.size(), 1u) << size;
    EXPECT_EQ(back[0].payload, payload) << size;
  }
  EXPECT_EQ(a.slots_here(), kSlots);
  EXPECT_EQ(b.slots_here(), kSlots);
}

TEST_F(ShmTransfer, ItIsToUsAndFromTheLinkWhateverTheSenderWrote) {
  const Link link = join(a, b);
  for (const std::size_t size : {20, 5000}) {
    ASSERT_TRUE(a.send(link.at_a, pattern(size)));
    const auto got = b.receive();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].to, b.device().info().mac);
    EXPECT_EQ(got[0].from, link.at_b);
  }
}

TEST_F(ShmTransfer, ChecksumStateAndSegmentSizeComeAlongAndNothingElse) {
  const Link link = join(a, b);
  ASSERT_TRUE(a.send(link.at_a, pattern(100),
                     {.segment_size = 10, .flags = kChecksumPartial | kSlowPath, .l4_offset = 34}));
  const auto got = b.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].desc.flags, kChecksumPartial);
  EXPECT_EQ(got[0].desc.segment_size, 10);
  EXPECT_EQ(got[0].desc.l4_offset, 34);
}

TEST_F(ShmTransfer, OrderIsKeptOverManyRounds) {
  const Link link = join(a, b);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Packet payload = pattern(i % 7 == 0 ? 600 : 20);
    std::memcpy(payload.data(), &i, sizeof i);
    ASSERT_TRUE(a.send(link.at_a, payload)) << i;
    if (i % 50 != 49) continue;
    for (const auto& got : b.receive()) {
      std::uint32_t number = 0;
      std::memcpy(&number, got.payload.data(), sizeof number);
      ASSERT_EQ(number, next++);
    }
  }
  EXPECT_EQ(next, 5000u);
  EXPECT_EQ(a.slots_here(), kSlots);
}

TEST_F(ShmTransfer, AFullLinkTakesNoMoreAndLosesNothing) {
  const Link link = join(a, b);
  std::size_t sent = 0;
  while (a.send(link.at_a, pattern(10, sent))) ++sent;
  EXPECT_EQ(sent, kCells);
  const auto got = b.receive();
  ASSERT_EQ(got.size(), sent);
  for (std::size_t i = 0; i < sent; ++i) EXPECT_EQ(got[i].payload, pattern(10, i));
  EXPECT_TRUE(a.send(link.at_a, pattern(10)));
  EXPECT_EQ(a.counter(Counter::local_peer_slow), 0u);
}

TEST_F(ShmTransfer, APeerThatTakesNothingDelaysOthersForAMomentOnly) {
  ShmHost c;
  const Link slow = join(a, b), quick = join(a, c);
  while (a.send(slow.at_a, pattern(10))) {
  }
  const Instant start = monotonic_now();
  while (!a.send(slow.at_a, pattern(10))) ASSERT_LT(monotonic_now() - start, std::chrono::seconds(5));
  EXPECT_GE(monotonic_now() - start, ShmDevice::kPatience / 2);
  EXPECT_EQ(a.counter(Counter::local_peer_slow), 1u);
  EXPECT_TRUE(a.send(quick.at_a, pattern(11)));
  EXPECT_EQ(c.receive().size(), 1u);
  EXPECT_EQ(b.receive().size(), kCells) << "what was taken is not lost";
}

TEST_F(ShmTransfer, LinksDoNotMix) {
  ShmHost c;
  const Link ab = join(a, b), ac = join(a, c), bc = join(b, c);
  ASSERT_TRUE(a.send(ab.at_a, pattern(300, 1)));
  ASSERT_TRUE(a.send(ac.at_a, pattern(300, 2)));
  ASSERT_TRUE(b.send(bc.at_a, pattern(300, 3)));
  const auto at_b = b.receive(), at_c = c.receive();
  ASSERT_EQ(at_b.size(), 1u);
  EXPECT_EQ(at_b[0].payload, pattern(300, 1));
  ASSERT_EQ(at_c.size(), 2u);
  for (const auto& got : at_c) EXPECT_EQ(got.payload, pattern(300, got.from == ac.at_b ? 2 : 3));
}

TEST_F(ShmTransfer, WithoutReceiveSlotsFramesWait) {
  const Link link = join(a, b);
  for (std::uint32_t i = 0; i < kSlots + 10; ++i) ASSERT_TRUE(a.send(link.at_a, pattern(9, i)));
  std::array<FrameDesc, 2 * kSlots> burst;
  ASSERT_EQ(b.device().rx_burst(burst), kSlots);
  ASSERT_EQ(b.device().rx_burst(burst), 0u);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    const std::uint32_t slot = kSlots + i;
    ASSERT_EQ(b.device().refill({&slot, 1}), 1u);
  }
  EXPECT_EQ(b.device().rx_burst(burst), 10u);
}

TEST_F(ShmTransfer, OneOfManyQuietLinksIsHeardAgain) {
  std::vector<std::unique_ptr<ShmHost>> others;
  std::vector<Link> links;
  for (std::size_t i = 0; i < ShmDevice::kAlwaysLookedAt + 4; ++i) {
    others.push_back(std::make_unique<ShmHost>());
    links.push_back(join(*others.back(), a));
  }
  for (int turn = 0; turn < 40'000; ++turn) ASSERT_TRUE(a.receive().empty());
  for (std::size_t i = 0; i < links.size(); ++i) {
    ASSERT_TRUE(others[i]->send(links[i].at_a, pattern(30)));
    (void)a.device().look();
    ASSERT_EQ(a.receive().size(), 1u) << i;
  }
}

}  // namespace
}  // namespace netchannel::device
