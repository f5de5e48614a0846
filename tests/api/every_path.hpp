// A host on every path that this machine has, with the kernel at the other end of the wire.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>

#include "netchannel/host.hpp"
#include "testkit/veth_pair.hpp"

namespace netchannel {

using namespace std::chrono_literals;

struct Way {
  const char* name;
  Path path;
  XdpOptions::Mode mode = XdpOptions::Mode::automatic;
  WaitMode wait = WaitMode::adaptive;
  std::uint32_t mtu = 1500;
  bool offloads = true;
  bool keeper = false;
};

inline std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

inline constexpr Way kKeeperWay{"xdp_keeper", Path::xdp, XdpOptions::Mode::native, WaitMode::adaptive, 1500,
                                true,         true};

inline constexpr Way kWays[] = {
    {"kernel", Path::kernel},
    {"kernel_batched", Path::kernel_batched},
    {"xdp_native", Path::xdp, XdpOptions::Mode::native},
    {"xdp_generic", Path::xdp, XdpOptions::Mode::generic},
    {"xdp_blocking", Path::xdp, XdpOptions::Mode::native, WaitMode::block},
    {"xdp_without_peer_offloads", Path::xdp, XdpOptions::Mode::native, WaitMode::adaptive, 1500, false},
    {"xdp_mtu_9000", Path::xdp, XdpOptions::Mode::native, WaitMode::adaptive, 9000},
    kKeeperWay,
    {"bulk", Path::bulk},
    {"tap", Path::tap},
    {"local", Path::local},
    {"local_blocking", Path::local, XdpOptions::Mode::automatic, WaitMode::block},
    {"local_keeper", Path::local, XdpOptions::Mode::automatic, WaitMode::adaptive, 1500, true, true},
};

class OnEveryPath : public testkit::VethPair, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    VethPair::SetUp();
    if (IsSkipped()) return;
    const Way& way = GetParam();
    build({.mtu = way.mtu, .offloads = way.offloads});
    HostOptions options;
    options.path = way.path;
    options.wait = way.wait;
    options.keeper = way.keeper;
    options.xdp.mode = way.mode;
    if (way.path == Path::tap) {
      options.addresses = {*Prefix::parse("10.88.0.1/24"), *Prefix::parse("fd88::1/64")};
    } else {
      options.device = "eth0";
    }
    auto opened = Host::open(options);
    ASSERT_TRUE(opened) << describe(opened.error());
    host.emplace(std::move(*opened));
    if (way.path == Path::tap) {
      must(
          "ip addr add 10.88.0.2/24 dev nctap0 && ip addr add fd88::2/64 dev nctap0 nodad && ip link set "
          "nctap0 up");
    }
  }
  void TearDown() override {
    host.reset();
    VethPair::TearDown();
  }

  bool tap() const { return GetParam().path == Path::tap; }
  // The peer is the kernel's, whom the local path leaves to the kernel.
  bool by_kernel() const {
    const Path path = GetParam().path;
    return path == Path::kernel || path == Path::kernel_batched || path == Path::local;
  }
  IpAddress ours(bool v6 = false) const {
    if (tap()) return *IpAddress::parse(v6 ? "fd88::1" : "10.88.0.1");
    return v6 ? kOurV6 : kOurV4;
  }
  IpAddress theirs(bool v6 = false) const {
    if (tap()) return *IpAddress::parse(v6 ? "fd88::2" : "10.88.0.2");
    return v6 ? kPeerV6 : kPeerV4;
  }
  // Makes something at the other end of the wire.
  void at_the_other_end(const std::function<void()>& what) {
    if (tap()) {
      what();
    } else {
      in_b(what);
    }
  }
  Instant soon(Duration by = 5s) const { return host->now() + by; }

  std::optional<Host> host;
};

inline std::string name_of_way(const ::testing::TestParamInfo<Way>& info) { return info.param.name; }

}  // namespace netchannel
