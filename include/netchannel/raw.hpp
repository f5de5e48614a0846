// The device of a channel path alone, without driver or stack: for measuring its limit.
#pragma once

#include <memory>

#include "netchannel/device.hpp"
#include "netchannel/host.hpp"

namespace netchannel {

struct RawDevice {
  // In the order in which they come into being.
  std::unique_ptr<FrameRegion> region;
  std::unique_ptr<CounterPage> counters;
  std::unique_ptr<Device> device;
  std::uint32_t rx_frames = 0;  // slots 0 to rx_frames - 1: lend them with device->refill()
  std::uint32_t tx_frames = 0;  // the slots after them
};

// The same device as Host::open would use for xdp, bulk or tap. Errors as there.
Result<RawDevice> open_raw_device(const HostOptions& options);

}  // namespace netchannel
