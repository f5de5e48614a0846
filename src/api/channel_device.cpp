#include "api/channel_device.hpp"

#include <algorithm>
#include <bit>

#include "control/route_to.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "device/bulk/bulk.hpp"
#include "device/tap.hpp"

namespace netchannel {
namespace {

// Without a wish, each direction gets this much memory: 4096 slots of 2 KiB.
constexpr std::uint32_t kDefaultBytes = 8 << 20;

std::uint32_t frames_or_default(std::uint32_t wanted, std::uint32_t slot_size) {
  return wanted != 0 ? wanted : std::max(kDefaultBytes / slot_size, 256u);
}

// A slot takes a super-frame, and mostly holds less: many of them, of which only the touched pages cost.
constexpr std::uint32_t kBulkFrames = 512;

Result<void> make_region(ChannelDevice& made, const HostOptions& options, std::uint32_t slot_size) {
  made.rx_frames = frames_or_default(options.rx_frames, slot_size);
  made.tx_frames = frames_or_default(options.tx_frames, slot_size);
  made.tx_first = made.rx_frames;
  auto region = FrameRegion::open({.slot_size = slot_size, .slot_count = made.rx_frames + made.tx_frames});
  if (!region) return tl::unexpected(region.error());
  made.region = std::move(*region);
  made.counters = std::make_unique<CounterPage>();
  return {};
}

device::XdpMode to_device(XdpOptions::Mode mode) {
  switch (mode) {
    case XdpOptions::Mode::native:
      return device::XdpMode::native;
    case XdpOptions::Mode::generic:
      return device::XdpMode::generic;
    case XdpOptions::Mode::automatic:
      break;
  }
  return device::XdpMode::automatic;
}

device::XdpCopy to_device(XdpOptions::Copy copy) {
  switch (copy) {
    case XdpOptions::Copy::copy:
      return device::XdpCopy::copy;
    case XdpOptions::Copy::zero_copy:
      return device::XdpCopy::zero_copy;
    case XdpOptions::Copy::automatic:
      break;
  }
  return device::XdpCopy::automatic;
}

// An interface that the kernel shares, and what the kernel knows of it.
struct Shared {
  std::string interface;
  control::Mirror mirror;
};

Result<Shared> find_shared(const HostOptions& options) {
  auto interface =
      options.device.empty() ? control::default_interface() : Result<std::string>(options.device);
  if (!interface) return tl::unexpected(interface.error());
  auto mirror = control::Mirror::open(*interface);
  if (!mirror) return tl::unexpected(mirror.error());
  return Shared{std::move(*interface), std::move(*mirror)};
}

Result<ChannelDevice> open_xdp(const HostOptions& options) {
  auto shared = find_shared(options);
  if (!shared) return tl::unexpected(shared.error());
  ChannelDevice made;
  made.mirror.emplace(std::move(shared->mirror));
  const std::uint32_t slot_size = device::AfXdpDevice::slot_size_for(made.mirror->snapshot().link.mtu);
  if (slot_size == 0) {
    return fail(ErrorCode::invalid_argument, "the interface's MTU is larger than AF_XDP can serve; lower it");
  }
  if (auto ready = make_region(made, options, slot_size); !ready) return tl::unexpected(ready.error());
  device::AfXdpOptions xdp;
  xdp.interface = shared->interface;
  xdp.mode = to_device(options.xdp.mode);
  xdp.copy = to_device(options.xdp.copy);
  xdp.busy_poll = options.xdp.busy_poll;
  auto opened = device::AfXdpDevice::open(xdp, *made.region, *made.counters);
  if (!opened) return tl::unexpected(opened.error());
  made.device = std::move(*opened);
  return made;
}

Result<ChannelDevice> open_bulk(HostOptions options) {
  auto shared = find_shared(options);
  if (!shared) return tl::unexpected(shared.error());
  ChannelDevice made;
  made.path = Path::bulk;
  made.mirror.emplace(std::move(shared->mirror));
  if (options.rx_frames == 0) options.rx_frames = kBulkFrames;
  if (options.tx_frames == 0) options.tx_frames = kBulkFrames;
  if (auto ready = make_region(made, options, device::BulkDevice::kSlotSize); !ready)
    return tl::unexpected(ready.error());
  auto opened = device::BulkDevice::open({.interface = shared->interface}, {*made.region, *made.counters});
  if (!opened) return tl::unexpected(opened.error());
  made.device = std::move(*opened);
  return made;
}

Result<ChannelDevice> open_tap(const HostOptions& options) {
  if (options.addresses.empty()) {
    return fail(ErrorCode::invalid_argument, "a tap host is a host of its own: give it at least one address");
  }
  ChannelDevice made;
  made.path = Path::tap;
  const std::uint32_t slot_size = std::bit_ceil(std::max(2048u, options.mtu + 128));
  if (auto ready = make_region(made, options, slot_size); !ready) return tl::unexpected(ready.error());
  device::TapOptions tap;
  tap.name = options.device.empty() ? "nctap0" : options.device;
  tap.mtu = options.mtu;
  auto opened = device::TapDevice::open(tap, {*made.region, *made.counters});
  if (!opened) return tl::unexpected(opened.error());
  made.device = std::move(*opened);
  return made;
}

constexpr std::uint32_t kLocalFrames = 1024;
constexpr std::uint32_t kLocalSlotSize = 64 << 10;

// Slots to send from come first: peers read from those.
Result<ChannelDevice> open_local(const HostOptions& options) {
  ChannelDevice made;
  made.path = Path::local;
  made.rx_frames = options.rx_frames != 0 ? options.rx_frames : kLocalFrames;
  made.tx_frames =
      std::min(options.tx_frames != 0 ? options.tx_frames : kLocalFrames, device::kMostShownSlots);
  made.rx_first = made.tx_frames;
  auto region = FrameRegion::open({.slot_size = kLocalSlotSize,
                                   .slot_count = made.rx_frames + made.tx_frames,
                                   .shown_slots = made.tx_frames});
  if (!region) return tl::unexpected(region.error());
  made.region = std::move(*region);
  made.counters = std::make_unique<CounterPage>();
  auto opened = device::ShmDevice::open({.shown_slots = made.tx_frames}, {*made.region, *made.counters});
  if (!opened) return tl::unexpected(opened.error());
  made.local = opened->get();
  made.device = std::move(*opened);
  return made;
}

}  // namespace

Result<ChannelDevice> open_channel_device(const HostOptions& options) {
  switch (options.path) {
    case Path::tap:
      return open_tap(options);
    case Path::bulk:
      return open_bulk(options);
    case Path::local:
      return open_local(options);
    default:
      return open_xdp(options);
  }
}

}  // namespace netchannel
