// The routed TAPs of the plan: a packet that one stack writes into its TAP comes out of the other side's TAP,
// through both kernels and the veth.
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <thread>

#include "control/mirror.hpp"
#include "lab_fixture.hpp"
#include "netchannel/bytes.hpp"

namespace netchannel::lab {
namespace {

constexpr MacAddress kStackMac{{0x02, 0, 0, 0, 0, 0x02}};

// A TAP in the thread's namespace; it is gone with the descriptor.
UniqueFd open_tap(const char* name) {
  UniqueFd fd{::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK)};
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (fd && ::ioctl(fd.get(), TUNSETIFF, &request) != 0) fd.reset();
  return fd;
}

struct Tap {
  UniqueFd fd;
  MacAddress kernel_mac;
};

// As a program on the `tap` path does it, with the stack's neighbour entry set by hand instead of by ARP.
Tap tap_in(const std::string& lab, Side side) {
  Tap tap;
  const TapPlan plan = Plan(lab).tap(side);
  const auto done = call_in(*open_namespace(lab, side), [&]() -> LabResult<void> {
    tap.fd = open_tap("nctap0");
    if (!tap.fd) return failure("no TAP", errno);
    if (auto configured = configure_tap("nctap0", plan); !configured) return configured;
    tap.kernel_mac = control::Mirror::open("nctap0").value().snapshot().link.mac;
    for (const IpAddress& stack : {plan.stack_v4.address, plan.stack_v6.address}) {
      if (auto known = run_or_fail(
              {"ip", "neigh", "add", stack.to_string(), "lladdr", to_string(kStackMac), "dev", "nctap0"});
          !known) {
        return known;
      }
    }
    return {};
  });
  EXPECT_TRUE(done.has_value()) << done.error().text;
  return tap;
}

constexpr std::array<std::byte, 4> kMark{std::byte{0xca}, std::byte{0xfe}, std::byte{0xba}, std::byte{0xbe}};

// Ethernet, IP of either version, UDP with a payload of kMark. Forwarders do not look at the UDP checksum.
std::vector<std::byte> packet(const MacAddress& to, const IpAddress& source, const IpAddress& destination) {
  const bool v4 = source.is_v4();
  const std::size_t ip_header = v4 ? 20 : 40, udp_length = 8 + kMark.size();
  std::vector<std::byte> frame(14 + ip_header + udp_length);
  std::memcpy(frame.data(), to.bytes.data(), 6);
  std::memcpy(frame.data() + 6, kStackMac.bytes.data(), 6);
  store_be16(frame, 12, v4 ? 0x0800 : 0x86dd);
  const MutableBytes ip = MutableBytes(frame).subspan(14);
  if (v4) {
    store_u8(ip, 0, 0x45);
    store_be16(ip, 2, static_cast<std::uint16_t>(ip_header + udp_length));
    store_u8(ip, 8, 64);
    store_u8(ip, 9, 17);
  } else {
    store_u8(ip, 0, 0x60);
    store_be16(ip, 4, static_cast<std::uint16_t>(udp_length));
    store_u8(ip, 6, 17);
    store_u8(ip, 7, 64);
  }
  const Bytes from = source.network_bytes(), dest = destination.network_bytes();
  std::memcpy(ip.data() + (v4 ? 12 : 8), from.data(), from.size());
  std::memcpy(ip.data() + (v4 ? 16 : 24), dest.data(), dest.size());
  if (v4) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2) sum += load_be16(ip, i);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    store_be16(ip, 10, static_cast<std::uint16_t>(~sum & 0xffff));
  }
  const MutableBytes udp = ip.subspan(ip_header);
  store_be16(udp, 0, 1000);
  store_be16(udp, 2, 2000);
  store_be16(udp, 4, static_cast<std::uint16_t>(udp_length));
  store_be16(udp, 6, 1);
  std::memcpy(udp.data() + 8, kMark.data(), kMark.size());
  return frame;
}

// Reads frames until one for `destination` ends in the mark; what else the kernel says (reports,
// solicitations) is passed over.
bool comes_out(const Tap& tap, const IpAddress& destination) {
  const std::size_t at = destination.is_v4() ? 14 + 16 : 14 + 24;
  const Bytes wanted = destination.network_bytes();
  for (int i = 0; i < 100; ++i) {
    std::array<std::byte, 2048> frame;
    const ssize_t n = ::read(tap.fd.get(), frame.data(), frame.size());
    if (n < 0) {
      pollfd ready{tap.fd.get(), POLLIN, 0};
      if (::poll(&ready, 1, 5000) != 1) return false;
      continue;
    }
    const auto size = static_cast<std::size_t>(n);
    if (size < at + wanted.size() + kMark.size()) continue;
    if (std::memcmp(frame.data() + at, wanted.data(), wanted.size()) == 0 &&
        std::memcmp(frame.data() + size - kMark.size(), kMark.data(), kMark.size()) == 0) {
      return true;
    }
  }
  return false;
}

int check_taps(const std::string& lab) {
  const Plan plan(lab);
  const Tap a = tap_in(lab, Side::a), b = tap_in(lab, Side::b);
  const TapPlan plan_a = plan.tap(Side::a), plan_b = plan.tap(Side::b);
  int good = 0;
  const std::pair<IpAddress, IpAddress> ways[] = {{plan_a.stack_v4.address, plan_b.stack_v4.address},
                                                  {plan_a.stack_v6.address, plan_b.stack_v6.address}};
  for (const auto& [of_a, of_b] : ways) {
    const auto there = packet(a.kernel_mac, of_a, of_b), back = packet(b.kernel_mac, of_b, of_a);
    if (::write(a.fd.get(), there.data(), there.size()) > 0 && comes_out(b, of_b)) ++good;
    if (::write(b.fd.get(), back.data(), back.size()) > 0 && comes_out(a, of_a)) ++good;
  }
  return good;
}

class TapTest : public LabFixture {
 protected:
  void SetUp() override {
    LabFixture::SetUp();
    if (IsSkipped()) return;
    if (::access("/dev/net/tun", R_OK | W_OK) != 0)
      GTEST_SKIP() << "SKIPPED: this kernel has no /dev/net/tun";
  }
};

TEST_F(TapTest, StacksBehindTapsOfBothSidesReachEachOther) { EXPECT_EQ(check_taps(lab()), 4); }

TEST_F(TapTest, AKernelSocketOfTheOtherSideReachesTheTapsKernelAddress) {
  const std::string name = lab();
  const Plan plan(name);
  const Tap tap = tap_in(name, Side::a);
  EXPECT_TRUE(sides_reach_each_other(name, plan.tap(Side::a).kernel_v4.address, plan.v4(Side::b).address));
  EXPECT_TRUE(sides_reach_each_other(name, plan.tap(Side::a).kernel_v6.address, plan.v6(Side::b).address));
}

TEST_F(TapTest, ConfiguringTwiceIsNoError) {
  const std::string name = lab();
  const Tap tap = tap_in(name, Side::a);
  const auto again = call_in(*open_namespace(name, Side::a),
                             [&] { return configure_tap("nctap0", Plan(name).tap(Side::a)); });
  EXPECT_TRUE(again.has_value()) << again.error().text;
}

TEST_F(TapTest, ConfiguringAMissingInterfaceTellsWhatIpSaid) {
  const std::string name = lab();
  const auto refused = call_in(*open_namespace(name, Side::a),
                               [&] { return configure_tap("nonesuch", Plan(name).tap(Side::a)); });
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text.find("nonesuch"), std::string::npos) << refused.error().text;
}

// ---- without privileges
// -------------------------------------------------------------------------------------------

// As the distributions have it, whatever this machine's /dev/net/tun is like; in the test's own mount
// namespace.
bool open_tun_to_all() {
  return ::mkdir("/run/tun", 0755) == 0 || errno == EEXIST
             ? shell("test -e /run/tun/tun || mknod -m 666 /run/tun/tun c 10 200") == 0 &&
                   ::mount("/run/tun/tun", "/dev/net/tun", nullptr, MS_BIND, nullptr) == 0
             : false;
}

TEST_F(TapTest, AllOfItWorksForNobodyInAUserNamespace) {
  ASSERT_TRUE(open_tun_to_all());
  const int ended_as = in_child([] {
    if (!become_nobody()) return 2;
    if (const auto possible = can_enter_user_namespace(); !possible) {
      std::fprintf(stderr, "SKIPPED: %s\n", possible.error().text.c_str());
      return 77;
    }
    if (const auto entered = enter_user_namespace(); !entered) {
      std::fprintf(stderr, "%s\n", entered.error().text.c_str());
      return 3;
    }
    const auto plan = up({.mtu = 4000, .queues = 2});
    if (!plan) {
      std::fprintf(stderr, "%s\n", plan.error().text.c_str());
      return 4;
    }
    if (!sides_reach_each_other("default", plan->v4(Side::a).address, plan->v4(Side::b).address)) return 5;
    if (!sides_reach_each_other("default", plan->v6(Side::a).address, plan->v6(Side::b).address)) return 6;
    if (check_taps("default") != 4) return 7;
    const auto child = spawn("default", Side::b, {"sh", "-c", "ip -o address | grep -q 10.77.1.2/24"});
    int ended = 1;
    if (!child || ::waitpid(*child, &ended, 0) != *child || ended != 0) return 8;
    const auto removed = down("default");
    if (!removed || !removed->existed || status("default").value().exists) return 9;
    return 0;
  });
  ::umount2("/dev/net/tun", MNT_DETACH);
  if (ended_as == 77) GTEST_SKIP() << "SKIPPED: this system forbids user namespaces (see above)";
  EXPECT_EQ(ended_as, 0);
}

TEST_F(TapTest, AForbiddenUserNamespaceIsToldWithItsSetting) {
  // Inside a user namespace its own limits can be set, without touching the machine's.
  const int status = in_child([] {
    if (!enter_user_namespace()) return 77;
    const UniqueFd limit{::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC)};
    if (!limit || ::write(limit.get(), "0", 1) != 1) return 2;
    const auto possible = can_enter_user_namespace();
    if (possible || possible.error().text.find("user.max_user_namespaces") == std::string::npos) return 3;
    const auto entered = enter_user_namespace();
    return !entered && entered.error().text == possible.error().text ? 0 : 4;
  });
  if (status == 77) GTEST_SKIP() << "SKIPPED: this system forbids user namespaces";
  EXPECT_EQ(status, 0);
}

TEST_F(TapTest, AProcessWithThreadsIsTold) {
  EXPECT_EQ(in_child([] {
              std::thread sleeper([] { ::pause(); });
              const auto entered = enter_user_namespace();
              const bool told = !entered && entered.error().text.find("thread") != std::string::npos;
              ::_exit(told ? 0 : 1);
              return 1;
            }),
            0);
}

}  // namespace
}  // namespace netchannel::lab
