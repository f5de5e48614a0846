#include "netchannel/raw.hpp"

#include "api/channel_device.hpp"

namespace netchannel {

Result<RawDevice> open_raw_device(const HostOptions& options) {
  auto made = open_channel_device(options);
  if (!made) return tl::unexpected(made.error());
  return RawDevice{std::move(made->region), std::move(made->counters), std::move(made->device),
                   made->rx_frames, made->tx_frames};
}

}  // namespace netchannel
