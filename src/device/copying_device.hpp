// What the devices have in common that copy packets at once (link, tap, pcap_file): they hold the receive
// slots lent to them, give a transmit slot back in the next reclaim(), and take a burst packet by packet. A
// packet may span several descriptors (kContinues); it is sent whole or not at all.
//
// What comes with tx_burst() and refill() may have crossed from another process, so each descriptor is
// checked here against the region, and a chain that never ends is dropped whole. Invariant: no more slots are
// held in either list than the region has, so nothing grows and nothing is allocated after opening.
#pragma once

#include <span>
#include <vector>

#include "netchannel/device.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"

namespace netchannel::device {

// Descriptors of one packet at most: a head and 17 fragments is the most that the kernel's XDP makes.
inline constexpr std::size_t kMaxParts = 18;
inline constexpr std::size_t kEthernetHeader = 14;
inline constexpr std::size_t kVlanTag = 4;  // 802.1Q, on top of the MTU and the Ethernet header

// Where a device finds packet memory and where it counts. Both must outlive it; the page has one writer, its
// thread.
struct DeviceHome {
  FrameRegion& region;
  CounterPage& counters;
};

class CopyingDevice : public Device {
 public:
  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override;
  const DeviceInfo& info() const noexcept override { return info_; }

 protected:
  enum class Sent : std::uint8_t { yes, busy, failed };  // busy: not taken, and the burst ends here

  CopyingDevice(DeviceInfo info, DeviceHome home, std::uint16_t rx_headroom);
  // One packet of `bytes` bytes, at most info().max_tx_frame, all of whose parts lie within the region. The
  // sender counts why it failed.
  virtual Sent send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept = 0;

  // Copies a packet into lent slots and describes it in `out`, in several parts if `multi_buffer` and it is
  // longer than a slot. Returns the number of descriptors; 0 if `out` or the lent slots do not suffice
  // (nothing was done).
  std::size_t deliver(Bytes packet, std::span<FrameDesc> out) noexcept;
  // Parts that deliver() needs for so many bytes.
  std::size_t parts_for(std::size_t bytes) const { return bytes == 0 ? 1 : (bytes + room() - 1) / room(); }
  // Bytes of packet that one receive slot takes.
  std::size_t room() const { return home_.region.slot_size() - rx_headroom_; }

  DeviceInfo info_;
  DeviceHome home_;
  std::uint16_t rx_headroom_;
  std::vector<std::uint32_t> lent_;  // receive slots, empty; the last is used first

 private:
  struct Packet {
    std::span<const FrameDesc> parts;
    std::size_t bytes = 0;
    bool whole = false;  // its last part is there
    bool within = true;  // every part lies within the region
  };
  Packet first_packet(std::span<const FrameDesc> frames) const;
  bool acceptable(const Packet& packet) noexcept;
  void finish(std::span<const FrameDesc> parts) noexcept;

  std::vector<std::uint32_t> done_;  // transmit slots on their way home
  bool skipping_ = false;            // in the middle of a chain that was too long
};

}  // namespace netchannel::device
