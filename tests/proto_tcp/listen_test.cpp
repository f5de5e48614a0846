// LISTEN, the SYN queue and SYN cookies (RFC 9293 section 3.10.7.2, RFC 4987, RFC 6528).
#include "proto/tcp/listen.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "proto/tcp/syn_cookie.hpp"

namespace netchannel::tcp {
namespace {

using namespace std::chrono_literals;
using wire::TcpFlags;

constexpr std::uint8_t kSyn = TcpFlags::kSyn, kAck = TcpFlags::kAck, kRst = TcpFlags::kRst,
                       kFin = TcpFlags::kFin;

FlowKey flow(std::uint16_t peer_port = 4000) {
  return {Protocol::tcp, {IpAddress::v4(10, 0, 0, 2), 80}, {IpAddress::v4(10, 0, 0, 1), peer_port}};
}

class Listen : public ::testing::Test {
 protected:
  Listen() {
    options.syn_queue = 4;
    options.secrets.cookies = {1, 2, 3};
    options.secrets.isn = {4, 5, 6};
    options.secrets.timestamps = {7, 8, 9};
    options.settings.ecn = EcnMode::accept;
    start();
  }
  void start() { listener = std::make_unique<Listener>(options, counters); }

  static SegmentIn segment(std::uint8_t flags, std::uint32_t seq, std::uint32_t ack = 0) {
    SegmentIn in;
    in.flags = {flags};
    in.seq = {seq};
    in.ack = {ack};
    in.window = 5000;
    return in;
  }
  static SegmentIn syn(std::uint32_t seq = 1000) {
    SegmentIn in = segment(kSyn, seq);
    in.options.mss = 1400;
    in.options.window_scale = 7;
    in.options.sack_permitted = true;
    in.options.timestamps = {500, 0};
    return in;
  }
  ListenResult hand(const SegmentIn& in, std::uint16_t port = 4000) {
    return listener->on_segment({.flow = flow(port), .accept_queue_full = accept_queue_full, .after = after},
                                in, now);
  }
  // The acknowledgement that answers a SYN-ACK.
  static SegmentIn final_ack(const SegmentOut& syn_ack, std::uint32_t irs = 1000) {
    SegmentIn in = segment(kAck, irs + 1, syn_ack.seq.value + 1);
    if (syn_ack.options.timestamps) in.options.timestamps = {510, syn_ack.options.timestamps->value};
    return in;
  }
  void fill_queue() {
    for (std::uint16_t i = 0; i < options.syn_queue; ++i) hand(syn(), static_cast<std::uint16_t>(100 + i));
  }

  ListenOptions options;
  CounterPage counters;
  std::unique_ptr<Listener> listener;
  Instant now{1'000'000'000'000};
  bool accept_queue_full = false;
  std::optional<Seq> after;
};

TEST_F(Listen, a_syn_is_answered_and_the_last_ack_makes_a_handshake) {
  const ListenResult first = hand(syn());
  ASSERT_EQ(first.action, ListenAction::reply);
  EXPECT_EQ(first.reply.flags.bits, kSyn | kAck);
  EXPECT_EQ(first.reply.ack, Seq{1001});
  EXPECT_EQ(first.reply.window, 65535);
  EXPECT_EQ(first.reply.options.mss, 1460);
  EXPECT_EQ(first.reply.options.window_scale, window_scale_for(options.settings));
  EXPECT_TRUE(first.reply.options.sack_permitted);
  EXPECT_EQ(first.reply.options.timestamps->echo, 500U);
  EXPECT_EQ(listener->size(), 1U);
  now = now + 20ms;
  const ListenResult second = hand(final_ack(first.reply));
  ASSERT_EQ(second.action, ListenAction::accept);
  const Handshake& h = second.handshake;
  EXPECT_EQ(h.irs, Seq{1000});
  EXPECT_EQ(h.iss, first.reply.seq);
  EXPECT_EQ(h.peer_mss, 1400);
  EXPECT_EQ(h.peer_wscale, 7);
  EXPECT_TRUE(h.sack && h.timestamps && h.window_scaling);
  EXPECT_EQ(h.syn_ack_at + 20ms, now);
  EXPECT_EQ(listener->size(), 0U);
}

TEST_F(Listen, the_connection_made_of_a_handshake_takes_the_last_segment_with_its_data) {
  const ListenResult first = hand(syn());
  now = now + 20ms;
  SegmentIn last = final_ack(first.reply);
  const ListenResult second = hand(last);
  Shared shared({}, counters);
  Connection c(shared);
  accept(c, second.handshake, options.settings, now);
  EXPECT_EQ(on_segment(c, last, now) & kConnected, kConnected);
  EXPECT_EQ(c.state.state, State::established);
  EXPECT_EQ(c.state.rtt.srtt, 20ms);
  EXPECT_EQ(c.state.snd_wnd, 5000U << 7);
}

TEST_F(Listen, what_was_not_offered_is_not_answered) {
  const ListenResult result = hand(segment(kSyn, 1000));
  EXPECT_FALSE(result.reply.options.window_scale || result.reply.options.timestamps ||
               result.reply.options.sack_permitted);
}

// Section 3.10.7.2 in its order: RST, ACK, SYN, anything else. Differs: a SYN that carries a FIN is dropped
// (row 76).
TEST_F(Listen, every_combination_of_flags_is_answered_as_the_rfc_says) {
  for (int bits = 0; bits < 256; ++bits) {
    for (const std::uint32_t length : {0U, 10U}) {
      const auto flags = static_cast<std::uint8_t>(bits);
      SegmentIn in = segment(flags, 1000, 777);
      in.length = length;
      const ListenResult result = hand(in);
      const bool rst = (flags & kRst) != 0, ack = (flags & kAck) != 0,
                 begins = (flags & (kSyn | kFin)) == kSyn;
      if (rst || (!ack && !begins)) {
        EXPECT_EQ(result.action, ListenAction::none) << bits;
      } else if (ack) {
        ASSERT_EQ(result.action, ListenAction::reply) << bits;
        EXPECT_EQ(result.reply.flags.bits, kRst);
        EXPECT_EQ(result.reply.seq, Seq{777});
      } else {
        ASSERT_EQ(result.action, ListenAction::reply) << bits;
        EXPECT_EQ(result.reply.ack, Seq{1001}) << "data of a SYN is not acknowledged (row 80)";
      }
      EXPECT_EQ(listener->size(), !rst && !ack && begins ? 1U : 0U);
      listener->forget(flow());
    }
  }
}

// Section 3.10.7.4 for SYN-RECEIVED from a passive open, over flags, places and acknowledgements.
TEST_F(Listen, every_segment_in_syn_received_is_answered_as_the_rfc_says) {
  options.settings.timestamps = false;
  start();
  for (int bits = 0; bits < 64; ++bits) {
    for (const int place : {-1000, -1, 0, 1, 1000, 65534, 65535, 100000}) {
      for (const int ack : {-1, 0, 1, 2, 1000}) {
        const auto flags = static_cast<std::uint8_t>(bits);
        const SegmentOut syn_ack = hand(syn()).reply;
        const SegmentIn in = segment(flags, static_cast<std::uint32_t>(1001 + place),
                                     syn_ack.seq.value + static_cast<std::uint32_t>(ack));
        const ListenResult result = hand(in);
        const bool exact = place == 0, inside = place >= 0 && place < 65535;
        const bool still_there = listener->contains(flow());
        const std::string what = "flags " + std::to_string(bits) + " place " + std::to_string(place) +
                                 " ack " + std::to_string(ack);
        if ((flags & kRst) != 0) {
          EXPECT_EQ(result.action, inside && !exact ? ListenAction::reply : ListenAction::none) << what;
          EXPECT_EQ(still_there, !exact) << what;
        } else if ((flags & kSyn) != 0) {
          // The very SYN again gets the SYN-ACK again, any other a challenge. Differs: RFC 9293 would go back
          // to LISTEN for one inside the window, RFC 5961 section 4 challenges.
          const bool same = place == -1 && (flags & kAck) == 0;
          EXPECT_EQ(result.reply.flags.syn(), same) << what;
          EXPECT_TRUE(still_there && result.action == ListenAction::reply) << what;
        } else if (!inside) {
          EXPECT_TRUE(result.action == ListenAction::reply && result.reply.flags.bits == kAck && still_there)
              << what;
        } else if ((flags & kAck) == 0) {
          EXPECT_TRUE(result.action == ListenAction::none && still_there) << what;
        } else if (ack == 1) {
          EXPECT_TRUE(result.action == ListenAction::accept && !still_there) << what;
        } else {
          EXPECT_TRUE(result.reply.flags.bits == kRst && result.reply.seq == in.ack && still_there) << what;
        }
        listener->forget(flow());
      }
    }
  }
}

TEST_F(Listen, an_ack_is_answered_with_rst) {
  const ListenResult result = hand(segment(kAck, 1000, 777));
  ASSERT_EQ(result.action, ListenAction::reply);
  EXPECT_EQ(result.reply.flags.bits, kRst);
  EXPECT_EQ(result.reply.seq, Seq{777});
  const ListenResult other = hand(segment(kSyn | kAck, 1000, 777));  // row 82
  EXPECT_EQ(other.reply.flags.bits, kRst);
}

TEST_F(Listen, the_same_syn_again_gets_the_same_answer) {
  const ListenResult first = hand(syn());
  const ListenResult second = hand(syn());
  EXPECT_EQ(first.reply.seq, second.reply.seq);
  EXPECT_EQ(listener->size(), 1U);
}

TEST_F(Listen, another_syn_of_the_same_flow_is_challenged) {
  hand(syn());
  const ListenResult result = hand(syn(900000));
  EXPECT_EQ(result.reply.flags.bits, kAck);
  EXPECT_EQ(result.reply.ack, Seq{1001});
}

TEST_F(Listen, syn_received_from_listen_goes_back_to_listen_by_a_rst) {  // MUST-11
  hand(syn());
  EXPECT_EQ(hand(segment(kRst, 900)).action, ListenAction::none);
  EXPECT_EQ(listener->size(), 1U);
  EXPECT_EQ(hand(segment(kRst, 1500)).reply.flags.bits, kAck) << "inside the window: challenged";
  EXPECT_EQ(listener->size(), 1U);
  EXPECT_EQ(hand(segment(kRst, 1001)).action, ListenAction::none);
  EXPECT_EQ(listener->size(), 0U);
}

TEST_F(Listen, a_wrong_ack_is_reset_and_the_handshake_goes_on) {
  const ListenResult first = hand(syn());
  SegmentIn wrong = final_ack(first.reply);
  wrong.ack += 1;
  const ListenResult result = hand(wrong);
  EXPECT_EQ(result.reply.flags.bits, kRst);
  EXPECT_EQ(result.reply.seq, wrong.ack);
  EXPECT_EQ(hand(final_ack(first.reply)).action, ListenAction::accept);
}

TEST_F(Listen, an_old_timestamp_or_none_does_not_finish_the_handshake) {
  const ListenResult first = hand(syn());
  SegmentIn old = final_ack(first.reply);
  old.options.timestamps->value = 499;
  EXPECT_EQ(hand(old).reply.flags.bits, kAck);
  SegmentIn none = final_ack(first.reply);
  none.options.timestamps.reset();
  EXPECT_EQ(hand(none).action, ListenAction::none);
}

TEST_F(Listen, syn_acks_are_sent_again_after_1_3_7_seconds_and_given_up) {
  const ListenResult first = hand(syn());
  std::array<Listener::Retry, 4> out;
  EXPECT_EQ(listener->next_deadline(), now + 1s);
  EXPECT_EQ(listener->on_timer(out, now + 1s - 1ns), 0U);
  for (const Duration gap : {1s, 2s, 4s, 8s, 16s}) {
    now = now + gap;
    EXPECT_EQ(listener->next_deadline(), now);
    ASSERT_EQ(listener->on_timer(out, now), 1U);
    EXPECT_EQ(out[0].segment.seq, first.reply.seq);
    EXPECT_EQ(out[0].flow, flow());
  }
  now = now + 32s;
  EXPECT_EQ(listener->on_timer(out, now), 0U);
  EXPECT_EQ(listener->size(), 0U);
  EXPECT_EQ(listener->next_deadline(), kForever);
  EXPECT_EQ(counters.read(Counter::tcp_handshakes_timed_out), 1U);
}

TEST_F(Listen, retries_beyond_the_batch_come_with_the_next_call) {
  fill_queue();
  std::array<Listener::Retry, 3> out;
  now = now + 1s;
  EXPECT_EQ(listener->on_timer(out, now), 3U);
  EXPECT_EQ(listener->on_timer(out, now), 1U);
  EXPECT_EQ(listener->on_timer(out, now), 0U);
}

TEST_F(Listen, a_full_accept_queue_puts_new_and_nearly_finished_handshakes_off) {  // row 100
  const ListenResult first = hand(syn());
  accept_queue_full = true;
  EXPECT_EQ(hand(syn(), 5000).action, ListenAction::none);
  EXPECT_EQ(hand(final_ack(first.reply)).action, ListenAction::none);
  EXPECT_EQ(listener->size(), 1U);
  accept_queue_full = false;
  EXPECT_EQ(hand(final_ack(first.reply)).action, ListenAction::accept);
}

TEST_F(Listen, no_cookies_while_there_is_room) {
  for (int i = 0; i < 1000; ++i) {
    const ListenResult first = hand(syn());
    hand(final_ack(first.reply));
  }
  EXPECT_EQ(counters.read(Counter::tcp_cookies_sent), 0U);
}

TEST_F(Listen, a_full_queue_goes_on_with_cookies_and_keeps_nothing) {
  fill_queue();
  const ListenResult first = hand(syn());
  ASSERT_EQ(first.action, ListenAction::reply);
  EXPECT_EQ(listener->size(), options.syn_queue);
  EXPECT_EQ(counters.read(Counter::tcp_cookies_sent), 1U);
  const ListenResult second = hand(final_ack(first.reply));
  ASSERT_EQ(second.action, ListenAction::accept);
  const Handshake& h = second.handshake;
  EXPECT_EQ(h.iss, first.reply.seq);
  EXPECT_EQ(h.irs, Seq{1000});
  EXPECT_EQ(h.peer_mss, 1360) << "the size below 1400";
  EXPECT_TRUE(h.window_scaling && h.sack && h.timestamps);
  EXPECT_EQ(h.peer_wscale, 7);
  EXPECT_EQ(h.our_wscale, window_scale_for(options.settings));
  EXPECT_EQ(counters.read(Counter::tcp_cookies_accepted), 1U);
}

TEST_F(Listen, a_cookie_without_timestamps_keeps_the_mss_only) {
  fill_queue();
  SegmentIn plain = syn();
  plain.options.timestamps.reset();
  const ListenResult first = hand(plain);
  EXPECT_FALSE(first.reply.options.window_scale || first.reply.options.sack_permitted);
  const ListenResult second = hand(final_ack(first.reply));
  ASSERT_EQ(second.action, ListenAction::accept);
  EXPECT_FALSE(second.handshake.window_scaling || second.handshake.sack || second.handshake.timestamps);
}

TEST_F(Listen, a_cookie_is_good_for_one_to_two_minutes) {
  fill_queue();
  const ListenResult first = hand(syn());
  now = now + 64s;
  EXPECT_EQ(hand(final_ack(first.reply)).action, ListenAction::accept);
  now = now + 64s;
  const ListenResult late = hand(final_ack(first.reply));
  EXPECT_EQ(late.action, ListenAction::reply);
  EXPECT_EQ(late.reply.flags.bits, kRst);
}

TEST_F(Listen, a_cookie_of_another_flow_or_changed_is_refused) {
  fill_queue();
  const ListenResult first = hand(syn());
  EXPECT_EQ(hand(final_ack(first.reply), 4001).reply.flags.bits, kRst);
  EXPECT_EQ(hand(final_ack(first.reply, 1001)).reply.flags.bits, kRst) << "another initial sequence number";
  EXPECT_EQ(counters.read(Counter::tcp_cookies_wrong), 2U);
}

TEST_F(Listen, guesses_are_refused_without_a_trace) {  // row 94
  fill_queue();
  hand(syn());
  std::uint32_t guess = 1;
  for (int i = 0; i < 100000; ++i) {
    guess = guess * 1664525 + 1013904223;
    EXPECT_NE(hand(segment(kAck, 1001, guess)).action, ListenAction::accept);
  }
  EXPECT_EQ(listener->size(), options.syn_queue);
}

TEST_F(Listen, without_cookies_a_full_queue_drops) {
  options.cookies = false;
  start();
  fill_queue();
  EXPECT_EQ(hand(syn()).action, ListenAction::none);
  EXPECT_EQ(counters.read(Counter::tcp_syn_queue_full), 1U);
}

TEST_F(Listen, cookies_are_not_believed_when_none_were_sent) {
  fill_queue();
  const ListenResult first = hand(syn());
  Listener other(options, counters);
  EXPECT_EQ(other.on_segment({.flow = flow(), .after = {}}, final_ack(first.reply), now).reply.flags.bits,
            kRst);
}

TEST_F(Listen, the_iss_lies_beyond_the_time_wait_it_replaces) {  // RFC 6191
  const Seq usual = hand(syn()).reply.seq;
  listener->forget(flow());
  after = usual + 5;
  EXPECT_GT(hand(syn()).reply.seq, usual + 5);
}

TEST_F(Listen, challenges_of_a_handshake_are_limited_too) {  // RFC 5961 section 7
  hand(syn());
  int answers = 0;
  for (int i = 0; i < 1000; ++i) {
    for (const SegmentIn& in : {segment(kRst, 1500), segment(kAck, 900000, 1), syn(900000)})
      answers += hand(in).action == ListenAction::reply ? 1 : 0;
    now = now + 1ms;
  }
  EXPECT_EQ(answers, 2) << "one each half second";
  EXPECT_EQ(listener->size(), 1U);
}

TEST_F(Listen, a_cookie_takes_the_place_of_a_time_wait_only_if_its_number_lies_beyond) {  // RFC 6191
  fill_queue();
  const Seq usual = hand(syn()).reply.seq;
  after = usual + 5;
  EXPECT_EQ(hand(syn()).action, ListenAction::none) << "put off: the peer asks again";
  after = usual - 5;
  EXPECT_EQ(hand(syn()).reply.seq, usual);
}

TEST_F(Listen, ecn_is_agreed_on_if_asked_for) {
  SegmentIn in = syn();
  in.flags.bits |= TcpFlags::kEce | TcpFlags::kCwr;
  EXPECT_EQ(hand(in).reply.flags.bits, kSyn | kAck | TcpFlags::kEce);
  options.settings.ecn = EcnMode::off;
  start();
  EXPECT_EQ(hand(in).reply.flags.bits, kSyn | kAck);
}

TEST(InitialSequence, grows_with_time_for_one_flow_and_is_unrelated_for_others) {  // RFC 6528
  const Secret secret{9, 9, 9};
  const Instant now{5'000'000'000};
  EXPECT_EQ(distance(initial_sequence(secret, flow(1), now), initial_sequence(secret, flow(1), now + 1s)),
            250000U);
  std::set<std::uint32_t> seen;
  std::set<std::uint32_t> steps;
  Seq last{};
  for (std::uint16_t port = 1; port < 2000; ++port) {
    const Seq iss = initial_sequence(secret, flow(port), now);
    seen.insert(iss.value);
    steps.insert(distance(last, iss));
    last = iss;
  }
  EXPECT_GE(seen.size(), 1998U);
  EXPECT_GE(steps.size(), 1998U);
  EXPECT_NE(initial_sequence(secret, flow(1), now), initial_sequence(Secret{1}, flow(1), now));
}

TEST(TimestampOffset, is_another_for_each_flow) {  // RFC 7323 section 7.1
  const Secret secret{1, 2, 3};
  std::set<std::uint32_t> seen;
  for (std::uint16_t port = 1; port < 1000; ++port) seen.insert(timestamp_offset(secret, flow(port)));
  EXPECT_EQ(seen.size(), 999U);
  EXPECT_NE(timestamp_offset(secret, flow(1)), timestamp_offset({4, 5, 6}, flow(1)));
}

TEST(Cookie, options_survive_in_the_low_bits_of_a_timestamp) {
  for (std::uint32_t tsval : {0U, 63U, 64U, 1000U, 0xffffffffU}) {
    for (int scale = -1; scale <= 14; ++scale) {
      for (const bool sack : {false, true}) {
        CookieOptions in;
        if (scale >= 0) in.window_scale = static_cast<std::uint8_t>(scale);
        in.sack = sack;
        in.ecn = !sack;
        const std::uint32_t hidden = hide_in_timestamp(tsval, in);
        EXPECT_EQ(read_from_timestamp(hidden), in);
        EXPECT_LT(tsval - hidden, 64U) << "a little in the past";
      }
    }
  }
}

TEST(Cookie, the_mss_is_never_above_the_peers) {
  const Secret secret{1};
  const Instant now{1'000'000'000'000};
  for (std::uint32_t mss = wire::kMinMss; mss <= 9000; mss += 7) {
    const Seq cookie = make_cookie(secret, flow(), {55}, static_cast<std::uint16_t>(mss), now);
    const auto opened = open_cookie(secret, flow(), {55}, cookie, now);
    ASSERT_TRUE(opened.has_value());
    EXPECT_LE(*opened, mss);
  }
}

}  // namespace
}  // namespace netchannel::tcp
