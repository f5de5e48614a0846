// Datagrams there and back, one call a message and batched alike.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <numeric>

#include "rig.hpp"

namespace netchannel::kernel {
namespace {

INSTANTIATE_TEST_SUITE_P(Kernel, BothWays, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "batched" : "plain"; });

TEST_P(BothWays, a_datagram_arrives_with_its_peer_and_its_local_address_over_ipv4) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.2:0"));
  ASSERT_NE(server.local().port, 0);
  EXPECT_EQ(send_one(client, bytes_of("hello"), server.local()), SendStatus::queued);
  const Datagram got = receive_one(server);
  EXPECT_EQ(text_of(got.payload), "hello");
  EXPECT_EQ(got.peer, client.local());
  EXPECT_EQ(got.local, server.local());
  EXPECT_FALSE(got.truncated);
  EXPECT_GT(got.arrival, Instant{});
  EXPECT_LE(got.arrival, monotonic_now());
}

TEST_P(BothWays, a_datagram_arrives_with_its_peer_and_its_local_address_over_ipv6) {
  auto server = open(at("[::1]:0"));
  auto client = open(at("[::1]:0"));
  EXPECT_EQ(send_one(client, bytes_of("hello"), server.local()), SendStatus::queued);
  const Datagram got = receive_one(server);
  EXPECT_EQ(text_of(got.payload), "hello");
  EXPECT_EQ(got.peer, client.local());
  EXPECT_EQ(got.local, at(("[::1]:" + std::to_string(server.local().port)).c_str()));
}

TEST_P(BothWays, a_socket_bound_to_any_tells_the_address_that_each_datagram_was_sent_to) {
  auto server = open(at("0.0.0.0:0"));
  auto client = open(at("127.0.0.1:0"));
  const std::uint16_t port = server.local().port;
  for (const char* address : {"127.0.0.1", "127.0.0.77"}) {
    const Endpoint to{*IpAddress::parse(address), port};
    EXPECT_EQ(send_one(client, bytes_of("x"), to), SendStatus::queued);
    EXPECT_EQ(receive_one(server).local, to);
  }
}

TEST_P(BothWays, a_dual_stack_socket_serves_both_families_and_answers_them) {
  auto server = open(at("[::]:0"));
  auto v4 = open(at("127.0.0.1:0"));
  auto v6 = open(at("[::1]:0"));
  const std::uint16_t port = server.local().port;
  EXPECT_EQ(send_one(v4, bytes_of("four"), {IpAddress::v4(127, 0, 0, 9), port}), SendStatus::queued);
  Datagram got = receive_one(server);
  EXPECT_EQ(got.peer, v4.local());
  EXPECT_EQ(got.local, (Endpoint{IpAddress::v4(127, 0, 0, 9), port}));
  EXPECT_EQ(send_one(server, bytes_of("back"), got.peer), SendStatus::queued);
  EXPECT_EQ(text_of(receive_one(v4).payload), "back");

  EXPECT_EQ(send_one(v6, bytes_of("six"), {*IpAddress::parse("::1"), port}), SendStatus::queued);
  got = receive_one(server);
  EXPECT_EQ(got.peer, v6.local());
  EXPECT_EQ(got.local, (Endpoint{*IpAddress::parse("::1"), port}));
}

TEST_P(BothWays, an_ipv6_only_socket_leaves_ipv4_to_others) {
  auto wanted = options();
  wanted.v6_only = true;
  auto six = rig.open(at("[::]:0"), wanted);
  auto four = open({IpAddress::any_v4(), six.local().port});
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(send_one(client, bytes_of("x"), {IpAddress::v4(127, 0, 0, 1), six.local().port}),
            SendStatus::queued);
  EXPECT_EQ(text_of(receive_one(four).payload), "x");
  EXPECT_EQ(send_one(six, bytes_of("x"), client.local()), SendStatus::bad_peer);
}

TEST_P(BothWays, a_zero_length_datagram_is_a_datagram) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  const Endpoint to = server.local();
  EXPECT_EQ(send_all(client, {{{}, to}, {bytes_of("a"), to}, {{}, to}, {{}, to}}), all_queued(4));
  const auto got = receive_many(server, 4);
  EXPECT_EQ(got[0].payload.size(), 0u);
  EXPECT_EQ(text_of(got[1].payload), "a");
  EXPECT_EQ(got[3].payload.size(), 0u);
  EXPECT_EQ(got[3].peer, client.local());
}

TEST_P(BothWays, the_longest_datagrams_pass_and_longer_ones_are_told) {
  for (const auto& [address, most] : {std::pair{"127.0.0.1:0", 65507}, std::pair{"[::1]:0", 65527}}) {
    auto server = open(at(address));
    auto client = open(at(address));
    const std::string longest(static_cast<std::size_t>(most), 'z');
    EXPECT_EQ(send_one(client, bytes_of(longest), server.local()), SendStatus::queued);
    const Datagram got = receive_one(server);
    EXPECT_EQ(text_of(got.payload), longest);
    EXPECT_FALSE(got.truncated);
    const auto calls = client.syscalls();
    EXPECT_EQ(send_one(client, bytes_of(longest + "z"), server.local()), SendStatus::message_too_long);
    EXPECT_EQ(client.syscalls(), calls);
  }
}

TEST_P(BothWays, a_datagram_longer_than_a_frame_is_cut_off_and_says_so) {
  Rig small(2048, 64);
  auto server = small.open(at("127.0.0.1:0"), options());
  auto client = open(at("127.0.0.1:0"));
  std::string text(3000, '\0');
  std::iota(text.begin(), text.end(), '\0');
  EXPECT_EQ(send_one(client, bytes_of(text), server.local()), SendStatus::queued);
  EXPECT_EQ(send_one(client, bytes_of(text.substr(0, 2048)), server.local()), SendStatus::queued);
  const auto got = receive_many(server, 2);
  EXPECT_TRUE(got[0].truncated);
  EXPECT_EQ(text_of(got[0].payload), text.substr(0, 2048));
  EXPECT_FALSE(got[1].truncated);
  EXPECT_EQ(text_of(got[1].payload), text.substr(0, 2048));
  EXPECT_EQ(small.count(Counter::udp_truncated_read), 1u);
}

TEST_P(BothWays, one_payload_goes_to_many_peers) {
  std::vector<UdpSocket> servers;
  std::vector<OutDatagram> out;
  for (int i = 0; i < 40; ++i) servers.push_back(open(at("127.0.0.1:0")));
  for (const auto& server : servers) out.push_back({{}, server.local(), true});
  out.front() = {bytes_of("same for all"), servers.front().local(), false};
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(send_all(client, out), all_queued(40));
  for (auto& server : servers) EXPECT_EQ(text_of(receive_one(server).payload), "same for all");
}

TEST_P(BothWays, the_payload_before_is_sent_again_even_if_it_could_not_be_sent_itself) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  const Endpoint to = server.local();
  const auto statuses = send_all(client, {{bytes_of("payload"), at("127.0.0.1:0")}, {{}, to, true}});
  EXPECT_EQ(statuses, (std::vector{SendStatus::bad_peer, SendStatus::queued}));
  EXPECT_EQ(text_of(receive_one(server).payload), "payload");
}

TEST_P(BothWays, the_same_as_nothing_is_not_sent) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  const auto statuses = send_all(client, {{{}, server.local(), true}, {bytes_of("x"), server.local()}});
  EXPECT_EQ(statuses, (std::vector{SendStatus::failed, SendStatus::queued}));
  EXPECT_EQ(text_of(receive_one(server).payload), "x");
}

TEST_P(BothWays, many_peers_are_told_apart) {
  auto server = open(at("127.0.0.1:0"));
  std::vector<UdpSocket> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(open(at("127.0.0.1:0")));
    EXPECT_EQ(send_one(clients.back(), bytes_of(std::to_string(i)), server.local()), SendStatus::queued);
  }
  const auto got = receive_many(server, 100);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(text_of(got[i].payload), std::to_string(i));
    EXPECT_EQ(got[i].peer, clients[i].local());
  }
}

TEST_P(BothWays, each_datagram_of_a_batch_has_its_own_status_and_the_good_ones_arrive) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("0.0.0.0:0"));
  NEEDS_NAMESPACE();  // for a network without a default route
  const Endpoint to = server.local();
  const std::string too_long(65508, 'x');
  const auto statuses = send_all(client, {
                                             {bytes_of("a"), to},
                                             {bytes_of("b"), {}},
                                             {bytes_of("c"), at("[::1]:9")},
                                             {bytes_of("d"), to},
                                             {bytes_of("e"), at("127.0.0.1:0")},
                                             {bytes_of("f"), at("127.255.255.255:9")},
                                             {bytes_of("g"), to},
                                             {bytes_of("h"), at("203.0.113.1:9")},
                                             {bytes_of(too_long), to},
                                             {bytes_of("i"), to},
                                         });
  using enum SendStatus;
  EXPECT_EQ(statuses, (std::vector{queued, no_peer, bad_peer, queued, bad_peer, bad_peer, queued, unreachable,
                                   message_too_long, queued}));
  std::string text;
  for (const auto& datagram : receive_many(server, 4)) text += text_of(datagram.payload);
  EXPECT_EQ(text, "adgi");
  EXPECT_EQ(rig.count(Counter::udp_sent), 4u);
}

TEST_P(BothWays, a_broadcast_is_sent_with_permission) {
  NEEDS_NAMESPACE();
  auto server = open(at("0.0.0.0:0"));
  auto wanted = options();
  wanted.broadcast = true;
  auto client = rig.open(at("127.0.0.1:0"), wanted);
  const Endpoint to{IpAddress::v4(127, 255, 255, 255), server.local().port};
  EXPECT_EQ(send_one(client, bytes_of("all"), to), SendStatus::queued);
  EXPECT_EQ(receive_one(server).local, to);
}

TEST_P(BothWays, no_room_is_told_for_the_first_that_finds_none_and_all_after_it) {
  NEEDS_NAMESPACE();
  // Nobody answers for the neighbour, so what is sent waits for it and keeps the send buffer full.
  ASSERT_TRUE(
      shell("ip link add quiet type veth peer name other && ip addr add 10.8.0.1/24 dev quiet && "
            "ip link set other up && ip link set quiet up && "
            "echo 60000 > /proc/sys/net/ipv4/neigh/quiet/retrans_time_ms"));
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("0.0.0.0:0"));
  const int least = 1;
  ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
  const std::string payload(1000, 'x');
  std::vector<OutDatagram> out(100, OutDatagram{bytes_of(payload), at("10.8.0.2:9")});
  for (std::size_t i = 0; i < out.size(); i += 2) out[i].payload = bytes_of("short");
  std::vector<SendStatus> statuses(out.size());
  const std::size_t taken = client.send(out, statuses);
  EXPECT_GT(taken, 0u);
  ASSERT_LT(taken, out.size());
  const auto end_of_taken = statuses.begin() + static_cast<std::ptrdiff_t>(taken);
  EXPECT_TRUE(std::all_of(statuses.begin(), end_of_taken, [](auto s) { return s == SendStatus::queued; }));
  EXPECT_TRUE(std::all_of(end_of_taken, statuses.end(), [](auto s) { return s == SendStatus::would_block; }));
  EXPECT_EQ(*client.wait_writable(monotonic_now()), false);
  ASSERT_TRUE(shell("ip link del quiet"));
  EXPECT_EQ(*client.wait_writable(soon()), true);
  EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
}

TEST_P(BothWays, tos_and_ttl_come_with_a_datagram_if_asked_for) {
  auto wanted = options();
  wanted.tos_and_ttl = true;
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    auto server = rig.open(at(address), wanted);
    auto client = open(at(address));
    const int tos = 0x2e << 2 | 1;
    const int ttl = 33;
    const bool v4 = client.local().address.is_v4();
    ASSERT_EQ(::setsockopt(client.fd(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &tos,
                           sizeof(tos)),
              0);
    ASSERT_EQ(::setsockopt(client.fd(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_UNICAST_HOPS, &ttl,
                           sizeof(ttl)),
              0);
    EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
    const Datagram got = receive_one(server);
    EXPECT_EQ(got.tos, tos);
    EXPECT_EQ(got.ttl, ttl);
    EXPECT_EQ(got.local, server.local());
  }
}

TEST_P(BothWays, frames_that_run_out_are_told_and_no_datagram_is_lost) {
  Rig small(65536, 2);
  auto server = small.open(at("127.0.0.1:0"), options());
  auto client = open(at("127.0.0.1:0"));
  std::array<Datagram, 3> held;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(send_one(client, bytes_of("held"), server.local()), SendStatus::queued);
    held[i] = receive_one(server);
  }
  EXPECT_EQ(send_one(client, bytes_of("third"), server.local()), SendStatus::queued);
  auto got = server.receive(std::span(held).last(1), monotonic_now());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::no_memory);
  EXPECT_EQ(small.count(Counter::no_frames), 1u);
  held[0] = {};
  EXPECT_EQ(text_of(receive_one(server).payload), "third");
}

TEST_P(BothWays, what_the_receiver_still_held_is_released_before_frames_are_taken) {
  Rig small(65536, 1);
  auto server = small.open(at("127.0.0.1:0"), options());
  auto client = open(at("127.0.0.1:0"));
  std::array<Datagram, 1> out;
  for (const char* text : {"one", "two", "three"}) {
    EXPECT_EQ(send_one(client, bytes_of(text), server.local()), SendStatus::queued);
    auto got = server.receive_blocking(out, 1, soon());
    ASSERT_TRUE(got) << describe(got.error());
    EXPECT_EQ(text_of(out[0].payload), text);
  }
}

}  // namespace
}  // namespace netchannel::kernel
