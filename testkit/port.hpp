// What a driver is to a device, for tests of devices and of what stands on them: a region, a counter page and
// the slots, with packets going in and out as plain vectors of bytes. Slots are checked as they come home, so
// a device that loses one or returns one twice fails the test that uses it (slots_home()).
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "device/copying_device.hpp"
#include "device/link.hpp"
#include "testkit/frames.hpp"

namespace netchannel::testkit {

struct PortOptions {
  std::uint32_t slot_size = 2048;
  std::uint32_t rx_slots = 128;
  std::uint32_t tx_slots = 128;
};

class Port {
 public:
  explicit Port(const PortOptions& options = {});
  device::DeviceHome home() { return {*region_, *counters_}; }
  FrameRegion& region() { return *region_; }
  const CounterPage& counters() const { return *counters_; }

  // Takes the device's other side and lends it every receive slot. The device must outlive this use of it.
  void attach(Device& device);
  // Copies a packet into transmit slots, as many as it needs, and sends it; false if the device did not take
  // it.
  bool send(Bytes packet, const FrameDesc& meta = {});
  // All that has arrived, each with what its first descriptor said; the slots are lent again.
  struct Received {
    Packet bytes;
    FrameDesc first;
    std::size_t parts = 0;
  };
  std::vector<Received> receive_all();
  std::vector<Packet> receive();
  // Takes back what the device has sent. True if every transmit slot is home, each once.
  bool slots_home();
  // Receive slots that are not out at the device.
  std::size_t rx_slots_here() const { return rx_here_.size(); }

 private:
  void lend();
  PortOptions options_;
  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<CounterPage> counters_;
  Device* device_ = nullptr;
  std::vector<std::uint32_t> rx_here_;
  std::vector<std::uint32_t> tx_here_;
  std::set<std::uint32_t> tx_out_;
  bool broken_ = false;  // a slot came home that was not out
};

// Runs a link until nothing is under way: `turn` is called at each instant at which something arrives, as
// long as it returns true (it has done something), then time moves on. False if `most` turns did not suffice.
bool pump(device::LinkPair& link, const std::function<bool(Instant)>& turn, std::size_t most = 100'000);

}  // namespace netchannel::testkit
