// What the fuzz targets of TCP share: numbers out of the input, and what must hold of a connection after
// anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>

#include "proto/tcp/connection.hpp"

namespace netchannel::fuzz {

inline void require(bool holds, std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u does not hold\n", where.file_name(), where.line());
  std::abort();
}

// The input as a list of choices; zeros when it is used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool done() const { return at_ >= size_; }
  std::uint8_t byte() { return done() ? std::uint8_t{0} : data_[at_++]; }
  std::uint16_t word() {
    const std::uint8_t high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  std::uint32_t number() {
    const std::uint32_t high = word();
    return high << 16 | word();
  }
  bool flag() { return (byte() & 1) != 0; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

inline tcp::Settings settings_from(Choices& in) {
  tcp::Settings s;
  const std::uint8_t bits = in.byte();
  s.timestamps = (bits & 1) != 0;
  s.window_scaling = (bits & 2) != 0;
  s.sack = (bits & 4) != 0;
  s.no_delay = (bits & 8) != 0;
  s.keepalive = (bits & 16) != 0;
  s.quick_ack = (bits & 32) != 0;
  if ((bits & 64) != 0) s.congestion = tcp::CongestionAlgorithm::reno;
  s.ecn = (bits & 128) != 0 ? tcp::EcnMode::request : tcp::EcnMode::off;
  const std::uint8_t more = in.byte();
  s.receive_buffer = 1U << (8 + more % 12);
  s.receive_buffer_max = s.receive_buffer << (more >> 4) % 3;
  s.send_buffer = s.send_buffer_max = 1U << (9 + (more >> 2) % 11);
  if ((more & 1) != 0) s.user_timeout = std::chrono::seconds(1 + more);
  return s;
}

inline void check(const tcp::Connection& c) {
  using namespace tcp;
  const TcpState& s = c.state;
  require(s.snd_una <= s.snd_nxt);
  require(c.receive.frames() <= c.receive.frame_limit());
  require(c.sent.records() <= Scoreboard::kMaxRecords);
  require(c.sent.in_flight() + c.sent.lost() + c.sent.sacked() == distance(c.sent.begin(), c.sent.end()));
  if (s.state == State::closed) {
    require(c.send.size() == 0 && c.sent.empty() && next_deadline(s) == kForever);
    return;
  }
  if (!synchronized(s.state)) return;
  require(c.sent.begin() == s.snd_una && c.sent.end() == s.snd_nxt);
  require(s.snd_nxt <= c.send.end() + (s.fin_sent ? 1U : 0U));
  require(c.send.begin() <= s.snd_nxt);
  require(s.fin_sent ? s.snd_nxt == s.fin_seq + 1 : true);
  require(s.rcv_nxt <= s.rcv_adv + 1);
  require(c.receive.readable() + c.receive.out_of_order() <= s.receiver.buffer + (1U << s.rcv_wscale));
  require(s.congestion.cwnd > 0 && s.congestion.ssthresh >= 2 * (wire::kMinMss - 12U));
  // Whatever is outstanding is watched by a timer.
  const bool outstanding = s.snd_una != s.snd_nxt && s.state != State::time_wait;
  require(!outstanding || s.timers.retransmit != kForever);
  require((s.state == State::time_wait) == (s.state == State::time_wait && s.timers.lifetime != kForever));
}

// Runs the timers that are due and takes what is to be sent; a timer that does not move on is a finding.
inline void settle(tcp::Connection& c, Instant now, const tcp::TxLimits& limits, auto&& send) {
  for (int turns = 0; next_deadline(c.state) <= now; ++turns) {
    require(turns < 100);
    on_timer(c, now);
    check(c);
  }
  bool more = true;
  for (int turns = 0; more; ++turns) {
    require(turns < 100000);
    tcp::TxBatch batch;
    more = poll_tx(c, batch, limits, now);
    require(batch.size() <= limits.segments);
    require(!more || !batch.empty());
    for (const tcp::SegmentOut& segment : batch) send(segment);
    check(c);
  }
}

}  // namespace netchannel::fuzz
