// For tests of the AF_XDP device against a kernel peer: the device on one end of testkit's veth pair, and the
// kernel's sockets on the other, or beside it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "testkit/frames.hpp"
#include "testkit/port.hpp"
#include "testkit/veth_pair.hpp"

namespace netchannel::device {

using testkit::Packet;

inline const MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x0a}};
inline const MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x0b}};
// The pair's own, for constants outside a fixture.
inline constexpr IpAddress kOurV4 = IpAddress::v4(10, 77, 0, 1);
inline constexpr IpAddress kPeerV4 = IpAddress::v4(10, 77, 0, 2);
inline constexpr IpAddress kOurV6 = IpAddress::v6({0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
inline constexpr IpAddress kPeerV6 = IpAddress::v6({0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});

// Long enough for any healthy machine; a wait that ends here is a failure.
inline constexpr std::chrono::milliseconds kPatience{5000};

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

// A kernel datagram or raw socket in the namespace where it is made.
class KernelSocket {
 public:
  static KernelSocket udp(const Endpoint& local);
  // Receives and sends whole Ethernet frames on eth0; `type` in host order, 0x0003 for every type.
  static KernelSocket packet(std::uint16_t type);

  bool connect(const Endpoint& peer);
  bool send_to(const Endpoint& peer, Bytes payload);
  bool send(Bytes payload);
  // Nothing within the time: no value. An error that waits on the socket is an empty value too, and error()
  // says which.
  std::optional<Packet> receive(std::chrono::milliseconds patience = kPatience);
  int error() const { return error_; }
  int fd() const { return fd_.get(); }

 private:
  explicit KernelSocket(int fd) : fd_(fd) {}
  UniqueFd fd_;
  int error_ = 0;
};

socklen_t to_sockaddr(const Endpoint& endpoint, sockaddr_storage& out);

// The UDP payload of a frame that the peer's kernel sent, or what stands at that place.
Packet udp_payload(const Packet& frame);

}  // namespace netchannel::device
