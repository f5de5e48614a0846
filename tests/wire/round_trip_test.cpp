// parse(emit(x)) == x for many random values of every repr, each from a fixed seed.
#include <gtest/gtest.h>

#include <random>

#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/packet.hpp"
#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;
using test::operator+;

constexpr int kRounds = 5000;
constexpr std::array<std::uint8_t, 4> kRouterAlert{148, 4, 0, 0};

class RoundTrip : public ::testing::Test {
 protected:
  template <class T>
  T any() {
    return static_cast<T>(random_());
  }
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool coin() { return (random_() & 1) != 0; }
  MacAddress mac() {
    MacAddress out;
    for (auto& byte : out.bytes) byte = any<std::uint8_t>();
    return out;
  }
  IpAddress v4() { return IpAddress::v4(any<std::uint32_t>()); }
  IpAddress v6() {
    std::array<std::uint8_t, 16> raw;
    for (auto& byte : raw) byte = any<std::uint8_t>();
    return IpAddress::v6(raw);
  }
  std::uint16_t port() { return static_cast<std::uint16_t>(1 + below(65535)); }

 private:
  std::mt19937_64 random_{20090401};
};

TEST_F(RoundTrip, Ethernet) {
  for (int i = 0; i < kRounds; ++i) {
    EthernetRepr repr{mac(), mac(), EtherType{any<std::uint16_t>()}, {}};
    if (is_vlan(repr.ether_type)) repr.ether_type = EtherType::ipv6;
    for (std::size_t tags = below(3); tags > 0; --tags) {
      repr.tags.push_back({coin() ? EtherType::vlan : EtherType::qinq, any<std::uint16_t>()});
    }
    Buffer out(repr.size() + below(4));
    repr.emit(out);
    const auto view = EthernetView::parse(out).value();
    ASSERT_EQ(EthernetRepr::from(view), repr);
    ASSERT_EQ(view.payload().size(), out.size() - repr.size());
  }
}

TEST_F(RoundTrip, Arp) {
  for (int i = 0; i < kRounds; ++i) {
    const ArpRepr repr{ArpOperation{any<std::uint16_t>()}, mac(), v4(), mac(), v4()};
    Buffer out(repr.size());
    repr.emit(out);
    ASSERT_EQ(ArpRepr::from(ArpView::parse(out).value()), repr);
  }
}

TEST_F(RoundTrip, Ipv4) {
  for (int i = 0; i < kRounds; ++i) {
    Ipv4Repr repr{.source = v4(),
                  .destination = v4(),
                  .protocol = Protocol{any<std::uint8_t>()},
                  .ttl = any<std::uint8_t>(),
                  .tos = any<std::uint8_t>(),
                  .dont_fragment = coin(),
                  .more_fragments = coin(),
                  .identification = any<std::uint16_t>(),
                  .fragment_offset = static_cast<std::uint16_t>(below(8192) * 8),
                  .payload_length = static_cast<std::uint16_t>(below(2000)),
                  .options = {}};
    for (std::size_t words = below(11); words > 0; --words) {
      for (const std::uint8_t byte : kRouterAlert) repr.options.push_back(byte);
    }
    Buffer out(repr.size() + repr.payload_length + below(40));
    repr.emit(out);
    const auto view = Ipv4View::parse(out).value();
    ASSERT_EQ(Ipv4Repr::from(view), repr);
    ASSERT_TRUE(verify_checksum(view));
    ASSERT_EQ(view.payload().size(), repr.payload_length);
  }
}

TEST_F(RoundTrip, Ipv6) {
  for (int i = 0; i < kRounds; ++i) {
    Ipv6Repr repr{.source = v6(),
                  .destination = v6(),
                  .next_header = any<std::uint8_t>(),
                  .hop_limit = any<std::uint8_t>(),
                  .traffic_class = any<std::uint8_t>(),
                  .flow_label = any<std::uint32_t>() & 0xfffff,
                  .payload_length = static_cast<std::uint16_t>(1 + below(2000))};
    if (is_ipv6_extension(repr.next_header)) repr.next_header = 17;
    Buffer out(repr.size() + repr.payload_length + below(40));
    repr.emit(out);
    const auto view = Ipv6View::parse(out).value();
    ASSERT_EQ(Ipv6Repr::from(view), repr);
    ASSERT_EQ(view.payload().size(), repr.payload_length);
  }
}

TEST_F(RoundTrip, Ipv6Fragment) {
  for (int i = 0; i < kRounds; ++i) {
    Ipv6FragmentRepr repr{Ipv6NextHeader::kNone,
                          {any<std::uint32_t>(), static_cast<std::uint32_t>(below(8192) * 8), coin()}};
    if (!repr.fragment.more && repr.fragment.offset == 0)
      repr.fragment.more = true;  // atomic: not a fragment
    Buffer out(repr.size() + 16);
    repr.emit(out);
    const auto chain = walk_ipv6_extensions(Ipv6NextHeader::kFragment, out).value();
    ASSERT_EQ(chain.fragment, repr.fragment);
    ASSERT_EQ(chain.protocol, Protocol{repr.next_header});
    ASSERT_EQ(chain.length, 8u);
  }
}

TEST_F(RoundTrip, Icmp) {
  for (int i = 0; i < kRounds; ++i) {
    const IcmpRepr repr{IcmpType{any<std::uint8_t>()}, any<std::uint8_t>(), any<std::uint32_t>()};
    const Buffer payload = test::filler(below(100));
    Buffer header(repr.size());
    repr.emit(header, checksum_fast(payload));
    const Buffer out = header + payload;
    const auto view = IcmpView::parse(out).value();
    ASSERT_EQ(IcmpRepr::from(view), repr);
    ASSERT_TRUE(verify_checksum(view));
  }
}

TEST_F(RoundTrip, Icmpv6) {
  for (int i = 0; i < kRounds; ++i) {
    const Icmpv6Repr repr{Icmpv6Type{any<std::uint8_t>()}, any<std::uint8_t>(), any<std::uint32_t>()};
    const Buffer payload = test::filler(below(100));
    const IpAddress from = v6(), to = v6();
    PartialSum rest = pseudo_header(from, to, Protocol::icmpv6, repr.size() + payload.size());
    rest.add(checksum_fast(payload));
    Buffer header(repr.size());
    repr.emit(header, rest);
    const Buffer out = header + payload;
    const auto view = Icmpv6View::parse(out).value();
    ASSERT_EQ(Icmpv6Repr::from(view), repr);
    ASSERT_TRUE(verify_checksum(view, from, to));
    ASSERT_FALSE(verify_checksum(view, from, test::kOur6));
  }
}

TEST_F(RoundTrip, Neighbour) {
  for (int i = 0; i < kRounds; ++i) {
    NeighbourRepr repr;
    repr.solicitation = coin();
    repr.target =
        IpAddress::v6({0xfd, any<std::uint8_t>(), any<std::uint8_t>(), 0, 0, 0, any<std::uint8_t>()});
    if (coin()) repr.link_layer = mac();
    if (!repr.solicitation) {
      repr.router = coin();
      repr.solicited = coin();
      repr.override_flag = coin();
    }
    Buffer out(repr.size());
    repr.emit(out, test::kPeer6, test::kOur6);
    const auto message = Icmpv6View::parse(out).value();
    ASSERT_TRUE(verify_checksum(message, test::kPeer6, test::kOur6));
    const auto view = NeighbourView::parse(message, {test::kPeer6, test::kOur6, 255}).value();
    ASSERT_EQ(NeighbourRepr::from(view), repr);
  }
}

TEST_F(RoundTrip, Udp) {
  for (int i = 0; i < kRounds; ++i) {
    const Buffer payload = test::filler(below(1500));
    const UdpRepr repr{any<std::uint16_t>(), port(), static_cast<std::uint16_t>(payload.size())};
    const bool six = coin();
    const IpAddress from = six ? v6() : v4(), to = six ? v6() : v4();
    Buffer out(repr.size() + payload.size());
    PartialSum rest = copy_and_checksum(MutableBytes(out).subspan(repr.size()), payload);
    rest.add(pseudo_header(from, to, Protocol::udp, repr.datagram_size()));
    repr.emit(out, rest);
    const auto view = UdpView::parse(out).value();
    ASSERT_EQ(UdpRepr::from(view), repr);
    ASSERT_TRUE(check_checksum(view, from, to));
    ASSERT_NE(view.checksum_field(), 0);
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), view.payload().begin()));
  }
}

TEST_F(RoundTrip, Tcp) {
  for (int i = 0; i < kRounds; ++i) {
    TcpRepr repr{.source_port = port(),
                 .destination_port = port(),
                 .sequence = any<std::uint32_t>(),
                 .acknowledgment = any<std::uint32_t>(),
                 .flags = {any<std::uint8_t>()},
                 .window = any<std::uint16_t>(),
                 .urgent_pointer = any<std::uint16_t>(),
                 .options = {}};
    if (coin()) repr.options.timestamps = TcpTimestamps{any<std::uint32_t>(), any<std::uint32_t>()};
    if (repr.flags.syn()) {
      if (coin()) repr.options.mss = any<std::uint16_t>();
      if (coin()) repr.options.window_scale = static_cast<std::uint8_t>(below(15));
      repr.options.sack_permitted = coin();
    }
    // Two blocks fit with all the others, three with timestamps, four alone.
    const std::size_t most = repr.flags.syn() ? 2 : repr.options.timestamps ? 3 : 4;
    for (std::size_t blocks = below(most + 1); blocks > 0; --blocks) {
      repr.options.sack.push_back({any<std::uint32_t>(), any<std::uint32_t>()});
    }
    const Buffer payload = test::filler(below(100));
    Buffer header(repr.size());
    PartialSum rest = pseudo_header(test::kPeer4, test::kOur4, Protocol::tcp, header.size() + payload.size());
    rest.add(checksum_fast(payload));
    repr.emit(header, rest);
    const Buffer out = header + payload;
    const auto view = TcpView::parse(out).value();
    ASSERT_EQ(TcpRepr::from(view), repr);
    ASSERT_FALSE(parse_options(view).malformed);
    ASSERT_TRUE(verify_checksum(view, test::kPeer4, test::kOur4));
    ASSERT_EQ(view.payload().size(), payload.size());
  }
}

TEST_F(RoundTrip, FlowOfAgreesWithParsing) {
  for (int i = 0; i < kRounds; ++i) {
    const bool six = coin(), tcp = coin();
    const Buffer payload = test::filler(below(64));
    const Buffer l3 = tcp ? (six ? test::tcp6({16}, payload) : test::tcp4({16}, {}, payload))
                          : (six ? test::udp6(payload) : test::udp4(payload));
    VlanTags tags;
    for (std::size_t count = below(3); count > 0; --count) tags.push_back({EtherType::vlan, 7});
    const Buffer bytes =
        test::frame(six ? EtherType::ipv6 : EtherType::ipv4, l3, tags) + test::filler(below(20));
    const auto flow = flow_of(bytes).value();
    const auto packet = parse_ip(Bytes(bytes).subspan(flow.l3_offset)).value();
    ASSERT_EQ(flow.kind, PacketKind::flow);
    ASSERT_EQ(flow.key.protocol, packet.protocol);
    ASSERT_EQ(flow.key.local, (Endpoint{packet.destination, test::kOurPort}));
    ASSERT_EQ(flow.key.peer, (Endpoint{packet.source, test::kPeerPort}));
    ASSERT_EQ(flow.l4_offset, flow.l3_offset + packet.header_length());
  }
}

}  // namespace
}  // namespace netchannel::wire
