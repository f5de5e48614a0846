// A stack, and this in the driver's place: lends receive slots, writes frames into them, takes what is sent.
// Time moves only by to().
#pragma once

#include <deque>
#include <memory>

#include "channel/channel.hpp"
#include "stack/stack.hpp"
#include "testkit/packet_script_target.hpp"

namespace netchannel::packets {

class StackWire {
 public:
  explicit StackWire(const testkit::script::Net& net);

  stack::Stack& stack() { return *stack_; }
  Instant now() const { return now_; }
  // The first packet that is sent by `until`, where time stops; or it is `until`.
  std::optional<testkit::script::SentPacket> next_sent(Instant until);
  void arrive(Bytes packet);
  // After calls: what they sent is on the wire.
  void flush();

 private:
  void poll();
  void collect();

  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<Channel> channel_;
  DriverEnd driver_;
  std::unique_ptr<stack::Stack> stack_;
  std::deque<std::uint32_t> lent_;
  std::deque<testkit::script::SentPacket> sent_;
  Instant now_{1'000'000'000'000};
};

}  // namespace netchannel::packets
