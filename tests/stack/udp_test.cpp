// Sockets of one stack against a peer that is the test: what arrives, what is sent, who gets what.
#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

class Udp : public StackTest {
 protected:
  void SetUp() override { start_steered(); }
};

TEST_F(Udp, DeliversADatagramToTheSocketOnItsPort) {
  const UdpHandle socket = open({kOur4, 7});
  ASSERT_TRUE(arrive(udp_from_peer({kPeer4, 4000}, {kOur4, 7}, bytes("hello"))));
  const auto got = receive_one(socket);
  ASSERT_TRUE(got);
  EXPECT_EQ(text(got->payload), "hello");
  EXPECT_EQ(got->peer, (Endpoint{kPeer4, 4000}));
  EXPECT_EQ(got->local, (Endpoint{kOur4, 7}));
  EXPECT_EQ(got->ttl, 64);
  EXPECT_EQ(got->arrival, now);
  EXPECT_EQ(count(Counter::udp_received), 1u);
}

TEST_F(Udp, SendsADatagramThatParsesAndHasARightChecksum) {
  const UdpHandle socket = open({kOur4, 7});
  EXPECT_EQ(send_one(socket, bytes("hello"), {kPeer4, 4000}), SendStatus::queued);
  const auto frame = sent_one();
  ASSERT_TRUE(frame);
  Packet expected = testkit::udp_frame({kPeerMac, kOurMac}, {kOur4, 7}, {kPeer4, 4000}, bytes("hello"));
  const auto ip = wire::parse_ip(l3_of(*frame));
  ASSERT_TRUE(ip);
  EXPECT_TRUE(wire::verify_header_checksum(*ip));
  EXPECT_EQ(Packet(ip->payload.begin(), ip->payload.end()), Packet(expected.begin() + 34, expected.end()));
  EXPECT_EQ(ip->source, kOur4);
  EXPECT_EQ(ip->destination, kPeer4);
}

}  // namespace
}  // namespace netchannel::stack
