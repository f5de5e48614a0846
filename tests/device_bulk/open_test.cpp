// Opening, what can be in the way, and leaving: one clear error each, and nothing left behind by a kill -9.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "bulk_lab.hpp"
#include "device/bulk/uapi.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;

const FlowKey kClaim{Protocol::udp, {kOurV4, 7000}, {}};

class Open : public BulkLab {
 protected:
  std::unique_ptr<FrameRegion> region_ =
      std::move(*FrameRegion::open({.slot_size = BulkDevice::kSlotSize, .slot_count = 16}));
  CounterPage counters_;

  Error error_of(const BulkOptions& options = {}) {
    auto device = try_open(options, {*region_, counters_});
    return device ? Error{ErrorCode::closed, 0, "it opened"} : device.error();
  }
  static int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool drop_capability(int capability) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
    auto& word = data[static_cast<std::size_t>(capability) / 32];
    const std::uint32_t bit = 1U << (capability % 32);
    word.effective &= ~bit, word.permitted &= ~bit, word.inheritable &= ~bit;
    return ::syscall(SYS_capset, &header, data.data()) == 0;
  }
  // Programs at eth0's tcx ingress hook.
  static std::uint32_t programs_attached() {
    std::uint32_t flags = 0, count = 0;
    std::array<std::uint32_t, 64> ids{};
    count = static_cast<std::uint32_t>(ids.size());
    if (bpf_prog_query(static_cast<int>(::if_nametoindex("eth0")), uapi::kTcxIngress, 0, &flags, ids.data(),
                       &count) != 0) {
      return 0;
    }
    return count;
  }
  static int descriptors() {
    int open_now = 0;
    for (int fd = 0; fd < 256; ++fd) open_now += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open_now;
  }
};

TEST_F(Open, TheInfoSaysWhatWasGot) {
  build();
  auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.name, "eth0");
  EXPECT_EQ(info.mode, "bulk");
  EXPECT_EQ(info.why_not_better, "");
  EXPECT_EQ(info.mac, kOurMac);
  EXPECT_EQ(info.mtu, 1500u);
  EXPECT_EQ(info.max_tx_frame, 65'535u);
  EXPECT_TRUE(info.tx_checksum);
  EXPECT_FALSE(info.virtual_link) << "a partial checksum comes marked";
  EXPECT_FALSE(info.bare);
  EXPECT_GE(info.sleep_fd, 0);
  EXPECT_NE(device->steering(), nullptr);
  EXPECT_EQ(programs_attached(), 1u);
}

TEST_F(Open, AnInterfaceThatTakesSmallerSuperFramesLowersTheLimit) {
  build();
  must("ip link set eth0 gso_max_size 20000");
  EXPECT_EQ(open()->info().max_tx_frame, 19'999u);
  must("ip link set eth0 gso_max_size 1000");
  EXPECT_EQ(open()->info().max_tx_frame, 1514u);
}

// Forwarding would make the kernel join the routers' groups and report them.
TEST_F(Open, TheKernelIsSilentOnTheTap) {
  build();
  must("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
  auto device = open();
  const std::string shown = "ip addr show dev " + device->tap_name();
  EXPECT_EQ(testkit::shell(shown + " | grep -q inet"), 1);
  EXPECT_EQ(testkit::shell(shown + " | grep -q NOARP"), 0);
  EXPECT_EQ(testkit::shell(shown + " | grep -q ',UP'"), 0);
  EXPECT_TRUE(receive(device, 1, std::chrono::milliseconds(200)).empty());
}

TEST_F(Open, NoSuchInterface) {
  build();
  EXPECT_EQ(error_of({.interface = "nowhere"}).code, ErrorCode::no_such_device);
  EXPECT_EQ(error_of({.interface = "a-name-that-is-far-too-long"}).code, ErrorCode::no_such_device);
}

TEST_F(Open, AnInterfaceThatIsDownOrNoEthernet) {
  build();
  EXPECT_EQ(error_of({.interface = "lo"}).code, ErrorCode::not_supported);
  must("ip link set eth0 down");
  EXPECT_EQ(error_of().code, ErrorCode::device_down);
}

TEST_F(Open, SlotsOrHeadroomTooSmall) {
  build();
  const auto small = std::move(*FrameRegion::open({.slot_size = 64 << 10, .slot_count = 16}));
  const auto device = try_open({}, {*small, counters_});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of({.rx_headroom = 11}).code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of({.rx_headroom = 65'535}).code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of({.rx_headroom = 12}).code, ErrorCode::closed);
}

TEST_F(Open, AProgramWithAFastTimerCanOpenIt) {
  build();
  struct sigaction action{}, before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 100}, {0, 100}}, never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const Error error = error_of();
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(error.code, ErrorCode::closed) << describe(error);
}

TEST_F(Open, WithoutPrivilegesItSaysSo) {
  build();
  const auto code_without = [this](std::initializer_list<int> capabilities) {
    return in_child([this, capabilities] {
      for (const int capability : capabilities) {
        if (!drop_capability(capability)) return 100;
      }
      return static_cast<int>(error_of().code);
    });
  };
  constexpr int kNotPermitted = static_cast<int>(ErrorCode::not_permitted);
  // CAP_SYS_ADMIN stands in for both.
  EXPECT_EQ(code_without({CAP_SYS_ADMIN, CAP_NET_ADMIN}), kNotPermitted);
  EXPECT_EQ(code_without({CAP_SYS_ADMIN, CAP_BPF}), kNotPermitted);
  EXPECT_EQ(code_without({CAP_SYS_ADMIN}), static_cast<int>(ErrorCode::closed)) << "it opens";
}

TEST_F(Open, NothingIsPrintedWhenItFailsOrSucceeds) {
  build();
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(error_of().code, ErrorCode::closed);
  EXPECT_EQ(error_of({.interface = "lo"}).code, ErrorCode::not_supported);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(Open, ClosingLeavesNoProgramNoTapAndNoDescriptor) {
  build();
  const int before = descriptors();
  std::string tap;
  {
    auto device = open();
    tap = device->tap_name();
    EXPECT_NE(::if_nametoindex(tap.c_str()), 0u);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::if_nametoindex(tap.c_str()), 0u);
  EXPECT_EQ(programs_attached(), 0u);
}

TEST_F(Open, EveryDescriptorIsCloseOnExec) {
  build();
  std::array<bool, 256> before{};
  for (int fd = 0; fd < 256; ++fd) before[static_cast<std::size_t>(fd)] = ::fcntl(fd, F_GETFD) >= 0;
  auto device = open();
  for (int fd = 0; fd < 256; ++fd) {
    if (before[static_cast<std::size_t>(fd)]) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    EXPECT_TRUE(flags < 0 || (flags & FD_CLOEXEC) != 0) << fd;
  }
}

TEST_F(Open, AKilledProcessLeavesEverythingToTheKernelAndOpeningWorksAtOnce) {
  build();
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto device = try_open({}, {*region_, counters_});
    std::array<char, IFNAMSIZ> name{};
    if (device && (*device)->claim(kClaim)) (*device)->tap_name().copy(name.data(), name.size() - 1);
    if (::write(ready[1], name.data(), name.size()) != static_cast<ssize_t>(name.size())) ::_exit(1);
    for (;;) ::pause();
  }
  std::array<char, IFNAMSIZ> tap{};
  ASSERT_EQ(::read(ready[0], tap.data(), tap.size()), static_cast<ssize_t>(tap.size()));
  ASSERT_NE(tap[0], 0);
  EXPECT_NE(::if_nametoindex(tap.data()), 0u);
  EXPECT_EQ(programs_attached(), 1u);
  auto kernel = KernelSocket::udp(kClaim.local);
  auto peer = peer_socket({kPeerV4, 5000});
  ASSERT_TRUE(peer.send_to(kClaim.local, bytes("for the child")));
  EXPECT_FALSE(kernel.receive(std::chrono::milliseconds(20)));

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  bool gone = false;
  for (int i = 0; i < 100 && !gone; ++i) {
    gone = ::if_nametoindex(tap.data()) == 0 && programs_attached() == 0;
    if (!gone) ::usleep(10'000);
  }
  EXPECT_TRUE(gone);
  ASSERT_TRUE(peer.send_to(kClaim.local, bytes("for the kernel")));
  EXPECT_EQ(kernel.receive(), bytes("for the kernel"));

  auto again = open();
  ASSERT_TRUE(again->claim(kClaim));
  ASSERT_TRUE(peer.send_to(kClaim.local, bytes("for us")));
  EXPECT_EQ(receive(again).size(), 1u);
  for (const int end : ready) ::close(end);
}

}  // namespace
}  // namespace netchannel::device
