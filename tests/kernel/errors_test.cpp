// What ICMP says reaches the connected socket that it concerns: once, and without costing a datagram.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "rig.hpp"

namespace netchannel::kernel {
namespace {

class Errors : public BothWays {
 protected:
  // A port of 127.0.0.1 that was free a moment ago.
  Endpoint closed_port() { return open(at("127.0.0.1:0")).local(); }
  Result<std::size_t> receive(UdpSocket& socket) { return socket.receive(out, monotonic_now()); }
  static short readiness(const UdpSocket& socket) {
    pollfd wanted{socket.fd(), POLLIN, 0};
    ::poll(&wanted, 1, 0);
    return wanted.revents;
  }
  std::array<Datagram, 8> out;
};
INSTANTIATE_TEST_SUITE_P(Kernel, Errors, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "batched" : "plain"; });

TEST_P(Errors, a_closed_port_is_told_once_to_the_receiver) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0", "[::]:0"}) {
    auto client = open(at(address));
    const Endpoint local = client.local();
    Endpoint to = closed_port();
    if (local.address == *IpAddress::parse("::1")) to.address = local.address;
    ASSERT_TRUE(client.connect(to));
    EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::queued);
    auto got = receive(client);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::refused);
    got = receive(client);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, 0u);
    EXPECT_EQ(readiness(client), 0) << "a poll would not sleep";
  }
  EXPECT_EQ(rig.count(Counter::icmp_errors_delivered), 3u);
}

TEST_P(Errors, a_closed_port_is_told_once_to_the_sender_and_that_datagram_is_not_sent) {
  auto client = open(at("127.0.0.1:0"));
  const Endpoint to = closed_port();
  ASSERT_TRUE(client.connect(to));
  EXPECT_EQ(send_one(client, bytes_of("lost")), SendStatus::queued);
  auto server = open(to);
  using enum SendStatus;
  const std::vector<OutDatagram> batch{{bytes_of("1"), {}}, {bytes_of("2"), {}}, {bytes_of("3"), {}}};
  EXPECT_EQ(send_all(client, batch), (std::vector{refused, queued, queued}));
  const auto got = receive_many(server, 2);
  EXPECT_EQ(text_of(got[0].payload), "2");
  EXPECT_EQ(text_of(got[1].payload), "3");
  auto nothing = receive(client);
  ASSERT_TRUE(nothing) << "the sender had been told";
  EXPECT_EQ(readiness(client), 0);
}

TEST_P(Errors, an_error_costs_no_datagram) {
  auto client = open(at("127.0.0.1:0"));
  const Endpoint to = closed_port();
  ASSERT_TRUE(client.connect(to));
  EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::queued);
  auto server = open(to);
  for (const char* text : {"1", "2", "3"}) {
    EXPECT_EQ(send_one(server, bytes_of(text), client.local()), SendStatus::queued);
  }
  auto got = client.receive_blocking(out, 3, soon());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::refused);
  std::string text;
  for (const auto& datagram : receive_many(client, 3)) text += text_of(datagram.payload);
  EXPECT_EQ(text, "123");
}

TEST_P(Errors, errors_that_came_together_are_told_as_one) {
  auto client = open(at("127.0.0.1:0"));
  auto other = open(at("127.0.0.1:0"));
  ASSERT_TRUE(client.connect(closed_port()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.connected());
    send_one(client, bytes_of("x"));
  }
  EXPECT_FALSE(receive(client));
  EXPECT_TRUE(receive(client));
  EXPECT_EQ(readiness(client), 0);
}

TEST_P(Errors, a_socket_that_is_not_connected_hears_of_no_icmp) {
  auto client = open(at("127.0.0.1:0"));
  const Endpoint to = closed_port();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send_one(client, bytes_of("x"), to), SendStatus::queued);
  EXPECT_EQ(*receive(client), 0u);
}

TEST_P(Errors, a_neighbour_that_does_not_answer_is_told_as_unreachable) {
  NEEDS_NAMESPACE();
  ASSERT_TRUE(
      shell("ip link add quiet type veth peer name other && ip addr add 10.8.0.1/24 dev quiet && "
            "ip link set other up && ip link set quiet up && "
            "echo 20 > /proc/sys/net/ipv4/neigh/quiet/retrans_time_ms"));
  auto client = open(at("0.0.0.0:0"));
  ASSERT_TRUE(client.connect(at("10.8.0.2:9")));
  EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::queued);
  auto got = client.receive_blocking(out, 1, soon());
  ASSERT_FALSE(got) << "no error within five seconds";
  EXPECT_EQ(got.error().code, ErrorCode::unreachable);
  EXPECT_EQ(*receive(client), 0u);
  EXPECT_TRUE(shell("ip link del quiet"));
}

TEST_P(Errors, a_route_that_says_unreachable_is_told_by_the_send_alone) {
  NEEDS_NAMESPACE();
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("0.0.0.0:0"));
  ASSERT_TRUE(client.connect(server.local()));
  EXPECT_EQ(send_one(client, bytes_of("x"), at("203.0.113.9:9")), SendStatus::unreachable);
  EXPECT_EQ(*receive(client), 0u);
  EXPECT_EQ(readiness(client), 0);
}

TEST_P(Errors, a_datagram_above_the_path_mtu_is_told_where_fragments_are_forbidden) {
  NEEDS_NAMESPACE();
  ASSERT_TRUE(shell("ip link set lo mtu 1500"));
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  const int never = IP_PMTUDISC_DO;
  ASSERT_EQ(::setsockopt(client.fd(), IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never)), 0);
  ASSERT_TRUE(client.connect(server.local()));
  const std::string large(2000, 'x');
  using enum SendStatus;
  EXPECT_EQ(send_all(client, {{bytes_of(large), {}}, {bytes_of(large), {}}, {bytes_of("small"), {}}}),
            (std::vector{message_too_long, message_too_long, queued}));
  EXPECT_TRUE(client.gso() || !GetParam());
  EXPECT_EQ(text_of(receive_one(server).payload), "small");
  EXPECT_EQ(*receive(client), 0u);
  EXPECT_EQ(readiness(client), 0) << "the kernel's own copy of the error must not stay";
  EXPECT_TRUE(shell("ip link set lo mtu 65536"));
}

TEST_P(Errors, disconnecting_forgets_errors_of_the_peer) {
  auto client = open(at("127.0.0.1:0"));
  ASSERT_TRUE(client.connect(closed_port()));
  EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::queued);
  ASSERT_TRUE(client.disconnect());
  EXPECT_EQ(*receive(client), 0u);
}

Error error_of(int sys_errno) { return receive_error(sys_errno); }

TEST(PendingErrors, each_kind_is_kept_once_and_told_in_order) {
  PendingErrors pending;
  EXPECT_TRUE(pending.empty());
  for (const int e : {EHOSTUNREACH, ECONNREFUSED, ENETUNREACH, EMSGSIZE, EPROTO, ECONNREFUSED}) {
    pending.push(error_of(e));
  }
  for (const int e : {EHOSTUNREACH, ECONNREFUSED, EMSGSIZE, EPROTO}) EXPECT_EQ(pending.pop().sys_errno, e);
  EXPECT_TRUE(pending.empty());
}

TEST(PendingErrors, an_error_put_back_is_the_next_and_a_taken_one_is_gone) {
  PendingErrors pending;
  pending.push(error_of(ECONNREFUSED));
  pending.push(error_of(EMSGSIZE));
  pending.put_back(pending.pop());
  EXPECT_FALSE(pending.take(ErrorCode::unreachable));
  EXPECT_TRUE(pending.take(ErrorCode::refused));
  EXPECT_EQ(pending.pop().code, ErrorCode::message_too_long);
  EXPECT_TRUE(pending.empty());
}

}  // namespace
}  // namespace netchannel::kernel
