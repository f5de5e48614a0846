#include "testkit/wan_pair.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>

namespace netchannel::testkit {

void WanPair::TearDown() {
  wan_.reset();
  VethPair::TearDown();
}

void WanPair::in_between(const std::function<void()>& what) {
  const UniqueFd here = current_namespace();
  ASSERT_EQ(::setns(between_.get(), CLONE_NEWNET), 0);
  what();
  ASSERT_EQ(::setns(here.get(), CLONE_NEWNET), 0);
}

void WanPair::build(const device::LinkOptions& path, bool tap) {
  between_ = current_namespace();
  const std::string mtu = " mtu " + std::to_string(path.mtu);
  if (tap) must("ip tuntap add dev nctap0 mode tap && ip link set nctap0" + mtu);
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  make_sides();
  const auto join = [&](const char* mac, const char* other) {
    must(std::string("ip link add eth0 address ") + mac + mtu + " type veth peer name " + other + mtu +
         " netns " + namespace_path(between_));
  };
  const auto ready = [](const IpAddress& v4, const IpAddress& v6) {
    set_up(v4, v6);
    offloads_off();
  };
  if (!tap) {
    join("02:00:00:00:00:0a", "x0");
    ready(kOurV4, kOurV6);
  }
  in_b([&] {
    join("02:00:00:00:00:0b", "x1");
    ready(kPeerV4, kPeerV6);
  });
  in_between([&] {
    const std::string left_name = tap ? "nctap0" : "x0";
    // The kernel between is no host: it must not speak up on either wire.
    for (const auto& name : {left_name, std::string("x1")})
      must("sysctl -qw net.ipv6.conf." + name + ".disable_ipv6=1 && ip link set " + name + " up");
    UniqueFd left = packet_port(left_name), right = packet_port("x1");
    ASSERT_TRUE(left && right) << "no packet socket: " << std::strerror(errno);
    wan_ = std::make_unique<Wan>(std::move(left), std::move(right), path);
  });
  if (!tap) wait_for_carrier();
  in_b([] { wait_for_carrier(); });
}

}  // namespace netchannel::testkit
