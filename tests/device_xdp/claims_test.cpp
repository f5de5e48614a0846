// Which frames come to the device and which stay the kernel's, against a kernel peer over a veth.
#include "veth_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;

class Claims : public VethLab, public ::testing::WithParamInterface<XdpMode> {
 protected:
  void SetUp() override {
    VethLab::SetUp();
    if (!IsSkipped()) build();
  }
  Opened open_device() { return open({.mode = GetParam()}); }
  KernelSocket peer_socket(const Endpoint& local) {
    std::optional<KernelSocket> socket;
    in_b([&] { socket.emplace(KernelSocket::udp(local)); });
    return std::move(*socket);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Claims, ::testing::Values(XdpMode::native, XdpMode::generic),
                         [](const auto& param) {
                           return param.param == XdpMode::native ? "native" : "generic";
                         });

const FlowKey kWildcard{Protocol::udp, {kOurV4, 7000}, {}};

TEST_P(Claims, ADatagramToAClaimedPortComesToTheDevice) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto peer = peer_socket({kPeerV4, 5000});
  ASSERT_TRUE(peer.send_to({kOurV4, 7000}, bytes("hello")));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0]), bytes("hello"));
}

TEST_P(Claims, ADatagramToAnotherPortReachesTheKernel) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  auto peer = peer_socket({kPeerV4, 5000});
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("hello")));
  EXPECT_EQ(kernel.receive(), bytes("hello"));
  EXPECT_TRUE(stays_silent(device));
}

}  // namespace
}  // namespace netchannel::device
