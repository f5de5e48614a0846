// Datagrams from fragments: in any order, never from two, bounded in memory and time.
#include "proto/reassembly.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "testkit/frames.hpp"

namespace netchannel::proto {
namespace {

using namespace std::chrono_literals;
using testkit::Packet;
using testkit::pattern;

struct Piece {
  std::uint32_t offset = 0;
  bool more = false;
  Packet bytes;
};

class Reassembly : public ::testing::Test {
 protected:
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = kReassemblySlot, .slot_count = 8});
  FramePool pool{*region, 0, 8, FramePool::Start::all_free};
  CounterPage counters;
  Reassembler reassembler{pool, counters, {.datagrams = 6, .of_source = 4, .key = {1, 2}}};
  Instant now{1'000'000'000};
  wire::IpPacket base = [] {
    wire::IpPacket packet;
    packet.source = IpAddress::v4(10, 0, 0, 2);
    packet.destination = IpAddress::v4(10, 0, 0, 1);
    packet.ttl = 61;
    packet.tos = 2;
    return packet;
  }();

  std::optional<Reassembled> add(const Piece& piece, std::uint32_t id = 1) {
    wire::IpPacket packet = base;
    packet.payload = piece.bytes;
    packet.fragment = wire::FragmentInfo{id, piece.offset, piece.more};
    return reassembler.add(packet, now);
  }
  std::uint64_t count(DropReason reason) const { return counters.read(reason); }
  void expect_nothing_held() { EXPECT_EQ(pool.free_count(), 8u); }

  static std::vector<Piece> cut(const Packet& whole, std::size_t step) {
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      const std::size_t n = std::min(step, whole.size() - at);
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(at);
      pieces.push_back({static_cast<std::uint32_t>(at), at + n < whole.size(),
                        Packet(begin, begin + static_cast<std::ptrdiff_t>(n))});
    }
    return pieces;
  }
};

Packet to_packet(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

TEST_F(Reassembly, InOrder) {
  const Packet whole = pattern(3001);
  std::optional<Reassembled> got;
  for (const Piece& piece : cut(whole, 1480)) {
    EXPECT_FALSE(got);
    got = add(piece);
  }
  ASSERT_TRUE(got);
  EXPECT_EQ(to_packet(got->payload.bytes()), whole);
  EXPECT_EQ(got->source, base.source);
  EXPECT_EQ(got->ttl, 61);
  EXPECT_EQ(got->tos, 2);
  EXPECT_EQ(reassembler.size(), 0u);
  EXPECT_EQ(counters.read(Counter::datagrams_reassembled), 1u);
  EXPECT_EQ(counters.read(Counter::fragments_received), 3u);
}

TEST_F(Reassembly, InAnyOrderWithDuplicates) {
  const Packet whole = pattern(65515);
  std::mt19937 random(1);
  for (const std::size_t step : {std::size_t{8}, std::size_t{520}, std::size_t{1480}, std::size_t{65512}}) {
    auto pieces = cut(whole, step);
    pieces.insert(pieces.end(), pieces.begin(),
                  pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size() / 2));
    std::shuffle(pieces.begin(), pieces.end(), random);
    std::optional<Reassembled> got;
    for (const Piece& piece : pieces) {
      if ((got = add(piece))) break;
    }
    ASSERT_TRUE(got) << step;
    EXPECT_EQ(to_packet(got->payload.bytes()), whole);
    for (const Piece& piece : pieces) add(piece);  // what comes too late begins anew and is bounded
    reassembler.expire(now + 60s);
  }
  EXPECT_EQ(count(DropReason::frag_overlap), 0u);
}

TEST_F(Reassembly, TwoDatagramsAtOnceDoNotMix) {
  const Packet a = pattern(2000, 1), b = pattern(2000, 2);
  const auto pa = cut(a, 1000), pb = cut(b, 1000);
  EXPECT_FALSE(add(pa[0], 1));
  EXPECT_FALSE(add(pb[1], 2));
  auto got_a = add(pa[1], 1);
  auto got_b = add(pb[0], 2);
  ASSERT_TRUE(got_a && got_b);
  EXPECT_EQ(to_packet(got_a->payload.bytes()), a);
  EXPECT_EQ(to_packet(got_b->payload.bytes()), b);
}

TEST_F(Reassembly, OverIpv4TheProtocolIsPartOfTheNameOverIpv6NotSo) {
  const auto pieces = cut(pattern(2000), 1000);
  add(pieces[0]);
  base.protocol = Protocol::tcp;
  EXPECT_FALSE(add(pieces[1]));
  EXPECT_EQ(reassembler.size(), 2u);
  base.version = 6;
  base.protocol = Protocol::udp;
  add(pieces[0], 77);
  base.protocol = Protocol::tcp;
  const auto got = add(pieces[1], 77);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->protocol, Protocol::udp);  // of the first fragment
}

TEST_F(Reassembly, AnOverlapDropsTheDatagramAndWhatIsStillToCome) {
  const Packet whole = pattern(3000);
  const auto pieces = cut(whole, 1000);
  add(pieces[0]);
  EXPECT_FALSE(add({992, true, pattern(16, 9)}));
  EXPECT_EQ(count(DropReason::frag_overlap), 1u);
  expect_nothing_held();
  for (const Piece& piece : pieces) EXPECT_FALSE(add(piece));
  EXPECT_EQ(count(DropReason::frag_overlap), 1u);
  // After a second the name is free again.
  now = now + 1s;
  std::optional<Reassembled> got;
  for (const Piece& piece : pieces) got = add(piece);
  EXPECT_TRUE(got);
}

TEST_F(Reassembly, EnclosedOrWithOtherBytesIsAnOverlap) {
  const Packet first = pattern(64, 1);
  add({0, true, first});
  EXPECT_FALSE(add({8, true, {first.begin() + 8, first.begin() + 16}}));
  EXPECT_EQ(count(DropReason::frag_overlap), 1u);
  add({0, true, first}, 2);
  add({0, true, pattern(64, 2)}, 2);
  EXPECT_EQ(count(DropReason::frag_overlap), 2u);
  // A larger one over a smaller one.
  add({8, true, pattern(8)}, 3);
  add({0, true, pattern(64)}, 3);
  EXPECT_EQ(count(DropReason::frag_overlap), 3u);
}

TEST_F(Reassembly, TwoFragmentsAreNoDuplicateOfOneLargeOne) {
  const Packet whole = pattern(64);
  add({0, true, {whole.begin(), whole.begin() + 32}});
  add({32, true, {whole.begin() + 32, whole.end()}});
  add({0, true, whole});
  EXPECT_EQ(count(DropReason::frag_overlap), 1u);
}

TEST_F(Reassembly, TwoDifferentEndsOrSomethingBehindTheEnd) {
  add({16, false, pattern(5)}, 1);
  add({32, false, pattern(5)}, 1);
  EXPECT_EQ(count(DropReason::frag_past_end), 1u);
  add({16, false, pattern(5)}, 2);
  add({32, true, pattern(8)}, 2);
  EXPECT_EQ(count(DropReason::frag_past_end), 2u);
  add({32, true, pattern(8)}, 3);
  add({16, false, pattern(5)}, 3);
  EXPECT_EQ(count(DropReason::frag_past_end), 3u);
  expect_nothing_held();
}

TEST_F(Reassembly, PastTheLargestDatagramIsDropped) {
  EXPECT_FALSE(add({65528, false, pattern(8)}));
  EXPECT_EQ(count(DropReason::frag_too_large), 1u);
}

TEST_F(Reassembly, IsForgottenInTimeAndCounted) {
  const auto pieces = cut(pattern(2000), 1000);
  add(pieces[0]);
  EXPECT_EQ(reassembler.next_deadline(), now + kReassemblyTimeV4);
  now = now + kReassemblyTimeV4 - 1ns;
  reassembler.expire(now);
  EXPECT_EQ(count(DropReason::frag_timeout), 0u);
  now = now + 1ns;
  reassembler.expire(now);
  EXPECT_EQ(count(DropReason::frag_timeout), 1u);
  expect_nothing_held();
  EXPECT_EQ(reassembler.next_deadline(), kForever);
  EXPECT_FALSE(add(pieces[1]));
}

TEST_F(Reassembly, OverIpv6ItWaitsSixtySeconds) {
  base.version = 6;
  add({0, true, pattern(8)});
  EXPECT_EQ(reassembler.next_deadline(), now + 60s);
}

TEST_F(Reassembly, ASourceHasItsShareAndItsOldestMakesRoom) {
  const auto pieces = cut(pattern(2000), 1000);
  for (std::uint32_t id = 1; id <= 5; ++id) add(pieces[0], id);
  EXPECT_EQ(reassembler.size(), 4u);
  EXPECT_EQ(count(DropReason::frag_memory), 1u);
  EXPECT_FALSE(add(pieces[1], 1));
  EXPECT_TRUE(add(pieces[1], 5));
}

TEST_F(Reassembly, AFloodFromManySourcesEvictsTheOldestAndStaysBounded) {
  for (std::uint32_t i = 0; i < 10000; ++i) {
    base.source = IpAddress::v4(0x0b000000 + i);
    add({0, true, pattern(8)}, i);
    ASSERT_LE(reassembler.size(), 6u);
  }
  EXPECT_EQ(count(DropReason::frag_memory), 10000u - 6u);
}

TEST_F(Reassembly, WithoutABufferTheOldestGivesItsOwn) {
  std::vector<Frame> held;
  while (auto frame = pool.allocate(0)) held.push_back(std::move(*frame));
  EXPECT_FALSE(add({0, true, pattern(8)}));
  EXPECT_EQ(count(DropReason::frag_memory), 1u);
  held.pop_back();
  add({0, true, pattern(8)}, 2);
  add({0, true, pattern(8)}, 3);
  EXPECT_EQ(reassembler.size(), 1u);
  EXPECT_EQ(count(DropReason::frag_memory), 2u);
}

struct EcnCase {
  std::uint8_t first, second;
  int result;  // -1: dropped
};
class ReassemblyEcn : public Reassembly, public ::testing::WithParamInterface<EcnCase> {};

TEST_P(ReassemblyEcn, FollowsRfc3168) {
  const auto pieces = cut(pattern(2000), 1000);
  base.tos = GetParam().first;
  add(pieces[0]);
  base.tos = GetParam().second;
  const auto got = add(pieces[1]);
  EXPECT_EQ(got ? got->tos : -1, GetParam().result);
  EXPECT_EQ(count(DropReason::frag_bad_ecn), GetParam().result < 0 ? 1u : 0u);
}
INSTANTIATE_TEST_SUITE_P(CodePoints, ReassemblyEcn,
                         ::testing::Values(EcnCase{0, 0, 0}, EcnCase{2, 2, 2}, EcnCase{2, 3, 3},
                                           EcnCase{3, 1, 3}, EcnCase{3, 3, 3}, EcnCase{0, 3, -1},
                                           EcnCase{3, 0, -1}, EcnCase{2, 1, 2}));

}  // namespace
}  // namespace netchannel::proto
