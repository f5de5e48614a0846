// That the plain path is what a plain program does: the baseline must not be made to look slow.
#include "rig.hpp"

namespace netchannel::kernel {
namespace {

TEST(Plain, each_datagram_takes_one_call_to_send_and_one_to_receive) {
  Rig rig;
  auto server = rig.open(at("127.0.0.1:0"));
  auto client = rig.open(at("127.0.0.1:0"));
  EXPECT_EQ(server.mode(), "recvfrom, sendto");
  const OutDatagram one{bytes_of("x"), server.local()};
  EXPECT_EQ(send_all(client, std::vector<OutDatagram>(10, one)), all_queued(10));
  EXPECT_EQ(client.syscalls(), 10u);
  std::array<Datagram, 64> out;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(*server.receive_blocking(out, 1, kForever), 1u);
    EXPECT_EQ(server.syscalls(), i);
  }
  for (std::uint64_t i = 6; i <= 10; ++i) {
    EXPECT_EQ(*server.receive(out, monotonic_now()), 1u);
    EXPECT_EQ(server.syscalls(), i);
  }
  EXPECT_EQ(*server.receive(out, monotonic_now()), 0u);
}

TEST(Plain, a_socket_bound_to_any_needs_recvmsg_until_it_is_connected) {
  Rig rig;
  auto server = rig.open(at("127.0.0.1:0"));
  auto client = rig.open(at("0.0.0.0:0"));
  EXPECT_EQ(client.mode(), "recvmsg, sendto");
  ASSERT_TRUE(client.connect(server.local()));
  EXPECT_EQ(client.mode(), "recvfrom, sendto");
  EXPECT_EQ(client.local().address, IpAddress::v4(127, 0, 0, 1));
  EXPECT_EQ(send_one(server, bytes_of("x"), client.local()), SendStatus::queued);
  EXPECT_EQ(receive_one(client).local, client.local());
}

TEST(Plain, an_empty_receive_keeps_its_frame_and_takes_no_more) {
  Rig rig;
  auto server = rig.open(at("127.0.0.1:0"));
  std::array<Datagram, 1> out;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*server.receive(out, monotonic_now()), 0u);
  EXPECT_EQ(rig.pool.free_count(), rig.pool.count() - 1);
}

}  // namespace
}  // namespace netchannel::kernel
