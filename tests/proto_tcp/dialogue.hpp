// Tests that read as dialogues: what the peer says, what we must answer, and when. Sequence numbers are
// relative to each side's SYN, so the first byte of a stream is 1. A line is written as
//
//      S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 100 0,wscale 7>
//      P. 1:101(100) ack 1 win 512 <sack 201:301>
//
// with the flags of packetdrill (S F R P . U E W, "-" for none). In what we are expected to send only what is
// written is compared: the window only if `win` is there, options only if <> is there (then all of them, a TS
// as "TS" alone or with its numbers). Time is virtual and starts at one second; wait() runs the timers that
// expire on the way.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "proto/tcp/connection.hpp"
#include "testkit/transcript.hpp"

namespace netchannel::tcp {

struct DialogueOptions {
  Settings settings;
  std::uint16_t path_mss = 1460;
  std::uint32_t super_frame = 0;
  std::uint32_t iss = 0x10000000;
  std::uint32_t irs = 0xf0000000;
  std::uint32_t frames = 4096;
};

// Settings with small, round numbers: buffers of 64 KiB that do not grow, no window scale, no timestamps, no
// SACK.
Settings plain_settings();
Settings sack_settings();  // the same with SACK and window scaling 0

class Dialogue : public ::testing::Test {
 protected:
  Dialogue() { set_up({.settings = plain_settings()}); }
  void TearDown() override;

  // Begins anew; the connection is CLOSED.
  void set_up(const DialogueOptions& options);
  // CLOSED -> SYN-SENT; the SYN waits to be seen.
  void open();
  // Through the whole handshake as the active side; `peer_options` as in a line: "<mss 1460>".
  void establish(std::string_view peer_options = "<mss 1460>", std::uint32_t window = 65535);
  // As the passive side, from a listener's handshake. Settings decide what was negotiated.
  void establish_passive();

  void peer(std::string_view line);  // arrives now; then we send what is due
  void peer_in_burst(
      std::string_view line);        // arrives now; nothing is sent before the next peer() or flush()
  void ours(std::string_view line);  // the next segment we have sent
  void silence();                    // we have sent nothing more
  void wait(Duration by);
  void flush();

  std::size_t write(std::size_t bytes);
  std::size_t read(std::size_t bytes);  // checks the pattern of what the peer sent
  void shut();
  Events close();
  Events abort();

  TcpState& state() { return c_->state; }
  Connection& connection() { return *c_; }
  FramePool& frames() { return *tx_; }
  bool saw(Event event) const { return (events_ & event) != 0; }
  void forget_events() { events_ = 0; }
  std::uint64_t counter(Counter counter) const { return counters_->read(counter); }
  Instant now{1'000'000'000};
  std::uint16_t segments = 1;  // that the next peer() line came as
  Ecn ecn = Ecn::not_ect;      // that the peer's segments carry
  std::byte fill{0};           // overwrites the pattern of the peer's data, if not 0

  struct Sent {
    Instant at;
    SegmentOut segment;
    std::string text;
  };
  std::deque<Sent> outbox;

 private:
  void inject(std::string_view line);
  std::string describe(const SegmentOut& segment) const;

  DialogueOptions options_;
  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<CounterPage> counters_;
  std::unique_ptr<FramePool> tx_, rx_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Connection> c_;
  Events events_ = 0;
  std::uint64_t written_ = 0, read_ = 0;
  testkit::Transcript transcript_;
};

}  // namespace netchannel::tcp
