#include "device/link.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "testkit/gtest.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {
namespace {

using namespace std::chrono_literals;
using testkit::Packet;
using testkit::pattern;
using testkit::Port;

constexpr Instant at(Duration since_start) { return Instant{since_start.count()}; }

struct Lab {
  explicit Lab(const LinkOptions& options, const testkit::PortOptions& ports = {}) : a(ports), b(ports) {
    auto opened = LinkPair::open(options, a.home(), b.home());
    if (!opened) {
      ADD_FAILURE() << describe(opened.error());
      std::abort();
    }
    link = std::move(*opened);
    a.attach(link->a());
    b.attach(link->b());
  }
  Port a;
  Port b;
  std::unique_ptr<LinkPair> link;
};

TEST(Link, DeliversTheSameBytesBothWaysInOrder) {
  Lab lab({});
  ASSERT_TRUE(lab.a.send(pattern(60, 1)));
  ASSERT_TRUE(lab.a.send(pattern(1514, 2)));
  ASSERT_TRUE(lab.b.send(pattern(100, 3)));
  EXPECT_EQ(lab.b.receive(), (std::vector<Packet>{pattern(60, 1), pattern(1514, 2)}));
  EXPECT_EQ(lab.a.receive(), (std::vector<Packet>{pattern(100, 3)}));
  EXPECT_TRUE(lab.a.slots_home());
  EXPECT_EQ(lab.a.rx_slots_here(), 0u) << "every receive slot is lent again";
  EXPECT_EQ(lab.a.counters().read(Counter::device_tx_frames), 2u);
  EXPECT_EQ(lab.b.counters().read(Counter::device_rx_frames), 2u);
}

TEST(Link, HoldsAFrameUntilExactlyItsDelay) {
  Lab lab({.a_to_b = {.delay = 5ms}});
  lab.link->set_time(at(1ms));
  ASSERT_TRUE(lab.a.send(pattern(60)));
  EXPECT_EQ(lab.link->next_event(), at(6ms));
  lab.link->set_time(at(6ms - 1ns));
  EXPECT_TRUE(lab.b.receive().empty());
  lab.link->set_time(at(6ms));
  EXPECT_EQ(lab.b.receive().size(), 1u);
  EXPECT_EQ(lab.link->next_event(), kForever);
}

TEST(Link, TimeNeverGoesBack) {
  Lab lab({});
  lab.link->set_time(at(2ms));
  lab.link->set_time(at(1ms));
  EXPECT_EQ(lab.link->now(), at(2ms));
}

TEST(Link, SendsAtExactlyItsRate) {
  // 1000 bytes at 3 Mbit/s are 2.666... ms: the fraction must not be lost.
  Lab lab({.a_to_b = {.rate = 3'000'000}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(lab.a.send(pattern(1000)));
  EXPECT_EQ(lab.link->next_event(), at(2'666'666ns));
  lab.link->set_time(at(8ms - 1ns));
  EXPECT_EQ(lab.b.receive().size(), 2u);
  lab.link->set_time(at(8ms));
  EXPECT_EQ(lab.b.receive().size(), 1u);
}

TEST(Link, DropsTheTailWhenTheQueueIsFull) {
  Lab lab({.a_to_b = {.rate = 8'000'000, .queue_bytes = 3000}});
  for (std::uint8_t i = 0; i < 5; ++i)
    ASSERT_TRUE(lab.a.send(pattern(1000, i))) << "a drop on the wire is no refusal";
  EXPECT_EQ(lab.link->a_to_b().queue_drops, 2u);
  lab.link->set_time(at(1ms));  // the first has left: room for one
  ASSERT_TRUE(lab.a.send(pattern(1000, 5)));
  ASSERT_TRUE(lab.a.send(pattern(1000, 6)));
  EXPECT_EQ(lab.link->a_to_b().queue_drops, 3u);
  lab.link->set_time(at(10ms));
  EXPECT_EQ(lab.b.receive(),
            (std::vector<Packet>{pattern(1000, 0), pattern(1000, 1), pattern(1000, 2), pattern(1000, 5)}));
}

TEST(Link, LosesAboutAsManyAsItWasTold) {
  Lab lab({.a_to_b = {.loss = 0.1}});
  std::size_t arrived = 0;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(lab.a.send(pattern(60)));
    arrived += lab.b.receive().size();
  }
  EXPECT_EQ(arrived + lab.link->a_to_b().lost, 10'000u);
  EXPECT_NEAR(static_cast<double>(lab.link->a_to_b().lost), 1000, 120);  // four standard deviations
  EXPECT_TRUE(lab.a.slots_home()) << "a lost frame's slot comes home too";
}

TEST(Link, LosesAllOrNothingAtTheEnds) {
  Lab none({.a_to_b = {.loss = 0}}), all({.a_to_b = {.loss = 1}});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(none.a.send(pattern(60)));
    ASSERT_TRUE(all.a.send(pattern(60)));
    EXPECT_EQ(none.b.receive().size(), 1u);
    EXPECT_EQ(all.b.receive().size(), 0u);
  }
}

TEST(Link, DuplicatesRightBehind) {
  Lab lab({.a_to_b = {.duplicate = 1}});
  ASSERT_TRUE(lab.a.send(pattern(60, 1)));
  ASSERT_TRUE(lab.a.send(pattern(60, 2)));
  EXPECT_EQ(lab.b.receive(),
            (std::vector<Packet>{pattern(60, 1), pattern(60, 1), pattern(60, 2), pattern(60, 2)}));
  EXPECT_EQ(lab.link->a_to_b().duplicated, 2u);
}

TEST(Link, FlipsAsManyBitsAsToldAndNotInTheSendersMemory) {
  Lab lab({.a_to_b = {.corrupt = 1, .corrupt_bits = 1}});
  const Packet sent = pattern(200, 9);
  ASSERT_TRUE(lab.a.send(sent));
  const auto got = lab.b.receive();
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(got[0].size(), sent.size());
  int flipped = 0;
  for (std::size_t i = 0; i < sent.size(); ++i)
    flipped += std::popcount(std::to_integer<unsigned>(sent[i] ^ got[0][i]));
  EXPECT_EQ(flipped, 1);
  EXPECT_EQ(lab.link->a_to_b().corrupted, 1u);
}

TEST(Link, AReorderedFrameIsOvertakenAndThenArrives) {
  Lab lab({.a_to_b = {.delay = 1ms, .reorder = 1, .reorder_by = 500us}});
  ASSERT_TRUE(lab.a.send(pattern(60, 1)));
  ASSERT_TRUE(lab.link->change({.delay = 1ms}, {}));
  ASSERT_TRUE(lab.a.send(pattern(60, 2)));
  lab.link->set_time(at(1ms));
  EXPECT_EQ(lab.b.receive(), (std::vector<Packet>{pattern(60, 2)}));
  lab.link->set_time(at(1500us - 1ns));
  EXPECT_TRUE(lab.b.receive().empty());
  lab.link->set_time(at(1500us));
  EXPECT_EQ(lab.b.receive(), (std::vector<Packet>{pattern(60, 1)}));
  EXPECT_EQ(lab.link->a_to_b().reordered, 1u);
}

TEST(Link, JitterSpreadsButNeverReorders) {
  Lab lab({.a_to_b = {.delay = 1ms, .jitter = 10ms}});
  std::set<std::int64_t> arrivals;
  std::vector<Packet> got;
  for (std::uint8_t i = 0; i < 50; ++i) {
    lab.link->set_time(at(i * 1ms));
    ASSERT_TRUE(lab.a.send(pattern(60, i)));
  }
  lab.link->set_time(at(49ms));
  for (auto& packet : lab.b.receive()) got.push_back(packet);
  while (lab.link->next_event() != kForever) {
    lab.link->set_time(lab.link->next_event());
    arrivals.insert(lab.link->now().ns);
    for (auto& packet : lab.b.receive()) got.push_back(packet);
  }
  ASSERT_EQ(got.size(), 50u);
  for (std::uint8_t i = 0; i < 50; ++i) EXPECT_EQ(got[i], pattern(60, i));
  EXPECT_LE(lab.link->now(), at(60ms));
}

TEST(Link, TheSameSeedGivesTheSameStory) {
  const LinkDirection rough{
      .delay = 1ms, .jitter = 1ms, .loss = 0.1, .duplicate = 0.1, .corrupt = 0.1, .reorder = 0.2};
  const auto story = [&](std::uint64_t seed) {
    Lab lab({.a_to_b = rough, .b_to_a = rough, .seed = seed});
    std::vector<std::pair<std::int64_t, Packet>> out;
    for (std::uint8_t i = 0; i < 100; ++i) EXPECT_TRUE(lab.a.send(pattern(100, i)));
    EXPECT_TRUE(testkit::pump(*lab.link, [&](Instant now) {
      const auto got = lab.b.receive();
      for (const auto& packet : got) out.emplace_back(now.ns, packet);
      return !got.empty();
    }));
    return out;
  };
  const auto first = story(7);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, story(7));
  EXPECT_NE(first, story(8));
}

TEST(Link, TheTwoDirectionsAreIndependent) {
  Lab lab({.a_to_b = {.loss = 1}, .b_to_a = {.delay = 3ms}});
  ASSERT_TRUE(lab.a.send(pattern(60)));
  ASSERT_TRUE(lab.b.send(pattern(60)));
  lab.link->set_time(at(3ms));
  EXPECT_TRUE(lab.b.receive().empty());
  EXPECT_EQ(lab.a.receive().size(), 1u);
  EXPECT_EQ(lab.link->a_to_b(), (LinkStats{.sent = 1, .lost = 1}));
  EXPECT_EQ(lab.link->b_to_a(), (LinkStats{.sent = 1, .delivered = 1, .bytes_delivered = 60}));
}

TEST(Link, RefusesFramesAboveItsLimitAndCountsThem) {
  Lab lab({.mtu = 1500});
  ASSERT_TRUE(lab.a.send(pattern(1515)));  // consumed
  EXPECT_EQ(lab.a.counters().read(DropReason::device_frame_too_large), 1u);
  EXPECT_TRUE(lab.b.receive().empty());
  EXPECT_TRUE(lab.a.slots_home());
}

TEST(Link, CarriesSuperFramesWithTheirDescriptionIfToldTo) {
  Lab lab({.max_tx_frame = 65535, .offloads = true}, {.slot_size = 65536, .rx_slots = 8, .tx_slots = 8});
  EXPECT_EQ(lab.link->a().info().max_tx_frame, 65535u);
  EXPECT_TRUE(lab.link->a().info().tx_checksum);
  ASSERT_TRUE(
      lab.a.send(pattern(60'000), {.segment_size = 1400, .flags = kChecksumPartial, .l4_offset = 34}));
  const auto got = lab.b.receive_all();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, pattern(60'000));
  EXPECT_EQ(got[0].first.segment_size, 1400);
  EXPECT_EQ(got[0].first.flags, kChecksumPartial);
  EXPECT_EQ(got[0].first.l4_offset, 34);
}

TEST(Link, PassesOnlyBytesWithoutOffloads) {
  Lab lab({});
  ASSERT_TRUE(lab.a.send(pattern(60), {.segment_size = 20, .flags = kChecksumPartial, .l4_offset = 34}));
  const auto got = lab.b.receive_all();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].first.segment_size, 0);
  EXPECT_EQ(got[0].first.flags, 0);
  EXPECT_EQ(got[0].first.l4_offset, 0);
}

TEST(Link, SplitsAFrameOverSlotsWithMultiBufferAndDropsItWithout) {
  for (const bool multi_buffer : {true, false}) {
    Lab lab({.mtu = 9000, .multi_buffer = multi_buffer});
    ASSERT_TRUE(lab.a.send(pattern(9014)));  // five transmit slots
    EXPECT_TRUE(lab.a.slots_home());
    const auto got = lab.b.receive_all();
    if (multi_buffer) {
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].bytes, pattern(9014));
      EXPECT_EQ(got[0].parts, 5u);  // 1984 bytes each behind the headroom
    } else {
      EXPECT_TRUE(got.empty());
      EXPECT_EQ(lab.b.counters().read(DropReason::device_frame_too_large), 1u);
      EXPECT_EQ(lab.link->a_to_b().receive_drops, 1u);
    }
    EXPECT_EQ(lab.b.rx_slots_here(), 0u);
  }
}

TEST(Link, WaitsForSlotsAndDropsBeyondItsReceiveQueue) {
  Lab lab({.a_to_b = {.rx_frames = 3}}, {.rx_slots = 2, .tx_slots = 8});
  for (std::uint8_t i = 0; i < 5; ++i) ASSERT_TRUE(lab.a.send(pattern(60, i)));
  // Two have slots, the third waits, the others found the queue full.
  EXPECT_EQ(lab.b.receive(), (std::vector<Packet>{pattern(60, 0), pattern(60, 1), pattern(60, 2)}));
  EXPECT_EQ(lab.b.counters().read(DropReason::no_frames), 2u);
  EXPECT_EQ(lab.link->a_to_b().receive_drops, 2u);
}

TEST(Link, OutlivesThePairAsATakenEnd) {
  Port a, b;
  auto pair = LinkPair::open({}, a.home(), b.home());
  ASSERT_TRUE(pair);
  auto end_a = (*pair)->take_a();
  auto end_b = (*pair)->take_b();
  EXPECT_EQ(&(*pair)->a(), end_a.get());
  pair->reset();
  a.attach(*end_a);
  b.attach(*end_b);
  ASSERT_TRUE(a.send(pattern(60)));
  EXPECT_EQ(b.receive().size(), 1u);
}

TEST(Link, RefusesImpossibleOptions) {
  Port a, b;
  for (const LinkOptions& bad :
       {LinkOptions{.a_to_b = {.loss = 1.1}}, LinkOptions{.b_to_a = {.corrupt = -0.1}},
        LinkOptions{.a_to_b = {.delay = -1ns}}, LinkOptions{.rx_headroom = 2048}}) {
    auto pair = LinkPair::open(bad, a.home(), b.home());
    ASSERT_FALSE(pair);
    EXPECT_EQ(pair.error().code, ErrorCode::invalid_argument);
  }
  auto pair = LinkPair::open({}, a.home(), b.home());
  ASSERT_TRUE(pair);
  EXPECT_FALSE((*pair)->change({.reorder = 2}, {}));
}

}  // namespace
}  // namespace netchannel::device
