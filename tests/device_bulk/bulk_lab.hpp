// For tests of the bulk device against a kernel peer: the device on one end of testkit's veth pair, and the
// kernel's sockets, with and without segmentation offload, on the other, or beside it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "device/bulk/bulk.hpp"
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
using Received = testkit::Port::Received;

class BulkLab : public testkit::VethPair {
 protected:
  // Opens the device on eth0, or another interface, of the namespace that the thread stands in; fails the
  // test if it cannot.
  struct Opened {
    std::unique_ptr<testkit::Port> port;
    std::unique_ptr<BulkDevice> device;
    BulkDevice* operator->() const { return device.get(); }
    std::uint64_t count(Counter counter) const { return port->counters().read(counter); }
    std::uint64_t count(DropReason reason) const { return port->counters().read(reason); }
  };
  Opened open(const BulkOptions& options = {});
  // Tries to; for tests of errors.
  static Result<std::unique_ptr<BulkDevice>> try_open(const BulkOptions& options, DeviceHome home);

  // The next packets that the device gives, at most about `most`, waiting on its descriptor.
  static std::vector<Received> receive_all(Opened& opened, std::size_t most = 1,
                                           std::chrono::milliseconds patience = kPatience);
  static std::vector<Packet> receive(Opened& opened, std::size_t most = 1,
                                     std::chrono::milliseconds patience = kPatience);
  // True if the device has nothing, after the kernel has had every chance to deliver.
  static bool stays_silent(Opened& opened);

  KernelSocket peer_socket(const Endpoint& local);
};

// A frame and what its descriptor says of it.
struct Outgoing {
  Packet frame;
  FrameDesc meta;
};
// The frame's transport checksum left to the device; `segment_size` 0 if it is not a super-frame.
Outgoing partial(const Packet& frame, std::uint16_t segment_size = 0);
// The sum of the pseudo-header of a UDP or TCP frame without extension headers, as a partial checksum has it.
std::uint16_t pseudo_sum(Bytes frame);
std::size_t l4_offset(Bytes frame);

// From now on what the socket sends is cut into datagrams of that size, by whoever is best at it.
void segment(const KernelSocket& socket, int size);

}  // namespace netchannel::device
