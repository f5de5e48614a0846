// The sending side while nothing is lost: what leaves when (RFC 9293 sections 3.7.4, 3.8.4 and 3.8.6),
// windows, probes, keepalive, user timeout, and the retransmission timer (RFC 6298).
#include "dialogue.hpp"
#include "proto/tcp/info.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

class Send : public Dialogue {
 protected:
  Send() { establish(); }
};

TEST_F(Send, the_first_flight_is_ten_segments) {  // RFC 6928
  write(30000);
  for (int i = 0; i < 10; ++i)
    ours(". " + std::to_string(1 + 1460 * i) + ":" + std::to_string(1461 + 1460 * i) + "(1460) ack 1");
  silence();
}

TEST_F(Send, slow_start_grows_by_what_was_acknowledged) {
  write(100000);
  outbox.clear();
  peer(". 1:1(0) ack 2921");
  EXPECT_EQ(state().congestion.cwnd, 14600U + 2920U);
  EXPECT_EQ(outbox.size(), 4U);
  outbox.clear();
}

TEST_F(Send, dividing_an_acknowledgement_gains_nothing) {  // RFC 3465
  write(100000);
  outbox.clear();
  for (int i = 1; i <= 10; ++i) peer(". 1:1(0) ack " + std::to_string(1 + 146 * i));
  EXPECT_EQ(state().congestion.cwnd, 14600U + 1460U);
  outbox.clear();
}

TEST_F(Send, an_unused_window_does_not_grow) {
  for (int i = 0; i < 20; ++i) {
    write(100);
    peer(". 1:1(0) ack " + std::to_string(101 + 100 * i));
  }
  EXPECT_EQ(state().congestion.cwnd, 14600U);
  outbox.clear();
}

TEST_F(Send, after_idle_the_window_restarts) {  // RFC 5681 section 4.1
  write(58400);
  for (int i = 1; i <= 20; ++i) peer(". 1:1(0) ack " + std::to_string(1 + 2920 * i));
  EXPECT_GT(state().congestion.cwnd, 14600U);
  outbox.clear();
  wait(10s);
  write(100000);
  EXPECT_EQ(outbox.size(), 10U);
  outbox.clear();
}

TEST_F(Send, a_super_frame_carries_whole_segments_up_to_its_limit) {
  set_up({.settings = plain_settings(), .super_frame = 10000});
  establish();
  write(14600);
  ours(". 1:8761(8760) ack 1");
  EXPECT_TRUE(outbox.size() == 1);
  ours("P. 8761:14601(5840) ack 1");
}

TEST_F(Send, a_super_frame_tells_its_segment_size) {
  set_up({.settings = plain_settings(), .super_frame = 65000});
  establish();
  write(4000);
  ASSERT_EQ(outbox.size(), 1U);
  EXPECT_EQ(outbox.front().segment.segment_size, 1460);
  outbox.clear();
  peer(". 1:1(0) ack 4001");
  write(100);
  EXPECT_EQ(outbox.front().segment.segment_size, 0);
  outbox.clear();
}

TEST_F(Send, nagle_holds_a_second_small_segment_until_the_first_is_acknowledged) {  // MUST-17, section 3.7.4
  write(10);
  ours("P. 1:11(10) ack 1");
  write(10);
  write(10);
  silence();
  peer(". 1:1(0) ack 11");
  ours("P. 11:31(20) ack 1");
}

TEST_F(Send, a_small_segment_follows_full_ones_at_once) {
  write(1460 + 10);
  ours(". 1:1461(1460) ack 1");
  ours("P. 1461:1471(10) ack 1");
}

TEST_F(Send, no_delay_sends_every_write) {
  state().settings.no_delay = true;
  write(10);
  write(10);
  ours("P. 1:11(10) ack 1");
  ours("P. 11:21(10) ack 1");
}

TEST_F(Send, cork_holds_a_partial_segment_and_lets_full_ones_go) {
  set_cork(connection(), true);
  write(1470);
  ours(". 1:1461(1460) ack 1");
  silence();
  set_cork(connection(), false);
  flush();
  ours("P. 1461:1471(10) ack 1");
}

TEST_F(Send, a_cork_holds_for_200_ms_at_most) {
  set_cork(connection(), true);
  write(10);
  wait(200ms - 1ns);
  silence();
  wait(1ns);
  ours("P. 1:11(10) ack 1");
}

TEST_F(Send, what_the_cork_held_goes_even_if_the_batch_was_full_at_first) {
  write(10);
  ours("P. 1:11(10) ack 1");
  set_cork(connection(), true);
  write(10);
  set_cork(connection(), false);
  TxBatch full;
  EXPECT_TRUE(poll_tx(connection(), full, {.segments = 0}, now));
  flush();
  ours("P. 11:21(10) ack 1");
}

TEST_F(Send, a_fin_pushes_what_cork_and_nagle_hold) {
  write(10);
  outbox.clear();
  write(10);
  silence();
  shut();
  ours("FP. 11:21(10) ack 1");
}

TEST_F(Send, push_marks_the_end_of_what_was_written) {
  write(2920);
  ours(". 1:1461(1460) ack 1");
  ours("P. 1461:2921(1460) ack 1");
}

TEST_F(Send, the_peers_window_is_respected) {
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 3000);
  write(10000);
  ours(". 1:1461(1460) ack 1");
  ours(". 1461:2921(1460) ack 1");
  silence();
  peer(". 1:1(0) ack 2921 win 1500");
  ours(". 2921:4381(1460) ack 1");
  silence();
}

TEST_F(Send, a_small_rest_of_the_window_is_not_filled) {  // MUST-38
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 4000);
  write(10000);
  outbox.clear();
  peer(". 1:1(0) ack 2921 win 1000");
  silence();
}

TEST_F(Send, half_of_a_small_peers_window_is_worth_a_segment) {
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 1000);
  write(10000);
  ours(". 1:1001(1000) ack 1");
  peer(". 1:1(0) ack 1001 win 499");
  silence();
  peer(". 1:1(0) ack 1001 win 500");
  ours(". 1001:1501(500) ack 1");
}

TEST_F(Send, after_the_override_timeout_a_small_window_is_filled_all_the_same) {
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 4000);
  write(10000);
  outbox.clear();
  peer(". 1:1(0) ack 2921 win 1000");
  silence();
  wait(1s);
  ASSERT_FALSE(outbox.empty());
  ours(". 2921:3921(1000) ack 1");
}

TEST_F(Send, the_window_is_unsigned_and_scaled) {  // MUST-1
  Settings settings = plain_settings();
  settings.window_scaling = true;
  set_up({.settings = settings});
  establish("<mss 1460,wscale 14>");
  peer(". 1:1(0) ack 1 win 65535");
  EXPECT_EQ(state().snd_wnd, 1073725440U);
  write(1000);
  ours("P. 1:1001(1000) ack 1");
}

TEST_F(Send, an_old_segment_does_not_update_the_window) {  // SND.WL1, SND.WL2
  peer("P. 1:101(100) ack 1 win 5000");
  EXPECT_EQ(state().snd_wnd, 5000U);
  peer(". 1:1(0) ack 1 win 9000");
  EXPECT_EQ(state().snd_wnd, 5000U);
  outbox.clear();
}

TEST_F(Send, a_zero_window_is_probed_with_back_off_and_for_ever) {  // MUST-35, MUST-36, MUST-37
  write(1000);
  outbox.clear();
  peer(". 1:1(0) ack 1001 win 0");
  write(1000);
  silence();
  Duration gap = state().rtt.timeout();
  wait(gap - 1ns);
  silence();
  wait(1ns);
  ours(". 1000:1000(0) ack 1");
  for (int i = 0; i < 30; ++i) {
    peer(". 1:1(0) ack 1001 win 0");
    gap = std::min<Duration>(2 * gap, 120s);
    wait(gap - 1ns);
    silence();
    wait(1ns);
    ours(". 1000:1000(0) ack 1");
  }
  EXPECT_EQ(state().state, State::established);
  peer(". 1:1(0) ack 1001 win 5000");
  ours("P. 1001:2001(1000) ack 1");
}

TEST_F(Send, while_the_window_is_closed_nothing_is_worth_holding_and_its_opening_is_told) {
  EXPECT_EQ(useful_to_hold(connection()), 14600U);
  write(1000);
  outbox.clear();
  peer(". 1:1(0) ack 1001 win 0");
  EXPECT_EQ(useful_to_hold(connection()), 0U);
  forget_events();
  peer(". 1:1(0) ack 1001 win 100");
  EXPECT_TRUE(saw(kWritable));
  EXPECT_EQ(useful_to_hold(connection()), 100U);
}

TEST_F(Send, a_stack_without_frames_may_end_what_a_closed_window_has_held_up_for_long) {  // RFC 6429
  write(1000);
  EXPECT_EQ(end_if_stalled(connection(), now), 0) << "in flight";
  outbox.clear();
  peer(". 1:1(0) ack 1001 win 0");
  EXPECT_EQ(end_if_stalled(connection(), now), 0) << "nothing waits";
  write(1000);
  const Instant begin = now;
  wait(10s);
  outbox.clear();
  peer(". 1:1(0) ack 1001 win 0");
  EXPECT_EQ(end_if_stalled(connection(), begin - 1ns), 0);
  EXPECT_EQ(end_if_stalled(connection(), begin), kClosed);
  flush();
  ours("R. 1001:1001(0) ack 1");
  EXPECT_EQ(state().failure, Failure::timed_out);
}

// Row 95: nobody is left to decide how long to wait for the peer.
TEST_F(Send, the_window_of_an_orphan_may_stay_closed_for_some_minutes_only) {
  write(1000);
  outbox.clear();
  peer(". 1:1(0) ack 1001 win 0");
  write(1000);
  close();
  const Instant begin = now;
  while (state().state != State::closed && now - begin < 24h) {
    wait(100ms);
    while (!outbox.empty() && !outbox.front().segment.flags.rst()) {
      outbox.pop_front();
      peer(". 1:1(0) ack 1001 win 0");
    }
    if (!outbox.empty()) break;
  }
  ours("R. 1001:1001(0) ack 1");
  EXPECT_GT(now - begin, 2min);
  EXPECT_LT(now - begin, 10min);
  EXPECT_EQ(state().failure, Failure::timed_out);
}

TEST_F(Send, a_window_probe_without_answers_ends_the_connection) {
  write(1000);
  peer(". 1:1(0) ack 1001 win 0");
  write(1000);
  wait(2h);
  EXPECT_EQ(state().failure, Failure::timed_out);
  outbox.clear();
}

TEST_F(Send,
       a_window_that_shrinks_below_what_is_in_flight_stops_new_data_and_keeps_retransmitting) {  // MUST-34
  write(5840);
  outbox.clear();
  peer(". 1:1(0) ack 1461 win 0");
  silence();
  wait(state().rtt.timeout());
  ours(". 1461:2921(1460) ack 1");
  silence();
  EXPECT_EQ(state().snd_nxt - state().snd_una, 4380);
}

TEST_F(Send, keepalive_is_off_by_default) {  // MUST-25
  wait(24h * 10);
  silence();
}

class Keepalive : public Dialogue {
 protected:
  Keepalive() {
    Settings settings = plain_settings();
    settings.keepalive = true;
    set_up({.settings = settings});
    establish();
  }
};

TEST_F(Keepalive, probes_after_two_hours_and_again_after_silence) {
  wait(2h - 1ns);
  silence();
  wait(1ns);
  ours(". 0:0(0) ack 1");
  wait(75s);
  ours(". 0:0(0) ack 1");
  peer(". 1:1(0) ack 1");
  wait(2h - 1ns);
  silence();
  wait(1ns);
  ours(". 0:0(0) ack 1");
}

TEST_F(Keepalive, gives_up_after_nine_unanswered_probes_with_a_rst) {
  wait(2h);
  for (int i = 0; i < 9; ++i) {
    ours(". 0:0(0) ack 1");
    wait(75s);
  }
  ours("R. 1:1(0) ack 1");
  EXPECT_EQ(state().failure, Failure::timed_out);
}

TEST_F(Keepalive, is_put_off_by_traffic) {
  wait(1h);
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  wait(2h - 1ns);
  silence();
  wait(1ns);
  ours(". 0:0(0) ack 101");
}

TEST_F(Keepalive, a_probe_of_the_peer_is_answered) {
  peer(". 0:0(0) ack 1");
  ours(". 1:1(0) ack 1");
}

TEST_F(Keepalive, can_be_turned_on_and_off_at_any_time) {
  set_up({.settings = plain_settings()});
  establish();
  wait(3h);
  silence();
  state().settings.keepalive_idle = 1min;
  set_keepalive(connection(), true, now);
  wait(1min - 1ns);
  silence();
  wait(1ns);
  ours(". 0:0(0) ack 1");
  set_keepalive(connection(), false, now);
  wait(24h);
  silence();
}

TEST_F(Keepalive, gives_up_after_the_user_timeout_if_there_is_one) {  // as Linux has it
  state().settings.user_timeout = 2h + 3min;
  wait(2h + 3min);
  for (int i = 0; i < 3; ++i) ours(". 0:0(0) ack 1");
  EXPECT_EQ(state().state, State::established);
  wait(75s);
  ours("R. 1:1(0) ack 1");
  EXPECT_EQ(state().failure, Failure::timed_out);
}

TEST_F(Send, the_retransmission_timer_doubles) {  // RFC 6298 (5.5)
  write(1000);
  outbox.clear();
  Duration gap = state().rtt.timeout();
  for (int i = 0; i < 6; ++i) {
    wait(gap - 1ns);
    silence();
    wait(1ns);
    ours("P. 1:1001(1000) ack 1");
    gap *= 2;
  }
}

TEST_F(Send, the_timer_is_restarted_when_new_data_is_acknowledged) {  // (5.3)
  write(4380);
  outbox.clear();
  wait(150ms);
  peer(". 1:1(0) ack 1461");
  const Duration rto = state().rtt.timeout();
  wait(rto - 1ns);
  silence();
  wait(1ns);
  ours(". 1461:2921(1460) ack 1");
  outbox.clear();
}

TEST_F(Send, the_timer_is_off_when_all_is_acknowledged) {  // (5.2)
  write(1000);
  outbox.clear();
  peer(". 1:1(0) ack 1001");
  EXPECT_EQ(next_deadline(state()), kForever);
  EXPECT_TRUE(saw(kAllAcked) && saw(kWritable));
}

TEST_F(Send, a_retransmitted_segment_gives_no_round_trip) {  // Karn
  write(1000);
  wait(state().rtt.timeout());
  outbox.clear();
  const Duration before = state().rtt.srtt;
  now = now + 50ms;
  peer(". 1:1(0) ack 1001");
  EXPECT_EQ(state().rtt.srtt, before);
  EXPECT_EQ(state().rtt.backoff, 1) << "the back-off stays until the next sample";
}

TEST_F(Send, r1_asks_for_the_path_and_r2_closes) {  // MUST-20
  write(1000);
  wait(1300ms);
  EXPECT_FALSE(saw(kPathSuspect));
  wait(200ms);
  EXPECT_TRUE(saw(kPathSuspect));
  wait(100s);
  EXPECT_EQ(state().state, State::established);
  wait(1h);
  EXPECT_EQ(state().failure, Failure::timed_out);
  EXPECT_TRUE(saw(kClosed));
  outbox.clear();
}

TEST_F(Send, the_user_timeout_is_kept_to_the_nanosecond) {  // RFC 5482
  state().settings.user_timeout = 5s;
  write(1000);
  wait(5s - 1ns);
  EXPECT_EQ(state().state, State::established);
  wait(1ns);
  EXPECT_EQ(state().failure, Failure::timed_out);
  outbox.clear();
}

TEST_F(Send, the_user_timeout_starts_anew_with_progress) {
  state().settings.user_timeout = 5s;
  write(2920);
  wait(4s);
  peer(". 1:1(0) ack 1461");
  wait(4s);
  EXPECT_EQ(state().state, State::established);
  wait(1s);
  EXPECT_EQ(state().failure, Failure::timed_out);
  outbox.clear();
}

TEST_F(Send, the_user_timeout_ends_a_closed_window_too) {
  state().settings.user_timeout = 10s;
  write(1000);
  peer(". 1:1(0) ack 1001 win 0");
  write(1000);
  for (int i = 0; i < 5; ++i) {
    wait(1900ms);
    peer(". 1:1(0) ack 1001 win 0");
  }
  EXPECT_EQ(state().state, State::established);
  wait(500ms);
  EXPECT_EQ(state().failure, Failure::timed_out);
  outbox.clear();
}

TEST_F(Send, write_takes_what_the_buffer_has_room_for) {
  state().settings.send_buffer_max = state().send_buffer = 50000;
  EXPECT_EQ(write(80000), 50000U);
  EXPECT_EQ(write(1), 0U);
  outbox.clear();
  peer(". 1:1(0) ack 1461");
  EXPECT_EQ(write(80000), 1460U);
  outbox.clear();
}

TEST_F(Send, write_after_shutdown_takes_nothing) {
  shut();
  EXPECT_EQ(write(10), 0U);
  outbox.clear();
}

TEST_F(Send, the_limit_of_segments_in_a_batch_is_kept_and_more_is_told) {
  write(14600);
  outbox.clear();
  const std::vector<std::byte> data(8760);
  peer_in_burst(". 1:1(0) ack 14601");
  tcp::write(connection(), data, frames(), 128);
  TxBatch batch;
  EXPECT_TRUE(poll_tx(connection(), batch, {.segments = 3}, now));
  EXPECT_EQ(batch.size(), 3U);
  EXPECT_TRUE(poll_tx(connection(), batch, {.segments = 5}, now)) << "to what is in the batch two are added";
  EXPECT_EQ(batch.size(), 5U);
  TxBatch rest;
  EXPECT_FALSE(poll_tx(connection(), rest, {}, now));
  EXPECT_EQ(rest.size(), 1U);
}

TEST_F(Send, mss_limit_holds_for_what_is_sent) {  // TCP_MAXSEG
  Settings settings = plain_settings();
  settings.mss_limit = 500;
  set_up({.settings = settings});
  open();
  ours("S 0:0(0) <mss 500>");
  peer("S. 0:0(0) ack 1 <mss 1460>");
  outbox.clear();
  write(1000);
  ours(". 1:501(500) ack 1");
  outbox.clear();
}

TEST_F(Send, options_are_subtracted_from_the_segment_size) {  // RFC 6691
  Settings settings = plain_settings();
  settings.timestamps = true;
  set_up({.settings = settings});
  establish("<mss 1460,TS 100 1000>");
  write(2000);
  ours(". 1:1449(1448) ack 1 <TS 1000 100>");
  outbox.clear();
}

TEST_F(Send, info_tells_what_linux_would) {
  write(14600 + 500);
  outbox.clear();
  TcpInfo i = info(connection(), now);
  EXPECT_EQ(i.snd_cwnd, 10U);
  EXPECT_EQ(i.unacked, 10U);
  EXPECT_EQ(i.notsent_bytes, 500U);
  EXPECT_EQ(i.snd_ssthresh, 0x7fffffffU);
  EXPECT_EQ(i.segs_out, 11U) << "an acknowledgement and ten segments";
  now = now + 20ms;
  peer("P. 1:101(100) ack 2921");
  i = info(connection(), now);
  EXPECT_EQ(i.bytes_acked, 2920U);
  EXPECT_EQ(i.bytes_received, 100U);
  EXPECT_EQ(i.segs_in, 2U);
  EXPECT_EQ(i.ca_state, 0);
  wait(state().rtt.timeout());
  i = info(connection(), now);
  EXPECT_EQ(i.ca_state, 4);
  EXPECT_EQ(i.retransmits, 1);
  EXPECT_EQ(i.total_retrans, 1U);
  EXPECT_EQ(i.bytes_retrans, 1460U);
  EXPECT_GT(i.lost, 0U);
  outbox.clear();
}

TEST_F(Send, an_acknowledgement_of_new_data_brings_its_window_even_on_an_old_segment) {
  write(2920);
  outbox.clear();
  peer("P. 1:101(100) ack 1 win 9000");
  peer("P. 1:101(100) ack 1461 win 5000");  // sent again, with news
  EXPECT_EQ(state().snd_wnd, 9000U) << "wholly old: acknowledged and dropped";
  peer("P. 51:151(100) ack 1461 win 5000");
  EXPECT_EQ(state().snd_wnd, 5000U);
  outbox.clear();
}

TEST(Idle, a_connection_takes_less_than_a_kibibyte) {
  EXPECT_LE(sizeof(Connection) + sizeof(TxRecord), 870U);
}

}  // namespace
}  // namespace netchannel::tcp
