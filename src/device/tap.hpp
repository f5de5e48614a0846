// A TAP interface as a bare device: the kernel stands at the other end of the wire, as a neighbour, not
// behind it. One read() or write() a frame; no offloads (TUNSETOFFLOAD 0, no virtio-net header), so that
// every frame is a packet with whole checksums. Works without privileges inside a user and network namespace
// of one's own.
//
// If the interface goes down, frames sent are consumed and counted (device_link_down), as with a pulled
// cable. If it is deleted, the same holds for ever, and the descriptor becomes one that never wakes anybody:
// nothing spins.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "device/copying_device.hpp"

namespace netchannel::device {

struct TapOptions {
  std::string name = "tap0";  // made if it does not exist, and then gone when the device is closed
  // Of our end, unlike the interface's; none: a random, locally administered one.
  std::optional<MacAddress> mac{};
  std::uint32_t mtu = 0;           // set on the interface; 0: as the interface has it
  bool bring_up = true;            // sets the interface up if it is down
  std::uint16_t rx_headroom = 64;  // bytes left free at the front of a receive slot
};

class TapDevice final : public CopyingDevice {
 public:
  // Errors: invalid_argument, not_permitted, device_busy, device_down, not_supported (no /dev/net/tun),
  // system.
  static Result<std::unique_ptr<TapDevice>> open(const TapOptions& options, DeviceHome home);

  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  // False once the interface has been deleted.
  bool alive() const { return alive_; }

 private:
  TapDevice(DeviceInfo info, DeviceHome home, std::uint16_t rx_headroom, UniqueFd fd);
  Sent send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept override;
  std::size_t describe_parts(std::size_t bytes, std::span<FrameDesc> out) noexcept;
  void bury() noexcept;

  UniqueFd fd_;
  UniqueFd silence_;  // takes the descriptor's place when the interface is gone
  bool alive_ = true;
};

}  // namespace netchannel::device
