// The end of a flight, where nothing sent later can show what is missing: tail loss probes (RFC 8985 section
// 7), the rescue of a tail during a recovery (RFC 6675 section 5, rule 4 of NextSeg(); RACK finds it by
// time), and what arrives when nothing is in flight any more.
#include "recover.hpp"

namespace netchannel::tcp {
namespace {

class TailLoss : public RecoverSack {};

TEST_F(TailLoss, a_retransmission_that_arrives_shows_that_the_tail_sent_before_it_is_lost) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 9));  // segments 0 and 9 are missing; nothing beyond 9 will show the latter
  ours(". " + data(0));
  silence();
  now = now + 100ms;
  peer(ack(9));  // the retransmission came: segment 9, sent before it, should have come too
  ours("P. " + data(9));
  silence();
  EXPECT_EQ(counter(Counter::tcp_timeouts), 0U);
}

TEST_F(TailLoss, new_data_sent_after_the_retransmission_is_not_taken_for_lost) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 9));
  ours(". " + data(0));
  now = now + 10ms;
  write(2000);
  ours(". " + data(10));
  ours("P. " + data(11));
  now = now + 90ms;
  peer(ack(10));  // the retransmission, and 9
  silence();
  EXPECT_EQ(connection().sent.lost(), 0U);
}

TEST_F(TailLoss, a_tail_is_probed_while_an_echo_of_congestion_brings_the_window_down) {
  Settings settings = sack_settings();
  settings.ecn = EcnMode::request;
  set_up({.settings = settings, .path_mss = 1000});
  open();
  outbox.clear();
  now = now + 100ms;
  peer("SE. 0:0(0) ack 1 <mss 1460,sackOK>");
  outbox.clear();
  write_segments(10);
  now = now + 100ms;
  peer("E. 1:1(0) ack 4001");
  ASSERT_EQ(state().recovery.phase, Phase::reducing);
  wait(2 * state().rtt.srtt + 2ms);
  ours("P. " + data(9));
  EXPECT_EQ(counter(Counter::tcp_timeouts), 0U);
  EXPECT_EQ(state().congestion.ssthresh, 7000U);
  now = now + 100ms;
  write(1000);
  outbox.clear();
  peer(ack(11));
  EXPECT_EQ(state().congestion.ssthresh, 7000U) << "one reduction for one round trip";
}

TEST_F(TailLoss, three_small_segments_beyond_a_hole_are_enough) {  // DupThresh counts segments
  state().settings.no_delay = true;
  write(100);
  write(100);
  write(100);
  write(100);
  outbox.clear();
  now = now + 100ms;
  peer(". 1:1(0) ack 1 <sack 101:201>");
  peer(". 1:1(0) ack 1 <sack 101:301>");
  silence();
  peer(". 1:1(0) ack 1 <sack 101:401>");
  ours(". 1:101(100)");
}

// What a probe turned out to be is told when nothing is in flight any more (RFC 8985 section 7.4).
class LateNews : public TailLoss {
 protected:
  // One segment is probed, and both the original and the probe arrive.
  void probe_in_vain() {
    write_segments(1);
    wait(state().rtt.timeout());
    ours("P. " + data(0));
    ASSERT_EQ(counter(Counter::tcp_tail_probes), 1U);
    peer(ack(1));
  }
  void next_segment_is_acknowledged() {
    write(1000);
    outbox.clear();
    now = now + 100ms;
    peer(ack(2));
  }
};

TEST_F(LateNews, a_d_sack_of_the_probe_says_that_nothing_was_lost) {  // case 1
  probe_in_vain();
  peer(ack(1) + " <sack 1:1001>");
  next_segment_is_acknowledged();
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(LateNews, a_bare_duplicate_says_the_same_to_who_has_no_d_sack) {  // case 3
  probe_in_vain();
  peer(ack(1));
  next_segment_is_acknowledged();
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(LateNews, neither_of_them_means_a_loss) {  // case 2
  probe_in_vain();
  next_segment_is_acknowledged();
  EXPECT_LT(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(LateNews, a_d_sack_undoes_a_recovery_that_is_over) {  // RFC 3708
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  ours(". " + data(0));
  now = now + 10ms;
  peer(ack(10));  // it was only late
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.cwnd, 7000U);
  peer(ack(10) + " <sack 1:1001>");
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_GE(state().congestion.cwnd, 10000U);
  EXPECT_EQ(counter(Counter::tcp_undone), 1U);
}

TEST_F(LateNews, a_d_sack_widens_the_reordering_window) {
  write_segments(1);
  peer(ack(1));
  peer(ack(1) + " <sack 1:1001>");
  EXPECT_EQ(state().recovery.rack.window_mult, 2);
}

TEST_F(LateNews, an_echo_of_congestion_is_not_one_of_nothing) {
  Settings settings = sack_settings();
  settings.ecn = EcnMode::request;
  set_up({.settings = settings, .path_mss = 1000});
  open();
  peer("SE. 0:0(0) ack 1 <mss 1460,sackOK>");
  outbox.clear();
  write_segments(1);
  peer(ack(1));
  peer("E. 1:1(0) ack 1001 <sack 1:1001>");
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

}  // namespace
}  // namespace netchannel::tcp
