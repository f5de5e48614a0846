// Opens the device of a channel path with the frames it needs and, where the kernel shares the interface, the
// mirror of what the kernel knows. The one place that chooses and words why.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/mirror.hpp"
#include "device/shm.hpp"
#include "netchannel/device.hpp"
#include "netchannel/host.hpp"

namespace netchannel {

struct ChannelDevice {
  // In the order in which they come into being.
  std::unique_ptr<FrameRegion> region;
  std::unique_ptr<CounterPage> counters;  // the device's
  std::unique_ptr<Device> device;
  std::optional<control::Mirror> mirror;      // none on a bare device
  device::ShmDevice* local = nullptr;         // `device`, if it is one
  std::uint32_t rx_first = 0, rx_frames = 0;  // slots to receive in
  std::uint32_t tx_first = 0, tx_frames = 0;  // and to send from, which may be the first
  Path path = Path::xdp;
};

// Errors as Host::open.
Result<ChannelDevice> open_channel_device(const HostOptions& options);

}  // namespace netchannel
