// The XDP program itself, fed frame by frame through the kernel's test run: what it takes (redirect) and what
// it passes, down to every cut of a frame.
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "veth_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::bytes;
using testkit::ethernet;

const Endpoint kOurs{kOurV4, 7000};
const Endpoint kPeer{kPeerV4, 5000};
const Endpoint kOurs6{kOurV6, 7000};
const Endpoint kPeer6{kPeerV6, 5000};
const testkit::MacPair kMacs{kOurMac, kPeerMac};
constexpr std::size_t kEthernet = 14;

// Extension header of `size` bytes, a multiple of eight, that names the one after it.
Packet extension(std::uint8_t next, std::size_t size) {
  Packet out(size, std::byte{0});
  out[0] = std::byte{next};
  out[1] = static_cast<std::byte>(size / 8 - 1);
  return out;
}

Packet joined(Packet front, const Packet& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// An IPv6 packet whose first header after the fixed one is `next`.
Packet ipv6(std::uint8_t next, Bytes payload) {
  return testkit::ip({.source = kPeerV6, .destination = kOurV6, .protocol = next}, payload);
}

class Classify : public VethLab {
 protected:
  void SetUp() override {
    VethLab::SetUp();
    if (IsSkipped()) return;
    build();
    device_ = open();
    for (const auto protocol : {Protocol::udp, Protocol::tcp}) {
      ASSERT_TRUE(device_->claim({protocol, kOurs, {}}));
      ASSERT_TRUE(device_->claim({protocol, kOurs6, {}}));
    }
    const auto program = xdp_capabilities("eth0")->program;
    ASSERT_TRUE(program);
    program_.reset(bpf_prog_get_fd_by_id(program->id));
    ASSERT_TRUE(program_);
  }
  bool takes(const Packet& frame) {
    bpf_test_run_opts run{};
    Packet out(4096);
    run.sz = sizeof(run);
    run.data_in = frame.data();
    run.data_size_in = static_cast<std::uint32_t>(frame.size());
    run.data_out = out.data();
    run.data_size_out = static_cast<std::uint32_t>(out.size());
    EXPECT_EQ(bpf_prog_test_run_opts(program_.get(), &run), 0) << frame.size();
    EXPECT_TRUE(run.retval == XDP_REDIRECT || run.retval == XDP_PASS) << run.retval;
    return run.retval == XDP_REDIRECT;
  }
  static Packet v4_frame(const testkit::IpFields& fields, Bytes payload) {
    return ethernet(kMacs, testkit::kIpv4, testkit::ip(fields, payload));
  }
  static Packet v6_frame(const Packet& packet) { return ethernet(kMacs, testkit::kIpv6, packet); }
  // An ICMP error about a datagram that `from` sent to `to`.
  static Packet v4_error(std::uint8_t type, const Packet& quoted, const IpAddress& receiver = kOurV4) {
    Packet icmp(8, std::byte{0});
    icmp[0] = std::byte{type};
    return v4_frame({.source = kPeerV4, .destination = receiver, .protocol = 1}, joined(icmp, quoted));
  }
  static Packet v6_error(std::uint8_t type, const Packet& quoted) {
    Packet icmp(8, std::byte{0});
    icmp[0] = std::byte{type};
    return v6_frame(ipv6(58, joined(icmp, quoted)));
  }
  static Packet quoted_v4(const Endpoint& from, const Endpoint& to) {
    return testkit::ip({.source = from.address, .destination = to.address},
                       testkit::udp(from, to, bytes("x")));
  }

  Opened device_;
  UniqueFd program_;
};

TEST_F(Classify, TheClaimedPortIsTakenAndItsNeighboursPass) {
  EXPECT_TRUE(takes(testkit::udp_frame(kMacs, kPeer, kOurs, bytes("x"))));
  EXPECT_TRUE(takes(testkit::udp_frame(kMacs, kPeer6, kOurs6, bytes("x"))));
  EXPECT_FALSE(takes(testkit::udp_frame(kMacs, kPeer, {kOurV4, 7001}, bytes("x"))));
  EXPECT_FALSE(takes(testkit::udp_frame(kMacs, kPeer, {kPeerV4, 7000}, bytes("x"))));
  EXPECT_FALSE(takes(testkit::udp_frame(kMacs, kPeer6, {kOurV6, 7001}, bytes("x"))));
  EXPECT_FALSE(takes(testkit::udp_frame(kMacs, kOurs, kPeer, bytes("x"))));
}

TEST_F(Classify, AnyCutOfAFrameBeforeThePortsPasses) {
  for (const auto& frame : {testkit::udp_frame(kMacs, kPeer, kOurs, bytes("x")),
                            testkit::udp_frame(kMacs, kPeer6, kOurs6, bytes("x"))}) {
    const bool v4 = load_be16(frame, 12) == testkit::kIpv4;
    const std::size_t after_ports = kEthernet + (v4 ? 20u : 40u) + 4;
    for (std::size_t size = kEthernet; size <= frame.size(); ++size) {
      const Packet cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(takes(cut), size >= after_ports) << size;
    }
  }
}

TEST_F(Classify, Ipv4OptionsAreSteppedOver) {
  const Packet datagram = testkit::udp(kPeer, kOurs, bytes("x"));
  for (std::size_t size = 4; size <= 40; size += 4) {
    testkit::IpFields fields{.source = kPeerV4, .destination = kOurV4};
    fields.options = Packet(size, std::byte{1});
    EXPECT_TRUE(takes(v4_frame(fields, datagram))) << size;
  }
}

TEST_F(Classify, AHeaderLengthBelowFiveOrAnotherVersionPasses) {
  for (const int first : {0x44, 0x40, 0x65, 0x55}) {
    Packet frame = testkit::udp_frame(kMacs, kPeer, kOurs, bytes("x"));
    frame[kEthernet] = static_cast<std::byte>(first);
    EXPECT_FALSE(takes(frame)) << first;
  }
  Packet six = testkit::udp_frame(kMacs, kPeer6, kOurs6, bytes("x"));
  six[kEthernet] = std::byte{0x50};
  EXPECT_FALSE(takes(six));
}

TEST_F(Classify, FragmentsPassTheFirstToo) {
  const Packet datagram = testkit::udp(kPeer, kOurs, bytes("x"));
  for (const std::uint16_t fragment : std::initializer_list<std::uint16_t>{0x2000, 0x0001, 0x2001, 0x1fff}) {
    EXPECT_FALSE(takes(v4_frame({.source = kPeerV4, .destination = kOurV4, .fragment = fragment}, datagram)));
  }
  EXPECT_TRUE(
      takes(v4_frame({.source = kPeerV4, .destination = kOurV4, .fragment = 0x4000}, datagram)));  // DF
  EXPECT_FALSE(takes(v6_frame(ipv6(44, joined(extension(17, 8), testkit::udp(kPeer6, kOurs6, bytes("x")))))));
}

TEST_F(Classify, Ipv6ExtensionHeadersAreSteppedOver) {
  const Packet datagram = testkit::udp(kPeer6, kOurs6, bytes("x"));
  for (const std::uint8_t kind : std::initializer_list<std::uint8_t>{0, 43, 60}) {
    for (const std::size_t size : {8u, 16u, 264u, 2048u}) {
      EXPECT_TRUE(takes(v6_frame(ipv6(kind, joined(extension(17, size), datagram)))))
          << int{kind} << " " << size;
    }
  }
  Packet authentication(24, std::byte{0});  // RFC 4302: counted in units of four, less two
  authentication[0] = std::byte{17};
  authentication[1] = std::byte{4};
  EXPECT_TRUE(takes(v6_frame(ipv6(51, joined(authentication, datagram)))));
}

TEST_F(Classify, ARowOfExtensionHeadersIsSteppedOverUpToItsBound) {
  for (std::size_t row = 1; row <= 8; ++row) {
    Packet packet = testkit::udp(kPeer6, kOurs6, bytes("x"));
    for (std::size_t i = 0; i < row; ++i) packet = joined(extension(i == 0 ? 17 : 60, 8), packet);
    EXPECT_EQ(takes(v6_frame(ipv6(60, packet))), row <= 5) << row;
  }
}

TEST_F(Classify, AnExtensionHeaderPastThePacketPasses) {
  Packet lying = extension(17, 8);
  lying[1] = std::byte{255};
  EXPECT_FALSE(takes(v6_frame(ipv6(60, joined(lying, testkit::udp(kPeer6, kOurs6, bytes("x")))))));
  EXPECT_FALSE(takes(v6_frame(ipv6(60, {}))));
}

TEST_F(Classify, OtherTransportsAndTypesPass) {
  for (const std::uint8_t protocol : std::initializer_list<std::uint8_t>{2, 41, 47, 50, 132}) {
    const Packet datagram = testkit::udp(kPeer, kOurs, bytes("x"));
    EXPECT_FALSE(takes(v4_frame({.source = kPeerV4, .destination = kOurV4, .protocol = protocol}, datagram)));
  }
  EXPECT_FALSE(takes(ethernet(kMacs, testkit::kArp, testkit::pattern(28))));
  EXPECT_FALSE(takes(ethernet(kMacs, 0x0100, testkit::pattern(100))));  // an 802.3 length
}

TEST_F(Classify, VlanTagsPass) {
  const Packet inner =
      testkit::ip({.source = kPeerV4, .destination = kOurV4}, testkit::udp(kPeer, kOurs, bytes("x")));
  for (const std::uint16_t tag : std::initializer_list<std::uint16_t>{0x8100, 0x88a8}) {
    EXPECT_FALSE(takes(ethernet(kMacs, tag, joined(bytes(std::string_view("\x00\x05\x08\x00", 4)), inner))));
  }
}

TEST_F(Classify, MulticastBroadcastAndOthersMacsPass) {
  const Packet inner =
      testkit::ip({.source = kPeerV4, .destination = kOurV4}, testkit::udp(kPeer, kOurs, bytes("x")));
  for (const MacAddress& to :
       {MacAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, MacAddress{{1, 0, 0x5e, 0, 0, 1}}, kPeerMac,
        MacAddress{{2, 0, 0, 0, 1, 0x0a}}}) {
    EXPECT_FALSE(takes(ethernet({to, kPeerMac}, testkit::kIpv4, inner)));
  }
}

TEST_F(Classify, IcmpErrorsThatQuoteAClaimedFlowAreTaken) {
  for (int type = 0; type < 20; ++type) {
    const bool error = type == 3 || type == 11 || type == 12;
    EXPECT_EQ(takes(v4_error(static_cast<std::uint8_t>(type), quoted_v4(kOurs, kPeer))), error) << type;
  }
  const Packet quoted =
      testkit::ip({.source = kOurV6, .destination = kPeerV6}, testkit::udp(kOurs6, kPeer6, {}));
  for (int type = 0; type < 140; ++type) {
    EXPECT_EQ(takes(v6_error(static_cast<std::uint8_t>(type), quoted)), type >= 1 && type <= 4) << type;
  }
}

TEST_F(Classify, IcmpErrorsThatQuoteAnythingElsePass) {
  EXPECT_FALSE(takes(v4_error(3, quoted_v4({kOurV4, 7001}, kPeer))));  // another port
  EXPECT_FALSE(takes(v4_error(3, quoted_v4(kPeer, kOurs))));           // not sent by us
  EXPECT_FALSE(takes(v4_error(3, quoted_v4(kOurs, kPeer), kPeerV4)));  // not sent to who sent it
  Packet cut = v4_error(3, quoted_v4(kOurs, kPeer));
  cut.resize(kEthernet + 20 + 8 + 20 + 3);
  EXPECT_FALSE(takes(cut));
  Packet later = quoted_v4(kOurs, kPeer);  // a fragment that is not the first has no ports
  later[7] = std::byte{1};
  EXPECT_FALSE(takes(v4_error(3, later)));
}

TEST_F(Classify, AnExactClaimIsFoundByAnErrorToo) {
  const Endpoint ours{kOurV4, 7002};
  ASSERT_TRUE(device_->claim({Protocol::udp, ours, kPeer}));
  EXPECT_TRUE(takes(v4_error(3, quoted_v4(ours, kPeer))));
  EXPECT_FALSE(takes(v4_error(3, quoted_v4(ours, {kPeerV4, 5001}))));
  EXPECT_TRUE(takes(testkit::udp_frame(kMacs, kPeer, ours, bytes("x"))));
  EXPECT_FALSE(takes(testkit::udp_frame(kMacs, {kPeerV4, 5001}, ours, bytes("x"))));
}

}  // namespace
}  // namespace netchannel::device
