// Opening, connecting and what of the options was got.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "rig.hpp"

namespace netchannel::kernel {
namespace {

class Open : public BothWays {
 protected:
  ErrorCode failure(const Endpoint& local, const UdpKernelOptions& wanted) {
    auto socket = UdpSocket::open(local, wanted, rig.pool, rig.counters);
    return socket ? ErrorCode::system : socket.error().code;
  }
};
INSTANTIATE_TEST_SUITE_P(Kernel, Open, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "batched" : "plain"; });

TEST_P(Open, a_taken_port_is_told) {
  auto first = open(at("127.0.0.1:0"));
  EXPECT_EQ(failure(first.local(), options()), ErrorCode::address_in_use);
}

TEST_P(Open, an_address_that_no_interface_has_is_told) {
  EXPECT_EQ(failure(at("203.0.113.7:0"), options()), ErrorCode::address_not_available);
  EXPECT_EQ(failure(at("[2001:db8::7]:0"), options()), ErrorCode::address_not_available);
}

TEST_P(Open, reuse_rules_are_the_kernels) {
  auto both = options();
  both.reuse_port = true;
  auto first = rig.open(at("127.0.0.1:0"), both);
  auto second = rig.open(first.local(), both);
  EXPECT_EQ(second.local(), first.local());
  EXPECT_EQ(failure(first.local(), options()), ErrorCode::address_in_use);
  auto address = options();
  address.reuse_address = true;
  auto third = rig.open(at("127.0.0.1:0"), address);
  auto fourth = rig.open(third.local(), address);
  EXPECT_EQ(fourth.local(), third.local());
}

TEST_P(Open, the_receive_buffer_that_was_got_is_told) {
  auto wanted = options();
  wanted.receive_buffer = 300'000;
  EXPECT_EQ(rig.open(at("127.0.0.1:0"), wanted).receive_buffer(), 300'000u);
}

TEST_P(Open, datagrams_dropped_for_a_full_buffer_are_counted_by_the_kernel) {
  auto wanted = options();
  wanted.receive_buffer = 10'000;
  auto server = rig.open(at("127.0.0.1:0"), wanted);
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(server.kernel_drops(), 0u);
  const std::string payload(1000, 'x');
  for (int i = 0; i < 100; ++i) send_one(client, bytes_of(payload), server.local());
  std::vector<Datagram> out(100);
  std::size_t received = 0;
  while (const std::size_t n = *server.receive(std::span(out).subspan(received), monotonic_now()))
    received += n;
  EXPECT_GT(received, 0u);
  EXPECT_EQ(received + server.kernel_drops(), 100u);
}

TEST_P(Open, a_connected_socket_receives_from_its_peer_only) {
  auto peer = open(at("127.0.0.1:0"));
  auto stranger = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  // Before and after: the kernel keeps what was queued before.
  EXPECT_EQ(send_one(stranger, bytes_of("early"), client.local()), SendStatus::queued);
  EXPECT_EQ(send_one(peer, bytes_of("one"), client.local()), SendStatus::queued);
  ASSERT_TRUE(client.connect(peer.local()));
  EXPECT_EQ(client.peer(), peer.local());
  EXPECT_EQ(send_one(stranger, bytes_of("late"), client.local()), SendStatus::queued);
  EXPECT_EQ(send_one(peer, bytes_of("two"), client.local()), SendStatus::queued);
  const auto got = receive_many(client, 2);
  EXPECT_EQ(text_of(got[0].payload), "one");
  EXPECT_EQ(text_of(got[1].payload), "two");
  EXPECT_EQ(rig.count(Counter::udp_wrong_peer), 1u);
  std::array<Datagram, 4> out;
  EXPECT_EQ(*client.receive(out, monotonic_now()), 0u);
}

TEST_P(Open, a_connected_socket_sends_to_its_peer_and_still_to_others) {
  auto peer = open(at("127.0.0.1:0"));
  auto other = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  ASSERT_TRUE(client.connect(peer.local()));
  EXPECT_EQ(
      send_all(client, {{bytes_of("a"), {}}, {bytes_of("b"), other.local()}, {bytes_of("c"), peer.local()}}),
      all_queued(3));
  EXPECT_EQ(text_of(receive_one(peer).payload), "a");
  EXPECT_EQ(text_of(receive_one(peer).payload), "c");
  EXPECT_EQ(text_of(receive_one(other).payload), "b");
}

TEST_P(Open, disconnecting_gives_back_the_bound_address_and_keeps_the_port) {
  for (const char* local : {"0.0.0.0:0", "[::]:0", "127.0.0.1:0"}) {
    auto peer = open(at("127.0.0.1:0"));
    auto stranger = open(at("127.0.0.1:0"));
    auto client = open(at(local));
    const Endpoint bound = client.local();
    ASSERT_TRUE(client.connect(peer.local()));
    EXPECT_EQ(client.local(), (Endpoint{IpAddress::v4(127, 0, 0, 1), bound.port}));
    ASSERT_TRUE(client.connect({}));
    EXPECT_FALSE(client.connected());
    EXPECT_EQ(client.local(), bound);
    EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::no_peer);
    EXPECT_EQ(send_one(stranger, bytes_of("hello"), {IpAddress::v4(127, 0, 0, 1), bound.port}),
              SendStatus::queued);
    const Datagram got = receive_one(client);
    EXPECT_EQ(got.peer, stranger.local());
    EXPECT_EQ(got.local, (Endpoint{IpAddress::v4(127, 0, 0, 1), bound.port}));
  }
}

TEST_P(Open, connecting_again_chooses_the_local_address_anew) {
  NEEDS_NAMESPACE();
  ASSERT_TRUE(
      shell("ip link add far type veth peer name away && ip addr add 10.5.0.1/24 dev far && ip link set away "
            "up && ip link set far up"));
  auto peer = open(at("127.0.0.1:0"));
  auto client = open(at("0.0.0.0:0"));
  const std::uint16_t port = client.local().port;
  ASSERT_TRUE(client.connect(at("10.5.0.2:9")));
  EXPECT_EQ(client.local(), (Endpoint{IpAddress::v4(10, 5, 0, 1), port}));
  ASSERT_TRUE(client.connect(peer.local()));
  EXPECT_EQ(client.local(), (Endpoint{IpAddress::v4(127, 0, 0, 1), port}));
  EXPECT_EQ(send_one(client, bytes_of("x")), SendStatus::queued);
  EXPECT_EQ(receive_one(peer).peer, client.local());
  EXPECT_TRUE(shell("ip link del far"));
}

TEST_P(Open, peers_that_cannot_be_connected_to_are_told) {
  NEEDS_NAMESPACE();
  auto four = open(at("0.0.0.0:0"));
  EXPECT_EQ(four.connect(at("[::1]:9")).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(four.connect(at("127.0.0.1:0")).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(four.connect(at("203.0.113.1:9")).error().code, ErrorCode::unreachable);
  EXPECT_EQ(four.connect(at("127.255.255.255:9")).error().code, ErrorCode::not_permitted);
  EXPECT_FALSE(four.connected());
}

TEST_P(Open, a_link_local_peer_is_reached_through_the_interface_given) {
  NEEDS_NAMESPACE();
  // The kernel makes the address usable a moment after it was added.
  ASSERT_TRUE(
      shell("ip addr add fe80::1/64 dev lo nodad && for i in $(seq 500); do "
            "ip -6 route show table local | grep -q fe80::1 && exit 0; sleep 0.01; done; exit 1"));
  auto wanted = options();
  wanted.interface_index = ::if_nametoindex("lo");
  auto server = rig.open(at("[fe80::1]:0"), wanted);
  auto client = rig.open(at("[fe80::1]:0"), wanted);
  EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
  EXPECT_EQ(receive_one(server).peer, client.local());
  ASSERT_TRUE(client.connect(server.local()));
  EXPECT_EQ(send_one(client, bytes_of("y")), SendStatus::queued);
  EXPECT_EQ(send_one(server, bytes_of("z"), client.local()), SendStatus::queued);
  EXPECT_EQ(text_of(receive_one(client).payload), "z");
  EXPECT_TRUE(shell("ip addr del fe80::1/64 dev lo"));
}

TEST_P(Open, busy_polling_is_on_exactly_if_the_kernel_took_it) {
  auto wanted = options();
  wanted.busy_poll_microseconds = 50;
  auto socket = rig.open(at("127.0.0.1:0"), wanted);
  int got = 0;
  socklen_t size = sizeof(got);
  ASSERT_EQ(::getsockopt(socket.fd(), SOL_SOCKET, SO_BUSY_POLL, &got, &size), 0);
  EXPECT_EQ(socket.busy_poll(), got == 50);
  EXPECT_FALSE(open(at("127.0.0.1:0")).busy_poll());
}

TEST_P(Open, a_moved_socket_goes_on) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(send_one(client, bytes_of("1"), server.local()), SendStatus::queued);
  EXPECT_EQ(text_of(receive_one(server).payload), "1");
  UdpSocket moved = std::move(server);
  UdpSocket sender = open(at("127.0.0.1:0"));
  sender = std::move(client);
  EXPECT_EQ(send_one(sender, bytes_of("2"), moved.local()), SendStatus::queued);
  EXPECT_EQ(text_of(receive_one(moved).payload), "2");
}

}  // namespace
}  // namespace netchannel::kernel
