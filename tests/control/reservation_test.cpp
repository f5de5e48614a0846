// Ports held by real sockets, against the kernel's rules and as the slow path between two namespaces.
#include "control/reservation.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <numeric>
#include <vector>

#include "namespace_pair.hpp"

namespace netchannel::control {
namespace {

class ReservationTest : public NamespacePair {
 protected:
  static Reservation reserve(Protocol protocol, const char* local, const ReserveOptions& options = {}) {
    auto made = Reservation::open(protocol, *Endpoint::parse(local), options);
    EXPECT_TRUE(made.has_value()) << local << ": " << describe(made.error());
    return std::move(made.value());
  }
  static ErrorCode refusal(Protocol protocol, const char* local, const ReserveOptions& options = {}) {
    const auto made = Reservation::open(protocol, *Endpoint::parse(local), options);
    EXPECT_FALSE(made.has_value()) << local << " was reserved";
    return made.has_value() ? ErrorCode::system : made.error().code;
  }
  static std::vector<std::byte> pattern(std::size_t size) {
    std::vector<std::byte> out(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 31 + (i >> 8));
    return out;
  }
  static bool readable(const Reservation& reservation) {
    pollfd ready{reservation.fd(), POLLIN, 0};
    return ::poll(&ready, 1, 5000) == 1;
  }
  static void expect_datagram(Reservation& at, Bytes payload, const Endpoint& from, const char* to) {
    ASSERT_TRUE(readable(at)) << "nothing came";
    const auto got = at.receive();
    ASSERT_TRUE(got.has_value() && got->has_value());
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), (*got)->payload.begin(), (*got)->payload.end()));
    EXPECT_EQ((*got)->peer.to_string(), from.to_string());
    EXPECT_EQ((*got)->local.to_string(), (Endpoint{ip(to), at.local().port}).to_string());
  }
};

TEST_F(ReservationTest, PortZeroLetsTheKernelChoose) {
  for (const Protocol protocol : {Protocol::udp, Protocol::tcp}) {
    const Reservation made = reserve(protocol, "10.9.0.1:0");
    EXPECT_NE(made.local().port, 0);
    EXPECT_EQ(made.local().address, ip("10.9.0.1"));
    EXPECT_EQ(refusal(protocol, made.local().to_string().c_str()), ErrorCode::address_in_use);
  }
}

TEST_F(ReservationTest, ATakenPortIsToldAndFreedWithItsOwner) {
  for (const Protocol protocol : {Protocol::udp, Protocol::tcp}) {
    {
      const Reservation first = reserve(protocol, "10.9.0.1:7000");
      EXPECT_EQ(refusal(protocol, "10.9.0.1:7000"), ErrorCode::address_in_use);
      EXPECT_EQ(refusal(protocol, "0.0.0.0:7000"), ErrorCode::address_in_use);
      EXPECT_EQ(refusal(protocol, "[::]:7000"), ErrorCode::address_in_use);
      reserve(protocol, "127.0.0.1:7000");
    }
    reserve(protocol, "0.0.0.0:7000");
  }
}

TEST_F(ReservationTest, UdpAndTcpPortsAreApart) {
  const Reservation udp = reserve(Protocol::udp, "10.9.0.1:7000");
  const Reservation tcp = reserve(Protocol::tcp, "10.9.0.1:7000");
  EXPECT_EQ(udp.local(), tcp.local());
}

TEST_F(ReservationTest, AnyIsDualStackUnlessV6Only) {
  {
    const Reservation dual = reserve(Protocol::udp, "[::]:7000");
    EXPECT_EQ(refusal(Protocol::udp, "0.0.0.0:7000"), ErrorCode::address_in_use);
  }
  const Reservation v6 = reserve(Protocol::udp, "[::]:7000", {.v6_only = true});
  const Reservation v4 = reserve(Protocol::udp, "0.0.0.0:7000");
  EXPECT_TRUE(v4.local().address.is_v4());
  EXPECT_TRUE(v6.local().address.is_v6());
}

TEST_F(ReservationTest, ReuseNeedsBothSidesAsTheKernelHasIt) {
  {
    const Reservation first = reserve(Protocol::udp, "0.0.0.0:7000", {.reuse_port = true});
    const Reservation second = reserve(Protocol::udp, "0.0.0.0:7000", {.reuse_port = true});
    EXPECT_EQ(refusal(Protocol::udp, "0.0.0.0:7000"), ErrorCode::address_in_use);
  }
  const Reservation first = reserve(Protocol::udp, "0.0.0.0:7000", {.reuse_address = true});
  const Reservation second = reserve(Protocol::udp, "0.0.0.0:7000", {.reuse_address = true});
  EXPECT_EQ(refusal(Protocol::udp, "0.0.0.0:7000"), ErrorCode::address_in_use);
}

TEST_F(ReservationTest, RefusesWhatCannotBeReserved) {
  EXPECT_EQ(refusal(Protocol::udp, "10.9.0.99:7000"), ErrorCode::address_not_available);
  EXPECT_EQ(refusal(Protocol::tcp, "[fd09::99]:7000"), ErrorCode::address_not_available);
  EXPECT_EQ(refusal(Protocol::icmp, "10.9.0.1:7000"), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(Protocol::udp, "[fe80::1]:7000"), ErrorCode::invalid_argument) << "of which interface?";
}

TEST_F(ReservationTest, ALinkLocalAddressIsBoundWithItsInterface) {
  must("ip addr add fe80::77/64 dev eth0 nodad");
  const std::uint32_t index = Mirror::open("eth0").value().snapshot().link.index;
  const Reservation made = reserve(Protocol::udp, "[fe80::77]:7000", {.interface_index = index});
  EXPECT_EQ(made.local().address, ip("fe80::77"));
}

TEST_F(ReservationTest, APrivilegedPortWithoutPrivilegeIsNotPermitted) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const auto made = Reservation::open(Protocol::udp, *Endpoint::parse("0.0.0.0:80"));
    ::_exit(!made && made.error().code == ErrorCode::not_permitted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ReservationTest, AReservedTcpPortRefusesConnections) {
  const Reservation made = reserve(Protocol::tcp, "127.0.0.1:7000");
  const UniqueFd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(7000);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(ReservationTest, ReceivingNeverWaits) {
  Reservation made = reserve(Protocol::udp, "127.0.0.1:0");
  const auto got = made.receive();
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->has_value());
}

// Sent in fragments over an MTU of 1500, put together by the kernel: the slow path of a claimed port.
TEST_F(ReservationTest, DatagramsOfEverySizeCrossTheSlowPathWhole) {
  wait_for_carrier();
  Reservation server = reserve(Protocol::udp, "[::]:7000");
  std::optional<Reservation> v4, v6;
  in_b([&] {
    v4.emplace(reserve(Protocol::udp, "10.9.0.2:0"));
    v6.emplace(reserve(Protocol::udp, "[fd09::2]:0"));
  });
  for (const std::size_t size : {0u, 1u, 1472u, 1473u, 9000u, 65507u}) {
    SCOPED_TRACE(size);
    const auto payload = pattern(size);
    ASSERT_TRUE(v4->send_to(payload, *Endpoint::parse("10.9.0.1:7000")));
    expect_datagram(server, payload, v4->local(), "10.9.0.1");
    ASSERT_TRUE(v6->send_to(payload, *Endpoint::parse("[fd09::1]:7000")));
    expect_datagram(server, payload, v6->local(), "fd09::1");
    ASSERT_TRUE(server.send_to(payload, v4->local()));
    expect_datagram(*v4, payload, {ip("10.9.0.1"), 7000}, "10.9.0.2");
  }
}

TEST_F(ReservationTest, WhatTheKernelHasJoinedComesApartAgain) {
  wait_for_carrier();
  Reservation server = reserve(Protocol::udp, "10.9.0.1:7000", {.coalesce = true});
  std::optional<Reservation> peer;
  in_b([&] { peer.emplace(reserve(Protocol::udp, "10.9.0.2:0")); });
  constexpr int kSegment = 1000;
  ASSERT_EQ(::setsockopt(peer->fd(), IPPROTO_UDP, UDP_SEGMENT, &kSegment, sizeof kSegment), 0);
  const auto payload = pattern(3 * kSegment + 1);
  ASSERT_TRUE(peer->send_to(payload, server.local()));
  ASSERT_TRUE(peer->send_to({}, server.local()));
  ASSERT_TRUE(readable(server));
  for (std::size_t at = 0; at < payload.size(); at += kSegment) {
    EXPECT_EQ(server.holds_more(), at != 0);
    const auto wanted =
        Bytes(payload).subspan(at).first(std::min<std::size_t>(kSegment, payload.size() - at));
    const auto got = server.receive();
    ASSERT_TRUE(got && *got);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), (*got)->payload.begin(), (*got)->payload.end()));
    EXPECT_EQ((*got)->peer, peer->local());
    EXPECT_EQ((*got)->local, server.local());
  }
  EXPECT_FALSE(server.holds_more());
  expect_datagram(server, {}, peer->local(), "10.9.0.1");
}

TEST_F(ReservationTest, ABroadcastIsToldByItsDestination) {
  wait_for_carrier();
  Reservation server = reserve(Protocol::udp, "0.0.0.0:7000");
  std::optional<Reservation> permitted, forbidden;
  in_b([&] {
    permitted.emplace(reserve(Protocol::udp, "10.9.0.2:0", {.broadcast = true}));
    forbidden.emplace(reserve(Protocol::udp, "10.9.0.2:0"));
  });
  const auto payload = pattern(10);
  const Endpoint everybody{ip("10.9.0.255"), 7000};
  ASSERT_TRUE(permitted->send_to(payload, everybody));
  expect_datagram(server, payload, permitted->local(), "10.9.0.255");
  EXPECT_EQ(forbidden->send_to(payload, everybody).error().code, ErrorCode::not_permitted);
}

TEST_F(ReservationTest, SendingSaysWhyItCannot) {
  Reservation v4 = reserve(Protocol::udp, "0.0.0.0:0");
  EXPECT_EQ(v4.send_to(pattern(65508), *Endpoint::parse("10.9.0.2:7000")).error().code,
            ErrorCode::message_too_long);
  EXPECT_EQ(v4.send_to(pattern(1), *Endpoint::parse("192.0.2.1:7000")).error().code, ErrorCode::unreachable);
  EXPECT_EQ(v4.send_to(pattern(1), *Endpoint::parse("[fd09::2]:7000")).error().code,
            ErrorCode::invalid_argument);
}

TEST_F(ReservationTest, AConnectedSocketIsToldOnceThatItsPeerRefuses) {
  Reservation made = reserve(Protocol::udp, "127.0.0.1:0");
  const Endpoint nobody{ip("127.0.0.1"), 9};
  ASSERT_TRUE(made.connect(nobody));
  ASSERT_TRUE(made.send_to(pattern(1), nobody));
  ASSERT_TRUE(readable(made));
  EXPECT_EQ(made.receive().error().code, ErrorCode::refused);
  const auto next = made.receive();
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(next->has_value());
}

TEST_F(ReservationTest, AConnectedSocketHearsItsPeerOnlyAndAllAgainOnceDisconnected) {
  Reservation server =
      reserve(Protocol::udp, "127.0.0.1:0");  // a port of the kernel's choice is the harder case
  Reservation peer = reserve(Protocol::udp, "127.0.0.1:0");
  Reservation other = reserve(Protocol::udp, "127.0.0.1:0");
  const Endpoint at = server.local();
  ASSERT_TRUE(server.connect(peer.local()));
  ASSERT_TRUE(other.send_to(pattern(3), at));
  ASSERT_TRUE(peer.send_to(pattern(2), at));
  expect_datagram(server, pattern(2), peer.local(), "127.0.0.1");
  ASSERT_TRUE(server.connect({}));
  EXPECT_EQ(server.local(), at);
  ASSERT_TRUE(other.send_to(pattern(4), at));
  expect_datagram(server, pattern(4), other.local(), "127.0.0.1");
}

TEST_F(ReservationTest, ConnectingRefusesTheOtherFamily) {
  Reservation v4 = reserve(Protocol::udp, "0.0.0.0:0");
  EXPECT_EQ(v4.connect(*Endpoint::parse("[fd09::2]:7000")).error().code, ErrorCode::invalid_argument);
  Reservation tcp = reserve(Protocol::tcp, "0.0.0.0:0");
  EXPECT_EQ(tcp.connect(*Endpoint::parse("10.9.0.2:7000")).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace netchannel::control
