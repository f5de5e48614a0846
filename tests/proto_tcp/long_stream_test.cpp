// More than 2 GiB without an event: what was remembered long ago must not look like the future when sequence
// numbers have come half around.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;
using wire::TcpFlags;

constexpr std::uint32_t kMss = 60'000;

class LongStream : public ::testing::Test {
 protected:
  void establish(bool sack) {
    Settings settings;
    settings.timestamps = false;
    settings.sack = sack;
    Handshake h;
    h.iss = kIss;
    h.irs = kIrs;
    h.peer_mss = h.offered_mss = h.path_mss = kMss;
    h.window = 65535;
    h.window_scaling = true;
    h.peer_wscale = 14;
    h.sack = sack;
    h.syn_ack_at = now;
    accept(c, h, settings, now);
    peer(c.state.snd_nxt);
    ASSERT_EQ(c.state.state, State::established);
  }
  void peer(Seq ack, std::vector<wire::SackBlock> blocks = {}) {
    SegmentIn in;
    in.flags = {TcpFlags::kAck};
    in.seq = kIrs + 1;
    in.ack = ack;
    in.window = 65535;
    for (const auto& block : blocks) in.options.sack.push_back(block);
    on_segment(c, in, now);
  }
  std::vector<SegmentOut> send(std::size_t bytes) {
    EXPECT_EQ(write(c, Bytes(data).first(bytes), pool, 64), bytes);
    TxBatch batch;
    poll_tx(c, batch, {}, now);
    return {batch.begin(), batch.end()};
  }
  // So many segments, each full, each acknowledged.
  void stream(std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kMss) {
      ASSERT_EQ(send(kMss).size(), 1U);
      now = now + 100us;
      peer(c.state.snd_nxt);
    }
    ASSERT_EQ(pool.free_count(), kSlots);
  }

  static constexpr std::uint32_t kSlots = 32;
  static constexpr Seq kIss{100}, kIrs{7};
  static constexpr std::uint64_t kHalf = std::uint64_t{1} << 31;
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 65536, .slot_count = kSlots});
  FramePool pool{*region, 0, kSlots, FramePool::Start::all_free};
  CounterPage counters;
  Shared shared{{.frames = 64, .records = 64, .islands = 64}, counters};
  Connection c{shared};
  Instant now{1'000'000'000};
  std::vector<std::byte> data = std::vector<std::byte>(20 * kMss);
};

TEST_F(LongStream, a_small_segment_at_its_end_leaves_at_once) {  // Nagle
  establish(true);
  EXPECT_EQ(send(10).size(), 1U);
  peer(c.state.snd_nxt);
  stream(kHalf + 10 * kMss);
  EXPECT_EQ(send(10).size(), 1U);
}

TEST_F(LongStream, three_duplicates_after_it_start_a_recovery_without_sack) {  // RFC 6582 section 3.2
  establish(false);
  stream(kHalf + 10 * kMss);
  c.state.congestion.cwnd = 8 * kMss;
  EXPECT_EQ(send(8 * kMss).size(), 8U);
  for (int i = 0; i < 3; ++i) peer(c.state.snd_una);
  const auto sent = send(0);
  ASSERT_FALSE(sent.empty());
  EXPECT_TRUE(sent.front().retransmission);
  EXPECT_EQ(c.state.recovery.phase, Phase::recovery);
}

TEST_F(LongStream, a_recovery_from_before_it_is_not_undone_after_it) {
  establish(true);
  c.state.congestion.cwnd = 8 * kMss;
  send(8 * kMss);
  const Seq una = c.state.snd_una;
  now = now + 100us;
  peer(una, {{(una + kMss).value, (una + 4 * kMss).value}});
  EXPECT_EQ(c.state.recovery.phase, Phase::recovery);
  send(0);
  now = now + 100us;
  peer(c.state.snd_nxt);
  EXPECT_EQ(c.state.recovery.phase, Phase::open);
  stream(kHalf + 10 * kMss);
  const std::uint32_t threshold = c.state.congestion.ssthresh;
  const Seq end = c.state.snd_una;
  peer(end, {{(end - kMss).value, end.value}});  // a duplicate of today
  EXPECT_EQ(c.state.congestion.ssthresh, threshold);
  EXPECT_EQ(counters.read(Counter::tcp_undone), 0U);
}

TEST_F(LongStream, slow_start_watches_delays_after_it) {  // HyStart++: rounds go on
  establish(true);
  stream(kHalf + 10 * kMss);
  const Seq before = c.state.congestion.hystart.round_end;
  for (int i = 0; i < 3; ++i) {
    send(4 * kMss);
    now = now + 100us;
    peer(c.state.snd_nxt);
    send(0);
    peer(c.state.snd_nxt);
  }
  EXPECT_GT(c.state.congestion.hystart.round_end - before, 0);
  EXPECT_LE(c.state.congestion.hystart.round_end, c.state.snd_nxt);
}

}  // namespace
}  // namespace netchannel::tcp
