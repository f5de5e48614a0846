// Two segments that overlap in every way there is, through a whole connection (row 87): what is delivered,
// what is acknowledged, what SACK and D-SACK say of it. Data that came first wins.
#include <array>
#include <map>

#include "dialogue.hpp"

namespace netchannel::tcp {
namespace {

class Overlap : public Dialogue {
 protected:
  struct Piece {
    int begin = 0, end = 0;
    bool fin = false;
  };
  struct Place {
    std::map<int, int> owner;  // byte -> which segment brought it
    int next = 1;
    int fin = -1;
  };

  void hand(const Piece& piece, int number) {
    fill = static_cast<std::byte>(0xa0 + number);
    const int length = piece.end - piece.begin;
    peer((piece.fin ? "F. " : ". ") + std::to_string(piece.begin) + ":" + std::to_string(piece.end) + "(" +
         std::to_string(length) + ") ack 1");
    fill = std::byte{0};
  }
  // Bytes of the piece that were there before, as one run or none.
  static std::pair<int, int> duplicate(const Place& place, const Piece& piece) {
    int left = piece.end, right = piece.begin;
    for (int at = piece.begin; at < piece.end; ++at) {
      if (at >= place.next && !place.owner.contains(at)) continue;
      left = std::min(left, at);
      right = std::max(right, at + 1);
    }
    return {left, right};
  }
  static void put(Place& place, const Piece& piece, int number) {
    for (int at = std::max(piece.begin, place.next); at < piece.end; ++at) place.owner.emplace(at, number);
    while (place.owner.contains(place.next)) ++place.next;
  }
  // The answer to the last segment, as it must be.
  void expect_answer(const Place& place, std::pair<int, int> twice, const std::string& what) {
    ASSERT_EQ(outbox.size(), 1U) << what;
    const SegmentOut& answer = outbox.front().segment;
    EXPECT_EQ(answer.ack - state().irs, place.next) << what;
    auto blocks = std::span(answer.options.sack.begin(), answer.options.sack.end());
    const bool again = twice.first < twice.second;
    ASSERT_EQ(again && !blocks.empty() && blocks[0].left - state().irs.value == std::uint32_t(twice.first) &&
                  blocks[0].right - state().irs.value == std::uint32_t(twice.second),
              again)
        << what << ": the D-SACK comes first";
    if (again) blocks = blocks.subspan(1);
    for (const wire::SackBlock& block : blocks) {
      for (std::uint32_t at = block.left; at != block.right; ++at)
        EXPECT_TRUE(place.owner.contains(static_cast<int>(at - state().irs.value))) << what;
    }
    const bool holes = !place.owner.empty() && place.owner.rbegin()->first >= place.next;
    EXPECT_EQ(!blocks.empty(), holes) << what;
    outbox.clear();
  }
};

TEST_F(Overlap, of_two_segments_in_every_way_keeps_what_came_first) {
  int cases = 0;
  for (int a = 1; a <= 9; a += 2) {
    for (int a_end = a + 1; a_end <= 11; a_end += 2) {
      for (int b = 1; b <= 11; ++b) {
        for (int b_end = b + 1; b_end <= 13; ++b_end) {
          set_up({.settings = sack_settings(), .irs = 0xfffffffa, .frames = 64});  // wraps inside
          establish("<mss 1460,sackOK>");
          Place place;
          const Piece first{a, a_end}, second{b, b_end};
          const std::string what = std::to_string(a) + ":" + std::to_string(a_end) + " then " +
                                   std::to_string(b) + ":" + std::to_string(b_end);
          put(place, first, 1);
          hand(first, 1);
          expect_answer(place, {0, 0}, what);
          const auto twice = duplicate(place, second);
          put(place, second, 2);
          hand(second, 2);
          expect_answer(place, twice, what);
          // The rest, to see all of it.
          hand({1, 14}, 3);
          put(place, {1, 14}, 3);
          outbox.clear();
          std::array<Bytes, 16> views;
          int at = 1;
          for (const Bytes& view : std::span(views).first(connection().receive.spans(views))) {
            for (const std::byte byte : view) {
              EXPECT_EQ(byte, static_cast<std::byte>(0xa0 + place.owner[at])) << what << " at " << at;
              ++at;
            }
          }
          ASSERT_EQ(at, 14) << what;
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 15 * 77);
}

// A FIN in its turn ends the stream. One that is ahead waits, and is forgotten if data comes from beyond it.
TEST_F(Overlap, of_a_fin_and_data_ends_the_stream_where_both_agree) {
  for (int fin_at = 1; fin_at <= 8; ++fin_at) {
    for (int b = 1; b <= 8; ++b) {
      for (int b_end = b + 1; b_end <= 9; ++b_end) {
        for (const bool fin_first : {true, false}) {
          set_up({.settings = sack_settings(), .frames = 64});
          establish("<mss 1460,sackOK>");
          const Piece fin{fin_at, fin_at, true}, text{b, b_end};
          const std::string what = "FIN at " + std::to_string(fin_at) +
                                   (fin_first ? ", then " : ", before it ") + std::to_string(b) + ":" +
                                   std::to_string(b_end);
          hand(fin_first ? fin : text, 1);
          hand(fin_first ? text : fin, 2);
          const int next = !fin_first && b == 1 ? b_end : 1;  // when the FIN came
          const bool in_its_turn = fin_at == next;
          EXPECT_EQ(state().state == State::close_wait,
                    in_its_turn || (fin_first && b == 1 && b_end == fin_at))
              << what;
          EXPECT_FALSE(in_its_turn && connection().receive.has_islands()) << what;
          hand({1, b_end}, 3);
          outbox.clear();
          EXPECT_EQ(state().state == State::close_wait, in_its_turn || b_end == fin_at) << what;
        }
      }
    }
  }
}

}  // namespace
}  // namespace netchannel::tcp
