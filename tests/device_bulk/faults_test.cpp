// What goes wrong under the device: headers that lie, frames longer than a slot, an interface or a TAP that
// goes down or away. Each is counted or said, and nothing hangs.
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>

#include "bulk_lab.hpp"
#include "device/bulk/uapi.hpp"
#include "device/bulk/vnet_header.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;
using testkit::pattern;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const FlowKey kClaim{Protocol::udp, kOurs, {}};

class Faults : public BulkLab {
 protected:
  void SetUp() override {
    BulkLab::SetUp();
    if (IsSkipped()) return;
    build();
    device_ = open();
    ASSERT_TRUE(device_->claim(kClaim));
  }
  static Packet to_peer() {
    return testkit::udp_frame({kPeerMac, kOurMac}, kOurs, kPeer, bytes("to the peer"));
  }
  // Puts a socket in the TAP's place, whose other end says what no kernel would.
  void replace_tap() {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ASSERT_GE(::dup3(ends[0], device_->info().sleep_fd, O_CLOEXEC), 0);
    ::close(ends[0]);
    liar_.reset(ends[1]);
    const int room = 1 << 20;
    ASSERT_EQ(::setsockopt(liar_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), 0);
  }
  void lie(const uapi::VirtioNetHeader& header, const Packet& frame) {
    const auto raw = std::bit_cast<VnetHeader>(header);
    Packet message(raw.begin(), raw.end());
    message.insert(message.end(), frame.begin(), frame.end());
    lie(message);
  }
  void lie(const Packet& message) {
    ASSERT_EQ(::send(liar_.get(), message.data(), message.size(), 0), static_cast<ssize_t>(message.size()));
  }
  Opened device_;
  UniqueFd liar_;
};

TEST_F(Faults, AHeaderThatLiesIsCountedAndItsSlotServesTheNextFrame) {
  replace_tap();
  const Packet honest = testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, pattern(5000));
  const uapi::VirtioNetHeader good{.flags = uapi::kNeedsChecksum,
                                   .gso_type = uapi::kGsoUdpL4,
                                   .hdr_len = 42,
                                   .gso_size = 1400,
                                   .csum_start = 34,
                                   .csum_offset = 6};
  auto zero = good, past = good, start = good, offset = good, type = good;
  zero.gso_size = 0;
  past.hdr_len = 6000;
  start.csum_start = 60'000;
  offset.csum_offset = 5100;
  type.gso_type = 99;
  for (const auto& bad : {zero, past, start, offset, type}) lie(bad, honest);
  lie(good, honest);
  const auto got = receive_all(device_);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, honest);
  EXPECT_EQ(got[0].first.segment_size, 1400);
  EXPECT_EQ(device_.count(DropReason::device_bad_vnet_header), 5u);
  EXPECT_EQ(device_.port->rx_slots_here(), 0u);
}

TEST_F(Faults, AFrameTooShortOrTooLongIsCounted) {
  replace_tap();
  lie(pattern(1));
  lie(pattern(kVnetHeaderSize));
  lie({}, pattern(13));
  lie({}, pattern(BulkDevice::kSlotSize));
  lie({}, pattern(BulkDevice::kSlotSize - 64));
  lie({}, pattern(BulkDevice::kSlotSize - 65));
  const auto got = receive_all(device_);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes.size(), BulkDevice::kSlotSize - 65u);
  EXPECT_EQ(device_.count(DropReason::eth_truncated), 3u);
  EXPECT_EQ(device_.count(DropReason::device_frame_too_large), 2u);
}

TEST_F(Faults, AFloodOfLiesEndsEachBurst) {
  replace_tap();
  constexpr std::size_t kLies = 100;
  for (std::size_t i = 0; i < kLies; ++i) lie({.gso_type = 99}, pattern(60));
  std::array<FrameDesc, 64> burst;
  EXPECT_EQ(device_->rx_burst(burst), 0u);
  EXPECT_EQ(device_.count(DropReason::device_bad_vnet_header), burst.size());
  EXPECT_EQ(device_->rx_burst(burst), 0u);
  EXPECT_EQ(device_.count(DropReason::device_bad_vnet_header), kLies);
}

TEST_F(Faults, AnInterfaceThatGoesDownIsCountedAndGoesOnWhenItIsBack) {
  must("ip link set eth0 down");
  EXPECT_TRUE(device_->prepare_sleep());
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(device_.count(Counter::device_link_down), 1u);
  EXPECT_TRUE(device_->alive());
  must("ip link set eth0 up");
  auto peer = peer_socket(kPeer);
  std::optional<Packet> got;
  for (int i = 0; i < 100 && !got; ++i) {
    EXPECT_TRUE(device_->prepare_sleep());
    ASSERT_TRUE(device_.port->send(to_peer()));
    got = peer.receive(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(got, bytes("to the peer"));
  ASSERT_TRUE(peer.send_to(kOurs, bytes("to us")));
  EXPECT_EQ(receive(device_).size(), 1u);
  EXPECT_TRUE(device_.port->slots_home());
}

TEST_F(Faults, ASenderWhoNeverSleepsNoticesThatTheInterfaceIsDown) {
  must("ip link set eth0 down");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_GE(device_.count(Counter::device_link_down), 60u);
}

TEST_F(Faults, AnInterfaceThatIsDeletedEndsTheDevice) {
  const std::string tap = device_->tap_name();
  must("ip link del eth0");
  EXPECT_TRUE(device_->prepare_sleep());
  EXPECT_FALSE(device_->alive());
  EXPECT_NE(device_->info().why_not_better.find("interface was deleted"), std::string::npos);
  EXPECT_EQ(::if_nametoindex(tap.c_str()), 0u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(device_.count(Counter::device_link_down), 3u);
  EXPECT_TRUE(device_.port->receive().empty());
  pollfd sleeper{device_->info().sleep_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&sleeper, 1, 0), 0);
  device_->refresh_counters();
  EXPECT_TRUE(device_->unclaim(kClaim));
  EXPECT_TRUE(device_.port->slots_home());
}

TEST_F(Faults, AnInterfaceThatLeavesTheNamespaceIsTheKernelsThere) {
  auto elsewhere = testkit::current_namespace();
  in_b([&] { elsewhere = testkit::current_namespace(); });
  must("ip link set eth0 name moved0 netns " + path_of_b());
  EXPECT_TRUE(device_->prepare_sleep());
  EXPECT_FALSE(device_->alive());
}

// The kernel announces it in a message of the type that a deletion has.
TEST_F(Faults, AnInterfaceThatLeavesABridgeIsStillThere) {
  must("ip link add br0 type bridge && ip link set eth0 master br0 && ip link set eth0 nomaster");
  EXPECT_TRUE(device_->prepare_sleep());
  EXPECT_TRUE(device_->alive());
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(peer.receive(), bytes("to the peer"));
}

TEST_F(Faults, ATapThatIsDeletedEndsTheDeviceAndLeavesItsFlowsToTheKernel) {
  must("ip link del " + device_->tap_name());
  pollfd sleeper{device_->info().sleep_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&sleeper, 1, 0), 1) << "the sleeper is woken once";
  EXPECT_TRUE(device_.port->receive().empty());
  EXPECT_FALSE(device_->alive());
  EXPECT_EQ(::poll(&sleeper, 1, 0), 0) << "and then not again";
  EXPECT_NE(device_->info().why_not_better.find("TAP was deleted"), std::string::npos);
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(device_.count(Counter::device_link_down), 1u);
  auto kernel = KernelSocket::udp(kOurs);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("the kernel's again")));
  EXPECT_EQ(kernel.receive(), bytes("the kernel's again"));
}

TEST_F(Faults, TheDeletionOfTheTapIsNoticedWhenSending) {
  must("ip link del " + device_->tap_name());
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_FALSE(device_->alive());
  EXPECT_EQ(device_.count(Counter::device_link_down), 1u);
}

TEST_F(Faults, ATapThatIsSetDownIsCountedAndGoesOnWhenItIsBack) {
  must("ip link set " + device_->tap_name() + " down");
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(device_.count(Counter::device_link_down), 1u);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("lost")));
  EXPECT_TRUE(stays_silent(device_));
  must("ip link set " + device_->tap_name() + " up");
  ASSERT_TRUE(device_.port->send(to_peer()));
  EXPECT_EQ(peer.receive(), bytes("to the peer"));
  ASSERT_TRUE(peer.send_to(kOurs, bytes("found")));
  EXPECT_EQ(receive(device_).size(), 1u);
}

}  // namespace
}  // namespace netchannel::device
