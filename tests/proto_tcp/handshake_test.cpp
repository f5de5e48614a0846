// Opening a connection: RFC 9293 section 3.5 and 3.10.7.3, options (RFC 7323, RFC 2018, RFC 3168), SYN
// retransmission (RFC 6298).
#include "dialogue.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

class Opening : public Dialogue {};

TEST_F(Opening, active_open_sends_a_syn_with_all_options_and_acknowledges_the_answer) {
  Settings settings;
  settings.receive_buffer = 65535;
  settings.receive_buffer_max = 1 << 20;
  set_up({.settings = settings});
  open();
  ours("S 0:0(0) win 65535 <mss 1460,sackOK,TS 1000 0,wscale 5>");
  silence();
  peer("S. 0:0(0) ack 1 win 5000 <mss 1400,sackOK,TS 700 1000,wscale 3>");
  ours(". 1:1(0) ack 1 <TS 1000 700>");
  EXPECT_EQ(state().state, State::established);
  EXPECT_TRUE(saw(kConnected));
  EXPECT_TRUE(state().sack && state().timestamps && state().window_scaling);
  EXPECT_EQ(state().snd_wscale, 3);
  EXPECT_EQ(state().snd_wnd, 5000U) << "the window of a SYN is never scaled";
}

TEST_F(Opening, where_acknowledgements_gather_the_first_data_carries_that_of_the_handshake) {
  Settings settings;
  settings.ack_gather = 50us;
  set_up({.settings = settings});
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 5000 <mss 1400>");
  EXPECT_EQ(state().state, State::established);
  silence();
  write(10);
  ours("P. 1:11(10) ack 1");
  silence();
}

TEST_F(Opening, where_acknowledgements_gather_that_of_the_handshake_waits_no_longer_than_it_may) {
  Settings settings;
  settings.ack_gather = 50us;
  set_up({.settings = settings});
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 5000 <mss 1400>");
  wait(49us);
  silence();
  wait(1us);
  ours(". 1:1(0) ack 1");
}

TEST_F(Opening, what_the_peer_does_not_offer_is_not_used) {
  set_up({.settings = Settings{}});
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 5000 <mss 1400>");
  ours(". 1:1(0) ack 1 win 65535 <>");
  EXPECT_FALSE(state().sack || state().timestamps || state().window_scaling);
  EXPECT_EQ(state().rcv_wscale, 0);
}

TEST_F(Opening, without_an_mss_option_the_default_holds) {
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 65535");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().peer_mss, 536);  // MUST-15
  write(2000);
  ours(". 1:537(536) ack 1");
}

TEST_F(Opening, an_absurd_mss_is_raised_to_the_floor) {
  for (const char* option : {"<mss 0>", "<mss 1>", "<mss 47>"}) {
    set_up({.settings = plain_settings()});
    establish(option);
    write(100);
    ours(". 1:49(48) ack 1");
    outbox.clear();
  }
}

TEST_F(Opening, a_huge_mss_is_limited_by_the_path) {
  establish("<mss 65535>");
  write(3000);
  ours(". 1:1461(1460) ack 1");
  outbox.clear();
}

TEST_F(Opening, a_shift_above_14_counts_as_14) {
  set_up({.settings = Settings{}});
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 65535 <mss 1460,wscale 14>");
  EXPECT_EQ(state().snd_wscale, 14);
  peer(". 1:1(0) ack 1 win 65535");
  EXPECT_EQ(state().snd_wnd, 65535U << 14);
}

TEST_F(Opening, the_syn_is_sent_again_after_1_3_7_seconds_and_given_up_after_3_minutes) {
  open();
  ours("S 0:0(0) <mss 1460>");
  wait(999ms);
  silence();
  wait(1ms);
  ours("S 0:0(0) <mss 1460>");
  wait(1999ms);
  silence();
  wait(1ms);
  ours("S 0:0(0) <mss 1460>");
  wait(4s);
  ours("S 0:0(0) <mss 1460>");
  wait(180s - 7s);
  EXPECT_EQ(state().state, State::syn_sent) << "MUST-23: at least three minutes";
  wait(100s);
  EXPECT_EQ(state().state, State::closed);
  EXPECT_EQ(state().failure, Failure::timed_out);
  EXPECT_TRUE(saw(kClosed));
  outbox.clear();
}

TEST_F(Opening, one_lost_syn_keeps_the_initial_window_and_raises_the_timeout) {
  open();
  wait(1s);
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 65535 <mss 1460>");
  outbox.clear();
  EXPECT_EQ(state().rtt.rto, 3s) << "RFC 6298 (5.7)";
  EXPECT_EQ(state().congestion.cwnd, 14600U) << "RFC 6928 section 2";
}

TEST_F(Opening, two_lost_syns_begin_with_one_segment) {
  open();
  wait(3s);
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 65535 <mss 1460>");
  outbox.clear();
  EXPECT_EQ(state().congestion.cwnd, 1460U);
}

TEST_F(Opening, a_round_trip_is_measured_if_the_syn_was_sent_once) {
  open();
  outbox.clear();
  now = now + 30ms;
  peer("S. 0:0(0) ack 1 win 65535 <mss 1460>");
  outbox.clear();
  EXPECT_EQ(state().rtt.srtt, 30ms);
  EXPECT_EQ(state().rtt.rttvar, 15ms);
  EXPECT_EQ(state().rtt.timeout(), 230ms);
}

TEST_F(Opening, rst_with_the_right_ack_refuses) {
  open();
  outbox.clear();
  peer("R. 0:0(0) ack 1");
  EXPECT_EQ(state().state, State::closed);
  EXPECT_EQ(state().failure, Failure::refused);
  silence();
}

TEST_F(Opening, rst_with_a_wrong_ack_or_none_is_ignored) {
  open();
  outbox.clear();
  peer("R. 0:0(0) ack 2");
  peer("R. 0:0(0) ack 0");
  peer("R 0:0(0)");
  EXPECT_EQ(state().state, State::syn_sent);
  silence();
}

TEST_F(Opening, a_wrong_ack_is_answered_with_rst_at_its_number) {
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 5");
  ours("R 5:5(0)");
  peer(". 0:0(0) ack 0");
  ours("R 0:0(0)");
  EXPECT_EQ(state().state, State::syn_sent);
}

TEST_F(Opening, an_ack_without_syn_is_dropped) {
  open();
  outbox.clear();
  peer(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::syn_sent);
  silence();
}

TEST_F(Opening, data_in_the_syn_ack_is_not_taken) {
  open();
  outbox.clear();
  peer("S. 0:100(100) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(connection().receive.readable(), 0U);
}

TEST_F(Opening, simultaneous_open_is_established_by_both_syn_acks) {  // MUST-10
  open();
  outbox.clear();
  peer("S 0:0(0) win 5000 <mss 1000>");
  EXPECT_EQ(state().state, State::syn_received);
  ours("S. 0:0(0) ack 1 <mss 1460>");
  peer("S. 0:0(0) ack 1 win 5000 <mss 1000>");
  EXPECT_EQ(state().state, State::established);
  EXPECT_TRUE(saw(kConnected));
  silence();
}

TEST_F(Opening, in_syn_received_a_wrong_ack_is_reset_and_a_right_one_with_data_is_taken) {
  open();
  peer("S 0:0(0) win 5000 <mss 1000>");
  outbox.clear();
  peer(". 1:1(0) ack 7");
  ours("R 7:7(0)");
  EXPECT_EQ(state().state, State::syn_received);
  peer("P. 1:11(10) ack 1 win 5000");
  EXPECT_EQ(state().state, State::established);
  EXPECT_EQ(read(100), 10U);
}

TEST_F(Opening, syn_received_sends_its_syn_ack_again) {
  open();
  peer("S 0:0(0) win 5000 <mss 1000>");
  outbox.clear();
  wait(1s);
  ours("S. 0:0(0) ack 1 <mss 1460>");
  wait(2s);
  ours("S. 0:0(0) ack 1 <mss 1460>");
}

TEST_F(Opening, fin_with_the_last_ack_of_the_handshake_closes_the_peers_side) {
  establish_passive();
  peer("F. 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::close_wait);
  EXPECT_TRUE(saw(kConnected) && saw(kPeerClosed));
  ours(". 1:1(0) ack 2");
}

TEST_F(Opening, ecn_is_asked_for_and_agreed_on_as_rfc_3168_says) {
  Settings settings = plain_settings();
  settings.ecn = EcnMode::request;
  set_up({.settings = settings});
  open();
  ours("SEW 0:0(0)");
  peer("SE. 0:0(0) ack 1 <mss 1460>");
  EXPECT_TRUE(state().ecn);
  set_up({.settings = settings});
  open();
  ours("SEW 0:0(0)");
  peer("SEW. 0:0(0) ack 1 <mss 1460>");
  EXPECT_FALSE(state().ecn) << "a SYN-ACK with both flags is a host that reflects them";
}

TEST_F(Opening, a_repeated_syn_does_not_ask_for_ecn) {
  Settings settings = plain_settings();
  settings.ecn = EcnMode::request;
  set_up({.settings = settings});
  open();
  ours("SEW 0:0(0)");
  wait(1s);
  ours("S 0:0(0)");
}

TEST_F(Opening, the_acknowledgements_of_the_handshake_do_not_raise_the_window) {  // RFC 6928 section 2
  establish();
  EXPECT_EQ(state().congestion.cwnd, 14600U);
  set_up({.settings = plain_settings()});
  establish_passive();
  peer(". 1:1(0) ack 1");
  EXPECT_EQ(state().congestion.cwnd, 14600U);
  silence();
}

TEST_F(Opening,
       options_of_the_first_flight_are_those_of_the_syn_and_fast_open_is_none) {  // RFC 7413: left out
  Settings settings;
  set_up({.settings = settings});
  open();
  EXPECT_LE(outbox.front().segment.options.size(), 20U) << "MSS, SACK-permitted, timestamps, window scale";
  EXPECT_EQ(outbox.front().segment.length, 0U);
  write(100);
  EXPECT_EQ(outbox.size(), 1U) << "nothing leaves before the handshake is over";
  outbox.clear();
  peer("S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 700 1000,wscale 7>");
  ours("P. 1:101(100) ack 1");
}

TEST_F(Opening, timestamps_that_only_one_side_sends_are_off) {  // row 73
  Settings settings = plain_settings();
  set_up({.settings = settings});
  open();
  ours("S 0:0(0) <mss 1460>");
  peer("S. 0:0(0) ack 1 <mss 1460,TS 700 0>");
  ours(". 1:1(0) ack 1 <>");
  peer("P. 1:11(10) ack 1");
  EXPECT_EQ(read(100), 10U);
  outbox.clear();
}

TEST_F(Opening, closing_before_the_answer_forgets_the_connection) {
  open();
  outbox.clear();
  EXPECT_EQ(close() & kClosed, kClosed);
  EXPECT_EQ(state().state, State::closed);
  silence();
}

TEST_F(Opening, close_in_syn_received_sends_the_fin_after_the_handshake) {
  open();
  peer("S 0:0(0) win 5000 <mss 1000>");
  outbox.clear();
  close();
  silence();
  peer(". 1:1(0) ack 1 win 5000");
  EXPECT_EQ(state().state, State::fin_wait_1);
  ours("F. 1:1(0) ack 1");
}

TEST_F(Opening, a_connection_with_itself_is_made_and_carries_its_own_data) {  // row 91
  set_up({.settings = plain_settings(), .iss = 5000, .irs = 5000});
  open();
  ours("S 0:0(0)");
  peer("S 0:0(0) <mss 1460>");
  ours("S. 0:0(0) ack 1");
  peer("S. 0:0(0) ack 1 <mss 1460>");
  EXPECT_EQ(state().state, State::established);
  write(100);
  ours("P. 1:101(100) ack 1");
  peer("P. 1:101(100) ack 1");
  ours(". 101:101(0) ack 101");
  peer(". 101:101(0) ack 101");
  EXPECT_EQ(read(1000), 100U);
  shut();
  ours("F. 101:101(0) ack 101");
  peer("F. 101:101(0) ack 101");
  EXPECT_EQ(state().state, State::closing);
  ours(". 102:102(0) ack 102");
  peer(". 102:102(0) ack 102");
  EXPECT_EQ(state().state, State::time_wait);
}

}  // namespace
}  // namespace netchannel::tcp
