// Which frames come to the device and which stay the kernel's, against a kernel peer over a veth. The claims
// and the parser are those of the XDP program, whose tests go through every cut of a frame; here is what the
// tc hook adds.
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <bit>

#include "bulk_lab.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "device/bulk/uapi.hpp"
#include "device/bulk/vnet_header.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;
using testkit::udp_payload;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const FlowKey kWildcard{Protocol::udp, kOurs, {}};
const FlowKey kExact{Protocol::udp, kOurs, kPeer};

class Claims : public BulkLab {
 protected:
  void SetUp() override {
    BulkLab::SetUp();
    if (!IsSkipped()) build();
  }
  KernelSocket peer_packet_socket(std::uint16_t type) {
    std::optional<KernelSocket> socket;
    in_b([&] { socket.emplace(KernelSocket::packet(type)); });
    return std::move(*socket);
  }
};

TEST_F(Claims, AClaimedPortComesToTheDeviceAndItsNeighbourToTheKernel) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("kernel's")));
  ASSERT_TRUE(peer.send_to(kOurs, bytes("ours")));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(udp_payload(got[0]), bytes("ours"));
  EXPECT_EQ(kernel.receive(), bytes("kernel's"));
  EXPECT_TRUE(stays_silent(device));
}

TEST_F(Claims, AnExactClaimTakesItsPeerOnly) {
  auto device = open();
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

TEST_F(Claims, AfterUnclaimTheFlowIsTheKernels) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  ASSERT_TRUE(device->unclaim(kWildcard));
  auto kernel = KernelSocket::udp(kOurs);
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("hello")));
  EXPECT_EQ(kernel.receive(), bytes("hello"));
  EXPECT_TRUE(stays_silent(device));
}

TEST_F(Claims, PingAndTheKernelsTcpServiceGoOn) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  EXPECT_EQ(testkit::shell("ping -c1 -W2 10.77.0.2 >/dev/null && ping -6 -c1 -W2 fd77::2 >/dev/null"), 0);
  in_b([] { EXPECT_EQ(testkit::shell("ping -c1 -W2 10.77.0.1 >/dev/null"), 0); });

  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address;
  const socklen_t size = testkit::to_sockaddr({kOurV4, 80}, address);
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

TEST_F(Claims, FragmentsPassSoThatTheKernelPutsThemTogether) {
  auto device = open();
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

TEST_F(Claims, AVlanTagPassesThoughTheFrameIsSeenWithoutIt) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::packet(0x0003);
  auto wire = peer_packet_socket(testkit::kVlan);
  const Packet inner = testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, bytes("tagged"));
  Packet tagged(inner.begin(), inner.begin() + 12);
  for (const int byte : {0x81, 0x00, 0x00, 0x05}) tagged.push_back(std::byte(byte));
  tagged.insert(tagged.end(), inner.begin() + 12, inner.end());
  ASSERT_TRUE(wire.send(tagged));
  EXPECT_EQ(kernel.receive(), inner);
  EXPECT_TRUE(stays_silent(device));
}

TEST_F(Claims, AFrameToAnotherMacPasses) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::packet(testkit::kIpv4);
  auto wire = peer_packet_socket(testkit::kIpv4);
  const MacAddress stranger{{0x02, 0, 0, 0, 0, 0x77}};
  const Packet frame = testkit::udp_frame({stranger, kPeerMac}, kPeer, kOurs, bytes("not ours"));
  ASSERT_TRUE(wire.send(frame));
  EXPECT_EQ(kernel.receive(), frame);
  EXPECT_TRUE(stays_silent(device));
}

TEST_F(Claims, ANewMacOfTheInterfaceIsFollowed) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  must("ip link set eth0 address 02:00:00:00:00:55");
  auto wire = peer_packet_socket(testkit::kIpv4);
  const MacAddress fresh{{0x02, 0, 0, 0, 0, 0x55}};
  ASSERT_TRUE(wire.send(testkit::udp_frame({fresh, kPeerMac}, kPeer, kOurs, bytes("ours"))));
  EXPECT_EQ(receive(device).size(), 1u);
}

TEST_F(Claims, AnIcmpErrorThatQuotesAClaimedFlowComesToTheDevice) {
  auto device = open();
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

TEST_F(Claims, AnIcmpErrorForAKernelSocketReachesIt) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  ASSERT_TRUE(kernel.connect({kPeerV4, 9}));
  ASSERT_TRUE(kernel.send(bytes("anybody?")));
  EXPECT_FALSE(kernel.receive());
  EXPECT_EQ(kernel.error(), ECONNREFUSED);
}

// We stand before a program that was there first, and what it decides is decided for unclaimed frames only.
TEST_F(Claims, OtherTcProgramsSeeTheUnclaimedAndOnlyThem) {
  auto kernel = KernelSocket::udp({kOurV4, 7001});
  auto peer = peer_socket(kPeer);
  // The peer must know our address before nobody answers it any more.
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("first")));
  ASSERT_EQ(kernel.receive(), bytes("first"));
  const std::array<bpf_insn, 2> drop{
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = TC_ACT_SHOT},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  const UniqueFd foreign(
      bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "foreign", "GPL", drop.data(), drop.size(), nullptr));
  bpf_link_create_opts options{};
  options.sz = sizeof(options);
  UniqueFd link(bpf_link_create(foreign.get(), static_cast<int>(::if_nametoindex("eth0")), uapi::kTcxIngress,
                                &options));
  ASSERT_TRUE(link);
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("dropped")));
  ASSERT_TRUE(peer.send_to(kOurs, bytes("ours")));
  EXPECT_EQ(receive(device).size(), 1u);
  EXPECT_FALSE(kernel.receive(std::chrono::milliseconds(20)));
  link.reset();
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("kernel's")));
  EXPECT_EQ(kernel.receive(), bytes("kernel's"));
}

// As some drivers make them: the Ethernet header in the linear part, all else in fragments. The peer's own
// device makes one, since a TAP believes the header length that it is told.
TEST_F(Claims, HeadersOutsideTheLinearPartAreFound) {
  in_b([] { must("ip link set eth0 mtu 9000"); });
  must("ip link set eth0 mtu 9000");
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  Opened peer;
  in_b([&] { peer = open(); });
  const auto header = std::bit_cast<VnetHeader>(uapi::VirtioNetHeader{.hdr_len = 16});
  Packet message(header.begin(), header.end());
  const Packet frame = testkit::udp_frame({kOurMac, kPeerMac}, kPeer, kOurs, testkit::pattern(8000));
  message.insert(message.end(), frame.begin(), frame.end());
  ASSERT_EQ(::write(peer->info().sleep_fd, message.data(), message.size()),
            static_cast<ssize_t>(message.size()));
  const auto got = receive(device);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], frame);
}

TEST_F(Claims, OneFlowIsClaimedOnce) {
  auto device = open();
  ASSERT_TRUE(device->claim(kWildcard));
  EXPECT_EQ(device->claim(kWildcard).error().code, ErrorCode::address_in_use);
  ASSERT_TRUE(device->unclaim(kWildcard));
  EXPECT_EQ(device->unclaim(kWildcard).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->claim({Protocol::icmp, kOurs, {}}).error().code, ErrorCode::not_supported);
}

TEST_F(Claims, AFullTableSaysSo) {
  auto device = open({.max_claims = 4});
  std::uint16_t port = 1;
  Result<void> claimed;
  while (port < 1000 && (claimed = device->claim({Protocol::udp, {kOurV4, port}, {}}))) ++port;
  EXPECT_EQ(port, 5);
  EXPECT_EQ(claimed.error().code, ErrorCode::no_memory);
}

TEST_F(Claims, TwoDevicesOnOneInterfaceHaveTheirClaimsEach) {
  auto one = open();
  auto two = open();
  EXPECT_NE(one->tap_name(), two->tap_name());
  ASSERT_TRUE(one->claim(kWildcard));
  ASSERT_TRUE(two->claim({Protocol::udp, {kOurV4, 7001}, {}}));
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("for one")));
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("for two")));
  EXPECT_EQ(udp_payload(receive(one).at(0)), bytes("for one"));
  EXPECT_EQ(udp_payload(receive(two).at(0)), bytes("for two"));
}

TEST_F(Claims, TwoDevicesOnTwoInterfacesServeBothAtOnce) {
  const MacAddress our_second{{0x02, 0, 0, 0, 1, 0x0a}}, peer_second{{0x02, 0, 0, 0, 1, 0x0b}};
  const Endpoint ours{IpAddress::v4(10, 78, 0, 1), 7000}, theirs{IpAddress::v4(10, 78, 0, 2), 5000};
  must(
      "ip link add eth1 address 02:00:00:00:01:0a type veth peer name eth1 address 02:00:00:00:01:0b netns " +
      path_of_b());
  in_b([] { must("ip addr add 10.78.0.2/24 dev eth1 && ip link set eth1 up"); });
  must("ip addr add 10.78.0.1/24 dev eth1 && ip link set eth1 up");
  auto one = open();
  auto two = open({.interface = "eth1"});
  ASSERT_TRUE(one->claim(kWildcard));
  ASSERT_TRUE(two->claim({Protocol::udp, ours, {}}));
  EXPECT_EQ(two->info().mac, our_second);
  auto peer = peer_socket(kPeer);
  auto second = peer_socket(theirs);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("for one")));
  ASSERT_TRUE(second.send_to(ours, bytes("for two")));
  EXPECT_EQ(udp_payload(receive(one).at(0)), bytes("for one"));
  EXPECT_EQ(udp_payload(receive(two).at(0)), bytes("for two"));
  ASSERT_TRUE(one.port->send(testkit::udp_frame({kPeerMac, kOurMac}, kOurs, kPeer, bytes("from one"))));
  ASSERT_TRUE(two.port->send(testkit::udp_frame({peer_second, our_second}, ours, theirs, bytes("from two"))));
  EXPECT_EQ(peer.receive(), bytes("from one"));
  EXPECT_EQ(second.receive(), bytes("from two"));
}

// What XDP passes tc takes: both lanes beside each other on one interface, and beside the kernel.
TEST_F(Claims, AnXdpDeviceOnTheSameInterfaceTakesItsOwn) {
  auto bulk = open();
  testkit::Port port;
  auto xdp = AfXdpDevice::open({.interface = "eth0"}, port.region(), port.home().counters);
  ASSERT_TRUE(xdp) << describe(xdp.error());
  port.attach(**xdp);
  ASSERT_TRUE(bulk->claim(kWildcard));
  ASSERT_TRUE((*xdp)->claim({Protocol::udp, {kOurV4, 7001}, {}}));
  auto kernel = KernelSocket::udp({kOurV4, 7002});
  auto peer = peer_socket(kPeer);
  ASSERT_TRUE(peer.send_to(kOurs, bytes("bulk")));
  ASSERT_TRUE(peer.send_to({kOurV4, 7001}, bytes("xdp")));
  ASSERT_TRUE(peer.send_to({kOurV4, 7002}, bytes("kernel")));
  EXPECT_EQ(kernel.receive(), bytes("kernel"));
  EXPECT_EQ(udp_payload(receive(bulk).at(0)), bytes("bulk"));
  const auto at_xdp = port.receive();
  ASSERT_EQ(at_xdp.size(), 1u);
  EXPECT_EQ(udp_payload(at_xdp[0]), bytes("xdp"));
}

}  // namespace
}  // namespace netchannel::device
