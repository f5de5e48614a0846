#include "bench/stream_sender.hpp"

#include <algorithm>

#include "bench/message.hpp"
#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr Duration kWakeEarly = std::chrono::microseconds(60);
constexpr Duration kFinishTime = std::chrono::seconds(5);
constexpr Duration kNoRoomWait = std::chrono::microseconds(50);

}  // namespace

StreamSender::StreamSender(Transport& transport, const BlockOptions& options)
    : transport_(transport), options_(options), next_number_(std::size_t{options.pairs} * options.flows, 0) {
  const std::size_t batch = options.effective_batch();
  buffer_.resize(batch * options.size);
  for (std::size_t i = 0; i < batch; ++i) {
    const MutableBytes message = std::span(buffer_).subspan(i * options.size, options.size);
    write_pattern(message);
    messages_.push_back(message);
  }
}

Instant StreamSender::plan(std::uint64_t message) const {
  return start_ + Duration(static_cast<std::int64_t>(static_cast<double>(message) * 1e9 / options_.rate));
}

std::size_t StreamSender::due(Instant now, const StreamResult& result) const {
  if (options_.rate == 0) return messages_.size();
  std::size_t n = 0;
  while (n < messages_.size() && plan(result.planned + n) <= now) ++n;
  return n;
}

StreamResult StreamSender::run(double seconds) {
  StreamResult result;
  start_ = device::monotonic_now();
  const Instant end = start_ + Duration(static_cast<std::int64_t>(seconds * 1e9));
  while (!interrupted() && !result.error) {
    const Instant now = device::monotonic_now();
    if (now >= end) break;
    const std::size_t count = due(now, result);
    if (count == 0) {
      const Instant wake = plan(result.planned) - kWakeEarly;
      if (wake > now) transport_.wait(earlier(wake, end));
      continue;
    }
    if (options_.rate != 0) result.send_lag.record((now - plan(result.planned)).count());
    const std::size_t sent = send_burst(count, now, result);
    result.planned += options_.rate != 0 ? sent : 0;
    if (sent < count && !result.error) {
      ++result.waits;
      transport_.wait(now + kNoRoomWait);
    }
  }
  result.seconds = static_cast<double>((device::monotonic_now() - start_).count()) * 1e-9;
  transport_.finish_sending(device::monotonic_now() + kFinishTime);
  return result;
}

std::size_t StreamSender::send_burst(std::size_t count, Instant now, StreamResult& result) {
  now_ = now;
  const std::size_t group = options_.flows == 1 ? count : 1;
  std::size_t done = 0;
  while (done < count && !result.error) {
    const std::size_t n = std::min(group, count - done);
    const bool more = transport_.gathers_ports() && done + n < count;
    const std::size_t taken = send_group(next_port_, n, more, result);
    done += taken;
    // One connection with full buffers does not hold up the others.
    if (taken == n || transport_.reliable()) next_port_ = (next_port_ + 1) % next_number_.size();
    if (taken < n) break;
  }
  return done;
}

std::size_t StreamSender::send_group(std::size_t port, std::size_t count, bool more, StreamResult& result) {
  for (std::size_t i = 0; i < count; ++i) {
    write_message(std::span(buffer_).subspan(i * options_.size, options_.size),
                  next_number_[port] + static_cast<std::uint32_t>(i), now_.ns);
  }
  const auto sent = transport_.send(port, std::span(messages_).first(count), more);
  if (!sent) {
    result.error = sent.error();
    return 0;
  }
  next_number_[port] += static_cast<std::uint32_t>(sent->taken);
  result.sent += sent->taken - std::min(sent->failed, sent->taken);
  result.failed += sent->failed;
  return sent->taken;
}

}  // namespace netchannel::bench
