// Opens the device of a channel path with the frames it needs and, where the kernel shares the interface, the
// mirror of what the kernel knows. The one place that chooses and words why.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/mirror.hpp"
#include "netchannel/device.hpp"
#include "netchannel/host.hpp"

namespace netchannel {

struct ChannelDevice {
  // In the order in which they come into being.
  std::unique_ptr<FrameRegion> region;
  std::unique_ptr<CounterPage> counters;  // the device's
  std::unique_ptr<Device> device;
  std::optional<control::Mirror> mirror;  // none on a bare device
  std::uint32_t rx_frames = 0;            // slots 0 to rx_frames - 1
  std::uint32_t tx_frames = 0;            // the slots after them
  Path path = Path::xdp;
};

// Errors as Host::open.
Result<ChannelDevice> open_channel_device(const HostOptions& options);

}  // namespace netchannel
