// Explicit congestion notification (RFC 3168): what is sent as capable, how a reduction is told, and what
// does not reduce twice. The receiving side is in receive_test.cpp, the handshake in handshake_test.cpp.
#include "recover.hpp"

namespace netchannel::tcp {
namespace {

class EcnSender : public Recover {
 protected:
  EcnSender() {
    Settings settings = sack_settings();
    settings.ecn = EcnMode::request;
    set_up({.settings = settings, .path_mss = 1000});
    open();
    outbox.clear();
    now = now + 100ms;
    peer("SE. 0:0(0) ack 1 <mss 1460,sackOK>");
    EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect) << "an acknowledgement of the handshake";
    outbox.clear();
  }
};

TEST_F(EcnSender, probes_retransmissions_and_a_fin_alone_are_not_capable) {  // section 6.1.4 to 6.1.6
  write_segments(2);
  wait(2 * state().rtt.srtt + 2ms);
  ASSERT_EQ(outbox.size(), 1U);
  EXPECT_TRUE(outbox.front().segment.retransmission);
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect) << "a tail loss probe";
  outbox.clear();
  peer(ack(2) + " win 0");
  write(1000);
  wait(1s);
  ASSERT_FALSE(outbox.empty());
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect) << "a window probe";
  peer(ack(2) + " win 65535");
  outbox.clear();
  peer(ack(3));
  shut();
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect);
  ours("F. 3001:3001(0)");
}

TEST_F(EcnSender, a_loss_is_told_by_cwr_too) {  // section 6.1.2
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  ours(". " + data(0));
  now = now + 100ms;
  peer(ack(10));
  write(1000);
  ours("PW. " + data(10));
  write(1000);
  ours("P. " + data(11));
}

TEST_F(EcnSender, an_echo_during_a_recovery_reduces_nothing_more) {
  write_segments(10);
  now = now + 100ms;
  peer(sack(0, 1, 4));
  const std::uint32_t reduced = state().congestion.ssthresh;
  peer("E. 1:1(0) ack 1 <sack 1001:5001>");
  peer("E. 1:1(0) ack 5001");
  EXPECT_EQ(state().congestion.ssthresh, reduced);
  outbox.clear();
}

TEST_F(EcnSender, a_loss_in_the_same_round_trip_as_an_echo_reduces_nothing_more) {
  write_segments(10);
  now = now + 100ms;
  peer("E. 1:1(0) ack 1001");
  const std::uint32_t reduced = state().congestion.ssthresh;
  EXPECT_EQ(reduced, 7000U);
  peer(sack(1, 2, 5));
  EXPECT_EQ(state().recovery.phase, Phase::recovery);
  EXPECT_EQ(state().congestion.ssthresh, reduced);
  outbox.clear();
}

TEST_F(EcnSender, the_next_round_trip_may_reduce_again) {
  write_segments(10);
  now = now + 100ms;
  peer("E. 1:1(0) ack 10001");
  EXPECT_EQ(state().congestion.ssthresh, 7000U);
  write_segments(7);
  now = now + 100ms;
  peer(ack(11));
  peer("E. 1:1(0) ack 12001");
  EXPECT_LT(state().congestion.ssthresh, 7000U);
  outbox.clear();
}

TEST_F(EcnSender, reno_halves) {
  Settings settings = state().settings;
  settings.congestion = CongestionAlgorithm::reno;
  set_up({.settings = settings, .path_mss = 1000});
  open();
  outbox.clear();
  peer("SE. 0:0(0) ack 1 <mss 1460,sackOK>");
  outbox.clear();
  write_segments(10);
  peer("E. 1:1(0) ack 1001");
  EXPECT_EQ(state().congestion.ssthresh, 5000U);
  outbox.clear();
}

TEST_F(EcnSender, who_did_not_agree_neither_sends_nor_hears_ecn) {
  begin(sack_settings(), ",sackOK");
  ecn = Ecn::ce;
  peer("P. 1:101(100) ack 1");
  ours(". 1:1(0) ack 101");
  write(1000);
  EXPECT_EQ(outbox.front().segment.ecn, Ecn::not_ect);
  outbox.clear();
  peer("E. 101:101(0) ack 1001");
  EXPECT_EQ(state().congestion.ssthresh, kNoThreshold);
}

}  // namespace
}  // namespace netchannel::tcp
