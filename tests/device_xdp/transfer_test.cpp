// Frames in and out: order, sizes, queues, sleeping, and that every slot comes home and no frame goes
// uncounted.
#include <poll.h>

#include <array>
#include <initializer_list>
#include <set>

#include "veth_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;
using testkit::pattern;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const FlowKey kClaim{Protocol::udp, kOurs, {}};
constexpr std::uint32_t kTxSlot = 200;  // one of the transmit slots of a port of the default size

Packet frame_to_peer(Bytes payload) { return testkit::udp_frame({kPeerMac, kOurMac}, kOurs, kPeer, payload); }
Packet frame_to_us(Bytes payload) { return testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, payload); }

class Transfer : public VethLab, public ::testing::WithParamInterface<XdpMode> {
 protected:
  KernelSocket peer_socket(const Endpoint& local) {
    std::optional<KernelSocket> socket;
    in_b([&] { socket.emplace(KernelSocket::udp(local)); });
    return std::move(*socket);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Transfer, ::testing::Values(XdpMode::native, XdpMode::generic),
                         [](const auto& mode) {
                           return mode.param == XdpMode::native ? "native" : "generic";
                         });

TEST_P(Transfer, WhatIsSentReachesThePeersKernel) {
  build();
  auto device = open({.mode = GetParam()});
  auto peer = peer_socket(kPeer);
  for (const std::size_t size : {0UL, 1UL, 100UL, 1472UL}) {
    ASSERT_TRUE(device.port->send(frame_to_peer(pattern(size))));
    EXPECT_EQ(peer.receive(), pattern(size));
  }
  EXPECT_TRUE(device.port->slots_home());
  EXPECT_EQ(device.counters->read(Counter::device_tx_frames), 4u);
}

TEST_P(Transfer, ABurstKeepsItsOrder) {
  build();
  auto device = open({.mode = GetParam()});
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  for (std::uint8_t i = 0; i < 100; ++i) ASSERT_TRUE(peer.send_to(kOurs, pattern(20, i)));
  const auto got = receive(device, 100);
  ASSERT_EQ(got.size(), 100u);
  for (std::uint8_t i = 0; i < 100; ++i) EXPECT_EQ(udp_payload(got[i]), pattern(20, i));
}

TEST_P(Transfer, AnMtuOf9000WorksInBothDirections) {
  build({.mtu = 9000});
  auto device = open({.mode = GetParam()}, {.slot_size = AfXdpDevice::slot_size_for(9000)});
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  for (std::uint8_t i = 0; i < 50; ++i) {
    // Around the chunk's end, its multiples and the MTU.
    for (const std::size_t size : {1UL, 3797UL, 3798UL, 3799UL, 4054UL, 7638UL, 8900UL, 8972UL}) {
      ASSERT_TRUE(peer.send_to(kOurs, pattern(size, i)));
      const auto got = receive(device);
      ASSERT_EQ(got.size(), 1u) << size;
      ASSERT_EQ(udp_payload(got[0]), pattern(size, i)) << size;
      ASSERT_TRUE(device.port->send(frame_to_peer(pattern(size, i)))) << size;
      ASSERT_EQ(peer.receive(), pattern(size, i)) << size;
    }
  }
  EXPECT_TRUE(device.port->slots_home());
  EXPECT_EQ(device.port->rx_slots_here(), 0u);
}

TEST_P(Transfer, AnMtuOf9000IsNamedInTheInfo) {
  build({.mtu = 9000});
  auto device = open({.mode = GetParam()}, {.slot_size = AfXdpDevice::slot_size_for(9000)});
  EXPECT_EQ(device->info().mtu, 9000u);
  EXPECT_EQ(device->info().max_tx_frame, 9014u);
}

TEST_P(Transfer, ALargeFrameMayStandAnywhereInItsSlot) {
  build({.mtu = 9000});
  auto device = open({.mode = GetParam()}, {.slot_size = AfXdpDevice::slot_size_for(9000)});
  auto peer = peer_socket(kPeer);
  const Packet payload = pattern(8900);
  const Packet frame = frame_to_peer(payload);
  for (const std::uint16_t offset : std::initializer_list<std::uint16_t>{0, 1, 256, 4000, 4096, 7000}) {
    FrameDesc desc{.slot = kTxSlot, .length = static_cast<std::uint32_t>(frame.size()), .offset = offset};
    const MutableBytes at = device.port->region().bytes_of(desc);
    std::copy(frame.begin(), frame.end(), at.begin());
    ASSERT_EQ(device->tx_burst({&desc, 1}), 1u);
    EXPECT_EQ(peer.receive(), payload) << offset;
    std::array<FrameDesc, 8> home;
    ASSERT_EQ(device->reclaim(home), 1u) << offset;
    EXPECT_EQ(home[0].slot, kTxSlot);
  }
}

TEST_P(Transfer, ASlotSentTwiceComesHomeTwice) {
  build({.mtu = 9000});
  auto device = open({.mode = GetParam()}, {.slot_size = AfXdpDevice::slot_size_for(9000)});
  auto peer = peer_socket(kPeer);
  const Packet frame = frame_to_peer(pattern(8900));
  FrameDesc desc{.slot = kTxSlot, .length = static_cast<std::uint32_t>(frame.size()), .offset = 256};
  const MutableBytes at = device.port->region().bytes_of(desc);
  std::copy(frame.begin(), frame.end(), at.begin());
  const std::array twice{desc, desc};
  ASSERT_EQ(device->tx_burst(twice), 2u);
  EXPECT_EQ(peer.receive(), pattern(8900));
  EXPECT_EQ(peer.receive(), pattern(8900));
  std::array<FrameDesc, 8> home;
  EXPECT_EQ(device->reclaim(home), 2u);
}

TEST_P(Transfer, FramesThatCannotBeSentComeHomeCounted) {
  build();
  auto device = open({.mode = GetParam()});
  const std::array bad{FrameDesc{.slot = 130, .length = 1515}, FrameDesc{.slot = 131, .length = 13},
                       FrameDesc{.slot = 132, .length = 0},
                       FrameDesc{.slot = 133, .length = 100, .offset = 2000},
                       FrameDesc{.slot = 9999, .length = 100}};
  EXPECT_EQ(device->tx_burst(bad), bad.size());
  EXPECT_EQ(device.counters->read(DropReason::device_frame_too_large), 1u);
  EXPECT_EQ(device.counters->read(DropReason::device_bad_descriptor), 4u);
  std::array<FrameDesc, 8> home;
  ASSERT_EQ(device->reclaim(home), 4u);
  std::set<std::uint32_t> slots;
  for (std::size_t i = 0; i < 4; ++i) slots.insert(home[i].slot);
  EXPECT_EQ(slots, (std::set<std::uint32_t>{130, 131, 132, 133}));
  EXPECT_EQ(device.counters->read(Counter::device_tx_frames), 0u);
}

TEST_P(Transfer, SleepingEndsWhenAFrameComes) {
  build();
  auto device = open({.mode = GetParam()});
  ASSERT_TRUE(device->claim(kClaim));
  EXPECT_TRUE(device->prepare_sleep());
  pollfd ready{device->info().sleep_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("wake up")));
  EXPECT_EQ(::poll(&ready, 1, static_cast<int>(kPatience.count())), 1);
  EXPECT_FALSE(device->prepare_sleep());
  EXPECT_EQ(receive(device).size(), 1u);
  EXPECT_TRUE(device->prepare_sleep());
}

TEST_P(Transfer, EveryQueueIsServed) {
  build({.queues = 2});
  auto device = open({.mode = GetParam()});
  ASSERT_TRUE(device->claim(kClaim));
  // The peer's kernel spreads flows over its transmit queues, and each goes to our queue of the same number.
  std::size_t sent = 0;
  for (std::uint16_t port = 5000; port < 5064; ++port) {
    auto peer = peer_socket({kPeerV4, port});
    sent += peer.send_to(kOurs, bytes("one of many")) ? 1 : 0;
  }
  EXPECT_EQ(receive(device, sent).size(), sent);
  EXPECT_EQ(sent, 64u);
  EXPECT_EQ(device.port->rx_slots_here(), 0u);
}

TEST_P(Transfer, FillRingsOfAllQueuesAreFed) {
  build({.queues = 2});
  auto device = open({.mode = GetParam()}, {.rx_slots = 8});
  ASSERT_TRUE(device->claim(kClaim));
  // Far more than the slots, on whatever queue each comes.
  for (std::uint16_t port = 5000; port < 5200; ++port) {
    auto peer = peer_socket({kPeerV4, port});
    ASSERT_TRUE(peer.send_to(kOurs, bytes("one of many")));
    ASSERT_EQ(receive(device).size(), 1u) << port;
  }
}

TEST_P(Transfer, TheDeviceTakesNoMoreSlotsThanItsFillRingsHold) {
  build();
  auto device = open({.mode = GetParam(), .fill_ring = 64}, {.rx_slots = 100});
  EXPECT_EQ(device.port->rx_slots_here(), 36u);
}

TEST_P(Transfer, AFloodWithoutSlotsIsCountedByTheKernelAndShown) {
  build();
  auto device = open({.mode = GetParam()}, {.rx_slots = 16});
  ASSERT_TRUE(device->claim(kClaim));
  auto peer = peer_socket(kPeer);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(peer.send_to(kOurs, bytes("too many")));
  EXPECT_EQ(receive(device, 100, std::chrono::milliseconds(100)).size(), 16u);
  device->refresh_counters();
  EXPECT_EQ(device.counters->read(Counter::xdp_rx_dropped) + device.counters->read(Counter::xdp_rx_ring_full),
            84u);
}

// Two devices, ours and the peer's. What one sent, less what the kernel said it dropped, the other has.
TEST_P(Transfer, OfTenThousandFramesEachIsReceivedOrCounted) {
  build();
  auto ours = open({.mode = GetParam()}, {.rx_slots = 512, .tx_slots = 128});
  ASSERT_TRUE(ours->claim(kClaim));
  Opened peer;
  in_b([&] { peer = open({.mode = GetParam()}); });
  constexpr std::uint64_t kFrames = 10'000;
  std::uint64_t got = 0;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    const Packet frame = frame_to_us(pattern(100, static_cast<std::uint8_t>(i)));
    while (!peer.port->send(frame)) got += ours.port->receive().size();
    if (i % 100 == 0) got += ours.port->receive().size();
  }
  got += receive(ours, kFrames, std::chrono::milliseconds(100)).size();
  ours->refresh_counters();
  const CounterPage& to = *ours.counters;
  const std::uint64_t dropped = to.read(Counter::xdp_rx_dropped) + to.read(Counter::xdp_rx_ring_full);
  EXPECT_EQ(peer.counters->read(Counter::device_tx_frames), kFrames);
  EXPECT_EQ(got + dropped + peer.counters->read(Counter::device_tx_failed), kFrames);
  EXPECT_GT(got, kFrames / 2);
  EXPECT_TRUE(peer.port->slots_home());
}

// Bursts of 64 that nobody receives from: every completion comes home all the same, and no send is held up.
TEST_P(Transfer, ASilentReceiverDoesNotHoldUpTheSender) {
  build();
  auto ours = open({.mode = GetParam()}, {.rx_slots = 64});
  ASSERT_TRUE(ours->claim(kClaim));
  Opened peer;
  in_b([&] { peer = open({.mode = GetParam(), .tx_ring = 64, .completion_ring = 64}); });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(peer.port->send(frame_to_us(pattern(100)))) << i;
  }
  EXPECT_TRUE(peer.port->slots_home());
}

TEST_P(Transfer, WithoutReclaimTheDeviceTakesWhatItsCompletionRingHoldsAndSaysSo) {
  build();
  auto device = open({.mode = GetParam(), .completion_ring = 64}, {.tx_slots = 128});
  const Packet frame = frame_to_peer(pattern(10));
  std::vector<FrameDesc> burst;
  for (std::uint32_t slot = 128; slot < 228; ++slot) {
    burst.push_back({.slot = slot, .length = static_cast<std::uint32_t>(frame.size())});
    std::copy(frame.begin(), frame.end(), device.port->region().slot(slot).begin());
  }
  EXPECT_EQ(device->tx_burst(burst), 64u);
  EXPECT_EQ(device->tx_burst(std::span(burst).subspan(64)), 0u);
  EXPECT_EQ(device.counters->read(Counter::device_tx_busy), 2u);
  std::array<FrameDesc, 64> home;
  EXPECT_EQ(device->reclaim(home), 64u);
  EXPECT_EQ(device->tx_burst(std::span(burst).subspan(64)), 36u);
  EXPECT_EQ(device->reclaim(home), 36u);
}

TEST_P(Transfer, AnInterfaceThatGoesDownIsBusyAndGoesOnWhenItIsBack) {
  build();
  auto device = open({.mode = GetParam()});
  must("ip link set eth0 down");
  const Packet frame = frame_to_peer(pattern(10));
  ASSERT_TRUE(device.port->send(frame));   // the ring takes it
  EXPECT_FALSE(device.port->send(frame));  // and no more
  EXPECT_TRUE(device->prepare_sleep());    // no reason to spin
  must("ip link set eth0 up");
  auto peer = peer_socket(kPeer);
  for (int i = 0; i < 500 && !device.port->send(frame); ++i) ::poll(nullptr, 0, 10);
  EXPECT_EQ(peer.receive(), pattern(10));
  EXPECT_TRUE(device.port->slots_home());
}

TEST_P(Transfer, AnInterfaceThatIsDeletedIsSurvived) {
  build();
  auto device = open({.mode = GetParam()});
  ASSERT_TRUE(device->claim(kClaim));
  must("ip link del eth0");
  const Packet frame = frame_to_peer(pattern(10));
  for (int i = 0; i < 3; ++i) device.port->send(frame);
  EXPECT_TRUE(device.port->receive().empty());
  EXPECT_TRUE(device->prepare_sleep());
  device->refresh_counters();
  EXPECT_TRUE(device->unclaim(kClaim));
}

TEST_P(Transfer, WithoutNeedWakeupAndWithBusyPollingItWorksToo) {
  build();
  for (const bool busy_poll : {false, true}) {
    auto device = open({.mode = GetParam(), .need_wakeup = busy_poll, .busy_poll = busy_poll});
    ASSERT_TRUE(device->claim(kClaim));
    auto peer = peer_socket(kPeer);
    ASSERT_TRUE(peer.send_to(kOurs, bytes("in")));
    EXPECT_EQ(receive(device).size(), 1u);
    ASSERT_TRUE(device.port->send(frame_to_peer(bytes("out"))));
    EXPECT_EQ(peer.receive(), bytes("out"));
  }
}

}  // namespace
}  // namespace netchannel::device
