// The driver stands between one device and the channels of its consumers and only sorts: it takes a burst
// from the device, finds each packet's channel by its flow, and pushes once for each channel that got
// something. It does no protocol work and keeps no state about a flow but whose it is.
//
// Slots: receive slots are the driver's to lend. Each has an owner at any time (the device, or a channel), so
// that a consumer that dies or lies cannot lose or double one. Transmit slots are the consumers', in a range
// each.
//
// Everything here belongs to one thread. What consumers write into their rings is untrusted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/keyed_table.hpp"
#include "channel/channel.hpp"
#include "driver/flow_table.hpp"
#include "netchannel/device.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"

namespace netchannel::driver {

struct SlotRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool contains(std::uint32_t slot) const { return slot - first < count; }
};

class Driver {
 public:
  // All four must outlive the driver. `rx_slots` of the region are lent to the device at once, as many as it
  // takes.
  Driver(Device& device, FrameRegion& region, SlotRange rx_slots, CounterPage& counters);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // A consumer whose packets to send lie in `tx_slots`. The first one attached also gets what belongs to no
  // flow: ARP, neighbour discovery, echo, fragments. Errors: no_memory (too many channels).
  Result<ChannelId> attach(DriverEnd end, SlotRange tx_slots);
  // Unclaims its flows and takes back every receive slot it held.
  void detach(ChannelId channel);

  // One turn: completions, a burst of receive, commands, slots home, a burst of transmit for each channel.
  // True if anything moved.
  bool poll();
  // The transmit half alone, for a consumer that has just queued something. True if anything was sent.
  bool transmit();
  // False: there is work, do not sleep.
  bool prepare_sleep();

  const FlowTable& flows() const { return flows_; }

 private:
  // What a burst holds for one channel before the one push.
  struct Port {
    DriverEnd end;
    SlotRange tx_slots;
    std::array<FrameDesc, kBurst> staged;
    std::uint32_t staged_count = 0;
    bool attached = false;
  };

  bool take_completions();
  bool receive();
  bool run_commands(ChannelId id);
  FlowReply run_command(ChannelId id, const FlowCommand& command);
  bool take_recycled(ChannelId id);
  void lend_to_device();
  bool transmit_from(Port& port);
  std::uint32_t valid_prefix(const Port& port, std::span<const FrameDesc> frames) const;
  ChannelId channel_of(const FrameDesc& desc);
  void stage(ChannelId id, const FrameDesc& desc);
  void push_staged(ChannelId id);
  void take_back(std::uint32_t slot);

  static constexpr ChannelId kNoChannel = 0xffff;
  static constexpr std::uint16_t kDeviceOwns = 0xffff;

  Device& device_;
  FrameRegion& region_;
  SlotRange rx_slots_;
  CounterPage& counters_;
  FlowTable flows_;
  std::vector<std::unique_ptr<Port>> ports_;  // by ChannelId; detached ones stay, empty, until attached again
  std::vector<std::uint16_t> owner_;          // of each receive slot: a ChannelId or kDeviceOwns
  std::vector<std::uint32_t> to_lend_;        // receive slots that are here, for the device
  FlowKey last_flow_;                         // bursts come from few flows
  ChannelId last_channel_ = kNoChannel;
  ChannelId only_channel_ = kNoChannel;  // the one attached consumer, if there is just one
};

}  // namespace netchannel::driver
