#include "proto/tcp/scoreboard.hpp"

#include <algorithm>

namespace netchannel::tcp {

// Beyond a few, a board takes no more than it leaves to all others: its peer decides how finely it is cut.
std::uint32_t Scoreboard::take() {
  constexpr std::size_t kFew = 4;
  const std::size_t share = std::max(records_.available(), kFew);
  std::uint32_t index = kNoNode;
  if (count_ == 0) {
    index = records_.take_reserved();
  } else if (count_ < std::min<std::size_t>(kMaxRecords, share)) {
    index = records_.take();
  }
  if (index != kNoNode) ++count_;
  return index;
}

void Scoreboard::give_back(std::uint32_t index) {
  if (index == sack_hint_) sack_hint_ = kNoNode;
  if (--count_ == 0) {
    records_.give_back_reserved(index);
  } else {
    records_.give_back(index);
  }
}

void Scoreboard::clear() {
  while (first_ != kNoNode) {
    const std::uint32_t index = first_;
    first_ = records_[index].next;
    give_back(index);
  }
  last_ = kNoNode;
  lost_ = sacked_ = 0;
  begin_ = end_;
}

namespace {

// Microseconds from the first transmission in the record until now.
std::int64_t spread_of(const TxRecord& record, Instant now) {
  return record.spread_us + (now - record.time + Duration(999)).count() / 1000;
}

}  // namespace

bool Scoreboard::join_last(Seq end, Instant now) {
  if (last_ == kNoNode) return false;
  TxRecord& last = records_[last_];
  if (last.fate != Fate::in_flight || last.retransmitted) return false;
  last.spread_us = static_cast<std::uint16_t>(std::min<std::int64_t>(spread_of(last, now), 0xffff));
  last.time = now;
  last.end = end_ = end;
  return true;
}

bool Scoreboard::sent(Seq end, Instant now, Duration together) {
  if (last_ != kNoNode) {
    const TxRecord& last = records_[last_];
    const std::int64_t spread = spread_of(last, now);
    const bool close = last.time == now || (count_ >= kCrowded && spread * 1000 <= together.count());
    if (close && join_last(end, now)) return true;
  }
  const std::uint32_t index = take();
  if (index == kNoNode) return join_last(end, now);
  records_[index] = {.begin = end_, .end = end, .time = now};
  (last_ == kNoNode ? first_ : records_[last_].next) = index;
  last_ = index;
  end_ = end;
  return true;
}

// Cuts a record in two; `at` is strictly inside.
bool Scoreboard::split(std::uint32_t index, Seq at) {
  const std::uint32_t rest = take();
  if (rest == kNoNode) return false;
  TxRecord& record = records_[index];
  records_[rest] = record;
  records_[rest].begin = at;
  record.end = at;
  record.next = rest;
  if (last_ == index) last_ = rest;
  return true;
}

// Takes the record after `index` into it. Their fates are the same.
void Scoreboard::merge_next(std::uint32_t index) {
  TxRecord& record = records_[index];
  const std::uint32_t gone = record.next;
  const TxRecord& other = records_[gone];
  record.end = other.end;
  record.retransmitted |= other.retransmitted;
  if (record.time < other.time) record.time = other.time;
  record.next = other.next;
  if (last_ == gone) last_ = index;
  give_back(gone);
}

void Scoreboard::uncount(const TxRecord& record) {
  const std::uint32_t bytes = distance(record.begin, record.end);
  if (record.fate == Fate::lost) lost_ -= bytes;
  if (record.fate == Fate::sacked) sacked_ -= bytes;
}

void Scoreboard::deliver(const TxRecord& record, const DeliveryRule& rule, Delivery& out, bool cumulative) {
  const std::uint32_t bytes = distance(record.begin, record.end);
  // Of transmissions that were joined this may have been the first: what was sent after it is no later than
  // it seems.
  const Instant sent_at = record.time - std::chrono::microseconds(record.spread_us);
  if (out.total() == 0 || out.highest < record.end) out.highest = record.end;
  (cumulative ? out.acked : out.sacked) += bytes;
  if (record.retransmitted) {
    if (cumulative && (!out.retransmitted || out.retransmitted_at < record.time))
      out.retransmitted_at = record.time;
    out.retransmitted |= cumulative;
    // RFC 8985 section 6.2 step 2: this may be the acknowledgement of an earlier transmission.
    const std::uint32_t stamp = timestamp_ms(sent_at) + rule.offset;
    if (rule.has_echo && static_cast<std::int32_t>(rule.echo - stamp) < 0) return;
    if (rule.min_rtt != Duration::max() && rule.now - sent_at < rule.min_rtt) return;
  } else {
    out.original |= record.end <= rule.point;
    out.reordered |= record.end < rule.fack;
    if (cumulative && (!out.has_first || sent_at < out.first_sent)) out.first_sent = sent_at;
    out.has_first |= cumulative;
    if (!out.has_last || out.last_sent < sent_at) out.last_sent = sent_at;
    out.has_last = true;
  }
  const bool later_sent = out.rack_xmit < sent_at || (out.rack_xmit == sent_at && out.rack_end < record.end);
  if (out.has_rack && !later_sent) return;
  out.has_rack = true;
  out.rack_xmit = sent_at;
  out.rack_end = record.end;
}

void Scoreboard::acknowledge(Seq una, const DeliveryRule& rule, Delivery& out) {
  while (first_ != kNoNode && begin_ < una) {
    TxRecord& record = records_[first_];
    const Seq upto = earlier(una, record.end);
    TxRecord part = record;
    part.end = upto;
    uncount(part);
    if (part.fate != Fate::sacked) deliver(part, rule, out, true);
    begin_ = record.begin = upto;
    if (upto != record.end) break;
    const std::uint32_t gone = first_;
    first_ = record.next;
    if (first_ == kNoNode) last_ = kNoNode;
    give_back(gone);
  }
  begin_ = una;
}

bool Scoreboard::sack(Seq left, Seq right, const DeliveryRule& rule, Delivery& out) {
  bool noted = true;
  // Blocks mostly grow at their right ends, so the last one is a good place to start from.
  const bool hinted = sack_hint_ != kNoNode && records_[sack_hint_].end <= left;
  Cursor cursor = hinted ? Cursor{sack_hint_, records_[sack_hint_].next} : first();
  while (!done(cursor) && records_[cursor.at].begin < right) {
    TxRecord& record = records_[cursor.at];
    if (record.end <= left) sack_hint_ = cursor.at;
    if (record.fate != Fate::sacked && left < record.end) {
      if (record.begin < left) {
        if (split(cursor.at, left)) {
          cursor = next(cursor);
          continue;
        }
        noted = false;
      } else if (right < record.end && !split(cursor.at, right)) {
        noted = false;
      } else {
        uncount(record);
        deliver(record, rule, out, false);
        record.fate = Fate::sacked;
        sacked_ += distance(record.begin, record.end);
      }
    }
    const bool join = cursor.before != kNoNode && records_[cursor.before].fate == Fate::sacked &&
                      records_[cursor.at].fate == Fate::sacked;
    if (join) {
      merge_next(cursor.before);
      cursor.at = records_[cursor.before].next;
    } else {
      cursor = next(cursor);
    }
  }
  if (!done(cursor) && cursor.before != kNoNode && records_[cursor.before].fate == Fate::sacked &&
      records_[cursor.at].fate == Fate::sacked) {
    merge_next(cursor.before);
  }
  return noted;
}

Scoreboard::Cursor Scoreboard::next_lost(Cursor from) const {
  while (!done(from) && records_[from.at].fate != Fate::lost) from = next(from);
  return from;
}

bool Scoreboard::has_retransmissions() const {
  for (Cursor cursor = first(); !done(cursor); cursor = next(cursor)) {
    if (records_[cursor.at].retransmitted && records_[cursor.at].fate != Fate::sacked) return true;
  }
  return false;
}

void Scoreboard::mark_lost(Cursor cursor) {
  TxRecord& record = records_[cursor.at];
  record.fate = Fate::lost;
  lost_ += distance(record.begin, record.end);
}

void Scoreboard::mark_head_lost(std::uint32_t bytes) {
  if (first_ == kNoNode || records_[first_].fate != Fate::in_flight) return;
  const TxRecord& head = records_[first_];
  if (distance(head.begin, head.end) > bytes) split(first_, head.begin + bytes);
  mark_lost(first());
}

void Scoreboard::forget_sacks() {
  for (Cursor cursor = first(); !done(cursor); cursor = next(cursor)) {
    TxRecord& record = records_[cursor.at];
    if (record.fate != Fate::sacked) continue;
    uncount(record);
    mark_lost(cursor);
  }
}

Scoreboard::Cursor Scoreboard::retransmitted(Cursor cursor, Seq end, Instant now) {
  // If no record is free to cut it the whole of it counts as sent: RACK or the timer will find the rest lost
  // again.
  if (end < records_[cursor.at].end) split(cursor.at, end);
  TxRecord& record = records_[cursor.at];
  uncount(record);
  record.fate = Fate::in_flight;
  record.retransmitted = true;
  record.time = now;
  if (cursor.before == kNoNode) return next(cursor);
  const TxRecord& before = records_[cursor.before];
  if (before.fate != Fate::in_flight || !before.retransmitted || before.time != now) return next(cursor);
  merge_next(cursor.before);
  return {cursor.before, records_[cursor.before].next};
}

void Scoreboard::revive_lost() {
  for (Cursor cursor = first(); !done(cursor); cursor = next(cursor)) {
    if (records_[cursor.at].fate == Fate::lost) records_[cursor.at].fate = Fate::in_flight;
  }
  lost_ = 0;
}

void Scoreboard::probed(std::uint32_t bytes, Instant now) {
  if (distance(records_[last_].begin, end_) > bytes) split(last_, end_ - bytes);
  TxRecord& record = records_[last_];
  record.retransmitted = true;
  record.time = now;
}

}  // namespace netchannel::tcp
