// A device moves bursts of frames and knows no protocol. It owns no packet memory: receive slots are lent to
// it with refill(), transmit slots come with tx_burst() and go home through reclaim(). All calls come from
// one thread, the driver's, and none of them blocks. One virtual call serves a burst of 32 to 64 frames.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "netchannel/address.hpp"
#include "netchannel/error.hpp"
#include "netchannel/flow.hpp"
#include "netchannel/frame.hpp"

namespace netchannel {

inline constexpr std::size_t kBurst = 64;  // frames a driver asks for at once

struct DeviceInfo {
  std::string name;            // "eth0", "tap0", "link"
  std::string mode;            // "native copy", "generic zero-copy", "tap", "link"
  std::string why_not_better;  // a sentence for the user, empty if there is nothing better
  MacAddress mac;
  std::uint32_t mtu = 1500;  // layer-3 bytes
  std::uint32_t max_tx_frame =
      1514;                   // bytes from the Ethernet header on; above mtu + 14 if it takes super-frames
  bool bare = false;          // no kernel behind it: the stack does ARP, neighbour discovery and echo itself
  bool virtual_link = false;  // frames may come with an unmarked partial checksum (veth); accept and count
  bool tx_checksum = false;   // completes kChecksumPartial on transmit
  int sleep_fd = -1;          // readable when there is something to receive; -1: cannot be slept on
};

// Chooses which frames of a shared interface come to us. Everything unclaimed stays the kernel's.
class Steering {
 public:
  virtual ~Steering() = default;
  // Errors: address_in_use (claimed already), no_memory (table full), not_supported.
  virtual Result<void> claim(const FlowKey& flow) = 0;
  virtual Result<void> unclaim(const FlowKey& flow) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  // Lends empty receive slots; returns how many were taken (the first ones).
  virtual std::size_t refill(std::span<const std::uint32_t> slots) noexcept = 0;
  // Received frames, at most out.size(); their slots are the caller's now. Packets that the device could not
  // use are counted by it and their slots stay with it.
  virtual std::size_t rx_burst(std::span<FrameDesc> out) noexcept = 0;
  // Takes the first n frames and returns n; fewer than given means try again later (never lost silently). The
  // burst is complete: what was taken is on its way when the call returns.
  virtual std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept = 0;
  // Transmit slots that the device has done with (only FrameDesc::slot is meaningful).
  virtual std::size_t reclaim(std::span<FrameDesc> out) noexcept = 0;
  virtual const DeviceInfo& info() const noexcept = 0;

  // Called before sleeping on info().sleep_fd. False: there is work already, do not sleep.
  virtual bool prepare_sleep() noexcept { return true; }
  // Null: everything that arrives is ours.
  virtual Steering* steering() noexcept { return nullptr; }
  // Publishes totals that somebody else counts (the kernel) to the device's counter page. Not for the packet
  // path.
  virtual void refresh_counters() noexcept {}
};

}  // namespace netchannel
