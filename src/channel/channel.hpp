// A channel: the rings between a driver and one consumer, and the only door between them. One thread, two
// threads or two processes can stand at its two ends.
//
//            driver                                 consumer
//              | ---- rx         FrameDesc ---------> |   received, grouped by channel, one release a burst
//              | <--- recycle    slot --------------- |   receive slots on their way home
//              | <--- tx         FrameDesc ---------- |   packets to send
//              | ---- reclaimed  slot --------------> |   transmit slots the device has done with
//              | <--- commands   FlowCommand -------- |   claim and unclaim flows
//              | ---- replies    FlowReply ---------> |   one for each command, in order
//              | ---- bell -------------------------> |   an eventfd, written only if the consumer sleeps
//
// Receive slots are lent by the driver, transmit slots belong to the consumer, and each comes home on its own
// ring, which is as large as the number of slots that can be in it: coming home never fails.
#pragma once

#include <cstdint>
#include <memory>

#include "base/unique_fd.hpp"
#include "netchannel/error.hpp"
#include "netchannel/flow.hpp"
#include "netchannel/frame.hpp"
#include "ring/spsc.hpp"

namespace netchannel {

struct FlowCommand {
  enum class Kind : std::uint8_t { claim, unclaim };
  Kind kind = Kind::claim;
  std::uint32_t tag = 0;  // comes back in the reply
  FlowKey flow;
};

struct FlowReply {
  std::uint32_t tag = 0;
  bool ok = true;
  ErrorCode code = ErrorCode::system;  // if not ok
  std::int32_t sys_errno = 0;
};

// Wakes a consumer that sleeps and costs nothing but a load while it does not. The consumer announces its
// sleep, looks at its rings once more, and only then waits on fd(); the driver rings after it has released.
class Doorbell {
 public:
  static Result<std::unique_ptr<Doorbell>> open();  // errors: system (no descriptor left)
  int fd() const { return fd_.get(); }
  // Consumer.
  void announce_sleep() noexcept;
  void awake() noexcept;  // withdraws the announcement and drains the eventfd
  // Driver; true if it had to write.
  bool ring() noexcept;

 private:
  explicit Doorbell(UniqueFd fd) : fd_(std::move(fd)) {}
  // One line: the consumer writes its part only when it writes sleeping_ too.
  alignas(64) std::atomic<bool> sleeping_{false};
  bool announced_ = false;  // the consumer's: announced and not yet awake
  UniqueFd fd_;
  std::uint64_t owed_ = 0;  // the consumer's: times its announcement was taken and the write not read yet
};

struct ConsumerEnd {
  ring::Consumer<FrameDesc> rx;
  ring::Producer<std::uint32_t> recycle;
  ring::Producer<FrameDesc> tx;
  ring::Consumer<std::uint32_t> reclaimed;
  ring::Producer<FlowCommand> commands;
  ring::Consumer<FlowReply> replies;
  Doorbell* bell = nullptr;
};

struct DriverEnd {
  ring::Producer<FrameDesc> rx;
  ring::Consumer<std::uint32_t> recycle;
  ring::Consumer<FrameDesc> tx;
  ring::Producer<std::uint32_t> reclaimed;
  ring::Consumer<FlowCommand> commands;
  ring::Producer<FlowReply> replies;
  Doorbell* bell = nullptr;
};

struct ChannelOptions {
  std::uint32_t rx_ring = 2048;  // descriptors, powers of two
  std::uint32_t tx_ring = 2048;
  std::uint32_t rx_slots = 4096;  // receive slots of the device: the size of recycle
  std::uint32_t tx_slots = 4096;  // transmit slots of the consumer: the size of reclaimed
};

// The memory of the rings. Must outlive both ends, each of which is taken once.
class Channel {
 public:
  // Errors: invalid_argument, no_memory.
  static Result<std::unique_ptr<Channel>> open(const ChannelOptions& options);
  ~Channel();
  ConsumerEnd take_consumer();
  DriverEnd take_driver();
  Doorbell& bell();

 private:
  Channel();
  struct Rings;
  std::unique_ptr<Rings> rings_;
};

}  // namespace netchannel
