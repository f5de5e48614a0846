// What forged or hostile segments cannot do: RFC 5961, RFC 5927, and the resource attacks of the bad-input
// list.
#include "dialogue.hpp"
#include "proto/tcp/closed.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

class Attack : public Dialogue {
 protected:
  Attack() { establish(); }
};

TEST_F(Attack, a_rst_must_hit_rcv_nxt_exactly) {  // row 83, RFC 5961 section 3.2
  peer("R. 2:2(0) ack 1");
  ours(". 1:1(0) ack 1");
  peer("R. 65535:65535(0) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::established);
  peer("R. 0:0(0) ack 1");
  peer("R. 70000:70000(0) ack 1");
  silence();
  EXPECT_EQ(state().state, State::established);
  peer("R 1:1(0)");
  EXPECT_EQ(state().failure, Failure::reset);
  silence();
}

TEST_F(Attack, a_rst_with_data_ahead_of_a_hole_is_challenged) {
  peer("P. 101:201(100) ack 1");
  outbox.clear();
  peer("R. 201:201(0) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::established);
}

TEST_F(Attack, a_syn_is_challenged_wherever_it_lies) {  // row 81, RFC 5961 section 4.2
  peer("S 1:1(0)");
  ours(". 1:1(0) ack 1");
  peer("S 30000:30000(0)");
  ours(". 1:1(0) ack 1");
  peer("S 0:0(0)");
  ours(". 1:1(0) ack 1");
  peer("S. 0:0(0) ack 1");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::established);
}

TEST_F(Attack, an_acknowledgement_of_what_was_not_sent_is_answered_and_its_data_dropped) {  // row 85
  peer("P. 1:11(10) ack 2");
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(connection().receive.readable(), 0U);
  EXPECT_EQ(counter(Counter::tcp_bad_ack), 1U);
}

TEST_F(Attack, an_acknowledgement_from_long_ago_is_answered_and_its_data_dropped) {  // RFC 5961 section 5.2
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 1000);
  for (int i = 0; i < 5; ++i) {
    write(1000);
    peer(". 1:1(0) ack " + std::to_string(1001 + 1000 * i) + " win 1000");
  }
  outbox.clear();
  peer("P. 1:11(10) ack 4001 win 1000");
  EXPECT_EQ(connection().receive.readable(), 10U) << "one window back: old but plausible";
  outbox.clear();
  peer("P. 11:21(10) ack 4000 win 1000");
  ours(". 5001:5001(0) ack 11");
  EXPECT_EQ(connection().receive.readable(), 10U);
}

TEST_F(Attack,
       challenges_are_limited_for_each_connection) {  // RFC 5961 section 7; CVE-2016-5696: not globally
  for (int i = 0; i < 100; ++i) peer("S 1:1(0)");
  EXPECT_EQ(outbox.size(), 5U);
  EXPECT_EQ(counter(Counter::tcp_challenges_limited), 95U);
  outbox.clear();
  wait(500ms);
  for (int i = 0; i < 100; ++i) peer("S 1:1(0)");
  EXPECT_EQ(outbox.size(), 1U);
  outbox.clear();
  wait(10s);
  for (int i = 0; i < 100; ++i) peer("S 1:1(0)");
  EXPECT_EQ(outbox.size(), 5U);
  outbox.clear();
}

// A peer that has restarted does not know the old timestamps, and needs the answer to find out (RFC 9293
// section 3.5.1, RFC 5961 section 4.2).
TEST_F(Attack, a_syn_is_challenged_whatever_its_timestamp) {
  Settings settings = plain_settings();
  settings.timestamps = true;
  set_up({.settings = settings});
  establish("<mss 1460,TS 100 1000>");
  peer("S 30000:30000(0)");
  ours(". 1:1(0) ack 1 <TS 1000 100>");
  peer("S 30000:30000(0) <TS 5 0>");
  ours(". 1:1(0) ack 1 <TS 1000 100>");
  EXPECT_EQ(state().state, State::established);
}

TEST_F(Attack, challenges_of_syns_are_limited_whatever_they_carry) {
  Settings settings = plain_settings();
  settings.timestamps = true;
  set_up({.settings = settings});
  establish("<mss 1460,TS 100 1000>");
  for (int i = 0; i < 100; ++i) {
    peer("S 1:1(0) <TS 5 0>");
    peer("S -99:1(100) <TS 5 0>");
    peer("SF 100000:100010(10) <TS 200 0>");
  }
  EXPECT_EQ(outbox.size(), 5U);
  outbox.clear();
}

TEST_F(Attack, a_war_of_acknowledgements_dies_out) {  // row 92
  // Both are out of step: whatever we say is answered by an empty segment outside of our window.
  int said = 0;
  for (int i = 0; i < 1000; ++i) {
    peer(". 100000:100000(0) ack 1");
    said += static_cast<int>(outbox.size());
    outbox.clear();
    now = now + 1ms;
  }
  EXPECT_LE(said, 7);
}

TEST_F(Attack, icmp_errors_must_quote_what_is_in_flight) {  // row 61, RFC 5927
  write(1000);
  outbox.clear();
  for (const Seq quoted : {state().snd_una - 1, state().snd_nxt, state().snd_una + 100000}) {
    on_icmp(connection(), {.error = IcmpError::too_big, .quoted = quoted, .mss = 536});
    on_icmp(connection(), {.error = IcmpError::hard, .quoted = quoted});
  }
  EXPECT_EQ(state().path_mss, 1460);
  EXPECT_EQ(state().state, State::established);
  EXPECT_EQ(counter(Counter::tcp_icmp_ignored), 6U);
}

TEST_F(Attack, no_icmp_error_ends_an_established_connection) {  // row 63, MUST-56
  write(1000);
  outbox.clear();
  EXPECT_EQ(on_icmp(connection(), {.error = IcmpError::soft, .quoted = state().snd_una}), kSoftError);
  EXPECT_EQ(on_icmp(connection(), {.error = IcmpError::hard, .quoted = state().snd_una}), kSoftError);
  EXPECT_EQ(state().state, State::established);
  EXPECT_EQ(state().soft_failure, Failure::unreachable);
  wait(2h);
  EXPECT_EQ(state().failure, Failure::unreachable) << "the reason, if it ends in a timeout";
  outbox.clear();
}

TEST_F(Attack, a_hard_error_refuses_a_connection_that_is_being_opened) {  // row 64
  set_up({.settings = plain_settings()});
  open();
  outbox.clear();
  EXPECT_EQ(on_icmp(connection(), {.error = IcmpError::hard, .quoted = state().snd_una + 7}), 0);
  EXPECT_EQ(state().state, State::syn_sent);
  EXPECT_EQ(on_icmp(connection(), {.error = IcmpError::hard, .quoted = state().iss}), kClosed);
  EXPECT_EQ(state().failure, Failure::refused);
}

TEST_F(Attack, a_soft_error_does_not_end_a_connection_that_is_being_opened) {
  set_up({.settings = plain_settings()});
  open();
  EXPECT_EQ(on_icmp(connection(), {.error = IcmpError::soft, .quoted = state().iss}), kSoftError);
  EXPECT_EQ(state().state, State::syn_sent);
  wait(10min);
  EXPECT_EQ(state().failure, Failure::unreachable);
  outbox.clear();
}

TEST_F(Attack, packet_too_big_never_raises_and_never_goes_below_the_floor) {  // row 62
  write(1000);
  outbox.clear();
  for (const std::uint16_t mss : {std::uint16_t{1460}, std::uint16_t{9000}}) {
    on_icmp(connection(), {.error = IcmpError::too_big, .quoted = state().snd_una, .mss = mss});
    EXPECT_EQ(state().path_mss, 1460);
  }
  for (const std::uint16_t mss : {std::uint16_t{0}, std::uint16_t{1}}) {
    on_icmp(connection(), {.error = IcmpError::too_big, .quoted = state().snd_una, .mss = mss});
    EXPECT_EQ(state().path_mss, 48);
  }
}

TEST_F(Attack, an_optimistic_receiver_gains_nothing) {  // row 98: OptAck
  write(1 << 20);
  outbox.clear();
  const std::uint32_t cwnd = state().congestion.cwnd;
  for (int i = 0; i < 100; ++i) peer(". 1:1(0) ack " + std::to_string(100000 + 1460 * i));
  EXPECT_EQ(state().congestion.cwnd, cwnd);
  EXPECT_EQ(distance(state().iss, state().snd_una), 1U);
  outbox.clear();
}

TEST_F(Attack, one_byte_segments_ahead_of_a_hole_are_bounded) {  // row 96, SegmentSmack
  for (int i = 0; i < 30000; ++i) {
    const int at = 3 + 2 * i;
    peer_in_burst(". " + std::to_string(at) + ":" + std::to_string(at + 1) + "(1) ack 1");
  }
  EXPECT_LE(connection().receive.frames(), ReceiveQueue::kMaxIslands);
  flush();
  outbox.clear();
  // What is in its turn still gets through.
  peer(". 1:1001(1000) ack 1");
  EXPECT_GE(read(2000), 1000U);
  outbox.clear();
}

TEST_F(Attack, one_byte_segments_in_order_do_not_hold_a_frame_each) {
  for (int i = 0; i < 4000; ++i) {
    peer_in_burst(". " + std::to_string(1 + i) + ":" + std::to_string(2 + i) + "(1) ack 1");
  }
  flush();
  EXPECT_EQ(connection().receive.readable(), 4000U);
  EXPECT_LE(connection().receive.frames(), 4U);
  EXPECT_EQ(read(5000), 4000U);
  outbox.clear();
}

TEST_F(Attack, one_byte_segments_backwards_are_bounded) {
  for (int i = 5000; i > 1; --i) {
    peer_in_burst(". " + std::to_string(i) + ":" + std::to_string(i + 1) + "(1) ack 1");
  }
  EXPECT_LE(connection().receive.frames(), connection().receive.frame_limit());
  flush();
  outbox.clear();
  peer(". 1:1001(1000) ack 1");
  EXPECT_GE(read(6000), 1000U);
  outbox.clear();
}

TEST_F(Attack, a_flood_of_duplicates_keeps_no_frame) {
  peer("P. 1:1001(1000) ack 1");
  read(1000);
  for (int i = 0; i < 10000; ++i) peer_in_burst("P. 1:1001(1000) ack 1");
  flush();
  EXPECT_EQ(connection().receive.frames(), 0U);
  outbox.clear();
}

TEST(Closed, answers_as_rfc_9293_says_and_never_a_rst) {  // row 79
  SegmentIn in;
  in.seq = {1000};
  in.ack = {2000};
  in.length = 10;
  in.flags = {wire::TcpFlags::kRst};
  EXPECT_FALSE(answer_of_closed(in));
  in.flags = {wire::TcpFlags::kRst | wire::TcpFlags::kAck};
  EXPECT_FALSE(answer_of_closed(in));
  in.flags = {wire::TcpFlags::kAck | wire::TcpFlags::kPsh};
  EXPECT_EQ(answer_of_closed(in)->seq, Seq{2000});
  EXPECT_EQ(answer_of_closed(in)->flags.bits, wire::TcpFlags::kRst);
  in.flags = {wire::TcpFlags::kSyn | wire::TcpFlags::kFin};
  EXPECT_EQ(answer_of_closed(in)->ack, Seq{1012});
  EXPECT_EQ(answer_of_closed(in)->seq, Seq{0});
  EXPECT_EQ(answer_of_closed(in)->flags.bits, wire::TcpFlags::kRst | wire::TcpFlags::kAck);
  in.flags = {};
  EXPECT_EQ(answer_of_closed(in)->ack, Seq{1010});
}

TEST(Closed, every_combination_of_flags_is_answered_as_the_rfc_says) {  // section 3.10.7.1
  for (int bits = 0; bits < 256; ++bits) {
    SegmentIn in;
    in.seq = {1000};
    in.ack = {2000};
    in.length = 7;
    in.flags = {static_cast<std::uint8_t>(bits)};
    const auto answer = answer_of_closed(in);
    ASSERT_EQ(answer.has_value(), !in.flags.rst());
    if (!answer) continue;
    const std::uint32_t length = 7U + (in.flags.syn() ? 1 : 0) + (in.flags.fin() ? 1 : 0);
    EXPECT_EQ(answer->seq, in.flags.ack() ? Seq{2000} : Seq{0});
    EXPECT_EQ(answer->flags.ack(), !in.flags.ack());
    EXPECT_EQ(answer->ack, in.flags.ack() ? Seq{0} : Seq{1000} + length);
  }
}

TEST_F(Attack, progress_disproves_an_icmp_error) {
  write(2000);
  on_icmp(connection(), {.error = IcmpError::soft, .quoted = state().snd_una});
  peer(". 1:1(0) ack 1461");
  outbox.clear();
  wait(2h);
  EXPECT_EQ(state().failure, Failure::timed_out);
  outbox.clear();
}

}  // namespace
}  // namespace netchannel::tcp
