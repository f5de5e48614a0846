// What the bulk path has that others have not: datagrams that the kernel has joined on their way to us.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "netchannel/host.hpp"
#include "testkit/kernel_socket.hpp"
#include "testkit/veth_pair.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;
using testkit::KernelSocket;
using testkit::Packet;
using testkit::pattern;

class BulkPath : public testkit::VethPair {};

TEST_F(BulkPath, DatagramsOfAFlowComeInOneFrameWhereGroJoinsThem) {
  if (IsSkipped()) return;
  build({.offloads = false});
  must("ethtool -K eth0 gro on >/dev/null");
  auto host = Host::open({.path = Path::bulk, .device = "eth0"});
  ASSERT_TRUE(host) << describe(host.error());
  auto socket = host->udp({kOurV4, 7000});
  ASSERT_TRUE(socket) << describe(socket.error());
  std::optional<KernelSocket> peer;
  in_b([&] { peer.emplace(KernelSocket::udp({kPeerV4, 7001})); });
  constexpr int kSegment = 1000, kSegments = 10;
  ASSERT_EQ(::setsockopt(peer->fd(), IPPROTO_UDP, UDP_SEGMENT, &kSegment, sizeof kSegment), 0)
      << std::strerror(errno);
  const Packet payload = pattern(kSegments * kSegment);
  ASSERT_TRUE(peer->send_to({kOurV4, 7000}, payload));
  std::array<Datagram, kSegments> got;
  const auto n = socket->receive(got, {.least = kSegments, .deadline = host->now() + 5s});
  ASSERT_TRUE(n) << describe(n.error());
  ASSERT_EQ(*n, kSegments);
  for (std::size_t i = 0; i < kSegments; ++i) {
    const Bytes wanted = Bytes(payload).subspan(i * kSegment, kSegment);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), got[i].payload.begin(), got[i].payload.end())) << i;
    EXPECT_FALSE(got[i].slow_path);
  }
  EXPECT_EQ(host->counter(Counter::udp_received), kSegments);
  EXPECT_EQ(host->counter(Counter::channel_rx_pushed), 1u);
}

}  // namespace
}  // namespace netchannel
