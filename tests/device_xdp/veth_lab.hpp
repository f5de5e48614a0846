// For tests of the AF_XDP device against a kernel peer: the device on one end of testkit's veth pair, and the
// kernel's sockets on the other, or beside it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "testkit/frames.hpp"
#include "testkit/kernel_socket.hpp"
#include "testkit/port.hpp"
#include "testkit/veth_pair.hpp"

namespace netchannel::device {

using testkit::KernelSocket;
using testkit::kOurMac;
using testkit::kOurV4;
using testkit::kOurV6;
using testkit::kPatience;
using testkit::kPeerMac;
using testkit::kPeerV4;
using testkit::kPeerV6;
using testkit::Packet;
using testkit::to_sockaddr;
using testkit::udp_payload;

class VethLab : public testkit::VethPair {
 protected:
  // Opens the device on eth0 of the namespace that the thread stands in; fails the test if it cannot.
  struct Opened {
    std::unique_ptr<testkit::Port> port;
    std::unique_ptr<CounterPage> counters;
    std::unique_ptr<AfXdpDevice> device;
    AfXdpDevice* operator->() const { return device.get(); }
  };
  Opened open(const AfXdpOptions& options = {}, const testkit::PortOptions& port = {});
  // Tries to; for tests of errors.
  static Result<std::unique_ptr<AfXdpDevice>> try_open(const AfXdpOptions& options, FrameRegion& region,
                                                       CounterPage& counters);

  // The next packets that the device gives, at most `most`, waiting on its descriptor.
  static std::vector<Packet> receive(Opened& opened, std::size_t most = 1,
                                     std::chrono::milliseconds patience = kPatience);
  // True if the device has nothing, after the kernel has had every chance to deliver.
  static bool stays_silent(Opened& opened);
};

}  // namespace netchannel::device
