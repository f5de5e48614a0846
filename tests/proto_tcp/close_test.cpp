// Ending a connection (RFC 9293 section 3.6), TIME-WAIT (RFC 1337, RFC 6191), RSTs, and what becomes of a
// connection whose application has gone.
#include "dialogue.hpp"
#include "proto/tcp/time_wait.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;

class Close : public Dialogue {
 protected:
  Close() { establish(); }
};

TEST_F(Close, we_close_first) {
  shut();
  ours("F. 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::fin_wait_1);
  peer(". 1:1(0) ack 2");
  EXPECT_EQ(state().state, State::fin_wait_2);
  EXPECT_TRUE(saw(kAllAcked));
  peer("F. 1:1(0) ack 2");
  ours(". 2:2(0) ack 2");
  EXPECT_EQ(state().state, State::time_wait);
  EXPECT_TRUE(saw(kPeerClosed) && saw(kTimeWait));
  wait(60s - 1ns);
  EXPECT_EQ(state().state, State::time_wait);
  wait(1ns);
  EXPECT_EQ(state().state, State::closed);
  EXPECT_EQ(state().failure, Failure::none);
  silence();
}

TEST_F(Close, the_peer_closes_first) {
  peer("F. 1:1(0) ack 1");
  ours(". 1:1(0) ack 2");
  EXPECT_EQ(state().state, State::close_wait);
  write(100);
  ours("P. 1:101(100) ack 2");
  shut();
  ours("F. 101:101(0) ack 2");
  EXPECT_EQ(state().state, State::last_ack);
  peer(". 2:2(0) ack 101");
  EXPECT_EQ(state().state, State::last_ack);
  peer(". 2:2(0) ack 102");
  EXPECT_EQ(state().state, State::closed);
  EXPECT_TRUE(saw(kClosed));
  silence();
}

TEST_F(Close, both_close_at_once) {
  shut();
  ours("F. 1:1(0) ack 1");
  peer("F. 1:1(0) ack 1");
  ours(". 2:2(0) ack 2");
  EXPECT_EQ(state().state, State::closing);
  peer(". 2:2(0) ack 2");
  EXPECT_EQ(state().state, State::time_wait);
  silence();
}

TEST_F(Close, fin_and_acknowledgement_of_ours_in_one_segment) {
  shut();
  outbox.clear();
  peer("F. 1:1(0) ack 2");
  ours(". 2:2(0) ack 2");
  EXPECT_EQ(state().state, State::time_wait);
}

TEST_F(Close, the_fin_follows_what_was_written) {
  write(2000);
  outbox.clear();
  shut();
  ours("F. 2001:2001(0) ack 1");
  peer(". 1:1(0) ack 2001");
  EXPECT_EQ(state().state, State::fin_wait_1);
  peer(". 1:1(0) ack 2002");
  EXPECT_EQ(state().state, State::fin_wait_2);
}

TEST_F(Close, the_fin_waits_for_the_windows) {
  set_up({.settings = plain_settings()});
  establish("<mss 1460>", 1000);
  write(1500);
  shut();
  ours(". 1:1001(1000) ack 1");
  silence();
  peer(". 1:1(0) ack 1001 win 1000");
  ours("FP. 1001:1501(500) ack 1");
}

TEST_F(Close, a_lost_fin_is_sent_again) {
  shut();
  outbox.clear();
  wait(state().rtt.timeout());
  ours("F. 1:1(0) ack 1");
  wait(state().rtt.timeout());
  ours("F. 1:1(0) ack 1");
  peer(". 1:1(0) ack 2");
  EXPECT_EQ(state().state, State::fin_wait_2);
}

TEST_F(Close, half_closed_we_still_receive) {
  shut();
  peer(". 1:1(0) ack 2");
  outbox.clear();
  peer("P. 1:101(100) ack 2");
  ours(". 2:2(0) ack 101");
  EXPECT_EQ(read(1000), 100U);
  wait(1h);
  EXPECT_EQ(state().state, State::fin_wait_2) << "the application is there: no limit";
}

TEST_F(Close, an_orphan_in_fin_wait_2_ends_after_a_minute) {  // row 101
  close();
  peer(". 1:1(0) ack 2");
  outbox.clear();
  EXPECT_EQ(state().state, State::fin_wait_2);
  wait(60s - 1ns);
  EXPECT_EQ(state().state, State::fin_wait_2);
  wait(1ns);
  EXPECT_EQ(state().state, State::closed);
  EXPECT_TRUE(saw(kClosed));
}

TEST_F(Close, an_orphan_answers_data_with_rst) {  // RFC 1122 section 4.2.2.13
  close();
  peer(". 1:1(0) ack 2");
  outbox.clear();
  peer("P. 1:101(100) ack 2");
  ours("R. 2:2(0) ack 1");
  EXPECT_EQ(state().state, State::closed);
}

TEST_F(Close, closing_with_unread_data_sends_rst) {  // RFC 2525 section 2.17
  peer("P. 1:101(100) ack 1");
  outbox.clear();
  close();
  ours("R. 1:1(0) ack 101");
  EXPECT_EQ(state().state, State::closed);
  EXPECT_TRUE(saw(kClosed));
}

TEST_F(Close, closing_with_all_data_read_sends_fin) {
  peer("P. 1:101(100) ack 1");
  read(100);
  outbox.clear();
  close();
  ours("F. 1:1(0) ack 101");
}

TEST_F(Close, abort_sends_rst) {
  write(100);
  outbox.clear();
  abort();
  ours("R. 101:101(0) ack 1");
  EXPECT_EQ(state().failure, Failure::aborted);
  silence();
}

TEST_F(Close, abort_in_closing_states_is_silent) {
  peer("F. 1:1(0) ack 1");
  shut();
  outbox.clear();
  EXPECT_EQ(state().state, State::last_ack);
  abort();
  silence();
  EXPECT_EQ(state().state, State::closed);
}

TEST_F(Close, what_was_received_stays_readable_after_a_rst) {
  peer("P. 1:101(100) ack 1");
  peer("R. 101:101(0) ack 1");
  EXPECT_EQ(state().failure, Failure::reset);
  EXPECT_EQ(read(1000), 100U);
  outbox.clear();
}

TEST_F(Close, nothing_happens_to_a_closed_connection) {
  peer("R. 1:1(0) ack 1");
  outbox.clear();
  forget_events();
  peer("P. 1:101(100) ack 1");
  peer("S 0:0(0)");
  wait(1h);
  silence();
  EXPECT_FALSE(saw(kReadable));
}

class InTimeWait : public Close {
 protected:
  void begin(Settings settings, const std::string& stamp) {
    set_up({.settings = settings});
    establish("<mss 1460" + (stamp.empty() ? "" : "," + stamp) + ">");
    shut();
    const std::string options = stamp.empty() ? "" : " <" + stamp + ">";
    peer("F. 1:1(0) ack 2" + options);
    outbox.clear();
    ASSERT_EQ(state().state, State::time_wait);
    forget_events();
  }
  InTimeWait() { begin(plain_settings(), ""); }
};

TEST_F(InTimeWait, the_peers_fin_again_is_acknowledged_and_restarts_the_clock) {  // MUST-13
  wait(59s);
  peer("F. 1:1(0) ack 2");
  ours(". 2:2(0) ack 2");
  wait(60s - 1ns);
  EXPECT_EQ(state().state, State::time_wait);
  wait(1ns);
  EXPECT_EQ(state().state, State::closed);
}

TEST_F(InTimeWait, a_rst_does_not_end_it) {  // RFC 1337
  peer("R. 2:2(0) ack 2");
  peer("R 2:2(0)");
  EXPECT_EQ(state().state, State::time_wait);
  silence();
}

TEST_F(InTimeWait, a_syn_with_a_higher_sequence_number_may_replace_it) {  // RFC 6191
  peer("S 3:3(0)");
  EXPECT_TRUE(saw(kReplaced));
}

TEST_F(InTimeWait, an_old_syn_is_acknowledged) {
  peer("S 1:1(0)");
  EXPECT_FALSE(saw(kReplaced));
  ours(". 2:2(0) ack 2");
}

TEST_F(InTimeWait, a_syn_with_a_newer_timestamp_may_replace_it_whatever_its_number) {
  Settings settings = plain_settings();
  settings.timestamps = true;
  begin(settings, "TS 500 1000");
  peer("S -1000:-1000(0) <TS 500 0>");
  EXPECT_FALSE(saw(kReplaced)) << "not newer, and not beyond";
  peer("S -1000:-1000(0) <TS 501 0>");
  EXPECT_TRUE(saw(kReplaced));
  outbox.clear();
}

TEST_F(InTimeWait, old_segments_are_answered_a_few_times_a_second) {
  for (int i = 0; i < 100; ++i) peer("P. -200:-100(100) ack 2");
  EXPECT_EQ(outbox.size(), 5U);
  outbox.clear();
  TimeWait remains = time_wait_of(state());
  SegmentIn old;
  old.seq = state().irs - 200;
  old.length = 100;
  old.flags = {wire::TcpFlags::kAck};
  EXPECT_EQ(on_segment(remains, old, now), TimeWaitVerdict::acknowledge);
  EXPECT_EQ(on_segment(remains, old, now + 499ms), TimeWaitVerdict::ignore);
  EXPECT_EQ(on_segment(remains, old, now + 500ms), TimeWaitVerdict::acknowledge);
}

TEST_F(InTimeWait, the_small_struct_says_the_same) {
  const TimeWait remains = time_wait_of(state());
  const SegmentOut ack = time_wait_ack(remains, now);
  EXPECT_EQ(ack.seq, state().snd_nxt);
  EXPECT_EQ(ack.ack, state().rcv_nxt);
  EXPECT_EQ(remains.deadline, now + 60s);
  EXPECT_LE(sizeof(TimeWait), 80U);
}

}  // namespace
}  // namespace netchannel::tcp
