// TCP super-frames of and to the kernel's TCP, with the least of a TCP on our side: a handshake by hand, then
// one super-frame.
#include <netinet/in.h>
#include <sys/socket.h>

#include "bulk_lab.hpp"

namespace netchannel::device {
namespace {

using testkit::pattern;

constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;
constexpr std::size_t kSegments = 40;

struct TcpFields {
  Endpoint from;
  Endpoint to;
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  std::uint8_t flags = kAck;
  bool with_options = false;  // of a SYN: MSS 1460, window scale 7
};

// A frame whose checksum is the device's to complete.
Outgoing tcp_frame(const TcpFields& fields, Bytes payload = {}, std::uint16_t segment_size = 0) {
  Packet segment(fields.with_options ? 28 : 20);
  store_be16(segment, 0, fields.from.port);
  store_be16(segment, 2, fields.to.port);
  store_be32(segment, 4, fields.seq);
  store_be32(segment, 8, fields.ack);
  store_u8(segment, 12, static_cast<std::uint8_t>(segment.size() / 4 << 4));
  store_u8(segment, 13, fields.flags);
  store_be16(segment, 14, 0xffff);
  if (fields.with_options) {
    store_be32(segment, 20, 0x020405b4);  // MSS 1460
    store_be32(segment, 24, 0x01030307);  // window scale 7
  }
  segment.insert(segment.end(), payload.begin(), payload.end());
  const testkit::IpFields ip{
      .source = fields.from.address, .destination = fields.to.address, .protocol = IPPROTO_TCP};
  const std::uint16_t type = fields.from.address.is_v4() ? testkit::kIpv4 : testkit::kIpv6;
  return partial(testkit::ethernet({kPeerMac, kOurMac}, type, testkit::ip(ip, segment)), segment_size);
}

class Tcp : public BulkLab, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    BulkLab::SetUp();
    if (IsSkipped()) return;
    build();
    device_ = open();
    ASSERT_TRUE(device_->claim({Protocol::tcp, ours_, {}}));
    in_b([&] { socket_.reset(::socket(v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)); });
    ASSERT_TRUE(socket_);
  }
  static bool v6() { return GetParam(); }
  static std::size_t kernels_mss() { return v6() ? 1440 : 1460; }
  bool send(const Outgoing& out) { return device_.port->send(out.frame, out.meta); }
  // The next segment's sequence number and what it carries.
  struct Segment {
    std::uint32_t seq = 0;
    std::uint8_t flags = 0;
    Packet payload;
    FrameDesc meta;
    std::uint16_t source_port = 0;
  };
  Segment next() {
    while (queue_.empty()) {
      auto got = receive_all(device_);
      if (got.empty()) return {};
      for (auto& one : got) queue_.push_back(std::move(one));
    }
    const Received one = std::move(queue_.front());
    queue_.erase(queue_.begin());
    const std::size_t at = l4_offset(one.bytes);
    const std::size_t header = std::size_t{load_u8(one.bytes, at + 12)} >> 4 << 2;
    return {.seq = load_be32(one.bytes, at + 4),
            .flags = load_u8(one.bytes, at + 13),
            .payload = Packet(one.bytes.begin() + static_cast<std::ptrdiff_t>(at + header), one.bytes.end()),
            .meta = one.first,
            .source_port = load_be16(one.bytes, at)};
  }

  const Endpoint ours_{v6() ? kOurV6 : kOurV4, 80};
  Endpoint theirs_{v6() ? kPeerV6 : kPeerV4, 5000};
  Opened device_;
  UniqueFd socket_;
  std::vector<Received> queue_;
};

INSTANTIATE_TEST_SUITE_P(Versions, Tcp, ::testing::Bool(),
                         [](const auto& v6) { return v6.param ? "v6" : "v4"; });

TEST_P(Tcp, ASuperFrameOfTheKernelComesWhole) {
  sockaddr_storage to;
  const socklen_t size = testkit::to_sockaddr(ours_, to);
  ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), size);
  const Segment syn = next();
  ASSERT_EQ(syn.flags & kSyn, kSyn);
  theirs_.port = syn.source_port;
  ASSERT_TRUE(send(tcp_frame({.from = ours_,
                              .to = theirs_,
                              .seq = 1000,
                              .ack = syn.seq + 1,
                              .flags = kSyn | kAck,
                              .with_options = true})));
  ASSERT_EQ(next().flags, kAck);
  const Packet stream = pattern(100'000);
  const auto written = ::send(socket_.get(), stream.data(), stream.size(), 0);
  ASSERT_GT(written, 20'000);

  // The first flight: the kernel's initial window of ten segments, in one frame or two.
  Packet got;
  std::uint16_t largest = 0;
  while (got.size() < 10 * kernels_mss()) {
    const Segment segment = next();
    ASSERT_FALSE(segment.payload.empty());
    ASSERT_EQ(segment.seq, syn.seq + 1 + got.size());
    if (segment.payload.size() > kernels_mss()) {
      largest = std::max(largest, segment.meta.segment_size);
      EXPECT_EQ(segment.meta.flags, kChecksumPartial);
    }
    got.insert(got.end(), segment.payload.begin(), segment.payload.end());
  }
  EXPECT_EQ(largest, kernels_mss());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), stream.begin()));
}

TEST_P(Tcp, ASuperFrameOfOursReachesTheKernelsStream) {
  sockaddr_storage at;
  const socklen_t size = testkit::to_sockaddr(theirs_, at);
  in_b([&] {
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), size), 0);
    const int room = 1 << 20;
    ASSERT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    ASSERT_EQ(::listen(socket_.get(), 1), 0);
  });
  ASSERT_TRUE(send(
      tcp_frame({.from = ours_, .to = theirs_, .seq = 1000, .ack = 0, .flags = kSyn, .with_options = true})));
  const Segment answer = next();
  ASSERT_EQ(answer.flags, kSyn | kAck);
  const TcpFields data{
      .from = ours_, .to = theirs_, .seq = 1001, .ack = answer.seq + 1, .flags = kAck | kPush};
  ASSERT_TRUE(send(tcp_frame({.from = ours_, .to = theirs_, .seq = 1001, .ack = answer.seq + 1})));
  const Packet stream = pattern(kSegments * 1400 + 77);
  ASSERT_TRUE(send(tcp_frame(data, stream, 1400)));

  ASSERT_TRUE(testkit::wait_readable(socket_.get(), std::chrono::steady_clock::now() + kPatience));
  const UniqueFd accepted(::accept(socket_.get(), nullptr, nullptr));
  ASSERT_TRUE(accepted);
  Packet got(stream.size() + 1);
  EXPECT_EQ(::recv(accepted.get(), got.data(), got.size(), 0), static_cast<ssize_t>(stream.size()));
  got.resize(stream.size());
  EXPECT_EQ(got, stream);
}

}  // namespace
}  // namespace netchannel::device
