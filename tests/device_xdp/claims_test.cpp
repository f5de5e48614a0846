// Which frames come to the device and which stay the kernel's, against a kernel peer over a veth, in native
// and in generic mode.
#include <netinet/in.h>
#include <unistd.h>

#include <array>

#include "veth_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const FlowKey kWildcard{Protocol::udp, kOurs, {}};
const FlowKey kExact{Protocol::udp, kOurs, kPeer};

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
  KernelSocket peer_packet_socket(std::uint16_t type) {
    std::optional<KernelSocket> socket;
    in_b([&] { socket.emplace(KernelSocket::packet(type)); });
    return std::move(*socket);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Claims, ::testing::Values(XdpMode::native, XdpMode::generic),
                         [](const auto& mode) {
                           return mode.param == XdpMode::native ? "native" : "generic";
                         });

TEST_P(Claims, ADatagramToAClaimedPortComesToTheDevice) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("hello")));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0]), bytes("hello"));
  EXPECT_EQ(device.counters->read(Counter::device_rx_frames), 1u);
}

TEST_P(Claims, SoDoesOneOverIpv6) {
  auto device = open_device();
  ASSERT_TRUE(device->claim({Protocol::udp, {kOurV6, 7000}, {}}));
  auto peer = peer_socket({kPeerV6, 5000});
  ASSERT_TRUE(peer.send_to({kOurV6, 7000}, bytes("hello")));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0]), bytes("hello"));
}

TEST_P(Claims, ADatagramToAnotherPortReachesTheKernel) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("hello")));
  EXPECT_EQ(kernel.receive(), bytes("hello"));
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, AClaimIsForOneProtocol) {
  auto device = open_device();
  ASSERT_TRUE(device->claim({Protocol::tcp, kOurs, {}}));
  auto kernel = KernelSocket::udp(kOurs);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("udp")));
  EXPECT_EQ(kernel.receive(), bytes("udp"));
}

TEST_P(Claims, TheSynOfAClaimedTcpPortComesToTheDevice) {
  auto device = open_device();
  ASSERT_TRUE(device->claim({Protocol::tcp, {kOurV4, 80}, {}}));
  in_b([] {
    const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_storage to;
    const socklen_t size = to_sockaddr({kOurV4, 80}, to);
    ::connect(client.get(), reinterpret_cast<sockaddr*>(&to), size);
  });
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(load_be16(got[0], 14 + 20 + 2), 80);
}

TEST_P(Claims, AnExactClaimTakesItsPeerOnly) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kExact));
  auto kernel = KernelSocket::udp(kOurs);
  auto named = peer_socket(kPeer);
  auto other = peer_socket({kPeerV4, 5001});
  ASSERT_TRUE(named.send_to(kOurs, bytes("named")));
  ASSERT_TRUE(other.send_to(kOurs, bytes("other")));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0]), bytes("named"));
  EXPECT_EQ(kernel.receive(), bytes("other"));
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, AnExactClaimOutlivesTheWildcardBesideIt) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  ASSERT_TRUE(device->claim(kExact));
  ASSERT_TRUE(device->unclaim(kWildcard));
  auto kernel = KernelSocket::udp(kOurs);
  auto named = peer_socket(kPeer);
  auto other = peer_socket({kPeerV4, 5001});
  ASSERT_TRUE(named.send_to(kOurs, bytes("named")));
  ASSERT_TRUE(other.send_to(kOurs, bytes("other")));
  EXPECT_EQ(receive(device).size(), 1u);
  EXPECT_EQ(kernel.receive(), bytes("other"));
}

TEST_P(Claims, AfterUnclaimTheFlowIsTheKernels) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  ASSERT_TRUE(device->unclaim(kWildcard));
  auto kernel = KernelSocket::udp(kOurs);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("hello")));
  EXPECT_EQ(kernel.receive(), bytes("hello"));
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, PingAndTheKernelsTcpServiceGoOn) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));

  auto wire = peer_packet_socket(testkit::kIpv4);
  const auto ping =
      testkit::icmp_echo(kPeerV4, kOurV4, {.request = true, .id = 77, .sequence = 1}, bytes("ping"));
  ASSERT_TRUE(wire.send(testkit::ethernet({kOurMac, kPeerMac}, testkit::kIpv4, ping)));
  const auto reply = wire.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(load_u8(*reply, 14 + 9), IPPROTO_ICMP);
  EXPECT_EQ(load_u8(*reply, 14 + 20), 0);  // echo reply

  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address;
  const socklen_t size = to_sockaddr({kOurV4, 80}, address);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  UniqueFd client;
  in_b([&] {
    client.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  });
  const UniqueFd server(::accept(listener.get(), nullptr, nullptr));
  ASSERT_EQ(::write(client.get(), "tcp", 3), 3);
  std::array<char, 8> text{};
  EXPECT_EQ(::read(server.get(), text.data(), text.size()), 3);
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, FragmentsPassSoThatTheKernelPutsThemTogether) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  ASSERT_TRUE(device->claim({Protocol::udp, {kOurV6, 7000}, {}}));
  const Packet large = testkit::pattern(4000);
  auto kernel_v4 = KernelSocket::udp(kOurs);
  auto peer_v4 = peer_socket(kPeer);
  ASSERT_TRUE(peer_v4.send_to(kOurs, large));
  EXPECT_EQ(kernel_v4.receive(), large);
  auto kernel_v6 = KernelSocket::udp({kOurV6, 7000});
  auto peer_v6 = peer_socket({kPeerV6, 5000});
  ASSERT_TRUE(peer_v6.send_to({kOurV6, 7000}, large));
  EXPECT_EQ(kernel_v6.receive(), large);
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, AVlanTagPasses) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::packet(0x0003);
  auto wire = peer_packet_socket(testkit::kVlan);
  const Packet inner = testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, bytes("tagged"));
  Packet tagged(inner.begin(), inner.begin() + 12);
  for (const int byte : {0x81, 0x00, 0x00, 0x05}) tagged.push_back(std::byte(byte));
  tagged.insert(tagged.end(), inner.begin() + 12, inner.end());
  ASSERT_TRUE(wire.send(tagged));
  // The kernel's tap shows the frame without its tag.
  EXPECT_EQ(kernel.receive(), inner);
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, AFrameToAnotherMacPasses) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::packet(testkit::kIpv4);
  auto wire = peer_packet_socket(testkit::kIpv4);
  const MacAddress stranger{{0x02, 0, 0, 0, 0, 0x77}};
  const Packet frame = testkit::udp_frame({stranger, kPeerMac}, kPeer, kOurs, bytes("not ours"));
  ASSERT_TRUE(wire.send(frame));
  EXPECT_EQ(kernel.receive(), frame);
  EXPECT_TRUE(stays_silent(device));
}

TEST_P(Claims, AnIcmpErrorThatQuotesAClaimedFlowComesToTheDevice) {
  auto device = open_device();
  for (const auto& [ours, peer] : {std::pair{Endpoint{kOurV4, 7000}, Endpoint{kPeerV4, 9}},
                                   std::pair{Endpoint{kOurV6, 7000}, Endpoint{kPeerV6, 9}}}) {
    ASSERT_TRUE(device->claim({Protocol::udp, ours, {}}));
    // Nobody listens there, and the peer's kernel says so.
    ASSERT_TRUE(device.port->send(testkit::udp_frame({kPeerMac, kOurMac}, ours, peer, bytes("anybody?"))));
    const auto got = receive(device);
    ASSERT_EQ(got.size(), 1u) << ours.to_string();
    const bool v4 = ours.address.is_v4();
    EXPECT_EQ(load_u8(got[0], v4 ? 14 + 9 : 14 + 6), v4 ? 1 : 58);
    EXPECT_EQ(load_u8(got[0], v4 ? 14 + 20 : 14 + 40), v4 ? 3 : 1);  // destination unreachable
  }
}

TEST_P(Claims, AnIcmpErrorForAKernelSocketReachesIt) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  ASSERT_TRUE(kernel.connect({kPeerV4, 9}));
  ASSERT_TRUE(kernel.send(bytes("anybody?")));
  EXPECT_FALSE(kernel.receive());
  EXPECT_EQ(kernel.error(), ECONNREFUSED);
}

TEST_P(Claims, OneFlowIsClaimedOnce) {
  auto device = open_device();
  ASSERT_TRUE(device->claim(kWildcard));
  EXPECT_EQ(device->claim(kWildcard).error().code, ErrorCode::address_in_use);
  ASSERT_TRUE(device->unclaim(kWildcard));
  EXPECT_EQ(device->unclaim(kWildcard).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(device->claim(kWildcard));
}

TEST_P(Claims, WhatIsNoFlowOfOursIsRefused) {
  auto device = open_device();
  EXPECT_EQ(device->claim({Protocol::icmp, kOurs, {}}).error().code, ErrorCode::not_supported);
  EXPECT_EQ(device->claim({Protocol::udp, {IpAddress::any_v4(), 7000}, {}}).error().code,
            ErrorCode::not_supported);
  EXPECT_EQ(device->claim({Protocol::udp, {kOurV4, 0}, {}}).error().code, ErrorCode::not_supported);
  EXPECT_EQ(device->claim({Protocol::udp, kOurs, {kPeerV4, 0}}).error().code, ErrorCode::not_supported);
}

TEST_P(Claims, AFullTableSaysSo) {
  auto device = open({.mode = GetParam(), .max_claims = 4});
  std::uint16_t port = 1;
  Result<void> claimed;
  while (port < 1000 && (claimed = device->claim({Protocol::udp, {kOurV4, port}, {}}))) ++port;
  EXPECT_EQ(port, 5);
  EXPECT_EQ(claimed.error().code, ErrorCode::no_memory);
}

}  // namespace
}  // namespace netchannel::device
