// UDP GSO and GRO: that they are really used, that they change nothing but the number of calls, and what
// happens where they are refused.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstring>

#include "rig.hpp"

namespace netchannel::kernel {
namespace {

class Offload : public ::testing::Test {
 protected:
  static UdpKernelOptions batched(bool gso = true, bool gro = true) {
    return {.batched = true, .gso = gso, .gro = gro};
  }
  // `n` payloads of `size` bytes that differ, one after the other in memory if `adjacent`.
  std::vector<OutDatagram> burst(std::size_t n, std::size_t size, const Endpoint& to, bool adjacent = true) {
    const std::size_t stride = adjacent ? size : size + 1;
    memory_.emplace_back(n * stride, '-');
    std::vector<OutDatagram> out;
    for (std::size_t i = 0; i < n; ++i) {
      char* start = memory_.back().data() + i * stride;
      std::memset(start, 'a' + static_cast<int>(i % 26), size);
      out.push_back({bytes_of({start, size}), to, false});
    }
    return out;
  }
  static void expect_same(const std::vector<Datagram>& got, const std::vector<OutDatagram>& sent) {
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(text_of(got[i].payload), text_of(sent[i].payload)) << "datagram " << i;
    }
  }

  Rig rig;

 private:
  std::vector<std::string> memory_;
};

TEST_F(Offload, sixty_four_datagrams_take_one_call_to_send_and_one_to_receive) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"}) {
    auto server = rig.open(at(address), batched());
    auto client = rig.open(at(address), batched());
    Endpoint to = server.local();
    if (to.address.is_unspecified()) to.address = IpAddress::v4(127, 0, 0, 1);
    const auto sent = burst(64, 500, to);
    EXPECT_EQ(send_all(client, sent), all_queued(64));
    EXPECT_EQ(client.syscalls(), 1u);
    const auto got = receive_many(server, 64);
    expect_same(got, sent);
    EXPECT_EQ(server.syscalls(), 1u);
    EXPECT_EQ(got.back().local, to);
  }
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 3u);
  EXPECT_EQ(rig.count(Counter::udp_gro_messages), 3u);
  EXPECT_EQ(rig.count(Counter::udp_gso_refused), 0u);
}

TEST_F(Offload, a_program_with_its_own_gro_socket_sees_our_segment_size) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  EXPECT_EQ(send_all(client, burst(10, 300, server.local(), false)), all_queued(10));
  std::string room(65536, '\0');
  alignas(cmsghdr) std::array<char, 128> control{};
  iovec piece{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ASSERT_EQ(::recvmsg(server.fd(), &message, MSG_DONTWAIT), 3000);
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->cmsg_level, IPPROTO_UDP);
  EXPECT_EQ(c->cmsg_type, UDP_GRO);
  int size = 0;
  std::memcpy(&size, CMSG_DATA(c), sizeof(size));
  EXPECT_EQ(size, 300);
}

TEST_F(Offload, a_receiver_without_gro_sees_single_datagrams) {
  auto server = rig.open(at("127.0.0.1:0"), batched(true, false));
  auto client = rig.open(at("127.0.0.1:0"), batched());
  EXPECT_FALSE(server.gro());
  const auto sent = burst(64, 200, server.local());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  EXPECT_EQ(client.syscalls(), 1u);
  expect_same(receive_many(server, 64), sent);
  EXPECT_EQ(rig.count(Counter::udp_gro_messages), 0u);
}

TEST_F(Offload, without_gso_a_burst_still_takes_one_call) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched(false));
  EXPECT_FALSE(client.gso());
  const auto sent = burst(64, 200, server.local());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  EXPECT_EQ(client.syscalls(), 1u);
  expect_same(receive_many(server, 64), sent);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 0u);
}

TEST_F(Offload, small_frames_do_without_gro_so_that_nothing_is_cut_off) {
  Rig small(2048, 256);
  auto server = small.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  EXPECT_FALSE(server.gro());
  const auto sent = burst(64, 1000, server.local());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  expect_same(receive_many(server, 64), sent);
}

TEST_F(Offload, only_the_last_of_a_run_may_be_shorter) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  std::vector<OutDatagram> sent;
  for (const std::size_t size : {100u, 100u, 40u, 40u, 40u, 60u, 0u, 0u, 60u, 60u, 1u}) {
    sent.push_back(burst(1, size, server.local()).front());
  }
  EXPECT_EQ(send_all(client, sent), all_queued(sent.size()));
  EXPECT_EQ(client.syscalls(), 1u);
  expect_same(receive_many(server, sent.size()), sent);
  // [100 100 40] [40 40] [60] [0] [0] [60 60 1]
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 3u);
}

TEST_F(Offload, runs_longer_than_a_message_holds_go_in_several) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  const auto many = burst(200, 10, server.local());
  EXPECT_EQ(send_all(client, many), all_queued(200));
  EXPECT_EQ(client.syscalls(), 1u);
  expect_same(receive_many(server, 200), many);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 4u);
  const auto large = burst(9, 20000, server.local());
  EXPECT_EQ(send_all(client, large), all_queued(9));
  expect_same(receive_many(server, 9), large);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 7u);
}

TEST_F(Offload, datagrams_to_many_peers_take_one_call_and_keep_their_order) {
  std::vector<UdpSocket> servers;
  std::vector<OutDatagram> sent;
  for (int i = 0; i < 16; ++i) servers.push_back(rig.open(at("127.0.0.1:0"), batched()));
  for (std::size_t i = 0; i < 64; ++i) {
    sent.push_back(burst(1, 100, servers[i % servers.size()].local()).front());
    std::memset(const_cast<std::byte*>(sent.back().payload.data()), 'A' + static_cast<int>(i), 100);
  }
  auto client = rig.open(at("127.0.0.1:0"), batched());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  EXPECT_EQ(client.syscalls(), 1u);
  for (std::size_t s = 0; s < servers.size(); ++s) {
    const auto got = receive_many(servers[s], 4);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(text_of(got[i].payload), text_of(sent[s + i * servers.size()].payload));
    }
  }
}

TEST_F(Offload, more_datagrams_than_one_call_takes_go_in_several) {
  auto one = rig.open(at("127.0.0.1:0"), batched());
  auto two = rig.open(at("127.0.0.1:0"), batched());
  std::vector<OutDatagram> sent = burst(150, 50, one.local());
  for (std::size_t i = 1; i < sent.size(); i += 2) sent[i].peer = two.local();
  auto client = rig.open(at("127.0.0.1:0"), batched());
  EXPECT_EQ(send_all(client, sent), all_queued(150));
  EXPECT_EQ(client.syscalls(), 3u);  // 64, 64, 22
  EXPECT_EQ(receive_many(one, 75).size(), 75u);
  EXPECT_EQ(receive_many(two, 75).size(), 75u);
}

TEST_F(Offload, a_gro_message_is_handed_out_over_several_calls_and_its_frame_comes_home) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  const auto sent = burst(64, 100, server.local());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  std::vector<Datagram> all;
  for (const std::size_t left : {54u, 44u, 34u, 24u, 14u, 4u, 0u}) {
    std::array<Datagram, 10> out;
    auto got = server.receive(out, monotonic_now());
    ASSERT_TRUE(got);
    for (auto& datagram : std::span(out).first(*got)) all.push_back(std::move(datagram));
    EXPECT_EQ(server.pending(), left);
  }
  EXPECT_EQ(server.syscalls(), 1u);
  expect_same(all, sent);
  const std::size_t while_held = rig.pool.free_count();
  all.clear();
  EXPECT_EQ(rig.pool.free_count(), while_held + 1);
}

TEST_F(Offload, frames_all_come_home_with_the_socket) {
  {
    auto server = rig.open(at("127.0.0.1:0"), batched());
    auto client = rig.open(at("127.0.0.1:0"), batched());
    EXPECT_EQ(send_all(client, burst(64, 100, server.local())), all_queued(64));
    std::array<Datagram, 5> out;
    ASSERT_EQ(*server.receive(out, monotonic_now()), 5u);
  }
  EXPECT_EQ(rig.pool.free_count(), rig.pool.count());
}

TEST_F(Offload, a_socket_that_refuses_gso_sends_the_batch_without_and_never_asks_again) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  const int on = 1;  // the kernel then answers UDP_SEGMENT with EINVAL
  ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
  const auto sent = burst(64, 100, server.local());
  EXPECT_TRUE(client.gso());
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  expect_same(receive_many(server, 64), sent);
  EXPECT_FALSE(client.gso());
  EXPECT_EQ(client.mode(), "recvmmsg + GRO, sendmmsg");
  EXPECT_EQ(rig.count(Counter::udp_gso_refused), 1u);
  EXPECT_EQ(client.syscalls(), 3u);  // refused, the first alone, the rest
  EXPECT_EQ(send_all(client, sent), all_queued(64));
  expect_same(receive_many(server, 64), sent);
  EXPECT_EQ(client.syscalls(), 4u);
  EXPECT_EQ(rig.count(Counter::udp_sent), 128u);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 0u);
}

TEST_F(Offload, gso_that_is_refused_in_the_middle_of_a_batch_loses_nothing_and_keeps_the_order) {
  auto one = rig.open(at("127.0.0.1:0"), batched());
  auto two = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  const int on = 1;
  ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
  auto sent = burst(20, 100, one.local());
  sent[0].peer = sent[1].peer = sent[3].peer = two.local();
  sent.erase(sent.begin() + 1);  // two, one, two, then a run to one
  EXPECT_EQ(send_all(client, sent), all_queued(19));
  EXPECT_FALSE(client.gso());
  const auto at_one = receive_many(one, 17);
  const auto at_two = receive_many(two, 2);
  EXPECT_EQ(text_of(at_two[1].payload), text_of(sent[2].payload));
  EXPECT_EQ(text_of(at_one[0].payload), text_of(sent[1].payload));
  for (std::size_t i = 1; i < 17; ++i) EXPECT_EQ(text_of(at_one[i].payload), text_of(sent[i + 2].payload));
}

TEST_F(Offload, segments_above_the_mtu_are_sent_as_fragments_and_smaller_ones_still_combined) {
  NEEDS_NAMESPACE();
  ASSERT_TRUE(shell("ip link set lo mtu 1500"));
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  const auto large = burst(8, 2000, server.local());
  EXPECT_EQ(send_all(client, large), all_queued(8));
  expect_same(receive_many(server, 8), large);
  EXPECT_EQ(rig.count(Counter::udp_gso_refused), 1u);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 0u);
  EXPECT_TRUE(client.gso());
  const auto small = burst(40, 1400, server.local());
  EXPECT_EQ(send_all(client, small), all_queued(40));
  expect_same(receive_many(server, 40), small);
  EXPECT_EQ(rig.count(Counter::udp_gso_messages), 1u);
  EXPECT_EQ(rig.count(Counter::udp_gso_refused), 1u);
  EXPECT_TRUE(shell("ip link set lo mtu 65536"));
}

TEST_F(Offload, a_peer_that_cannot_be_reached_does_not_cost_gso) {
  NEEDS_NAMESPACE();
  auto client = rig.open(at("0.0.0.0:0"), batched());
  // EINVAL, as a refused segmentation would be.
  ASSERT_TRUE(shell("ip route add blackhole 10.67.0.0/16"));
  const auto lost = send_all(client, burst(4, 100, at("10.67.0.1:9")));
  EXPECT_EQ(lost, std::vector(4, SendStatus::bad_peer));
  EXPECT_TRUE(client.gso());
  EXPECT_EQ(rig.count(Counter::udp_gso_refused), 0u);
}

TEST_F(Offload, a_lone_datagram_costs_one_call_at_each_end) {
  auto server = rig.open(at("127.0.0.1:0"), batched());
  auto client = rig.open(at("127.0.0.1:0"), batched());
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(send_one(client, bytes_of("lone"), server.local()), SendStatus::queued);
    EXPECT_EQ(text_of(receive_one(server).payload), "lone");
    EXPECT_EQ(client.syscalls(), i);
    EXPECT_EQ(server.syscalls(), i);
  }
}

}  // namespace
}  // namespace netchannel::kernel
