// Frames and super-frames in and out against the kernel's sockets: sizes, checksums, order, sleeping, and
// that every slot comes home and no frame goes uncounted.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <set>

#include "bulk_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;
using testkit::pattern;
using testkit::udp_payload;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const Endpoint kOurs6{kOurV6, 7000};
const Endpoint kPeer6{kPeerV6, 5000};
const FlowKey kClaim{Protocol::udp, kOurs, {}};
const testkit::MacPair kOut{kPeerMac, kOurMac};
constexpr std::uint16_t kSegment = 1400;
constexpr std::size_t kSegments = 44;

class Transfer : public BulkLab {
 protected:
  bool send(Opened& device, const Outgoing& out) { return device.port->send(out.frame, out.meta); }
  // The datagrams that a kernel socket gets, joined.
  static Packet drain(KernelSocket& socket, std::size_t datagrams) {
    Packet all;
    for (std::size_t i = 0; i < datagrams; ++i) {
      const auto one = socket.receive();
      if (!one) break;
      all.insert(all.end(), one->begin(), one->end());
    }
    return all;
  }
};

TEST_F(Transfer, AFrameComesWithItsChecksumState) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("hello")));
  const auto got = receive_all(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0].bytes), bytes("hello"));
  EXPECT_EQ(got[0].first.flags, kChecksumPartial) << "a veth's sender leaves it to the device";
  EXPECT_EQ(got[0].first.l4_offset, 34);
  EXPECT_EQ(got[0].first.segment_size, 0);
  EXPECT_EQ(load_be16(got[0].bytes, 40), pseudo_sum(got[0].bytes));
  EXPECT_EQ(device.count(Counter::device_rx_frames), 1u);
}

TEST_F(Transfer, AFrameFromASenderThatSumsItselfIsLeftToTheStack) {
  build({.offloads = false});
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("hello")));
  const auto got = receive_all(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].first.flags, 0);
  const Packet whole = testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, bytes("hello"));
  EXPECT_EQ(load_be16(got[0].bytes, 40), load_be16(whole, 40));
}

TEST_F(Transfer, AUdpSuperFrameOfTheKernelComesWhole) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  ASSERT_TRUE(device->claim({Protocol::udp, kOurs6, {}}));
  for (const auto& [ours, theirs] : {std::pair{kOurs, kPeer}, std::pair{kOurs6, kPeer6}}) {
    auto peer = peer_socket(theirs);
    segment(peer, kSegment);
    const Packet payload = pattern(kSegments * kSegment + 123);
    ASSERT_TRUE(peer.send_to(ours, payload));
    const auto got = receive_all(device);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(udp_payload(got[0].bytes), payload);
    EXPECT_EQ(got[0].first.segment_size, kSegment);
    EXPECT_EQ(got[0].first.flags, kChecksumPartial);
    EXPECT_EQ(got[0].first.l4_offset, l4_offset(got[0].bytes));
    EXPECT_EQ(got[0].parts, 1u);
  }
  EXPECT_EQ(device.port->rx_slots_here(), 0u);
}

TEST_F(Transfer, AUdpSuperFrameOfOursReachesAKernelSocketAsDatagrams) {
  build();
  auto device = open();
  for (const auto& [ours, theirs] : {std::pair{kOurs, kPeer}, std::pair{kOurs6, kPeer6}}) {
    auto peer = peer_socket(theirs);
    const Packet payload = pattern(kSegments * kSegment + 123);
    ASSERT_TRUE(send(device, partial(testkit::udp_frame(kOut, ours, theirs, payload), kSegment)));
    const auto first = peer.receive();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->size(), kSegment);
    Packet all = *first;
    const Packet rest = drain(peer, kSegments);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all, payload);
    EXPECT_FALSE(peer.receive(std::chrono::milliseconds(0)));
  }
  EXPECT_EQ(device.count(Counter::device_tx_frames), 2u);
  EXPECT_EQ(device.count(Counter::device_tx_kicks), 2u) << "one system call a super-frame";
  EXPECT_TRUE(device.port->slots_home());
}

TEST_F(Transfer, WhereTheInterfaceCannotSegmentTheKernelDoes) {
  build();
  must("ethtool -K eth0 tx off tso off gso off tx-udp-segmentation off >/dev/null");
  auto device = open();
  auto peer = peer_socket(kPeer);
  const Packet payload = pattern(10 * kSegment);
  ASSERT_TRUE(send(device, partial(testkit::udp_frame(kOut, kOurs, kPeer, payload), kSegment)));
  EXPECT_EQ(drain(peer, 10), payload) << "checksums and all: the receiver verifies them";
}

TEST_F(Transfer, SingleFramesWithAPartialOrAWholeChecksumArrive) {
  build();
  auto device = open();
  auto peer = peer_socket(kPeer);
  auto peer6 = peer_socket(kPeer6);
  for (const std::size_t size : {0UL, 1UL, 100UL, 1452UL}) {
    const Packet frame = testkit::udp_frame(kOut, kOurs, kPeer, pattern(size));
    const Packet frame6 = testkit::udp_frame(kOut, kOurs6, kPeer6, pattern(size));
    ASSERT_TRUE(device.port->send(frame));
    EXPECT_EQ(peer.receive(), pattern(size));
    ASSERT_TRUE(send(device, partial(frame)));
    EXPECT_EQ(peer.receive(), pattern(size));
    ASSERT_TRUE(device.port->send(frame6));
    EXPECT_EQ(peer6.receive(), pattern(size));
    ASSERT_TRUE(send(device, partial(frame6)));
    EXPECT_EQ(peer6.receive(), pattern(size));
  }
  EXPECT_TRUE(device.port->slots_home());
}

TEST_F(Transfer, AFrameInSeveralPartsIsSentWhole) {
  build();
  auto device = open();
  auto peer = peer_socket(kPeer);
  const Packet payload = pattern(kSegments * kSegment);
  const Outgoing out = partial(testkit::udp_frame(kOut, kOurs, kPeer, payload), kSegment);
  // Headers in one slot, the payload in others, as a stack that does not copy has them.
  std::vector<FrameDesc> parts;
  std::uint32_t slot = 64;
  for (std::size_t at = 0; at < out.frame.size();) {
    const std::size_t length = at == 0 ? 42 : std::min<std::size_t>(20'000, out.frame.size() - at);
    FrameDesc part = at == 0 ? out.meta : FrameDesc{};
    part.slot = slot++;
    part.offset = 100;
    part.length = static_cast<std::uint32_t>(length);
    const Bytes bytes_of_part = Bytes(out.frame).subspan(at, length);
    std::copy(bytes_of_part.begin(), bytes_of_part.end(), device.port->region().bytes_of(part).begin());
    at += length;
    if (at < out.frame.size()) part.flags |= kContinues;
    parts.push_back(part);
  }
  ASSERT_EQ(parts.size(), 5u);
  ASSERT_EQ(device->tx_burst(parts), parts.size());
  EXPECT_EQ(drain(peer, kSegments), payload);
  std::array<FrameDesc, 8> home;
  EXPECT_EQ(device->reclaim(home), parts.size());
}

TEST_F(Transfer, TheLargestSuperFramesCrossBothWays) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  segment(peer, 1472);
  ASSERT_TRUE(peer.send_to(kOurs, pattern(65'507 - 65'507 % 1472)));
  const auto got = receive_all(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes.size(), 42u + 44 * 1472);
  EXPECT_EQ(device->info().max_tx_frame, 65'535u);
  const Packet payload = pattern(65'535 - 42);
  ASSERT_TRUE(send(device, partial(testkit::udp_frame(kOut, kOurs, kPeer, payload), 1472)));
  EXPECT_EQ(drain(peer, 45), payload);
  // One byte more is refused, since the interface would have the kernel cut it.
  ASSERT_TRUE(send(device, partial(testkit::udp_frame(kOut, kOurs, kPeer, pattern(65'536 - 42)), 1472)));
  EXPECT_EQ(device.count(DropReason::device_frame_too_large), 1u);
  EXPECT_TRUE(device.port->slots_home());
}

TEST_F(Transfer, ABurstKeepsItsOrder) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  for (std::uint8_t i = 0; i < 100; ++i) ASSERT_TRUE(peer.send_to(kOurs, pattern(20, i)));
  const auto got = receive(device, 100);
  ASSERT_EQ(got.size(), 100u);
  for (std::uint8_t i = 0; i < 100; ++i) EXPECT_EQ(udp_payload(got[i]), pattern(20, i));
}

// A NIC gives single frames, and GRO joins those of a flow that come together: of UDP if the port's kernel
// socket, which reserves it, has asked for that (UDP_GRO).
TEST_F(Transfer, WhatGroHasJoinedComesWhole) {
  build({.offloads = false});
  must("ethtool -K eth0 gro on >/dev/null");
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto reservation = KernelSocket::udp(kOurs);
  auto peer = peer_socket(kPeer);
  segment(peer, kSegment);
  const Packet payload = pattern(10 * kSegment);
  ASSERT_TRUE(peer.send_to(kOurs, payload));
  EXPECT_EQ(receive(device, 10).size(), 10u) << "nobody has asked";
  const int on = 1;
  ASSERT_EQ(::setsockopt(reservation.fd(), IPPROTO_UDP, UDP_GRO, &on, sizeof on), 0);
  ASSERT_TRUE(peer.send_to(kOurs, payload));
  const auto got = receive_all(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0].bytes), payload);
  EXPECT_EQ(got[0].first.segment_size, kSegment);
  EXPECT_EQ(got[0].first.flags, kChecksumPartial);
  EXPECT_FALSE(reservation.receive(std::chrono::milliseconds(0)));
}

TEST_F(Transfer, ABurstOfSuperFramesIsNoLargerThanACacheAndTheRestWaits) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  segment(peer, kSegment);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(peer.send_to(kOurs, pattern(kSegments * kSegment)));
  std::array<FrameDesc, kBurst> burst;
  EXPECT_EQ(device->rx_burst(burst), 5u) << "256 KiB and what was begun";
  pollfd ready{device->info().sleep_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 1);
  EXPECT_EQ(receive(device, 15).size(), 15u);
}

TEST_F(Transfer, FramesThatCannotBeSentComeHomeCounted) {
  build();
  auto device = open();
  const std::array bad{FrameDesc{.slot = 70, .length = 1515},  // above the MTU
                       FrameDesc{.slot = 71, .length = 100, .offset = 65'535, .segment_size = 10},
                       FrameDesc{.slot = 72, .length = BulkDevice::kSlotSize, .offset = 1},
                       FrameDesc{.slot = 73, .length = 100, .flags = kChecksumPartial, .l4_offset = 34},
                       FrameDesc{.slot = 9999, .length = 100}};
  EXPECT_EQ(device->tx_burst(bad), bad.size());
  EXPECT_EQ(device.count(DropReason::device_frame_too_large), 1u);
  EXPECT_EQ(device.count(DropReason::device_bad_descriptor), 4u);
  std::array<FrameDesc, 8> home;
  ASSERT_EQ(device->reclaim(home), 4u);
  std::set<std::uint32_t> slots;
  for (std::size_t i = 0; i < 4; ++i) slots.insert(home[i].slot);
  EXPECT_EQ(slots, (std::set<std::uint32_t>{70, 71, 72, 73}));
  EXPECT_EQ(device.count(Counter::device_tx_frames), 0u);
}

TEST_F(Transfer, SleepingEndsWhenAFrameComes) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  EXPECT_TRUE(device->prepare_sleep());
  pollfd ready{device->info().sleep_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("wake up")));
  EXPECT_EQ(::poll(&ready, 1, static_cast<int>(kPatience.count())), 1);
  EXPECT_EQ(receive(device).size(), 1u);
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST_F(Transfer, WithoutSlotsFramesWaitAndThoseThatFindNoRoomAreCounted) {
  build();
  auto device = open();
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  constexpr std::size_t kMore = 1500;
  for (std::size_t i = 0; i < kMore; ++i) ASSERT_TRUE(peer.send_to(kOurs, bytes("too many")));
  std::array<FrameDesc, 64> burst;
  EXPECT_EQ(device->rx_burst(burst), 64u);
  EXPECT_EQ(device->rx_burst(burst), 0u) << "none is lent";
  std::array<std::uint32_t, 64> slots{};
  for (std::size_t i = 0; i < 64; ++i) slots[i] = burst[i].slot;
  ASSERT_EQ(device->refill(slots), 64u);
  const std::size_t rest = receive(device, kMore, std::chrono::milliseconds(50)).size();
  device->refresh_counters();
  const std::uint64_t dropped = device.count(Counter::bulk_rx_dropped);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(64 + rest + dropped, kMore);
}

TEST_F(Transfer, AFullQueueingDisciplineMakesTheDeviceBusyAndNothingIsLost) {
  build();
  // It holds far more than the send buffer.
  must("tc qdisc add dev eth0 root tbf rate 100mbit burst 100k limit 100m");
  auto device = open({.send_buffer = 200'000});
  auto peer = peer_socket(kPeer);
  const int room = 8 << 20;
  ASSERT_EQ(::setsockopt(peer.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), 0);
  const Packet payload = pattern(kSegments * kSegment);
  const Outgoing out = partial(testkit::udp_frame(kOut, kOurs, kPeer, payload), kSegment);
  std::size_t sent = 0;
  bool busy = false;
  for (int i = 0; i < 40 && !busy; ++i) {
    busy = !send(device, out);
    sent += busy ? 0 : 1;
  }
  EXPECT_TRUE(busy);
  EXPECT_GT(device.count(Counter::device_tx_busy), 0u);
  EXPECT_LT(sent, 12u);
  pollfd writable{device->info().sleep_fd, POLLOUT, 0};
  EXPECT_EQ(::poll(&writable, 1, static_cast<int>(kPatience.count())), 1);
  ASSERT_TRUE(send(device, out));
  ++sent;
  for (std::size_t i = 0; i < sent; ++i) EXPECT_EQ(drain(peer, kSegments), payload) << i;
  EXPECT_TRUE(device.port->slots_home());
}

TEST_F(Transfer, AnMtuOf9000WorksInBothDirections) {
  build({.mtu = 9000});
  auto device = open();
  EXPECT_EQ(device->info().mtu, 9000u);
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, pattern(8900)));
  EXPECT_EQ(udp_payload(receive(device).at(0)), pattern(8900));
  ASSERT_TRUE(device.port->send(testkit::udp_frame(kOut, kOurs, kPeer, pattern(8972))));
  EXPECT_EQ(peer.receive(), pattern(8972));
  const Packet payload = pattern(7 * 8900);
  ASSERT_TRUE(send(device, partial(testkit::udp_frame(kOut, kOurs, kPeer, payload), 8900)));
  EXPECT_EQ(drain(peer, 7), payload);
}

TEST_F(Transfer, ANewMtuIsFollowed) {
  build();
  auto device = open();
  must("ip link set eth0 mtu 1000");
  EXPECT_TRUE(device->prepare_sleep());
  ASSERT_TRUE(device.port->send(testkit::udp_frame(kOut, kOurs, kPeer, pattern(1000))));
  EXPECT_EQ(device.count(DropReason::device_frame_too_large), 1u);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(device.port->send(testkit::udp_frame(kOut, kOurs, kPeer, pattern(972))));
  EXPECT_EQ(peer.receive(), pattern(972));
}

}  // namespace
}  // namespace netchannel::device
