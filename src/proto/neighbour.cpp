#include "proto/neighbour.hpp"

#include <algorithm>
#include <bit>

namespace netchannel::proto {

using State = NeighbourState;
using Kind = NeighbourAction::Kind;

NeighbourCache::NeighbourCache(const Options& options)
    : resolved_outside_(options.resolved_outside),
      key_(options.key),
      entries_(std::max<std::uint32_t>(options.capacity, 1)),
      buckets_(std::bit_ceil(entries_.size()), kNone) {
  free_.reserve(entries_.size());
  timers_.reserve(entries_.size());
  for (std::uint32_t i = capacity(); i-- > 0;) free_.push_back(i);
}

std::uint32_t NeighbourCache::bucket_of(const IpAddress& address) const {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(address.bytes());
  return static_cast<std::uint32_t>(siphash(key_, words) & (buckets_.size() - 1));
}

std::uint32_t NeighbourCache::find(const IpAddress& address) const {
  for (std::uint32_t i = buckets_[bucket_of(address)]; i != kNone; i = entries_[i].next_in_bucket) {
    if (entries_[i].address == address) return i;
  }
  return kNone;
}

std::uint32_t NeighbourCache::victim() const {
  // One that nobody waits for, if there is one among the oldest; the search is bounded.
  std::uint32_t candidate = oldest_;
  for (int steps = 0; candidate != kNone && steps < 16; ++steps, candidate = entries_[candidate].newer) {
    if (entries_[candidate].state != State::incomplete) return candidate;
  }
  return oldest_;
}

std::uint32_t NeighbourCache::make(const IpAddress& address, std::optional<std::uint32_t>& evicted) {
  if (free_.empty()) {
    const std::uint32_t old = victim();
    evicted = old;
    remove(old);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Entry& entry = entries_[index];
  entry = {};
  entry.address = address;
  entry.used = true;
  std::uint32_t& bucket = buckets_[bucket_of(address)];
  entry.next_in_bucket = bucket;
  bucket = index;
  entry.older = newest_;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
  ++used_;
  return index;
}

void NeighbourCache::unlink(std::uint32_t index) {
  const Entry& entry = entries_[index];
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
}

void NeighbourCache::touch(std::uint32_t index) {
  if (newest_ == index) return;
  unlink(index);
  entries_[index].older = newest_;
  entries_[index].newer = kNone;
  entries_[newest_].newer = index;  // there is another, or index would be the newest
  newest_ = index;
}

void NeighbourCache::remove(std::uint32_t index) {
  stop_timer(index);
  std::uint32_t* link = &buckets_[bucket_of(entries_[index].address)];
  while (*link != index) link = &entries_[*link].next_in_bucket;
  *link = entries_[index].next_in_bucket;
  unlink(index);
  entries_[index].used = false;
  free_.push_back(index);
  --used_;
}

void NeighbourCache::start_timer(std::uint32_t index, Instant deadline) {
  Entry& entry = entries_[index];
  entry.deadline = deadline;
  if (entry.timer == kNone) {
    entry.timer = static_cast<std::uint32_t>(timers_.size());
    timers_.push_back(index);
  }
  next_deadline_ = earlier(next_deadline_, deadline);
}

void NeighbourCache::stop_timer(std::uint32_t index) {
  Entry& entry = entries_[index];
  if (entry.timer == kNone) return;
  const std::uint32_t last = timers_.back();
  timers_[entry.timer] = last;
  entries_[last].timer = entry.timer;
  timers_.pop_back();
  entry.timer = kNone;
  if (timers_.empty()) next_deadline_ = kForever;
}

void NeighbourCache::enter(std::uint32_t index, NeighbourState state, Instant deadline) {
  Entry& entry = entries_[index];
  entry.state = state;
  entry.asked = 0;
  // Reachability is looked at when it is used: it needs no timer.
  if (state == State::reachable || state == State::stale || state == State::fixed) {
    stop_timer(index);
    entry.deadline = deadline;
  } else {
    start_timer(index, deadline);
  }
}

NeighbourCache::Answer NeighbourCache::use(const IpAddress& address, Instant now) {
  Answer answer;
  std::uint32_t index = find(address);
  if (index == kNone) {
    index = make(address, answer.evicted);
    enter(index, State::incomplete, now + kRetransTimer);
    entries_[index].asked = 1;
    answer.act_now = true;
    answer.action = {resolved_outside_ ? Kind::resolve : Kind::ask_all, address, {}, index};
  }
  touch(index);
  Entry& entry = entries_[index];
  if (entry.state == State::reachable && entry.deadline <= now) enter(index, State::stale, kForever);
  // RFC 4861 section 7.3.3: the first use of a stale entry gives the layers above five seconds to confirm it.
  if (entry.state == State::stale) enter(index, State::delay, now + kDelayFirstProbe);
  answer.index = index;
  answer.usable = entry.state != State::incomplete;
  answer.mac = entry.mac;
  answer.valid_until = entry.state == State::reachable ? entry.deadline : kForever;
  return answer;
}

NeighbourCache::Effect NeighbourCache::on_question(const IpAddress& sender, const MacAddress& mac,
                                                   Instant now) {
  Effect effect;
  if (resolved_outside_) return effect;
  if (find(sender) != kNone)
    return on_answer(sender, {.mac = mac, .solicited = false, .overrides = true}, now);
  const std::uint32_t index = make(sender, effect.evicted);
  entries_[index].mac = mac;
  enter(index, State::stale, kForever);
  return effect;
}

NeighbourCache::Effect NeighbourCache::on_answer(const IpAddress& address, const Telling& telling,
                                                 Instant now) {
  Effect effect;
  const std::uint32_t index = find(address);
  if (resolved_outside_ || index == kNone) return effect;
  Entry& entry = entries_[index];
  const bool differs = telling.mac && *telling.mac != entry.mac;
  effect.index = index;
  if (entry.state == State::incomplete) {
    // RFC 4861 section 7.2.5: without a link-layer address the advertisement is of no use here.
    if (!telling.mac) return effect;
    entry.mac = *telling.mac;
    enter(index, telling.solicited ? State::reachable : State::stale, now + kReachableTime);
    effect.changed = effect.resolved = true;
  } else if (!telling.overrides && differs) {
    if (entry.state == State::reachable) enter(index, State::stale, kForever), effect.changed = true;
  } else {
    // "Solicited" is believed only while we ask: what nobody asked for never makes an entry fresh.
    const bool asking = entry.state == State::delay || entry.state == State::probe;
    if (differs) entry.mac = *telling.mac;
    if (telling.solicited && asking) {
      enter(index, State::reachable, now + kReachableTime);
      effect.changed = true;
    } else if (differs) {
      enter(index, State::stale, kForever);
      effect.changed = true;
    }
  }
  effect.mac = entry.mac;
  return effect;
}

NeighbourCache::Effect NeighbourCache::set(const IpAddress& address, const MacAddress& mac, Instant now) {
  Effect effect;
  std::uint32_t index = find(address);
  if (index == kNone) index = make(address, effect.evicted);
  Entry& entry = entries_[index];
  effect.index = index;
  effect.mac = mac;
  effect.resolved = entry.state == State::incomplete;
  effect.changed = effect.resolved || entry.mac != mac;
  entry.mac = mac;
  enter(index, State::fixed, now);
  return effect;
}

std::optional<std::uint32_t> NeighbourCache::forget(const IpAddress& address) {
  const std::uint32_t index = find(address);
  if (index == kNone) return std::nullopt;
  remove(index);
  return index;
}

NeighbourAction NeighbourCache::due(std::uint32_t index, Instant now) {
  Entry& entry = entries_[index];
  const IpAddress address = entry.address;
  if (entry.state == State::delay) enter(index, State::probe, now);
  if (entry.asked == kMaxSolicit) {
    // RFC 4861 section 7.3.3: the entry goes, so that the next packet begins anew.
    remove(index);
    return {Kind::failed, address, {}, index};
  }
  ++entry.asked;
  start_timer(index, now + kRetransTimer);
  if (entry.state == State::probe) return {Kind::ask_one, address, entry.mac, index};
  return {resolved_outside_ ? Kind::resolve : Kind::ask_all, address, {}, index};
}

std::size_t NeighbourCache::poll(Instant now, std::span<NeighbourAction> out) {
  if (now < next_deadline_) return 0;
  std::size_t done = 0;
  // Backwards, since due() may take the entry out of the list and move the last one to its place.
  for (std::size_t i = timers_.size(); i-- > 0;) {
    if (entries_[timers_[i]].deadline > now) continue;
    if (done == out.size()) break;
    out[done++] = due(timers_[i], now);
  }
  next_deadline_ = kForever;
  for (const std::uint32_t index : timers_)
    next_deadline_ = earlier(next_deadline_, entries_[index].deadline);
  return done;
}

std::optional<NeighbourState> NeighbourCache::state(const IpAddress& address) const {
  const std::uint32_t index = find(address);
  if (index == kNone) return std::nullopt;
  return entries_[index].state;
}

}  // namespace netchannel::proto
