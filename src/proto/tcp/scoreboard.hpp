// What was sent and not acknowledged, and how it has fared: the scoreboard of RFC 6675 with the transmission
// times that RACK needs (RFC 8985 section 5.1).
//
//     begin()                                            end()
//        |in flight|  lost  |in flight (again)|  sacked  |in flight|      records, without gaps, in order
//      snd_una                                         snd_nxt
//
// One record stands for bytes sent at the same time; it is split where a SACK or a retransmission begins or
// ends and merged again with neighbours that have fared alike. Bounded: at most kMaxRecords for a connection,
// so that a peer that acknowledges every other byte (CVE-2019-11478) gets its SACKs ignored instead of our
// memory and time. A crowded scoreboard also joins transmissions that are close in time. One record is
// reserved for each connection, so that it can always send.
//
// Invariant: in_flight() + lost() + sacked() == end() - begin().
#pragma once

#include "proto/tcp/seq.hpp"
#include "proto/tcp/shared.hpp"

namespace netchannel::tcp {

// What decides how a delivered record counts.
struct DeliveryRule {
  Instant now;
  Duration min_rtt = Duration::max();
  bool has_echo = false;
  std::uint32_t echo = 0;    // TSecr
  std::uint32_t offset = 0;  // of our timestamps
  Seq fack;                  // the highest sequence delivered before this acknowledgement
  Seq point;                 // RecoveryPoint, for Delivery::original
};

// What one acknowledgement has newly delivered.
struct Delivery {
  std::uint32_t acked = 0;     // bytes, cumulatively, that were not sacked before
  std::uint32_t sacked = 0;    // bytes, selectively
  bool retransmitted = false;  // some of the cumulatively acknowledged had been sent more than once, ...
  Instant retransmitted_at;    // ... at last at this time
  bool original = false;       // some had been sent once only, before RecoveryPoint (RFC 5682)
  bool reordered = false;      // some, sent once only, lay below what was delivered before (RFC 8985 step 3)
  bool has_first = false;      // first_sent is set
  bool has_last = false;
  Instant first_sent;  // of the cumulatively acknowledged, sent once only: the earliest ...
  Instant last_sent;   // ... and of all delivered, sent once only, the latest transmission
  bool has_rack = false;
  Instant rack_xmit;  // of all delivered: the latest transmission ...
  Seq rack_end;       // ... and its end
  Seq highest;        // the highest end delivered; meaningful with total() != 0
  std::uint32_t total() const { return acked + sacked; }
};

// Milliseconds: the clock of the timestamp option (RFC 7323 section 5.4) before the connection's offset.
constexpr std::uint32_t timestamp_ms(Instant now) { return static_cast<std::uint32_t>(now.ns / 1'000'000); }

class Scoreboard {
 public:
  static constexpr std::uint32_t kMaxRecords = 2048;
  static constexpr std::uint32_t kCrowded = 64;

  explicit Scoreboard(Slab<TxRecord>& records) : records_(records) { records_.reserve_one(); }
  ~Scoreboard() {
    clear();
    records_.unreserve_one();
  }
  Scoreboard(const Scoreboard&) = delete;
  Scoreboard& operator=(const Scoreboard&) = delete;

  void start(Seq first) { begin_ = end_ = first; }
  Seq begin() const { return begin_; }
  Seq end() const { return end_; }
  std::uint32_t in_flight() const { return distance(begin_, end_) - lost_ - sacked_; }
  std::uint32_t lost() const { return lost_; }
  std::uint32_t sacked() const { return sacked_; }
  std::uint32_t records() const { return count_; }
  bool empty() const { return count_ == 0; }

  // New data up to `end` has been sent. Transmissions closer than `together` may be taken as one when it is
  // crowded. False: no record is free; do not send.
  bool sent(Seq end, Instant now, Duration together);
  // Everything before `una`, which is not beyond end(), has arrived.
  void acknowledge(Seq una, const DeliveryRule& rule, Delivery& out);
  // [left, right), which is inside, has arrived. False: not (wholly) noted, there are too many records.
  bool sack(Seq left, Seq right, const DeliveryRule& rule, Delivery& out);

  // Where a walk stands: the record and the one before.
  struct Cursor {
    std::uint32_t before = kNoNode;
    std::uint32_t at = kNoNode;
  };
  Cursor first() const { return {kNoNode, first_}; }
  Cursor next(Cursor cursor) const { return {cursor.at, records_[cursor.at].next}; }
  bool done(Cursor cursor) const { return cursor.at == kNoNode; }
  const TxRecord& operator[](Cursor cursor) const { return records_[cursor.at]; }
  Cursor next_lost(Cursor from) const;
  // Something that has not arrived, as far as is known, was sent more than once.
  bool has_retransmissions() const;

  // The record, in flight, is lost.
  void mark_lost(Cursor cursor);
  // The first `bytes` are lost (RFC 6582: without SACK one segment at a time).
  void mark_head_lost(std::uint32_t bytes);
  // The peer has dropped what it had sacked (RFC 2018 section 8): it is lost.
  void forget_sacks();
  // What was taken for lost was only late.
  void revive_lost();
  // The beginning of a lost record, up to `end`, has been sent again. Returns where to go on.
  Cursor retransmitted(Cursor cursor, Seq end, Instant now);
  // The last `bytes` of the last record, sent again as a probe.
  void probed(std::uint32_t bytes, Instant now);
  const TxRecord& last() const { return records_[last_]; }
  const TxRecord& front() const { return records_[first_]; }

  void clear();

 private:
  std::uint32_t take();
  void give_back(std::uint32_t index);
  bool join_last(Seq end, Instant now);
  bool split(std::uint32_t index, Seq at);
  void merge_next(std::uint32_t index);
  void deliver(const TxRecord& record, const DeliveryRule& rule, Delivery& out, bool cumulative);
  void uncount(const TxRecord& record);

  Slab<TxRecord>& records_;
  std::uint32_t first_ = kNoNode;
  std::uint32_t last_ = kNoNode;
  std::uint32_t sack_hint_ = kNoNode;  // a record that ended before the last block
  std::uint32_t count_ = 0;
  std::uint32_t lost_ = 0;    // bytes
  std::uint32_t sacked_ = 0;  // bytes
  Seq begin_, end_;
};

}  // namespace netchannel::tcp
