// Opening, what can be in the way, and leaving: one clear error each, and nothing left behind by a kill -9.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "device/af_xdp/sockets.hpp"
#include "veth_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;

const FlowKey kClaim{Protocol::udp, {kOurV4, 7000}, {}};

class Open : public VethLab {
 protected:
  std::unique_ptr<FrameRegion> region_ = std::move(*FrameRegion::open({.slot_count = 256}));
  CounterPage counters_;

  Error error_of(const AfXdpOptions& options = {}) {
    auto device = try_open(options, *region_, counters_);
    return device ? Error{ErrorCode::closed, 0, "it opened"} : device.error();
  }
  // Runs `body` in a child process and returns its exit status.
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
  // A program that passes everything, attached by somebody else.
  static UniqueFd attach_foreign(std::uint32_t mode) {
    const std::array<bpf_insn, 2> pass{
        bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    const UniqueFd program(
        bpf_prog_load(BPF_PROG_TYPE_XDP, "foreign", "GPL", pass.data(), pass.size(), nullptr));
    bpf_link_create_opts options{};
    options.sz = sizeof(options);
    options.flags = mode;
    return UniqueFd(
        bpf_link_create(program.get(), static_cast<int>(::if_nametoindex("eth0")), BPF_XDP, &options));
  }
};

TEST_F(Open, TheInfoSaysWhatWasGot) {
  build();
  auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.name, "eth0");
  EXPECT_EQ(info.mode, "native copy");
  EXPECT_NE(info.why_not_better.find("zero-copy"), std::string::npos);
  EXPECT_EQ(info.mac, kOurMac);
  EXPECT_EQ(info.mtu, 1500u);
  EXPECT_EQ(info.max_tx_frame, 1514u);
  EXPECT_TRUE(info.virtual_link);
  EXPECT_FALSE(info.bare);
  EXPECT_FALSE(info.tx_checksum);
  EXPECT_GE(info.sleep_fd, 0);
  EXPECT_NE(device->steering(), nullptr);
}

TEST_F(Open, GenericIsTakenWhereTheDriverRefusesNativeAndTheInfoSaysWhy) {
  // A veth whose peer sends on more queues than we receive on has no native XDP.
  build({.queues = 1, .peer_queues = 2});
  auto device = open();
  EXPECT_EQ(device->info().mode, "generic copy");
  EXPECT_NE(device->info().why_not_better.find("transmit queues"), std::string::npos);
  EXPECT_EQ(error_of({.mode = XdpMode::native}).code, ErrorCode::device_busy);
  device.device.reset();
  EXPECT_EQ(error_of({.mode = XdpMode::native}).code, ErrorCode::not_supported);
}

TEST_F(Open, ZeroCopyWhereThereIsNoneIsNotSupported) {
  build();
  EXPECT_EQ(error_of({.copy = XdpCopy::zero_copy}).code, ErrorCode::not_supported);
  EXPECT_EQ(error_of({.mode = XdpMode::generic, .copy = XdpCopy::zero_copy}).code, ErrorCode::not_supported);
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

TEST_F(Open, NoSuchInterface) {
  build();
  EXPECT_EQ(error_of({.interface = "nowhere"}).code, ErrorCode::no_such_device);
  EXPECT_EQ(error_of({.interface = "a-name-that-is-far-too-long"}).code, ErrorCode::no_such_device);
}

TEST_F(Open, AnInterfaceThatIsDown) {
  build();
  must("ip link set eth0 down");
  EXPECT_EQ(error_of().code, ErrorCode::device_down);
}

TEST_F(Open, SlotsTooSmallForTheMtu) {
  build({.mtu = 9000});
  EXPECT_EQ(error_of().code, ErrorCode::invalid_argument);
}

TEST_F(Open, RingSizesThatAreNoPowersOfTwo) {
  build();
  EXPECT_EQ(error_of({.rx_ring = 1000}).code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of({.fill_ring = 0}).code, ErrorCode::invalid_argument);
}

class Foreign : public Open, public ::testing::WithParamInterface<std::uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Modes, Foreign, ::testing::Values(XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE),
                         [](const auto& mode) {
                           return mode.param == XDP_FLAGS_DRV_MODE ? "native" : "generic";
                         });

TEST_P(Foreign, AForeignProgramIsLeftAloneAndTheDeviceIsBusy) {
  build();
  const UniqueFd foreign = attach_foreign(GetParam());
  ASSERT_TRUE(foreign);
  for (const auto ours : {XdpMode::automatic, XdpMode::native, XdpMode::generic}) {
    EXPECT_EQ(error_of({.mode = ours}).code, ErrorCode::device_busy);
  }
  const auto seen = xdp_capabilities("eth0")->program;
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->name, "foreign");
  EXPECT_FALSE(seen->ours);
  EXPECT_EQ(seen->mode, GetParam() == XDP_FLAGS_DRV_MODE ? "native" : "generic");
}

TEST_F(Open, ASecondDeviceOnTheInterfaceIsBusy) {
  build();
  auto first = open();
  EXPECT_EQ(error_of().code, ErrorCode::device_busy);
  first.device.reset();
  EXPECT_TRUE(try_open({}, *region_, counters_));
}

TEST_F(Open, AQueueThatAnotherSocketServesIsBusy) {
  build({.queues = 2});
  CounterPage other_counters;
  auto other_region = std::move(*FrameRegion::open({.slot_count = 256}));
  AfXdpOptions copying;
  copying.copy = XdpCopy::copy;
  auto interface = *xdp_capabilities("eth0");
  const auto other = XskSockets::open(interface, copying, *other_region, other_counters);
  ASSERT_TRUE(other);
  EXPECT_EQ(error_of().code, ErrorCode::device_busy);
  EXPECT_FALSE(xdp_capabilities("eth0")->program) << "a failed open leaves no program";
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
  // CAP_SYS_ADMIN stands in for the first two.
  EXPECT_EQ(code_without({CAP_SYS_ADMIN, CAP_NET_ADMIN}), kNotPermitted);
  EXPECT_EQ(code_without({CAP_SYS_ADMIN, CAP_BPF}), kNotPermitted);
  EXPECT_EQ(code_without({CAP_NET_RAW}), kNotPermitted);
  EXPECT_EQ(code_without({CAP_SYS_ADMIN}), static_cast<int>(ErrorCode::closed)) << "it opens";
}

TEST_F(Open, ATooSmallMemlockLimitIsNamed) {
  build();
  EXPECT_EQ(in_child([this] {
              const rlimit none{4096, 4096};
              if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0 || !drop_capability(CAP_IPC_LOCK)) return 100;
              return static_cast<int>(error_of().code);
            }),
            static_cast<int>(ErrorCode::memlock_too_small));
}

TEST_F(Open, NothingIsPrintedWhenItFailsOrSucceeds) {
  build();
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  {
    auto device = try_open({}, *region_, counters_);
  }
  {
    const UniqueFd foreign = attach_foreign(XDP_FLAGS_DRV_MODE);
    error_of();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(Open, ClosingLeavesNoProgramAndNoDescriptor) {
  build();
  const auto descriptors = [] {
    int open_now = 0;
    for (int fd = 0; fd < 256; ++fd) open_now += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open_now;
  };
  const int before = descriptors();
  {
    auto device = open({.mode = XdpMode::native});
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_FALSE(xdp_capabilities("eth0")->program);
}

TEST_F(Open, EveryDescriptorIsCloseOnExec) {
  build({.queues = 2});
  std::array<bool, 256> before{};
  for (int fd = 0; fd < 256; ++fd) before[static_cast<std::size_t>(fd)] = ::fcntl(fd, F_GETFD) >= 0;
  auto device = open();
  for (int fd = 0; fd < 256; ++fd) {
    if (before[static_cast<std::size_t>(fd)]) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    EXPECT_TRUE(flags < 0 || (flags & FD_CLOEXEC) != 0) << fd;
  }
}

TEST_F(Open, ItCanBeOpenedAgainAndAgainAtOnce) {
  build({.queues = 2});
  for (int i = 0; i < 10; ++i) {
    auto device = open();
    ASSERT_NE(device.device, nullptr);
  }
}

class Killed : public Open, public ::testing::WithParamInterface<XdpMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, Killed, ::testing::Values(XdpMode::native, XdpMode::generic),
                         [](const auto& mode) {
                           return mode.param == XdpMode::native ? "native" : "generic";
                         });

TEST_P(Killed, AKilledProcessLeavesEverythingToTheKernelAndOpeningWorksAtOnce) {
  build();
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto device = try_open({.mode = GetParam()}, *region_, counters_);
    const bool good = device && (*device)->claim(kClaim);
    if (::write(ready[1], good ? "y" : "n", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_TRUE(xdp_capabilities("eth0")->program->ours);
  auto kernel = KernelSocket::udp(kClaim.local);
  std::optional<KernelSocket> peer;
  in_b([&] { peer.emplace(KernelSocket::udp({kPeerV4, 5000})); });
  ASSERT_TRUE(peer->send_to(kClaim.local, bytes("for the child")));
  EXPECT_FALSE(kernel.receive(std::chrono::milliseconds(20)));

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  bool gone = false;
  for (int i = 0; i < 100 && !gone; ++i) {
    gone = !xdp_capabilities("eth0")->program;
    if (!gone) ::usleep(10'000);
  }
  EXPECT_TRUE(gone);
  ASSERT_TRUE(peer->send_to(kClaim.local, bytes("for the kernel")));
  EXPECT_EQ(kernel.receive(), bytes("for the kernel"));

  auto again = open({.mode = GetParam()});
  ASSERT_TRUE(again->claim(kClaim));
  ASSERT_TRUE(peer->send_to(kClaim.local, bytes("for us")));
  EXPECT_EQ(receive(again).size(), 1u);
  for (const int end : ready) ::close(end);
}

TEST_F(Open, CapabilitiesNameWhatIsThere) {
  build({.queues = 3});
  const auto seen = xdp_capabilities("eth0");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->driver, "veth");
  EXPECT_TRUE(seen->virtual_driver);
  EXPECT_EQ(seen->rx_queues, 3u);
  EXPECT_EQ(seen->mtu, 1500u);
  EXPECT_EQ(seen->mac, kOurMac);
  EXPECT_TRUE(seen->up);
  EXPECT_FALSE(seen->program);
  EXPECT_FALSE(seen->traps.empty());
  const auto device = open();
  const auto open_now = xdp_capabilities("eth0");
  ASSERT_TRUE(open_now->program);
  EXPECT_TRUE(open_now->program->ours);
  EXPECT_EQ(open_now->program->mode, "native");
}

TEST_F(Open, CapabilitiesOfALoopbackAndOfNothing) {
  build();
  const auto loopback = xdp_capabilities("lo");
  ASSERT_TRUE(loopback);
  EXPECT_EQ(loopback->rx_queues, 1u);
  EXPECT_EQ(xdp_capabilities("").error().code, ErrorCode::no_such_device);
}

}  // namespace
}  // namespace netchannel::device
