// The TAP with a real kernel at its other end: a packet socket on the interface is the kernel's side, so that
// each frame is seen as it is. In a user and network namespace of its own; needs no privileges.
#include "device/tap.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstring>
#include <fstream>

#include "testkit/namespace.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {
namespace {

using testkit::ethernet;
using testkit::kLocalExperiment;
using testkit::Packet;
using testkit::pattern;
using testkit::Port;

constexpr MacAddress kPeer{{0x02, 0, 0, 0, 0, 0x77}};

// The test body in a namespace; loud if there can be none.
#define IN_NAMESPACE(...)                                                                    \
  do {                                                                                       \
    const auto run = testkit::in_network_namespace([&]() -> int {                            \
      (__VA_ARGS__)();                                                                       \
      return ::testing::Test::HasFailure() ? 1 : 0;                                          \
    });                                                                                      \
    if (!run.possible) GTEST_SKIP() << "TAP is not tested here: " << run.why_not;            \
    EXPECT_EQ(run.exit_status, 0) << "the failure is printed above, from the child process"; \
  } while (false)

ifreq request_for(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return request;
}

// The kernel's end of the wire.
class KernelSide {
 public:
  explicit KernelSide(const char* name) : fd_(::socket(AF_PACKET, SOCK_RAW, htons(kLocalExperiment))) {
    ifreq request = request_for(name);
    EXPECT_EQ(::ioctl(fd_.get(), SIOCGIFINDEX, &request), 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(kLocalExperiment);
    address.sll_ifindex = request.ifr_ifindex;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  bool send(const Packet& frame) const {
    return ::send(fd_.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
  }
  Packet receive() const {
    Packet frame(65536);
    const auto got = ::recv(fd_.get(), frame.data(), frame.size(), MSG_DONTWAIT);
    frame.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return frame;
  }

 private:
  UniqueFd fd_;
};

void set_up(const char* name, bool up) {
  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request = request_for(name);
  ASSERT_EQ(::ioctl(control.get(), SIOCGIFFLAGS, &request), 0);
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  ASSERT_EQ(::ioctl(control.get(), SIOCSIFFLAGS, &request), 0);
}

MacAddress kernel_mac(const char* name) {
  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request = request_for(name);
  EXPECT_EQ(::ioctl(control.get(), SIOCGIFHWADDR, &request), 0);
  MacAddress mac;
  std::memcpy(mac.bytes.data(), request.ifr_hwaddr.sa_data, 6);
  return mac;
}

void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  ASSERT_EQ(::syscall(SYS_capset, &header, none.data()), 0);
}

// Of what has arrived, the frames of our own EtherType: the kernel says things of its own (IPv6 multicast
// reports).
std::vector<Packet> ours(Port& port, std::size_t least = 0) {
  std::vector<Packet> out;
  for (int tries = 0; tries < 1000 && (tries == 0 || out.size() < least); ++tries) {
    for (auto& frame : port.receive()) {
      if (frame.size() >= 14 && load_be16(frame, 12) == kLocalExperiment) out.push_back(std::move(frame));
    }
  }
  return out;
}

std::unique_ptr<TapDevice> open_tap(const TapOptions& options, Port& port) {
  auto tap = TapDevice::open(options, port.home());
  if (!tap) {
    ADD_FAILURE() << describe(tap.error());
    return nullptr;
  }
  port.attach(**tap);
  return std::move(*tap);
}

TEST(Tap, CarriesFramesBothWays) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const KernelSide kernel("nct0");
    std::vector<Packet> sent;
    for (std::uint8_t i = 0; i < 10; ++i) {
      sent.push_back(ethernet({tap->info().mac, kPeer}, kLocalExperiment, pattern(46u + i * 100, i)));
      ASSERT_TRUE(kernel.send(sent.back()));
    }
    EXPECT_EQ(ours(port, 10), sent);

    const Packet reply = ethernet({kPeer, tap->info().mac}, kLocalExperiment, pattern(1500, 99));
    ASSERT_TRUE(port.send(reply));
    EXPECT_EQ(kernel.receive(), reply);
    EXPECT_TRUE(port.slots_home());
    EXPECT_EQ(port.counters().read(Counter::device_tx_frames), 1u);
    EXPECT_EQ(port.counters().read(Counter::device_tx_kicks), 1u);
    EXPECT_GE(port.counters().read(Counter::device_rx_frames), 10u);
    EXPECT_GT(port.counters().read(Counter::device_rx_wakeups), 10u)
        << "one read a frame and one that finds nothing";
  });
}

TEST(Tap, DescribesItself) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0", .mtu = 1400}, port);
    ASSERT_TRUE(tap);
    const DeviceInfo& info = tap->info();
    EXPECT_EQ(info.name, "nct0");
    EXPECT_EQ(info.mtu, 1400u);
    EXPECT_EQ(info.max_tx_frame, 1414u);
    EXPECT_TRUE(info.bare);
    EXPECT_FALSE(info.tx_checksum);
    EXPECT_GE(info.sleep_fd, 0);
    EXPECT_NE(info.mac, kernel_mac("nct0")) << "two stations on one wire";
    EXPECT_EQ(info.mac.bytes[0] & 3, 2) << "locally administered, unicast";
  });
}

TEST(Tap, OurOwnMacDiffersFromTimeToTime) {
  IN_NAMESPACE([] {
    Port one, two;
    const auto a = open_tap({.name = "nct0"}, one), b = open_tap({.name = "nct1"}, two);
    ASSERT_TRUE(a && b);
    EXPECT_NE(a->info().mac, b->info().mac);
  });
}

TEST(Tap, TakesAGivenMacUnlessItIsTheKernels) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0", .mac = kPeer}, port);
    ASSERT_TRUE(tap);
    EXPECT_EQ(tap->info().mac, kPeer);
    auto multicast = TapDevice::open({.name = "nct1", .mac = MacAddress{{1, 0, 0, 0, 0, 1}}}, port.home());
    ASSERT_FALSE(multicast);
    EXPECT_EQ(multicast.error().code, ErrorCode::invalid_argument);
  });
}

TEST(Tap, WakesWhoeverSleepsOnItOnlyWhenAFrameIsThere) {
  IN_NAMESPACE([] {
    std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << "1";
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const KernelSide kernel("nct0");
    ours(port);
    pollfd sleeper{tap->info().sleep_fd, POLLIN, 0};
    EXPECT_EQ(::poll(&sleeper, 1, 0), 0);
    ASSERT_TRUE(kernel.send(ethernet({tap->info().mac, kPeer}, kLocalExperiment, pattern(46))));
    EXPECT_EQ(::poll(&sleeper, 1, 5000), 1);
    EXPECT_EQ(ours(port, 1).size(), 1u);
    EXPECT_EQ(::poll(&sleeper, 1, 0), 0);
  });
}

TEST(Tap, DropsAndCountsAFrameThatIsLongerThanItsSlots) {
  IN_NAMESPACE([] {
    Port port({.slot_size = 512});
    const auto tap = open_tap({.name = "nct0", .mtu = 400}, port);
    ASSERT_TRUE(tap);
    // The kernel's side may raise its MTU behind our back.
    const UniqueFd control(::socket(AF_INET, SOCK_DGRAM, 0));
    ifreq request = request_for("nct0");
    request.ifr_mtu = 1500;
    ASSERT_EQ(::ioctl(control.get(), SIOCSIFMTU, &request), 0);
    const KernelSide kernel("nct0");
    const Packet fits = ethernet({tap->info().mac, kPeer}, kLocalExperiment, pattern(448 - 14));
    const Packet over = ethernet({tap->info().mac, kPeer}, kLocalExperiment, pattern(449 - 14));
    ASSERT_TRUE(kernel.send(over));
    ASSERT_TRUE(kernel.send(fits));
    EXPECT_EQ(ours(port, 1), std::vector<Packet>{fits});
    EXPECT_EQ(port.counters().read(DropReason::device_frame_too_large), 1u);
    EXPECT_EQ(port.rx_slots_here(), 0u);
  });
}

TEST(Tap, SpreadsAFrameOverSlotsWhereTheMtuNeedsIt) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0", .mtu = 9000}, port);
    ASSERT_TRUE(tap);
    const KernelSide kernel("nct0");
    const Packet jumbo = ethernet({tap->info().mac, kPeer}, kLocalExperiment, pattern(9000));
    ASSERT_TRUE(kernel.send(jumbo));
    EXPECT_EQ(ours(port, 1), std::vector<Packet>{jumbo});
    ASSERT_TRUE(port.send(jumbo));
    EXPECT_EQ(kernel.receive(), jumbo);
    EXPECT_TRUE(port.slots_home());
    EXPECT_EQ(port.rx_slots_here(), 0u);
  });
}

TEST(Tap, RefusesAFrameAboveItsMtu) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const KernelSide kernel("nct0");
    ASSERT_TRUE(port.send(ethernet({kPeer, tap->info().mac}, kLocalExperiment, pattern(1501))));  // consumed
    EXPECT_EQ(port.counters().read(DropReason::device_frame_too_large), 1u);
    EXPECT_TRUE(kernel.receive().empty());
    EXPECT_TRUE(port.slots_home());
  });
}

TEST(Tap, CountsWhatItCannotSendWhileTheInterfaceIsDownAndGoesOnAfterwards) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const Packet frame = ethernet({kPeer, tap->info().mac}, kLocalExperiment, pattern(46));
    set_up("nct0", false);
    ASSERT_TRUE(port.send(frame));
    ASSERT_TRUE(port.send(frame));
    EXPECT_EQ(port.counters().read(Counter::device_link_down), 2u);
    EXPECT_EQ(port.counters().read(Counter::device_tx_frames), 0u);
    EXPECT_TRUE(port.slots_home());
    EXPECT_TRUE(tap->alive());
    pollfd sleeper{tap->info().sleep_fd, POLLIN, 0};
    ours(port);
    EXPECT_EQ(::poll(&sleeper, 1, 0), 0) << "a pulled cable wakes nobody";

    set_up("nct0", true);
    const KernelSide kernel("nct0");
    ASSERT_TRUE(port.send(frame));
    EXPECT_EQ(kernel.receive(), frame);
  });
}

TEST(Tap, FallsSilentWhenTheInterfaceIsDeleted) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const int sleep_fd = tap->info().sleep_fd;
    ASSERT_EQ(std::system("ip link delete nct0"), 0);
    pollfd sleeper{sleep_fd, POLLIN, 0};
    EXPECT_EQ(::poll(&sleeper, 1, 0), 1) << "the sleeper is woken once";
    EXPECT_TRUE(ours(port).empty());
    EXPECT_FALSE(tap->alive());
    EXPECT_EQ(tap->info().mode, "tap (deleted)");
    EXPECT_EQ(tap->info().sleep_fd, sleep_fd);
    EXPECT_EQ(::poll(&sleeper, 1, 0), 0) << "and then not again";

    const auto reads = port.counters().read(Counter::device_rx_wakeups);
    ASSERT_TRUE(port.send(ethernet({kPeer, tap->info().mac}, kLocalExperiment, pattern(46))));
    EXPECT_TRUE(ours(port).empty());
    EXPECT_EQ(port.counters().read(Counter::device_link_down), 1u);
    EXPECT_EQ(port.counters().read(Counter::device_rx_wakeups), reads) << "no system call for a dead device";
    EXPECT_TRUE(port.slots_home());
  });
}

TEST(Tap, NoticesTheDeletionWhenItSends) {
  IN_NAMESPACE([] {
    Port port;
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    ASSERT_EQ(std::system("ip link delete nct0"), 0);
    ASSERT_TRUE(port.send(ethernet({kPeer, tap->info().mac}, kLocalExperiment, pattern(46))));
    EXPECT_FALSE(tap->alive());
    EXPECT_EQ(port.counters().read(Counter::device_link_down), 1u);
  });
}

TEST(Tap, TheInterfaceGoesWithTheDevice) {
  IN_NAMESPACE([] {
    Port port;
    auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    const UniqueFd control(::socket(AF_INET, SOCK_DGRAM, 0));
    ifreq request = request_for("nct0");
    EXPECT_EQ(::ioctl(control.get(), SIOCGIFFLAGS, &request), 0);
    tap.reset();
    EXPECT_NE(::ioctl(control.get(), SIOCGIFFLAGS, &request), 0);
  });
}

TEST(Tap, SaysClearlyWhyItCannotOpen) {
  IN_NAMESPACE([] {
    Port port;
    const auto code_of = [&](const TapOptions& options) {
      auto tap = TapDevice::open(options, port.home());
      return tap ? "opened" : std::string(to_string(tap.error().code));
    };
    const auto tap = open_tap({.name = "nct0"}, port);
    ASSERT_TRUE(tap);
    EXPECT_EQ(code_of({.name = "nct0"}), "device_busy");
    EXPECT_EQ(code_of({.name = "lo"}), "invalid_argument");
    EXPECT_EQ(code_of({.name = ""}), "invalid_argument");
    EXPECT_EQ(code_of({.name = "a-name-of-16-char"}), "invalid_argument");
    EXPECT_EQ(code_of({.name = "nct1", .mtu = 10}), "invalid_argument");
    EXPECT_EQ(code_of({.name = "nct1", .rx_headroom = 4096}), "invalid_argument");
    drop_capabilities();
    EXPECT_EQ(code_of({.name = "nct1"}), "not_permitted");
  });
}

}  // namespace
}  // namespace netchannel::device
