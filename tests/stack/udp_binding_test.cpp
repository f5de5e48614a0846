// Who may bind what, and which socket a datagram is for: the kernel's rules.
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;

class UdpBindings : public StackTest {
 protected:
  void SetUp() override { start_steered(); }
  Packet from_peer(std::uint16_t port, Bytes payload) {
    return udp_from_peer({kPeer4, port}, {kOur4, 7}, payload);
  }
  // The payload that waits in a socket, or "none".
  std::string next_text(UdpHandle socket) {
    const auto got = receive_one(socket);
    return got ? text(got->payload) : "none";
  }
};

TEST_F(UdpBindings, APortIsTakenOnce) {
  open({kOur4, 7});
  UdpBind bind;
  bind.local = {kOur4, 7};
  EXPECT_EQ(stack().open_udp(bind).error().code, ErrorCode::address_in_use);
  bind.local = {IpAddress::any_v4(), 7};
  EXPECT_EQ(stack().open_udp(bind).error().code, ErrorCode::address_in_use);
  bind.local = {IpAddress::any_v6(), 7};
  EXPECT_EQ(stack().open_udp(bind).error().code, ErrorCode::address_in_use);
  bind.v6_only = true;
  EXPECT_TRUE(stack().open_udp(bind));
  bind.local = {IpAddress::v4(10, 0, 0, 77), 9};
  EXPECT_EQ(stack().open_udp(bind).error().code, ErrorCode::address_not_available);
}

TEST_F(UdpBindings, APortIsFreeAgainAfterClose) {
  const UdpHandle first = open({kOur4, 7});
  stack().close_udp(first);
  const UdpHandle second = open({kOur4, 7});
  EXPECT_NE(first, second);
  EXPECT_FALSE(stack().udp_info(first));
  EXPECT_TRUE(stack().udp_info(second));
}

TEST_F(UdpBindings, SharingNeedsTheConsentOfAll) {
  UdpBind reuse_address, reuse_port, none;
  reuse_address.reuse_address = reuse_port.reuse_port = true;
  reuse_address.local = reuse_port.local = none.local = {kOur4, 7};
  ASSERT_TRUE(stack().open_udp(reuse_address));
  EXPECT_TRUE(stack().open_udp(reuse_address));
  EXPECT_EQ(stack().open_udp(reuse_port).error().code, ErrorCode::address_in_use);
  EXPECT_EQ(stack().open_udp(none).error().code, ErrorCode::address_in_use);
}

TEST_F(UdpBindings, PortZeroChoosesOneThatIsFree) {
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 50; ++i) {
    const auto info = stack().udp_info(open({kOur4, 0}));
    ASSERT_TRUE(info);
    EXPECT_GE(info->local.port, 32768);
    EXPECT_LE(info->local.port, 60999);
    ports.push_back(info->local.port);
  }
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(std::unique(ports.begin(), ports.end()), ports.end());
}

// Who receives what.

TEST_F(UdpBindings, TheMoreExactSocketReceives) {
  UdpBind shared;
  shared.reuse_address = true;
  const UdpHandle dual = open({IpAddress::any_v6(), 7}, shared);
  EXPECT_TRUE(arrive(from_peer(4000, bytes("1"))));
  EXPECT_EQ(next_text(dual), "1");
  const UdpHandle any = open({IpAddress::any_v4(), 7}, shared);
  EXPECT_TRUE(arrive(from_peer(4000, bytes("2"))));
  EXPECT_EQ(next_text(any), "2");
  const UdpHandle specific = open({kOur4, 7}, shared);
  EXPECT_TRUE(arrive(from_peer(4000, bytes("3"))));
  EXPECT_EQ(next_text(specific), "3");
  const UdpHandle connected = open({kOur4, 7}, shared);
  ASSERT_TRUE(stack().connect_udp(connected, {kPeer4, 4000}));
  EXPECT_TRUE(arrive(from_peer(4000, bytes("4"))));
  EXPECT_EQ(next_text(connected), "4");
  EXPECT_TRUE(arrive(from_peer(4001, bytes("5"))));
  EXPECT_EQ(next_text(specific), "5");
  EXPECT_TRUE(arrive(udp_from_peer({kPeer6, 4000}, {kOur6, 7}, bytes("6"))));
  EXPECT_EQ(next_text(dual), "6");
  EXPECT_EQ(next_text(any), "none");
}

TEST_F(UdpBindings, WithReuseAddressTheNewestReceives) {
  UdpBind shared;
  shared.reuse_address = true;
  const UdpHandle old = open({kOur4, 7}, shared), fresh = open({kOur4, 7}, shared);
  arrive(from_peer(4000, bytes("x")));
  EXPECT_EQ(next_text(old), "none");
  EXPECT_EQ(next_text(fresh), "x");
  stack().close_udp(fresh);
  arrive(from_peer(4000, bytes("y")));
  EXPECT_EQ(next_text(old), "y");
}

TEST_F(UdpBindings, WithReusePortFlowsAreSpreadAndEachStaysWithItsSocket) {
  UdpBind shared;
  shared.reuse_port = true;
  std::vector<UdpHandle> sockets;
  for (int i = 0; i < 4; ++i) sockets.push_back(open({kOur4, 7}, shared));
  std::vector<int> hits(4);
  for (std::uint16_t port = 1000; port < 1100; ++port) {
    std::optional<std::size_t> owner;
    for (int turn = 0; turn < 3; ++turn) {
      arrive(from_peer(port, bytes("x")));
      for (std::size_t i = 0; i < 4; ++i) {
        if (!receive_one(sockets[i])) continue;
        EXPECT_EQ(owner.value_or(i), i);
        owner = i;
      }
    }
    ASSERT_TRUE(owner);
    ++hits[*owner];
  }
  for (const int n : hits) EXPECT_GT(n, 5);
}

TEST_F(UdpBindings, AConnectedSocketReceivesFromItsPeerOnly) {
  const UdpHandle socket = open({IpAddress::any_v4(), 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 4000}));
  EXPECT_EQ(stack().udp_info(socket)->local, (Endpoint{kOur4, 7}));
  arrive(from_peer(4001, bytes("stranger")));
  EXPECT_EQ(next_text(socket), "none");
  EXPECT_EQ(count(DropReason::udp_wrong_peer), 1u);
  arrive(from_peer(4000, bytes("peer")));
  EXPECT_EQ(next_text(socket), "peer");
  EXPECT_EQ(send_one(socket, bytes("x")), SendStatus::queued);
  EXPECT_EQ(send_one(socket, bytes("x"), {kPeer4, 9}), SendStatus::queued);  // sendto to another is allowed
  EXPECT_EQ(sent().size(), 2u);
  stack().disconnect_udp(socket);
  EXPECT_EQ(stack().udp_info(socket)->local, (Endpoint{IpAddress::any_v4(), 7}));
  EXPECT_EQ(send_one(socket, bytes("x")), SendStatus::no_peer);
  arrive(from_peer(4001, bytes("stranger")));
  EXPECT_EQ(next_text(socket), "stranger");
}

TEST_F(UdpBindings, ADualSocketConnectsToIpv4AndIsDualAgainAfterwards) {
  const UdpHandle socket = open({IpAddress::any_v6(), 7});
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer4, 4000}));
  ASSERT_TRUE(stack().connect_udp(socket, {kPeer6, 4000}));
  EXPECT_EQ(stack().udp_info(socket)->local, (Endpoint{kOur6, 7}));
  stack().disconnect_udp(socket);
  EXPECT_EQ(stack().udp_info(socket)->local, (Endpoint{IpAddress::any_v6(), 7}));
  arrive(from_peer(4000, bytes("four")));
  EXPECT_EQ(next_text(socket), "four");
}

TEST_F(UdpBindings, ManyConnectedSocketsOnOnePortFindTheirOwn) {
  UdpBind shared;
  shared.reuse_address = true;
  std::vector<UdpHandle> sockets;
  for (std::uint16_t port = 1000; port < 1200; ++port) {
    sockets.push_back(open({kOur4, 7}, shared));
    ASSERT_TRUE(stack().connect_udp(sockets.back(), {kPeer4, port}));
  }
  for (std::uint16_t port = 1000; port < 1200; ++port) {
    arrive(from_peer(port, bytes("x")));
    EXPECT_TRUE(receive_one(sockets[port - 1000u])) << port;
  }
  for (std::size_t i = 0; i < sockets.size(); i += 2) stack().close_udp(sockets[i]);
  arrive(from_peer(1001, bytes("x")));
  EXPECT_TRUE(receive_one(sockets[1]));
  arrive(from_peer(1000, bytes("x")));
  EXPECT_EQ(count(DropReason::udp_wrong_peer), 1u);
}

}  // namespace
}  // namespace netchannel::stack
