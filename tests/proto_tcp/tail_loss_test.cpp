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

}  // namespace
}  // namespace netchannel::tcp
