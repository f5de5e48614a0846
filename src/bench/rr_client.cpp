#include "bench/rr_client.hpp"

#include <algorithm>
#include <bit>

#include "bench/message.hpp"
#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kReceiveBatch = 64;
constexpr Duration kDrainTime = std::chrono::milliseconds(50);
constexpr Duration kDrainTimeOfReliable = std::chrono::seconds(5);
constexpr int kTries = 100;  // to send what may be lost
// A sleep that ends by the clock ends about this late: the rest is spun.
constexpr Duration kWakeEarly = std::chrono::microseconds(60);
constexpr Duration kNoRoomWait = std::chrono::microseconds(100);
constexpr std::size_t kMostMessageBytes = 16 << 20;

std::uint32_t window_of(const BlockOptions& options) {
  if (options.rate == 0) return options.in_flight();
  // Open loop: as many as numbers can tell apart and memory holds.
  const std::uint32_t distinct = options.size >= 2 ? kMostInFlight : options.size == 1 ? 128 : 1;
  const std::size_t fits = kMostMessageBytes / (std::size_t{std::max(options.size, 1u)} * options.pairs);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fits, 1, distinct));
}

}  // namespace

RrClient::RrClient(Transport& transport, const BlockOptions& options)
    : transport_(transport), options_(options), window_(window_of(options)) {
  const std::uint32_t slots = std::bit_ceil(window_);
  pairs_.resize(options.pairs);
  for (Pair& pair : pairs_) pair.slots.resize(slots);
  messages_.resize(std::size_t{options.pairs} * slots * options.size);
  for (std::size_t i = 0; options.size != 0 && i < messages_.size(); i += options.size) {
    write_pattern(std::span(messages_).subspan(i, options.size));
  }
}

RrResult RrClient::run(double seconds) {
  begin(seconds);
  while (!interrupted() && !result_.error) {
    const Instant now = device::monotonic_now();
    if (now >= end_) break;
    start_due(now);
    if (now >= next_timeout_ && !transport_.reliable()) repeat_lost(now);
    flush();
    const auto got = transport_.receive(expected_port_, kReceiveBatch, wake_at(now));
    if (!got) {
      result_.error = got.error();
      break;
    }
    if (got->empty()) continue;
    const Instant arrival = device::monotonic_now();
    for (const Arrived& arrived : *got) on_arrival(arrived, arrival);
  }
  result_.seconds = static_cast<double>((device::monotonic_now() - start_).count()) * 1e-9;
  for (const Pair& pair : pairs_) result_.in_flight += pair.open;
  drain();
  return result_;
}

void RrClient::begin(double seconds) {
  result_ = {};
  queued_.clear();
  start_ = device::monotonic_now();
  end_ = start_ + Duration(static_cast<std::int64_t>(seconds * 1e9));
  next_timeout_ = start_ + kRequestTimeout;
  measuring_ = true;
  for (Pair& pair : pairs_) {
    for (Slot& slot : pair.slots) slot.open = false;
    pair.open = 0;
  }
}

Instant RrClient::plan(std::uint64_t request) const {
  return start_ + Duration(static_cast<std::int64_t>(static_cast<double>(request) * 1e9 / options_.rate));
}

Instant RrClient::wake_at(Instant now) const {
  Instant at = transport_.reliable() ? end_ : earlier(end_, next_timeout_);
  if (!queued_.empty()) at = earlier(at, now + kNoRoomWait);
  if (options_.rate == 0) return at;
  const Instant next = plan(result_.planned);
  at = earlier(at, next - kWakeEarly);
  return at < now ? now : at;
}

void RrClient::start_due(Instant now) {
  if (options_.rate == 0) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      while (pairs_[i].open < window_ && start(i, now, now)) {
      }
    }
    return;
  }
  // A request whose time has come and that finds no free number is not dropped from the plan: it leaves late.
  while (plan(result_.planned) <= now) {
    if (!start(result_.planned % pairs_.size(), plan(result_.planned), now)) break;
    result_.send_lag.record((now - plan(result_.planned)).count());
    ++result_.planned;
  }
}

bool RrClient::start(std::size_t index, Instant planned, Instant now) {
  Pair& pair = pairs_[index];
  if (pair.open >= window_) return false;
  const auto mask = static_cast<std::uint32_t>(pair.slots.size() - 1);
  // A number whose slot still waits for a lost request is passed over.
  while (pair.slots[pair.next & mask].open) ++pair.next;
  const std::uint32_t number = pair.next++;
  pair.slots[number & mask] = {.open = true, .number = number, .planned = planned, .sent = now};
  ++pair.open;
  ++result_.sent;
  queue(index, number, now);
  return true;
}

MutableBytes RrClient::message_of(std::size_t pair, std::uint32_t number) {
  const std::size_t slots = pairs_[pair].slots.size();
  return std::span(messages_).subspan((pair * slots + (number & (slots - 1))) * options_.size, options_.size);
}

void RrClient::queue(std::size_t pair, std::uint32_t number, Instant now) {
  const MutableBytes message = message_of(pair, number);
  write_message(message, number, now.ns);
  const std::size_t port = port_of(pair, number);
  queued_.push_back({port, message});
  expected_port_ = pairs_.size() == 1 && window_ == 1 ? port : kAnyPort;
}

// Neighbours in the queue that leave by one port go in one call. What a reliable transport has no room for
// stays in the queue; what another has none for, which is rare and short, is as good as lost, and asked for
// again.
void RrClient::flush() {
  std::size_t done = 0;
  for (std::size_t next = 0; done < queued_.size() && done == next && !result_.error;) {
    const std::size_t port = queued_[done].port;
    batch_.clear();
    for (; next < queued_.size() && queued_[next].port == port; ++next)
      batch_.push_back(queued_[next].message);
    done += send(port, next < queued_.size() && transport_.gathers_ports());
  }
  queued_.erase(queued_.begin(), queued_.begin() + static_cast<std::ptrdiff_t>(done));
}

// The batch; how many of it are done with.
std::size_t RrClient::send(std::size_t port, bool more) {
  std::span<const Bytes> left = batch_;
  for (int tries = 0; !left.empty() && tries < kTries; ++tries) {
    const auto sent = transport_.send(port, left, more);
    if (!sent) {
      result_.error = sent.error();
      break;
    }
    left = left.subspan(sent->taken);
    if (!left.empty() && transport_.reliable()) return batch_.size() - left.size();
    if (!left.empty()) transport_.wait(device::monotonic_now() + kNoRoomWait);
  }
  return batch_.size();
}

void RrClient::on_arrival(const Arrived& arrived, Instant now) {
  const std::size_t index = arrived.port / options_.flows;
  if (arrived.payload.size() != options_.size || !pattern_intact(arrived.payload)) {
    ++result_.corrupted;
    return;
  }
  Pair& pair = pairs_[index];
  const std::uint32_t number = read_number(arrived.payload);
  Slot& slot = pair.slots[number & (pair.slots.size() - 1)];
  if (!slot.open || (slot.number & number_mask(options_.size)) != number) {
    ++result_.duplicates;
    return;
  }
  slot.open = false;
  --pair.open;
  if (!measuring_) return;
  ++result_.completed;
  result_.latency.record((now - slot.planned).count());
  if (options_.rate != 0) result_.service.record((now - slot.sent).count());
}

void RrClient::repeat_lost(Instant now) {
  Instant oldest = now;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    for (Slot& slot : pairs_[i].slots) {
      if (!slot.open) continue;
      if (now - slot.sent >= kRequestTimeout) {
        ++result_.timeouts;
        slot.sent = now;
        queue(i, slot.number, now);
      }
      oldest = earlier(oldest, slot.sent);
    }
  }
  next_timeout_ = oldest + kRequestTimeout;
}

void RrClient::drain() {
  measuring_ = false;
  const Instant until = device::monotonic_now() + (transport_.reliable() ? kDrainTimeOfReliable : kDrainTime);
  const auto waiting = [&] {
    return std::any_of(pairs_.begin(), pairs_.end(), [](const Pair& p) { return p.open != 0; });
  };
  while (waiting() && !result_.error) {
    const Instant now = device::monotonic_now();
    if (now >= until || (transport_.reliable() && interrupted())) break;
    flush();
    const auto got = transport_.receive(expected_port_, kReceiveBatch, until);
    if (!got) break;
    for (const Arrived& arrived : *got) on_arrival(arrived, now);
  }
}

}  // namespace netchannel::bench
