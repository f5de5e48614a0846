// The receiving side: what is acceptable, what is delivered, when it is acknowledged and with what window
// (RFC 9293 sections 3.8.6 and 3.10.7.4, RFC 5681 section 4.2, RFC 2018, RFC 2883, RFC 7323).
#include "dialogue.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

class Receive : public Dialogue {
 protected:
  Receive() { establish(); }
  // No quick acknowledgements, as after the first data: the delays become visible.
  void delay_acks() {
    state().receiver.quick_acks = 0;
    state().receiver.data_at = now;
  }
};

TEST_F(Receive, the_first_segments_of_a_connection_are_acknowledged_at_once) {
  for (int i = 0; i < 16; ++i) {
    const std::string at = std::to_string(1 + 100 * i), end = std::to_string(101 + 100 * i);
    peer("P. " + at + ":" + end + "(100) ack 1");
    ours(". 1:1(0) ack " + end);
  }
  peer("P. 1601:1701(100) ack 1");
  silence();
  wait(40ms);
  ours(". 1:1(0) ack 1701");
}

TEST_F(Receive, one_segment_is_acknowledged_after_40_ms) {
  delay_acks();
  peer("P. 1:101(100) ack 1");
  silence();
  wait(40ms - 1ns);
  silence();
  wait(1ns);
  ours(". 1:1(0) ack 101");
  silence();
  EXPECT_TRUE(saw(kReadable));
}

// As Linux does: a sender that was silent for longer than a timeout, or that sends again what is here, starts
// with a small window and needs its acknowledgements.
TEST_F(Receive, after_a_pause_the_first_segments_are_acknowledged_at_once_again) {
  delay_acks();
  peer("P. 1:101(100) ack 1");
  wait(40ms);
  ours(". 1:1(0) ack 101");
  wait(2s);
  for (int i = 1; i <= 16; ++i) {
    const std::string at = std::to_string(1 + 100 * i), end = std::to_string(101 + 100 * i);
    peer("P. " + at + ":" + end + "(100) ack 1");
    ours(". 1:1(0) ack " + end);
  }
  peer("P. 1701:1801(100) ack 1");
  silence();
  wait(40ms);
  ours(". 1:1(0) ack 1801");
}

TEST_F(Receive, after_a_duplicate_the_next_segments_are_acknowledged_at_once) {
  delay_acks();
  peer("P. 1:101(100) ack 1");
  silence();
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 101");
  peer("P. 101:201(100) ack 1");
  ours(". 1:1(0) ack 201");
}

TEST_F(Receive, a_pause_does_not_end_the_delay_of_a_conversation) {  // request, answer, request, ...
  delay_acks();
  for (int i = 0; i < 3; ++i) {
    const std::string at = std::to_string(1 + 100 * i), end = std::to_string(101 + 100 * i);
    peer("P. " + at + ":" + end + "(100) ack " + std::to_string(1 + 10 * i));
    silence();
    write(10);
    ours("P. " + std::to_string(1 + 10 * i) + ":" + std::to_string(11 + 10 * i) + "(10) ack " + end);
    peer(". " + end + ":" + end + "(0) ack " + std::to_string(11 + 10 * i));
    wait(2s);
  }
}

TEST_F(Receive, every_second_full_segment_is_acknowledged_at_once) {
  delay_acks();
  peer(". 1:1461(1460) ack 1");
  silence();
  peer(". 1461:2921(1460) ack 1");
  ours(". 1:1(0) ack 2921");
  peer(". 2921:4381(1460) ack 1");
  silence();
}

TEST_F(Receive, where_acknowledgements_gather_eight_segments_share_one) {
  delay_acks();
  state().settings.ack_gather = 50us;
  for (int i = 0; i < 8; ++i) {
    silence();
    peer(". " + std::to_string(1 + 1460 * i) + ":" + std::to_string(1461 + 1460 * i) + "(1460) ack 1");
  }
  ours(". 1:1(0) ack 11681");
}

TEST_F(Receive, a_gathered_acknowledgement_waits_no_longer_than_it_may) {
  delay_acks();
  state().settings.ack_gather = 50us;
  peer(". 1:1461(1460) ack 1");
  peer(". 1461:2921(1460) ack 1");
  silence();
  wait(49us);
  silence();
  wait(1us);
  ours(". 1:1(0) ack 2921");
}

TEST_F(Receive, what_is_pushed_does_not_wait_for_acknowledgements_to_gather) {
  delay_acks();
  state().settings.ack_gather = 50us;
  peer(". 1:1461(1460) ack 1");
  silence();
  peer("P. 1461:2921(1460) ack 1");
  ours(". 1:1(0) ack 2921");
}

TEST_F(Receive, a_burst_is_acknowledged_once) {  // MUST-58, MUST-59
  delay_acks();
  for (int i = 0; i < 10; ++i) {
    peer_in_burst(". " + std::to_string(1 + 1460 * i) + ":" + std::to_string(1461 + 1460 * i) +
                  "(1460) ack 1");
  }
  flush();
  ours(". 1:1(0) ack 14601");
  silence();
}

TEST_F(Receive, a_super_frame_counts_as_its_segments) {
  delay_acks();
  segments = 2;
  peer(". 1:2921(2920) ack 1");
  ours(". 1:1(0) ack 2921");
  EXPECT_EQ(state().receiver.mss, 1460);
}

TEST_F(Receive, data_that_we_send_carries_the_acknowledgement) {
  delay_acks();
  peer("P. 1:101(100) ack 1");
  silence();
  write(10);
  ours("P. 1:11(10) ack 101");
  wait(100ms);
  silence();
}

TEST_F(Receive, an_out_of_order_segment_is_acknowledged_at_once_and_so_is_what_fills_the_hole) {
  delay_acks();
  peer(". 101:201(100) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(connection().receive.readable(), 0U);
  peer(". 1:101(100) ack 1");
  ours(". 1:1(0) ack 201");
  EXPECT_EQ(read(1000), 200U);
}

TEST_F(Receive, without_sack_every_out_of_order_segment_of_a_burst_gets_its_duplicate_ack) {
  delay_acks();
  for (int i = 1; i <= 4; ++i) {
    peer_in_burst(". " + std::to_string(1 + 100 * i) + ":" + std::to_string(101 + 100 * i) + "(100) ack 1");
  }
  flush();
  for (int i = 0; i < 4; ++i) ours(". 1:1(0) ack 1");
  silence();
}

TEST_F(Receive, data_left_of_the_window_is_acknowledged_and_dropped) {
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 101");
  EXPECT_EQ(read(1000), 100U);
}

TEST_F(Receive, data_that_straddles_the_left_edge_is_trimmed) {
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  peer("P. 51:151(100) ack 1");
  ours(". 1:1(0) ack 151");
  EXPECT_EQ(read(1000), 150U);
}

TEST_F(Receive, data_right_of_the_window_is_acknowledged_and_dropped) {
  peer("P. 65536:65546(10) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_FALSE(connection().receive.has_islands());
}

TEST_F(Receive, data_one_byte_beyond_the_window_loses_that_byte) {
  peer("P. 65527:65537(10) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(connection().receive.out_of_order(), 9U);
}

TEST_F(Receive, data_received_first_wins) {
  peer("P. 11:21(10) ack 1");
  fill = std::byte{0xee};
  peer("P. 6:26(20) ack 1");
  fill = std::byte{0};
  // Bytes 6..10 and 21..25 are the second segment's, 11..20 must not be.
  peer("P. 1:6(5) ack 1");
  std::array<Bytes, 8> spans;
  const std::size_t count = connection().receive.spans(spans);
  std::vector<std::byte> got;
  for (const Bytes& span : std::span(spans).first(count)) got.insert(got.end(), span.begin(), span.end());
  ASSERT_EQ(got.size(), 25U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool second = (i >= 5 && i < 10) || i >= 20;
    EXPECT_EQ(got[i], second ? std::byte{0xee} : static_cast<std::byte>(i * 131 + 7)) << i;
  }
  outbox.clear();
}

TEST_F(Receive, a_zero_window_is_told_and_takes_no_data_but_acks_and_rsts) {
  Settings settings = plain_settings();
  settings.receive_buffer = settings.receive_buffer_max = 2000;
  set_up({.settings = settings});
  establish();
  write(100);
  outbox.clear();
  peer(". 1:1001(1000) ack 1");
  ours(". 101:101(0) ack 1001 win 1000");
  peer(". 1001:2001(1000) ack 1");
  ours(". 101:101(0) ack 2001 win 0");
  peer(". 2001:2101(100) ack 101");
  ours(". 101:101(0) ack 2001 win 0");
  EXPECT_EQ(state().snd_una, state().snd_nxt) << "the acknowledgement counts (MUST-66)";
  EXPECT_EQ(connection().receive.readable(), 2000U);
  peer("R. 2001:2001(0) ack 101");
  EXPECT_EQ(state().failure, Failure::reset);
}

TEST_F(Receive, the_window_opens_when_it_is_worth_it) {  // SWS avoidance, MUST-39
  Settings settings = plain_settings();
  settings.receive_buffer = settings.receive_buffer_max = 3000;
  set_up({.settings = settings});
  establish();
  peer(". 1:1461(1460) ack 1");
  peer(". 1461:2921(1460) ack 1");
  peer(". 2921:3001(80) ack 1");
  outbox.clear();
  EXPECT_EQ(state().rcv_adv, state().rcv_nxt);
  read(1459);
  silence();
  read(1);
  ours(". 1:1(0) ack 3001 win 1460");
}

TEST_F(Receive, the_right_edge_never_moves_left) {
  Settings settings = plain_settings();
  settings.receive_buffer = settings.receive_buffer_max = 10000;
  set_up({.settings = settings});
  establish();
  Seq edge = state().rcv_adv;
  for (int i = 0; i < 10; ++i) {
    peer(". " + std::to_string(1 + 1000 * i) + ":" + std::to_string(1001 + 1000 * i) + "(1000) ack 1");
    EXPECT_GE(state().rcv_adv, edge);
    edge = state().rcv_adv;
    if (i % 3 == 0) read(500);
  }
  outbox.clear();
}

TEST_F(Receive, fin_in_order_ends_the_stream) {
  peer("FP. 1:101(100) ack 1");
  ours(". 1:1(0) ack 102");
  EXPECT_EQ(state().state, State::close_wait);
  EXPECT_TRUE(saw(kPeerClosed));
  EXPECT_EQ(read(1000), 100U);
}

TEST_F(Receive, fin_out_of_order_waits_for_its_turn) {
  peer("F. 101:101(0) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::established);
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 102");
  EXPECT_EQ(state().state, State::close_wait);
}

TEST_F(Receive, fin_again_is_acknowledged_again) {
  peer("F. 1:1(0) ack 1");
  outbox.clear();
  peer("F. 1:1(0) ack 1");
  ours(". 1:1(0) ack 2");
}

TEST_F(Receive, data_after_a_fin_is_dropped_and_acknowledged) {
  peer("F. 1:1(0) ack 1");
  outbox.clear();
  peer("P. 2:12(10) ack 1");
  ours(". 1:1(0) ack 2");
  EXPECT_EQ(connection().receive.readable(), 0U);
  EXPECT_EQ(state().rcv_nxt, state().irs + 2);
}

TEST_F(Receive, a_fin_whose_data_was_cut_by_the_window_is_not_taken) {
  Settings settings = plain_settings();
  settings.receive_buffer = settings.receive_buffer_max = 1000;
  set_up({.settings = settings});
  establish();
  peer("FP. 1:1101(1100) ack 1");
  EXPECT_EQ(state().state, State::established);
  EXPECT_FALSE(saw(kPeerClosed));
  EXPECT_EQ(read(2000), 1000U);
  outbox.clear();
  peer("FP. 1001:1101(100) ack 1");
  EXPECT_EQ(state().state, State::close_wait);
  outbox.clear();
}

TEST_F(Receive, sequence_numbers_wrap_inside_a_segment) {
  set_up({.settings = plain_settings(), .iss = 0xfffffff0, .irs = 0xffffffc0});
  establish();
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 101");
  EXPECT_EQ(read(1000), 100U);
  write(100);
  ours("P. 1:101(100) ack 101");
  peer(". 101:101(0) ack 101");
  EXPECT_EQ(state().snd_una, state().snd_nxt);
}

TEST_F(Receive, urgent_data_is_delivered_in_line_and_a_strange_pointer_does_no_harm) {
  peer("PU. 1:11(10) ack 1");
  peer("U. 11:11(0) ack 1");
  EXPECT_EQ(read(100), 10U);
  EXPECT_EQ(state().state, State::established);
  outbox.clear();
}

TEST_F(Receive, a_segment_without_ack_is_dropped) {
  for (const char* flags : {"-", "P", "U", "F", "FPU", "E"}) {
    peer(std::string(flags) + " 1:11(10)");
    silence();
  }
  EXPECT_EQ(connection().receive.readable(), 0U);
  EXPECT_EQ(state().state, State::established);
  EXPECT_EQ(counter(Counter::tcp_bad_flags), 6U);
}

class ReceiveSack : public Receive {
 protected:
  ReceiveSack() {
    set_up({.settings = sack_settings()});
    establish("<mss 1460,sackOK>");
  }
};

TEST_F(ReceiveSack, the_first_block_holds_the_segment_that_came_last) {
  peer(". 101:201(100) ack 1");
  ours(". 1:1(0) ack 1 <sack 101:201>");
  peer(". 301:401(100) ack 1");
  ours(". 1:1(0) ack 1 <sack 301:401 101:201>");
  peer(". 501:601(100) ack 1");
  ours(". 1:1(0) ack 1 <sack 501:601 301:401 101:201>");
  peer(". 201:251(50) ack 1");
  ours(". 1:1(0) ack 1 <sack 101:251 501:601 301:401>");
}

TEST_F(ReceiveSack, four_blocks_at_most_and_three_with_timestamps) {
  for (int i = 0; i < 6; ++i)
    peer(". " + std::to_string(101 + 200 * i) + ":" + std::to_string(201 + 200 * i) + "(100) ack 1");
  for (int i = 0; i < 5; ++i) outbox.pop_front();
  ours(". 1:1(0) ack 1 <sack 1101:1201 901:1001 701:801 501:601>");
  Settings settings = sack_settings();
  settings.timestamps = true;
  set_up({.settings = settings});
  establish("<mss 1460,sackOK,TS 1 1000>");
  for (int i = 0; i < 6; ++i) {
    peer(". " + std::to_string(101 + 200 * i) + ":" + std::to_string(201 + 200 * i) +
         "(100) ack 1 <TS 2 1000>");
  }
  EXPECT_EQ(outbox.back().segment.options.sack.size(), 3U);
}

TEST_F(ReceiveSack, blocks_go_when_the_hole_is_filled) {
  peer(". 101:201(100) ack 1");
  outbox.clear();
  peer(". 1:101(100) ack 1");
  ours(". 1:1(0) ack 201 <>");
}

TEST_F(ReceiveSack, a_duplicate_is_reported_once_by_a_d_sack) {  // RFC 2883 section 4.1
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 101 <sack 1:101>");
  peer("P. 101:201(100) ack 1");
  ours(". 1:1(0) ack 201 <>");
}

TEST_F(ReceiveSack, a_duplicate_out_of_order_is_reported_before_the_block_that_holds_it) {
  peer(". 201:401(200) ack 1");
  outbox.clear();
  peer(". 201:301(100) ack 1");
  ours(". 1:1(0) ack 1 <sack 201:301 201:401>");
}

TEST_F(ReceiveSack, a_partial_duplicate_is_reported_as_far_as_it_is_one) {
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  peer("P. 51:151(100) ack 1");
  ours(". 1:1(0) ack 151 <sack 51:101>");
}

TEST_F(ReceiveSack, one_acknowledgement_for_a_burst_of_out_of_order_segments) {
  for (int i = 1; i <= 4; ++i) {
    peer_in_burst(". " + std::to_string(1 + 100 * i) + ":" + std::to_string(101 + 100 * i) + "(100) ack 1");
  }
  flush();
  ours(". 1:1(0) ack 1 <sack 101:501>");
  silence();
}

class ReceiveStamped : public Receive {
 protected:
  ReceiveStamped() {
    Settings settings = plain_settings();
    settings.timestamps = true;
    set_up({.settings = settings});
    establish("<mss 1460,TS 100 1000>");
  }
};

TEST_F(ReceiveStamped, an_old_timestamp_is_dropped_and_acknowledged) {  // PAWS
  peer("P. 1:101(100) ack 1 <TS 99 1000>");
  ours(". 1:1(0) ack 1 <TS 1000 100>");
  EXPECT_EQ(connection().receive.readable(), 0U);
  EXPECT_EQ(counter(Counter::tcp_paws), 1U);
}

TEST_F(ReceiveStamped, an_old_timestamp_counts_again_after_24_days) {  // RFC 7323 section 5.5
  wait(24h * 24 - 1ns);
  peer("P. 1:101(100) ack 1 <TS 99 1000>");
  EXPECT_EQ(connection().receive.readable(), 0U);
  wait(1ns);
  outbox.clear();
  peer("P. 1:101(100) ack 1 <TS 99 1000>");
  EXPECT_EQ(connection().receive.readable(), 100U);
}

TEST_F(ReceiveStamped, a_segment_without_timestamp_is_dropped) {
  peer("P. 1:101(100) ack 1");
  silence();
  EXPECT_EQ(connection().receive.readable(), 0U);
  EXPECT_EQ(counter(Counter::tcp_no_timestamp), 1U);
}

TEST_F(ReceiveStamped, a_rst_needs_no_timestamp_and_may_have_an_old_one) {
  peer("R. 1:1(0) ack 1 <TS 5 0>");
  EXPECT_EQ(state().failure, Failure::reset);
}

TEST_F(ReceiveStamped, the_echo_is_of_the_segment_that_moved_the_left_edge) {  // TS.Recent
  delay_acks();
  peer("P. 1:101(100) ack 1 <TS 110 1000>");
  peer("P. 101:201(100) ack 1 <TS 120 1000>");
  wait(40ms);
  ours(". 1:1(0) ack 201 <TS 1040 110>");
  peer(". 301:401(100) ack 1 <TS 130 1000>");  // out of order: not its timestamp
  ours(". 1:1(0) ack 201 <TS 1040 110>");
  peer(". 201:301(100) ack 1 <TS 140 1000>");
  ours(". 1:1(0) ack 401 <TS 1040 140>");
}

TEST_F(ReceiveStamped, every_segment_carries_a_timestamp_but_rst) {
  write(100);
  ours("P. 1:101(100) ack 1 <TS 1000 100>");
  shut();
  ours("F. 101:101(0) ack 1 <TS 1000 100>");
  abort();
  ours("R. 102:102(0) ack 1 <>");
}

class ReceiveEcn : public Receive {
 protected:
  ReceiveEcn() {
    Settings settings = plain_settings();
    settings.ecn = EcnMode::request;
    set_up({.settings = settings});
    open();
    outbox.clear();
    peer("SE. 0:0(0) ack 1 <mss 1460>");
    outbox.clear();
    delay_acks();
  }
};

TEST_F(ReceiveEcn, congestion_experienced_is_echoed_until_cwr) {
  ecn = Ecn::ce;
  peer("P. 1:101(100) ack 1");
  ours("E. 1:1(0) ack 101");
  ecn = Ecn::ect0;
  peer("P. 101:201(100) ack 1");
  wait(40ms);
  ours("E. 1:1(0) ack 201");
  peer("PW. 201:301(100) ack 1");
  wait(40ms);
  ours(". 1:1(0) ack 301");
}

TEST_F(ReceiveEcn, only_new_data_is_sent_as_ecn_capable) {
  write(100);
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::ect0);
  outbox.clear();
  peer("P. 1:101(100) ack 1");
  wait(40ms);
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect) << "a pure acknowledgement";
  outbox.clear();
  wait(1s);
  ASSERT_FALSE(outbox.empty());
  EXPECT_TRUE(outbox.front().segment.retransmission);
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect) << "a retransmission";
  outbox.clear();
}

TEST_F(ReceiveEcn, an_echo_reduces_the_window_once_a_round_trip_and_is_answered_by_cwr) {
  write(14600);
  outbox.clear();
  const std::uint32_t before = state().congestion.cwnd;
  peer("E. 1:1(0) ack 1461");
  EXPECT_LT(state().congestion.ssthresh, before);
  const std::uint32_t reduced = state().congestion.ssthresh;
  peer("E. 1:1(0) ack 2921");
  peer("E. 1:1(0) ack 4381");
  EXPECT_EQ(state().congestion.ssthresh, reduced);
  peer("E. 1:1(0) ack 14601");
  EXPECT_EQ(state().congestion.cwnd, reduced);
  outbox.clear();
  write(1460);
  ours("PW. 14601:16061(1460) ack 1");
  write(100);
  ours("P. 16061:16161(100) ack 1");
}

TEST_F(Receive, a_fin_ahead_of_its_turn_is_forgotten_if_the_stream_goes_on_beyond_it) {
  peer("F. 101:101(0) ack 1");  // nobody's, or a lie
  peer("P. 1:101(100) ack 1");
  EXPECT_EQ(state().state, State::close_wait) << "alone it counts";
  set_up({.settings = plain_settings()});
  establish();
  peer("F. 101:101(0) ack 1");
  peer("P. 151:201(50) ack 1");
  peer("P. 1:101(100) ack 1");
  EXPECT_EQ(state().state, State::established);
  peer("P. 101:151(50) ack 1");
  EXPECT_EQ(read(1000), 200U);
  peer("F. 201:201(0) ack 1");
  EXPECT_EQ(state().state, State::close_wait);
  outbox.clear();
}

}  // namespace
}  // namespace netchannel::tcp
