// Super-frames: many segments in one, both ways. To acknowledgements, congestion control and loss recovery
// they are the segments they stand for; lost ones are sent again in parts.
#include "proto/tcp/info.hpp"
#include "recover.hpp"

namespace netchannel::tcp {
namespace {

class SuperFrame : public Recover {
 protected:
  // 44 segments of 1000 bytes fit.
  SuperFrame() {
    set_up({.settings = sack_settings(), .path_mss = 1000, .super_frame = 44'999});
    open();
    outbox.clear();
    now = now + 100ms;
    peer("S. 0:0(0) ack 1 <mss 1460,sackOK>");
    outbox.clear();
    state().congestion.cwnd = 44'000;
  }
};

TEST_F(SuperFrame, is_cut_at_whole_segments_and_counts_as_those) {
  write(44'500);
  ASSERT_EQ(outbox.size(), 1U);
  EXPECT_EQ(outbox.front().segment.segment_size, 1000);
  ours(". " + data(0, 44));
  EXPECT_EQ(info(connection(), now).segs_out, 1U + 44U) << "the handshake's acknowledgement and 44";
  EXPECT_EQ(info(connection(), now).unacked, 44U);
}

TEST_F(SuperFrame, of_44_segments_received_counts_as_44) {
  Settings settings = plain_settings();
  set_up({.settings = settings});
  establish();
  state().receiver.quick_acks = 0;
  state().receiver.data_at = now;
  segments = 44;
  peer(". 1:44001(44000) ack 1");
  ours(". 1:1(0) ack 44001");
  EXPECT_EQ(info(connection(), now).segs_in, 45U);
  EXPECT_EQ(info(connection(), now).rcv_mss, 1000U);
  segments = 1;
  peer(". 44001:45001(1000) ack 1");
  silence();
  peer(". 45001:46001(1000) ack 1");
  ours(". 1:1(0) ack 46001");
}

TEST_F(SuperFrame, ahead_of_a_hole_is_as_many_duplicate_acknowledgements_to_a_peer_without_sack) {
  set_up({.settings = plain_settings()});
  establish();
  segments = 3;
  peer(". 1001:4001(3000) ack 1");
  for (int i = 0; i < 3; ++i) ours(". 1:1(0) ack 1");
  silence();
}

TEST_F(SuperFrame, acknowledged_whole_grows_slow_start_by_all_its_segments) {
  write(44'000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(44));
  EXPECT_EQ(state().congestion.cwnd, 88'000U);
}

TEST_F(SuperFrame, acknowledged_whole_grows_congestion_avoidance_by_one_segment) {
  state().settings.congestion = CongestionAlgorithm::reno;
  state().congestion.algorithm = CongestionAlgorithm::reno;
  state().congestion.ssthresh = 44'000;
  write(44'000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(44));
  EXPECT_EQ(state().congestion.cwnd, 45'000U);
}

TEST_F(SuperFrame, with_a_hole_in_its_middle_is_sent_again_in_that_part_only) {
  write(44'000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(10) + " <sack 11001:44001>");
  ours(". " + data(10));
  silence();
  EXPECT_EQ(connection().sent.sacked(), 33'000U);
  now = now + 100ms;
  peer(ack(44));
  EXPECT_TRUE(connection().sent.empty());
}

TEST_F(SuperFrame, lost_in_large_parts_is_sent_again_in_large_parts_as_the_window_allows) {
  write(44'000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(0) + " <sack 20001:44001>");
  EXPECT_EQ(connection().sent.lost() + connection().sent.in_flight(), 20'000U);
  std::uint32_t again = 0;
  for (const Sent& sent : outbox) {
    EXPECT_TRUE(sent.segment.retransmission);
    EXPECT_EQ(sent.segment.length % 1000, 0U);
    EXPECT_EQ(sent.segment.seq - state().iss, 1 + static_cast<int>(again)) << "in order, without gaps";
    again += sent.segment.length;
  }
  EXPECT_GT(again, 1000U) << "more than a segment at a time";
  EXPECT_LE(outbox.size(), 2U);
  outbox.clear();
}

TEST_F(SuperFrame, is_no_larger_than_the_peers_window) {
  peer(". 1:1(0) ack 1 win 5500");
  write(44'000);
  ours(". " + data(0, 5));
  silence();
}

TEST_F(SuperFrame, that_was_lost_whole_comes_again_one_segment_at_first) {  // after a timeout
  state().recovery.probe_out = true;                                        // no probe, please
  write(44'000);
  outbox.clear();
  wait(state().rtt.timeout());
  ours(". " + data(0));
  silence();
  EXPECT_NEAR(state().congestion.ssthresh, 30'800, 1) << "0.7 of 44 segments";
}

TEST_F(SuperFrame, probes_the_tail_with_one_segment) {
  write(44'000);
  outbox.clear();
  wait(2 * state().rtt.srtt + 2ms);
  ours("P. " + data(43));
  silence();
}

TEST_F(SuperFrame, is_ecn_capable_as_a_whole_and_cwr_stands_on_the_first_only) {
  Settings settings = sack_settings();
  settings.ecn = EcnMode::request;
  set_up({.settings = settings, .path_mss = 1000, .super_frame = 5000});
  open();
  peer("SE. 0:0(0) ack 1 <mss 1460,sackOK>");
  outbox.clear();
  write(10'000);
  EXPECT_EQ(outbox.size(), 2U);
  for (const Sent& sent : outbox) EXPECT_EQ(sent.segment.ecn, Ecn::ect0);
  outbox.clear();
  peer("E. 1:1(0) ack 10001");
  write(7000);
  ours("W. 10001:15001(5000) ack 1");
  ours("P. 15001:17001(2000) ack 1");
}

}  // namespace
}  // namespace netchannel::tcp
