// Loss: RACK-TLP (RFC 8985), SACK recovery and PRR (RFC 6675, RFC 6937), NewReno and limited transmit without
// SACK (RFC 6582, RFC 3042), timeouts and their undoing (RFC 5682, RFC 3522, RFC 3708).
#include "recover.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

TEST_F(RecoverSack, three_sacked_segments_retransmit_the_hole_at_once) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 2));
  peer(sack(0, 1, 3));
  silence();
  peer(sack(0, 1, 4));
  ours(". " + data(0));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  EXPECT_EQ(state().congestion.ssthresh, 7000U) << "beta is 0.7";
  silence();
}

TEST_F(RecoverSack, reno_halves_the_flight) {
  Settings settings = sack_settings();
  settings.congestion = CongestionAlgorithm::reno;
  begin(settings, ",sackOK");
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  EXPECT_EQ(state().congestion.ssthresh, 5000U);
  outbox.clear();
}

// A burst is heard before anything is sent for it. Had they come one by one, ten segments would still have
// been in flight when the loss was seen.
TEST_F(RecoverSack, a_loss_at_the_end_of_a_burst_of_acknowledgements_finds_the_window_that_was_used) {
  state().congestion.ssthresh = 10'000;  // congestion avoidance
  write(20'000);
  ASSERT_EQ(outbox.size(), 10U);
  outbox.clear();
  now = now + 100ms;
  for (int i = 1; i <= 6; ++i) peer_in_burst(ack(i));
  peer_in_burst(sack(6, 7, 8));
  peer_in_burst(sack(6, 7, 9));
  peer(sack(6, 7, 10));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  EXPECT_GE(state().congestion.ssthresh, 7000U);
  EXPECT_LT(state().congestion.ssthresh, 8000U);
  // PRR: nine were delivered and nothing is in flight, so the lost one leaves, and new ones up to the
  // threshold.
  ours(". " + data(6));
  for (int i = 10; i < 16; ++i) ours(". " + data(i));
  silence();
}

TEST_F(RecoverSack, a_hole_is_lost_a_quarter_round_trip_after_one_later_segment_came) {  // RACK by time
  write_segments(3);
  now = now + 100ms;
  peer(sack(0, 1, 2));
  silence();
  wait(25ms - 1ns);
  silence();
  wait(1ns);
  ours(". " + data(0));
  silence();
  outbox.clear();
}

TEST_F(RecoverSack, reordering_below_the_window_causes_no_retransmission) {
  write_segments(3);
  now = now + 100ms;
  peer(sack(0, 1, 2));
  wait(24ms);
  peer(ack(3));
  wait(10s);
  silence();
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(RecoverSack, once_reordering_was_seen_three_sacks_are_not_enough) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 2, 3));  // RACK.fack moves
  peer(sack(0, 1, 3));  // an earlier one comes later: reordering
  peer(sack(0, 1, 6));
  silence();
  wait(25ms);
  ours(". " + data(0));
  outbox.clear();
}

TEST_F(RecoverSack, d_sacks_widen_the_reordering_window_once_a_round_trip) {
  write_segments(10);
  now = now + 100ms;
  EXPECT_EQ(state().recovery.rack.window_mult, 1);
  peer(". 1:1(0) ack 2001 <sack 1:1001>");
  EXPECT_EQ(state().recovery.rack.window_mult, 2);
  peer(". 1:1(0) ack 3001 <sack 1:1001>");
  EXPECT_EQ(state().recovery.rack.window_mult, 2) << "same round trip";
  peer(ack(10));
  write(1000);
  peer(". 1:1(0) ack 11001 <sack 1001:2001>");
  EXPECT_EQ(state().recovery.rack.window_mult, 3);
  outbox.clear();
}

TEST_F(RecoverSack, a_lost_retransmission_is_sent_again) {  // RACK by time, what counting cannot see
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  outbox.clear();
  now = now + 50ms;
  peer(sack(0, 1, 10));
  write(20000);
  const std::size_t fresh = outbox.size();
  ASSERT_GT(fresh, 0U);
  outbox.clear();
  now = now + 100ms;
  // What was sent after the retransmission arrives, the retransmission does not.
  peer(sack(0, 1, 11));
  wait(30ms);
  ASSERT_FALSE(outbox.empty());
  bool again = false;
  for (const Sent& sent : outbox) again |= sent.segment.retransmission && sent.segment.seq == state().snd_una;
  EXPECT_TRUE(again);
  outbox.clear();
}

TEST_F(RecoverSack, recovery_ends_at_the_recovery_point_with_cwnd_at_ssthresh) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  outbox.clear();
  peer(sack(0, 1, 10));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  now = now + 100ms;
  peer(ack(10));
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.cwnd, 7000U);
}

TEST_F(RecoverSack, prr_sends_in_proportion_to_what_is_delivered) {  // RFC 6937: proportional to ssthresh
  state().congestion.cwnd = 20000;
  write(60000);
  EXPECT_EQ(outbox.size(), 20U);
  outbox.clear();
  now = now + 100ms;
  for (int i = 2; i <= 20; ++i) {
    peer(sack(0, 1, i));
  }
  // Two by limited transmit, which make 22 in flight; then what keeps the threshold of 14 in flight.
  EXPECT_EQ(outbox.size(), 14U);
  EXPECT_EQ(state().congestion.ssthresh, 14000U);
  EXPECT_LE(connection().sent.in_flight(), state().congestion.ssthresh);
  outbox.clear();
}

TEST_F(RecoverSack, all_holes_known_are_repaired_in_order) {
  write_segments(10);
  now = now + 100ms;
  peer(ack(0) + " <sack 1001:2001 3001:4001 5001:10001>");
  for (int i = 0; i < 3 && outbox.size() < 3; ++i) {
    wait(30ms);
  }
  ours(". " + data(0));
  peer(ack(2) + " <sack 3001:4001 5001:10001>");
  ours(". " + data(2));
  ours(". " + data(4));
  outbox.clear();
}

TEST_F(RecoverSack,
       sacked_data_is_kept_until_it_is_acknowledged_and_is_forgotten_if_the_peer_reneges) {  // RFC 2018
  write_segments(4);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  outbox.clear();
  EXPECT_EQ(connection().send.size(), 4000U);
  // The retransmission arrives, but the peer has dropped the rest.
  peer(ack(1));
  wait(state().rtt.timeout());
  EXPECT_EQ(counter(Counter::tcp_peer_reneged), 1U);
  ours(". " + data(1));
  peer(ack(2));
  ours(". " + data(2));
  ours("P. " + data(3));
  peer(ack(4));
  outbox.clear();
}

TEST_F(RecoverSack, sack_blocks_that_make_no_sense_are_ignored_and_counted) {  // row 72
  write_segments(10);
  now = now + 100ms;
  const char* nonsense[] = {
      "<sack 2001:2001>",   "<sack 3001:2001>",       "<sack 9001:11001>",
      "<sack 20001:30001>", "<sack 2001:2147483000>",
  };
  for (const char* block : nonsense) {
    peer(ack(0) + " " + block);
    EXPECT_EQ(connection().sent.sacked(), 0U) << block;
  }
  EXPECT_EQ(counter(Counter::tcp_sack_ignored), 5U);
  peer(ack(0) + " <sack 4001:6001 5001:7001 2001:3001>");  // overlapping ones are taken for what they cover
  EXPECT_EQ(connection().sent.sacked(), 4000U);
  outbox.clear();
}

TEST_F(RecoverSack, a_tail_loss_is_probed_after_two_round_trips) {  // RFC 8985 section 7
  write_segments(4);
  wait(202ms - 1ns);
  silence();
  wait(1ns);
  ours("P. " + data(3));
  silence();
  now = now + 100ms;
  peer(sack(0, 3, 4));
  wait(30ms);
  for (int i = 0; i < 3 && !outbox.empty(); ++i) EXPECT_TRUE(outbox[0].segment.retransmission);
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  outbox.clear();
}

TEST_F(RecoverSack, a_single_segment_is_probed_after_the_delayed_ack_allowance) {
  state().settings.min_rto = 1s;
  state().rtt.rto = 2s;
  write_segments(1);
  wait(400ms - 1ns);
  silence();
  wait(1ns);
  ours("P. " + data(0));
}

TEST_F(RecoverSack, a_probe_takes_new_data_if_there_is_some) {
  state().congestion.cwnd = 4000;
  write(6000);
  outbox.clear();
  wait(202ms);
  ours(". " + data(4));
  silence();
}

TEST_F(RecoverSack, there_is_one_probe_for_a_tail_then_the_timer) {
  write_segments(4);
  wait(202ms);
  outbox.clear();
  wait(state().rtt.timeout() - 1ns);
  silence();
  wait(1ns);
  ours(". " + data(0));
  EXPECT_EQ(state().recovery.phase, Phase::loss);
  outbox.clear();
}

TEST_F(RecoverSack, a_probe_that_repaired_a_loss_reduces_the_window) {
  write_segments(4);
  wait(202ms);
  outbox.clear();
  now = now + 100ms;
  peer(ack(4));
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold) << "not yet: this may answer the original";
  write(1000);
  outbox.clear();
  now = now + 100ms;
  peer(ack(5));
  EXPECT_LT(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(RecoverSack, a_probe_that_was_not_needed_reduces_nothing) {
  write_segments(4);
  wait(202ms);
  outbox.clear();
  peer(ack(4) + " <sack 3001:4001>");
  write(1000);
  outbox.clear();
  peer(ack(5));
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

TEST_F(RecoverSack, a_timeout_sends_one_segment_and_slow_starts) {  // RFC 5681 section 3.1
  state().recovery.probe_out = true;                                // no probe, please
  write_segments(10);
  wait(state().rtt.timeout());
  ours(". " + data(0));
  silence();
  EXPECT_EQ(state().congestion.cwnd, 1000U);
  EXPECT_EQ(state().congestion.ssthresh, 7000U);
  wait(state().rtt.timeout());
  ours(". " + data(0));
  silence();
  EXPECT_EQ(state().congestion.ssthresh, 7000U) << "not again for the same segment";
}

TEST_F(RecoverSack, a_timeout_that_an_original_proves_wrong_is_undone) {  // RFC 5682
  state().recovery.probe_out = true;
  write_segments(10);
  wait(state().rtt.timeout());
  ours(". " + data(0));
  now = now + 10ms;
  peer(ack(3));  // more than the retransmission: some was sent once only
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_GE(state().congestion.cwnd, 10000U);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_EQ(counter(Counter::tcp_spurious_timeouts), 1U);
  outbox.clear();
}

TEST_F(RecoverSack, after_a_timeout_new_data_goes_first_to_find_out) {  // RFC 5682 step 2b
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
  silence();
  now = now + 100ms;
  peer(sack(1, 4, 5));  // the rest is missing indeed: step 3a
  EXPECT_EQ(state().recovery.phase, Phase::loss);
  EXPECT_FALSE(state().recovery.frto);
  ASSERT_FALSE(outbox.empty());
  ours(". " + data(1));
  outbox.clear();
}

TEST_F(RecoverSack, d_sacks_for_all_that_was_sent_again_undo_the_recovery) {  // RFC 3708
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  ours(". " + data(0));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  now = now + 10ms;
  peer(ack(6));
  peer(ack(6) + " <sack 1:1001>");
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_GE(state().congestion.cwnd, 10000U);
  outbox.clear();
}

TEST_F(RecoverSack, a_peer_that_sacks_every_other_byte_gets_bounded_memory) {  // row 97, CVE-2019-11478
  state().congestion.cwnd = 1 << 20;
  peer(". 1:1(0) ack 1 win 65535");
  write(65000);
  outbox.clear();
  for (int i = 0; i < 30000; ++i) {
    const int at = 2 + 2 * i;
    peer_in_burst(". 1:1(0) ack 1 <sack " + std::to_string(at) + ":" + std::to_string(at + 1) + ">");
    ASSERT_LE(connection().sent.records(), Scoreboard::kMaxRecords);
  }
  EXPECT_GT(counter(Counter::tcp_sack_ignored), 10000U);
  flush();
  outbox.clear();
  peer(". 1:1(0) ack 65001");
  outbox.clear();
  EXPECT_TRUE(connection().sent.empty());
}

TEST_F(RecoverStamped, an_acknowledgement_of_the_original_undoes_a_fast_recovery) {  // RFC 3522
  write_segments(10);                                                                // at TS 1100
  now = now + 100ms;
  peer(ack(0) + " <TS 510 1100,sack 1001:4001>");
  ours(". " + data(0));
  now = now + 10ms;
  peer(ack(5) + " <TS 511 1100>");  // answers what was sent at 1100, not at 1200
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_TRUE(state().recovery.rack.reordering);
  outbox.clear();
}

TEST_F(RecoverStamped, an_acknowledgement_of_the_retransmission_does_not) {
  write_segments(10);
  now = now + 100ms;
  peer(ack(0) + " <TS 510 1100,sack 1001:4001>");
  outbox.clear();
  now = now + 100ms;
  peer(ack(5) + " <TS 511 1200>");
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  outbox.clear();
}

TEST_F(RecoverStamped, a_timestamp_gives_the_round_trip_of_a_retransmission) {
  state().recovery.probe_out = true;
  write_segments(1);
  wait(state().rtt.timeout());
  outbox.clear();
  const auto stamp = std::to_string(now.ns / 1'000'000);
  now = now + 100ms;
  peer(ack(1) + " <TS 510 " + stamp + ">");
  EXPECT_EQ(state().rtt.backoff, 0);
  EXPECT_EQ(state().rtt.srtt, 100ms);
}

TEST_F(RecoverStamped, a_timestamp_from_the_future_is_no_sample) {  // row 90
  state().recovery.probe_out = true;
  write_segments(1);
  wait(state().rtt.timeout());
  outbox.clear();
  peer(ack(1) + " <TS 510 99999>");
  EXPECT_EQ(state().rtt.srtt, 100ms);
  EXPECT_EQ(state().rtt.backoff, 1);
}

TEST_F(RecoverReno, limited_transmit_sends_a_new_segment_on_the_first_two_duplicates) {  // RFC 3042
  write(20000);
  outbox.clear();
  peer(ack(0));
  ours(". " + data(10));
  peer(ack(0));
  ours(". " + data(11));
  silence();
}

TEST_F(RecoverReno, the_third_duplicate_retransmits) {  // RFC 5681 section 3.2
  write(10000);
  outbox.clear();
  peer(ack(0));
  peer(ack(0));
  silence();
  peer(ack(0));
  ours(". " + data(0));
  silence();
  EXPECT_EQ(state().congestion.ssthresh, 5000U);
}

TEST_F(RecoverReno, a_window_update_or_data_is_no_duplicate) {
  write(10000);
  outbox.clear();
  peer(ack(0) + " win 60000");
  peer(ack(0) + " win 61000");
  peer(ack(0) + " win 62000");
  peer("P. 1:101(100) ack 1 win 62000");
  peer("P. 101:201(100) ack 1 win 62000");
  for (const Sent& sent : outbox) EXPECT_FALSE(sent.segment.retransmission);
  EXPECT_EQ(state().recovery.phase, Phase::open);
  outbox.clear();
}

TEST_F(RecoverReno, a_partial_acknowledgement_retransmits_the_next_hole) {  // RFC 6582
  write_segments(10);
  for (int i = 0; i < 9; ++i) peer(ack(0));
  ours(". " + data(0));
  outbox.clear();
  now = now + 100ms;
  peer(ack(3));
  ours(". " + data(3));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  now = now + 100ms;
  peer(ack(10));
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(state().congestion.cwnd, 5000U);
}

TEST_F(RecoverReno, duplicates_after_a_recovery_do_not_start_another) {  // RFC 6582 section 3.2 step 2
  write_segments(10);
  for (int i = 0; i < 9; ++i) peer(ack(0));
  outbox.clear();
  peer(ack(10));
  write(3000);
  outbox.clear();
  for (int i = 0; i < 3; ++i) peer(ack(10));
  silence();
  EXPECT_EQ(state().recovery.phase, Phase::open);
}

TEST_F(RecoverReno, a_timeout_is_not_undone_by_what_the_retransmission_uncovered) {
  write_segments(10);
  wait(state().rtt.timeout());
  outbox.clear();
  peer(ack(10));  // one hole at the head, the rest was there
  EXPECT_EQ(counter(Counter::tcp_spurious_timeouts), 0U);
  outbox.clear();
}

TEST_F(RecoverReno, spoofed_duplicates_do_not_inflate_the_window_beyond_what_was_sent) {  // row 98
  write_segments(10);
  write(100000);
  outbox.clear();
  for (int i = 0; i < 1000; ++i) peer(ack(0));
  EXPECT_LE(distance(state().snd_una, state().snd_nxt), 65535U);
  EXPECT_LE(state().congestion.ssthresh, 10000U);
  outbox.clear();
}

TEST_F(RecoverSack,
       a_smaller_path_mtu_sends_again_in_smaller_pieces_without_reducing_the_window) {  // RFC 1191, 8201
  write_segments(4);
  const std::uint32_t cwnd = state().congestion.cwnd;
  on_icmp(connection(), {.error = IcmpError::too_big, .quoted = state().snd_una, .mss = 600});
  flush();
  ours(". 1:601(600)");
  ours(". 601:1201(600)");
  EXPECT_EQ(state().congestion.cwnd, cwnd);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  EXPECT_EQ(state().recovery.phase, Phase::open);
  outbox.clear();
}

TEST_F(RecoverSack, large_segments_that_vanish_are_tried_smaller) {  // RFC 2923
  Settings settings = sack_settings();
  set_up({.settings = settings, .path_mss = 1460});
  establish("<mss 1460,sackOK>");
  write(1460);
  outbox.clear();
  for (int i = 0; i < 10 && state().black_hole_mss == 0; ++i) wait(state().rtt.timeout());
  ASSERT_FALSE(outbox.empty());
  EXPECT_EQ(outbox.back().segment.length <= 1024U, true);
  outbox.clear();
  peer(". 1:1(0) ack 1025");
  EXPECT_EQ(state().path_mss, 1024);
  outbox.clear();
}

TEST_F(RecoverSack, a_d_sack_of_what_was_never_sent_or_long_ago_is_ignored) {
  write_segments(10);
  now = now + 100ms;
  peer(". 1:1(0) ack 2001 <sack 20001:21001>");
  peer(". 1:1(0) ack 2001 <sack -200000:-199000>");
  EXPECT_EQ(state().recovery.rack.window_mult, 1);
  outbox.clear();
}

TEST_F(RecoverSack, a_d_sack_of_data_from_before_the_recovery_undoes_nothing) {
  write_segments(2);
  peer(ack(2));
  write_segments(10);
  now = now + 100ms;
  peer(sack(2, 3, 6));
  ours(". " + data(2));
  peer(ack(2) + " <sack 1:1001 3001:6001>");
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  EXPECT_EQ(state().recovery.undo_bytes, 1000U);
  outbox.clear();
}

TEST_F(RecoverSack, two_timeouts_of_the_same_data_are_undone_as_one) {
  state().recovery.probe_out = true;
  write_segments(10);
  wait(state().rtt.timeout());
  wait(state().rtt.timeout());
  outbox.clear();
  peer(ack(3));
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_GE(state().congestion.cwnd, 10000U);
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
  outbox.clear();
}

TEST_F(RecoverSack, a_probe_that_would_come_after_the_timer_takes_its_place) {  // RFC 8985 section 7.2
  write_segments(1);
  wait(300ms);  // the timeout; the probe would have waited for 400 ms
  ours("P. " + data(0));
  silence();
  EXPECT_EQ(state().recovery.phase, Phase::open);
  EXPECT_EQ(counter(Counter::tcp_tail_probes), 1U);
  EXPECT_EQ(counter(Counter::tcp_timeouts), 0U);
  wait(300ms);
  EXPECT_EQ(counter(Counter::tcp_timeouts), 1U);
  outbox.clear();
}

}  // namespace
}  // namespace netchannel::tcp
