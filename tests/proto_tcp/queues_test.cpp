// The queues against plain models: random operations, and every overlap of two and three segments.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <vector>

#include "proto/tcp/receive_queue.hpp"
#include "proto/tcp/scoreboard.hpp"
#include "proto/tcp/send_queue.hpp"

namespace netchannel::tcp {
namespace {

class Queues : public ::testing::Test {
 protected:
  Queues()
      : region(*FrameRegion::open({.slot_size = 512, .slot_count = 4096})),
        pool(*region, 0, 4096, FramePool::Start::all_free) {}
  void TearDown() override {
    EXPECT_EQ(shared.frames.used(), 0U);
    EXPECT_EQ(shared.islands.used(), 0U);
    EXPECT_EQ(shared.records.used(), 0U);
    EXPECT_EQ(pool.free_count(), 4096U);
  }
  Frame frame(std::size_t size, std::byte value) {
    Frame out = std::move(*pool.allocate(32));
    for (std::byte& byte : out.append(size)) byte = value;
    return out;
  }
  CounterPage counters;
  Shared shared{{}, counters};
  std::unique_ptr<FrameRegion> region;
  FramePool pool;
  std::mt19937 random{87};
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); }
};

// A receive queue that is a map from position to byte.
struct Model {
  std::map<std::uint32_t, std::byte> bytes;  // offsets from the beginning; first wins
  std::uint32_t next = 0;
  std::vector<std::byte> ready;
  void insert(std::uint32_t at, std::size_t size, std::byte value) {
    for (std::uint32_t i = 0; i < size; ++i) {
      if (at + i >= next) bytes.emplace(at + i, value);
    }
    for (auto it = bytes.find(next); it != bytes.end(); it = bytes.find(next)) {
      ready.push_back(it->second);
      bytes.erase(it);
      ++next;
    }
  }
  std::size_t islands() const {
    std::size_t count = 0;
    std::uint32_t expected = 0;
    for (const auto& [at, value] : bytes) {
      if (count == 0 || at != expected) ++count;
      expected = at + 1;
    }
    return count;
  }
};

std::vector<std::byte> drain(ReceiveQueue& queue) {
  std::vector<std::byte> out;
  while (queue.readable() > 0) {
    std::array<Bytes, 3> spans;
    const std::size_t count = queue.spans(spans);
    std::size_t bytes = 0;
    for (const Bytes& span : std::span(spans).first(count)) {
      out.insert(out.end(), span.begin(), span.end());
      bytes += span.size();
    }
    queue.consume(bytes);
  }
  return out;
}

void insert_both(ReceiveQueue& queue, Model& model, std::uint32_t base, std::uint32_t at, Frame frame,
                 std::byte value) {
  // As the receiver does: nothing left of what is next.
  const auto size = static_cast<std::uint32_t>(frame.size());
  model.insert(at, size, value);
  const std::uint32_t next = distance({base}, queue.next());
  if (at + size <= next) return;
  std::uint32_t begin = at;
  if (begin < next) {
    frame.drop_front(next - begin);
    begin = next;
  }
  queue.insert(Seq{base} + begin, std::move(frame));
}

TEST_F(Queues, every_overlap_of_three_segments_gives_first_received_bytes) {  // row 87
  int cases = 0;
  for (std::uint32_t a = 0; a < 7; ++a) {
    for (std::uint32_t la = 1; la < 5; ++la) {
      for (std::uint32_t b = 0; b < 7; ++b) {
        for (std::uint32_t lb = 1; lb < 5; ++lb) {
          for (std::uint32_t c = 0; c < 7; c += 2) {
            for (std::uint32_t lc = 1; lc < 12; lc += 2) {
              ReceiveQueue queue(shared);
              Model model;
              const std::uint32_t base = 0xfffffffa;  // wraps inside
              queue.start({base});
              insert_both(queue, model, base, a, frame(la, std::byte{1}), std::byte{1});
              insert_both(queue, model, base, b, frame(lb, std::byte{2}), std::byte{2});
              insert_both(queue, model, base, c, frame(lc, std::byte{3}), std::byte{3});
              ASSERT_EQ(distance({base}, queue.next()), model.next);
              ASSERT_EQ(queue.out_of_order(), model.bytes.size());
              insert_both(queue, model, base, 0, frame(20, std::byte{4}), std::byte{4});
              ASSERT_EQ(drain(queue), model.ready)
                  << a << "+" << la << " " << b << "+" << lb << " " << c << "+" << lc;
              ++cases;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 28 * 28 * 4 * 6);
}

TEST_F(Queues, random_segments_give_the_same_stream_as_a_map_of_bytes) {
  for (int round = 0; round < 300; ++round) {
    ReceiveQueue queue(shared);
    Model model;
    const auto base = static_cast<std::uint32_t>(random());
    queue.start({base});
    std::vector<std::byte> got;
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t at = model.next + draw(600) - std::min(model.next, draw(50));
      const std::uint32_t size = 1 + draw(draw(4) == 0 ? 300 : 20);
      const auto value = static_cast<std::byte>(random());
      insert_both(queue, model, base, at, frame(size, value), value);
      ASSERT_EQ(distance({base}, queue.next()), model.next);
      ASSERT_EQ(queue.out_of_order(), model.bytes.size());
      wire::FixedList<wire::SackBlock, wire::kMaxSackBlocks> blocks;
      queue.sack_blocks(blocks, 4);
      ASSERT_EQ(blocks.size(), std::min<std::size_t>(4, model.islands()));
      for (const auto& block : blocks) {
        ASSERT_TRUE(model.bytes.contains(block.left - base) && model.bytes.contains(block.right - 1 - base));
        ASSERT_FALSE(model.bytes.contains(block.left - 1 - base) || model.bytes.contains(block.right - base));
      }
      if (draw(5) == 0) {
        const auto part = drain(queue);
        got.insert(got.end(), part.begin(), part.end());
      }
    }
    const auto part = drain(queue);
    got.insert(got.end(), part.begin(), part.end());
    ASSERT_EQ(got, model.ready);
  }
}

TEST_F(Queues, islands_are_bounded_and_the_nearest_are_kept) {
  ReceiveQueue queue(shared);
  queue.start({0});
  constexpr std::uint32_t kMany = ReceiveQueue::kMaxIslands + 500;
  for (std::uint32_t i = kMany; i > 0; --i) queue.insert({2 * i}, frame(1, std::byte{1}));
  EXPECT_EQ(queue.out_of_order(), ReceiveQueue::kMaxIslands);
  EXPECT_EQ(counters.read(Counter::tcp_reneged), 500U);
  const auto full = queue.insert({2 * kMany}, frame(1, std::byte{1}));
  EXPECT_TRUE(full.lost) << "further away than all that is kept";
  // The hole-filling byte frees the two that are nearest.
  queue.insert({0}, frame(2, std::byte{2}));
  EXPECT_EQ(queue.readable(), 3U);
}

TEST_F(Queues, the_frame_limit_gives_up_islands_for_what_is_in_its_turn) {
  ReceiveQueue queue(shared);
  queue.start({0});
  queue.set_frame_limit(8);
  for (std::uint32_t i = 1; i <= 8; ++i) queue.insert({i * 1000}, frame(300, std::byte{1}));
  EXPECT_EQ(queue.frames(), 8U);
  EXPECT_TRUE(queue.insert({9000}, frame(300, std::byte{1})).lost);
  EXPECT_EQ(queue.insert({0}, frame(300, std::byte{2})).advanced, 300U);
  EXPECT_LE(queue.frames(), 8U);
  EXPECT_EQ(queue.readable(), 300U);
}

// Rows 96 and 103: the nodes are everybody's. Whoever collects what is ahead of a hole holds at most as much
// as he leaves free, so that each of many gets a share and what is in its turn finds room.
TEST_F(Queues, one_queue_leaves_as_many_nodes_as_it_holds_out_of_order) {
  Shared small({.frames = 1024, .records = 1024, .islands = 1024}, counters);
  ReceiveQueue greedy(small), second(small), third(small);
  for (ReceiveQueue* queue : {&greedy, &second, &third}) queue->start({0});
  const auto collect = [&](ReceiveQueue& queue) {
    for (std::uint32_t i = 1; i <= 1024; ++i) queue.insert({i * 1000}, frame(300, std::byte{1}));
    return queue.frames();
  };
  EXPECT_EQ(collect(greedy), 512U);
  EXPECT_EQ(collect(second), 256U);
  EXPECT_EQ(collect(third), 128U);
  EXPECT_EQ(third.insert({0}, frame(300, std::byte{2})).advanced, 300U);
  EXPECT_EQ(small.frames.free_count(), 127U);
}

TEST_F(Queues, what_is_in_its_turn_takes_the_place_of_islands_when_no_node_is_left) {
  Shared small({.frames = 1024, .records = 1024, .islands = 1024}, counters);
  ReceiveQueue queue(small);
  queue.start({0});
  for (std::uint32_t i = 1; i <= 20; ++i) queue.insert({i * 1000}, frame(300, std::byte{1}));
  SendQueue other(small.frames);
  other.start({0});
  while (small.frames.free_count() > 0) other.append(frame(1, std::byte{0}));
  const auto in = queue.insert({0}, frame(300, std::byte{2}));
  EXPECT_FALSE(in.lost);
  EXPECT_EQ(in.advanced, 300U);
  EXPECT_EQ(queue.frames(), 20U) << "the island furthest away has gone";
  EXPECT_EQ(queue.out_of_order(), 19U * 300U);
}

TEST_F(Queues, a_few_segments_may_always_wait_for_their_turn) {
  Shared small({.frames = 1024, .records = 1024, .islands = 1024}, counters);
  SendQueue other(small.frames);
  other.start({0});
  while (small.frames.free_count() > 4) other.append(frame(1, std::byte{0}));
  ReceiveQueue queue(small);
  queue.start({0});
  for (std::uint32_t i = 1; i <= 10; ++i) queue.insert({i * 1000}, frame(300, std::byte{1}));
  EXPECT_EQ(queue.frames(), 4U);
}

TEST_F(Queues, taking_a_frame_hands_it_over) {
  ReceiveQueue queue(shared);
  queue.start({0});
  queue.insert({0}, frame(400, std::byte{1}));
  queue.insert({400}, frame(400, std::byte{2}));
  queue.consume(10);
  const Frame first = queue.take();
  EXPECT_EQ(first.size(), 390U);
  EXPECT_EQ(queue.readable(), 400U);
  EXPECT_EQ(queue.take().size(), 400U);
  EXPECT_FALSE(queue.take());
}

TEST_F(Queues, a_send_queue_gives_back_what_was_written_in_any_pieces) {
  for (int round = 0; round < 200; ++round) {
    SendQueue queue(shared.frames);
    const Seq base{static_cast<std::uint32_t>(random())};
    queue.start(base);
    std::vector<std::byte> stream;
    std::uint32_t una = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<std::byte> data(draw(1500));
      for (std::byte& byte : data) byte = static_cast<std::byte>(random());
      const std::size_t took =
          queue.write(data, pool, {.headroom = 64, .fill = 200 + draw(200), .new_frame = draw(2) == 0});
      ASSERT_EQ(took, data.size());
      stream.insert(stream.end(), data.begin(), data.end());
      ASSERT_EQ(queue.end(), base + static_cast<std::uint32_t>(stream.size()));
      for (int k = 0; k < 3 && queue.size() > 0; ++k) {
        const std::uint32_t from = una + draw(queue.size());
        const std::uint32_t length =
            std::min<std::uint32_t>(1 + draw(3000), static_cast<std::uint32_t>(stream.size()) - from);
        std::array<SendQueue::Slice, 64> slices;
        const std::size_t count = queue.slices(base + from, length, slices);
        std::vector<std::byte> got;
        for (const auto& slice : std::span(slices).first(count))
          got.insert(got.end(), slice.bytes.begin(), slice.bytes.end());
        ASSERT_EQ(got, std::vector<std::byte>(stream.begin() + from, stream.begin() + from + length));
      }
      if (draw(3) == 0) {
        una += draw(queue.size() + 1);
        queue.release(base + una);
        ASSERT_EQ(queue.begin(), base + una);
      }
    }
  }
}

TEST_F(Queues, a_send_queue_takes_what_frames_can_be_had_for) {
  SendQueue queue(shared.frames);
  queue.start({0});
  std::vector<Frame> held;
  while (pool.free_count() > 2) held.push_back(std::move(*pool.allocate(0)));
  std::vector<std::byte> data(10000);
  EXPECT_EQ(queue.write(data, pool, {.headroom = 112, .fill = 400}), 800U);
  EXPECT_EQ(queue.write(data, pool, {.headroom = 112, .fill = 400}), 0U);
}

// The scoreboard as an array with an entry for each byte.
struct Board {
  struct Byte {
    Instant time;
    Fate fate = Fate::in_flight;
    bool retransmitted = false;
  };
  std::vector<Byte> bytes;
  std::uint32_t una = 0;
  std::uint32_t count(Fate fate) const {
    std::uint32_t out = 0;
    for (std::size_t i = una; i < bytes.size(); ++i) out += bytes[i].fate == fate ? 1U : 0U;
    return out;
  }
};

class Boards : public Queues {
 protected:
  void check(const Scoreboard& board, const Board& model, Seq base) {
    ASSERT_EQ(board.in_flight(), model.count(Fate::in_flight));
    ASSERT_EQ(board.lost(), model.count(Fate::lost));
    ASSERT_EQ(board.sacked(), model.count(Fate::sacked));
    Seq at = board.begin();
    std::uint32_t records = 0;
    for (auto cursor = board.first(); !board.done(cursor); cursor = board.next(cursor)) {
      ASSERT_EQ(board[cursor].begin, at);
      ASSERT_LT(board[cursor].begin, board[cursor].end);
      at = board[cursor].end;
      ++records;
      for (Seq i = board[cursor].begin; i < at; i += 1) {
        ASSERT_EQ(model.bytes[distance(base, i)].fate, board[cursor].fate);
      }
    }
    ASSERT_EQ(at, board.end());
    ASSERT_EQ(records, board.records());
  }
};

TEST_F(Boards, random_fates_agree_with_a_model_of_single_bytes) {
  for (int round = 0; round < 200; ++round) {
    Scoreboard board(shared.records);
    Board model;
    const Seq base{static_cast<std::uint32_t>(random())};
    board.start(base);
    Instant now{1000};
    for (int i = 0; i < 150; ++i) {
      now = now + Duration(draw(1000));
      const auto size = static_cast<std::uint32_t>(model.bytes.size());
      const std::uint32_t open = size - model.una;
      const std::uint32_t left = model.una + (open == 0 ? 0 : draw(open));
      const std::uint32_t right = open == 0 ? left : left + 1 + draw(size - left);
      Delivery delivery;
      DeliveryRule rule;
      rule.now = now;
      switch (draw(5)) {
        case 0: {
          const std::uint32_t length = 1 + draw(60);
          ASSERT_TRUE(board.sent(board.end() + length, now, Duration{0}));
          model.bytes.resize(size + length, {.time = now});
          break;
        }
        case 1: {
          if (open == 0) break;
          const std::uint32_t fresh = [&] {
            std::uint32_t n = 0;
            for (std::uint32_t k = left; k < right; ++k) n += model.bytes[k].fate != Fate::sacked ? 1U : 0U;
            return n;
          }();
          ASSERT_TRUE(board.sack(base + left, base + right, rule, delivery));
          ASSERT_EQ(delivery.sacked, fresh);
          for (std::uint32_t k = left; k < right; ++k) model.bytes[k].fate = Fate::sacked;
          break;
        }
        case 2: {
          if (draw(3) != 0) break;
          std::uint32_t fresh = 0;
          for (std::uint32_t k = model.una; k < left; ++k)
            fresh += model.bytes[k].fate != Fate::sacked ? 1U : 0U;
          board.acknowledge(base + left, rule, delivery);
          ASSERT_EQ(delivery.acked, fresh);
          model.una = left;
          break;
        }
        case 3: {
          for (auto at = board.first(); !board.done(at); at = board.next(at)) {
            if (board[at].fate != Fate::in_flight || draw(2) == 0) continue;
            for (Seq k = board[at].begin; k < board[at].end; k += 1)
              model.bytes[distance(base, k)].fate = Fate::lost;
            board.mark_lost(at);
          }
          break;
        }
        default: {
          auto at = board.next_lost(board.first());
          while (!board.done(at)) {
            const TxRecord record = board[at];
            const Seq end = record.begin + 1 + draw(distance(record.begin, record.end));
            for (Seq k = record.begin; k < end; k += 1) {
              model.bytes[distance(base, k)] = {.time = now, .fate = Fate::in_flight, .retransmitted = true};
            }
            at = board.next_lost(board.retransmitted(at, end, now));
            if (end != record.end) break;
          }
        }
      }
      check(board, model, base);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Boards, one_record_is_always_there_however_many_others_take) {
  Slab<TxRecord> few(1);
  const std::size_t all = few.capacity();
  Scoreboard first(few), second(few);
  first.start({0});
  second.start({0});
  std::uint32_t sent = 0;
  while (sent < all * 2 && first.sent(first.end() + 10, Instant{sent * 10LL}, Duration{0})) ++sent;
  EXPECT_TRUE(second.sent(second.end() + 10, Instant{1}, Duration{0}));
  Delivery delivery;
  second.acknowledge(second.end(), {}, delivery);
  EXPECT_TRUE(second.sent(second.end() + 10, Instant{1}, Duration{0}));
}

// Rows 97 and 103: who makes us cut records finer and finer leaves as many to all others.
TEST_F(Boards, a_peer_that_sacks_every_other_byte_leaves_as_many_records_as_it_costs) {
  Slab<TxRecord> few(1024);
  Scoreboard attacked(few), other(few);
  attacked.start({0});
  other.start({0});
  attacked.sent({10000}, Instant{1}, Duration{0});
  Delivery delivery;
  for (std::uint32_t i = 0; i < 5000; ++i) attacked.sack({2 * i + 1}, {2 * i + 2}, {}, delivery);
  EXPECT_LE(attacked.records(), 513U);
  for (std::int64_t i = 0; i < 200; ++i)
    EXPECT_TRUE(other.sent(other.end() + 10, Instant{i * 1000}, Duration{0}));
  EXPECT_EQ(other.records(), 200U);
}

TEST_F(Boards, without_a_record_new_data_joins_what_was_sent_before) {
  Slab<TxRecord> few(1);
  Scoreboard hog(few), board(few);
  hog.start({0});
  board.start({0});
  while (few.available() > 0) few.take();
  EXPECT_TRUE(board.sent({10}, Instant{0}, Duration{0}));
  EXPECT_TRUE(board.sent({20}, Instant{1'000'000}, Duration{0}));
  EXPECT_EQ(board.records(), 1U);
  EXPECT_EQ(board.in_flight(), 20U);
  Delivery delivery;
  board.acknowledge({20}, {}, delivery);
  EXPECT_LE(delivery.last_sent, Instant{0}) << "it may have been the first";
}

TEST_F(Boards, a_crowded_board_joins_transmissions_that_are_close_and_no_others) {
  Scoreboard board(shared.records);
  board.start({0});
  for (int i = 0; i < 10000; ++i)
    ASSERT_TRUE(board.sent(board.end() + 100, Instant{i * 1000LL}, Duration{10'000}));
  EXPECT_EQ(board.in_flight(), 1'000'000U);
  // Eleven transmissions, a microsecond apart, span ten.
  EXPECT_EQ(board.records(), Scoreboard::kCrowded - 1 + (10000 - Scoreboard::kCrowded + 1 + 10) / 11);
}

TEST_F(Boards,
       a_retransmission_answered_sooner_than_any_round_trip_was_not_what_is_answered) {  // RFC 8985 step 2
  Scoreboard board(shared.records);
  board.start({0});
  board.sent({100}, Instant{1000}, Duration{0});
  board.mark_lost(board.first());
  board.retransmitted(board.first(), {100}, Instant{5000});
  DeliveryRule rule;
  rule.now = Instant{5500};
  rule.min_rtt = Duration{1000};
  Delivery soon;
  board.acknowledge({50}, rule, soon);
  EXPECT_FALSE(soon.has_rack);
  rule.now = Instant{6000};
  Delivery later;
  board.acknowledge({100}, rule, later);
  EXPECT_TRUE(later.has_rack);
  EXPECT_EQ(later.rack_xmit, Instant{5000});
  EXPECT_TRUE(later.retransmitted && !later.original);
}

}  // namespace
}  // namespace netchannel::tcp
