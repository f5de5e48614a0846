// How much is sent while a loss is repaired (PRR: RFC 6937 and RFC 9937), what a timeout takes for lost (RFC
// 8985 section 6.3), and what it is forgiven (RFC 5682, RFC 3522).
#include "recover.hpp"

namespace netchannel::tcp {
namespace {

class Prr : public RecoverSack {
 protected:
  // Twenty segments in flight, of which `lost` at the beginning are missing.
  void lose_first(int lost) {
    state().congestion.cwnd = 20000;
    write(60000);
    ASSERT_EQ(outbox.size(), 20U);
    outbox.clear();
    now = now + 100ms;
    lost_ = lost;
  }
  void sack_up_to(int right) { peer(sack(0, lost_, right)); }
  std::size_t sent() {
    const std::size_t out = outbox.size();
    outbox.clear();
    return out;
  }
  int lost_ = 0;
};

TEST_F(Prr, below_the_threshold_and_without_progress_no_more_is_sent_than_was_delivered) {
  lose_first(15);  // five are left of twenty, far below the threshold of 14
  sack_up_to(20);
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  EXPECT_EQ(state().congestion.ssthresh, 14000U);
  EXPECT_EQ(sent(), 5U);
}

TEST_F(Prr, below_the_threshold_progress_lets_one_more_segment_go_than_was_delivered) {
  lose_first(15);
  sack_up_to(20);
  sent();
  now = now + 100ms;
  for (int i = 1; i <= 4; ++i) {
    peer(ack(i) + " <sack 15001:20001>");
    EXPECT_EQ(sent(), 2U) << i;
  }
}

TEST_F(Prr, never_brings_more_in_flight_than_the_threshold) {
  lose_first(15);
  sack_up_to(20);
  for (int i = 1; i <= 14; ++i) {
    now = now + 10ms;
    peer(ack(i) + " <sack 15001:20001>");
    EXPECT_LE(connection().sent.in_flight(), state().congestion.ssthresh);
  }
  outbox.clear();
}

TEST_F(Prr, ends_with_the_threshold_for_a_window_whatever_was_sent_meanwhile) {
  lose_first(15);
  sack_up_to(20);
  now = now + 100ms;
  peer(". 1:1(0) ack 20001");
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.cwnd, 14000U);
  outbox.clear();
}

class Repair : public RecoverSack {};

TEST_F(Repair, limited_transmit_sends_new_data_for_what_was_sacked) {  // RFC 3042
  write(20000);
  outbox.clear();
  now = now + 100ms;
  peer(sack(0, 1, 2));
  ours(". " + data(10));
  peer(sack(0, 1, 3));
  ours(". " + data(11));
  silence();
}

TEST_F(Repair, a_timeout_takes_for_lost_what_is_old_and_not_what_was_sent_a_moment_ago) {
  write_segments(1);
  now = now + 100ms;
  peer(ack(1));  // from here on RACK knows the round trip
  state().recovery.probe_out = true;
  write_segments(2);
  const Duration rto = state().rtt.timeout();
  wait(rto - 10ms);
  write_segments(1);
  wait(10ms);
  ours(". " + data(1));
  EXPECT_EQ(connection().sent.lost(), 1000U) << "the second; the third was sent 10 ms ago";
  EXPECT_EQ(connection().sent.in_flight(), 2000U);
}

TEST_F(Repair, a_timeout_does_not_forget_what_was_sacked) {
  state().recovery.probe_out = true;
  write_segments(4);
  now = now + 100ms;
  peer(sack(0, 2, 3));
  outbox.clear();
  wait(1s);
  outbox.clear();
  EXPECT_EQ(state().recovery.phase, Phase::loss);
  EXPECT_EQ(connection().sent.sacked(), 1000U);
  now = now + 100ms;
  peer(ack(1) + " <sack 2001:3001>");
  for (const Sent& sent : outbox) EXPECT_NE(sent.segment.seq - state().iss, 2001) << sent.text;
  outbox.clear();
}

TEST_F(Repair, new_data_after_a_timeout_that_arrives_with_an_original_undoes_it) {  // RFC 5682 step 3b
  state().congestion.cwnd = 4000;
  state().recovery.probe_out = true;
  write(20000);
  outbox.clear();
  wait(state().rtt.timeout());
  ours(". " + data(0));
  now = now + 100ms;
  peer(ack(1));
  ours(". " + data(4));
  ours(". " + data(5));
  peer(ack(2));  // the second was sent once only: it was under way all the time
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(counter(Counter::tcp_spurious_timeouts), 1U);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_GE(state().congestion.cwnd, 4000U);
  outbox.clear();
}

TEST_F(Repair, the_reordering_window_shrinks_after_sixteen_recoveries_without_a_d_sack) {
  // RFC 8985 section 6.2 step 4
  write_segments(2);
  peer(ack(2) + " <sack 1:1001>");
  ASSERT_EQ(state().recovery.rack.window_mult, 2);
  int una = 2;
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(state().recovery.rack.window_mult, 2) << i;
    state().congestion.cwnd = 10000;
    write_segments(5);
    now = now + 100ms;
    peer(sack(una, una + 1, una + 5));
    wait(state().rtt.srtt);
    outbox.clear();
    EXPECT_EQ(state().recovery.phase, Phase::recovery) << i;
    now = now + 100ms;
    una += 5;
    peer(ack(una));
    outbox.clear();
  }
  EXPECT_EQ(state().recovery.rack.window_mult, 1);
}

TEST_F(Repair, reordering_beyond_the_window_retransmits_and_is_undone) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 2));
  wait(30ms);  // more than a quarter of the round trip
  ours(". " + data(0));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  peer(ack(2));                     // the original comes after all ...
  peer(ack(2) + " <sack 1:1001>");  // ... and then what was sent again
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_EQ(state().recovery.rack.window_mult, 2) << "and next time there is more patience";
  outbox.clear();
}

class RepairStamped : public RecoverStamped {};

TEST_F(RepairStamped, an_echo_of_the_original_undoes_a_timeout) {  // RFC 3522, RFC 4015
  state().recovery.probe_out = true;
  write_segments(3);  // at TS 1100
  wait(state().rtt.timeout());
  outbox.clear();
  EXPECT_EQ(state().recovery.phase, Phase::loss);
  now = now + 10ms;
  peer(ack(1) + " <TS 510 1100>");
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_EQ(counter(Counter::tcp_spurious_timeouts), 1U);
  outbox.clear();
}

TEST_F(RepairStamped, an_echo_of_the_retransmission_does_not) {
  state().recovery.probe_out = true;
  write_segments(3);
  wait(state().rtt.timeout());
  const auto stamp = std::to_string(now.ns / 1'000'000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(1) + " <TS 510 " + stamp + ">");
  EXPECT_EQ(state().recovery.phase, Phase::loss);
  outbox.clear();
}

}  // namespace
}  // namespace netchannel::tcp
