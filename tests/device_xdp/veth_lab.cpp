#include "veth_lab.hpp"

namespace netchannel::device {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<AfXdpDevice>> VethLab::try_open(const AfXdpOptions& options, FrameRegion& region,
                                                       CounterPage& counters) {
  AfXdpOptions named = options;
  if (named.interface.empty()) named.interface = "eth0";
  return AfXdpDevice::open(named, region, counters);
}

VethLab::Opened VethLab::open(const AfXdpOptions& options, const testkit::PortOptions& port) {
  Opened opened;
  opened.port = std::make_unique<testkit::Port>(port);
  opened.counters = std::make_unique<CounterPage>();
  auto device = try_open(options, opened.port->region(), *opened.counters);
  if (!device) {
    ADD_FAILURE() << "the device does not open: " << describe(device.error());
    return opened;
  }
  opened.device = std::move(*device);
  opened.port->attach(*opened.device);
  return opened;
}

std::vector<Packet> VethLab::receive(Opened& opened, std::size_t most, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Packet> got;
  while (got.size() < most) {
    for (auto& packet : opened.port->receive()) got.push_back(std::move(packet));
    if (got.size() >= most) break;
    if (opened->prepare_sleep() && !testkit::wait_readable(opened->info().sleep_fd, until)) break;
    if (Clock::now() > until) break;
  }
  return got;
}

bool VethLab::stays_silent(Opened& opened) {
  return receive(opened, 1, std::chrono::milliseconds(50)).empty();
}

}  // namespace netchannel::device
