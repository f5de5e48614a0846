// Two nameless network namespaces with a veth pair, for tests of the AF_XDP device against a kernel peer:
//
//   side a: eth0  10.77.0.1  fd77::1  02:00:00:00:00:0a   ours; the test's thread stands here
//   side b: eth0  10.77.0.2  fd77::2  02:00:00:00:00:0b   the peer, whose sockets are made with in_b()
//
// They live as long as descriptors of this process, so nothing is left behind however a test ends.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "testkit/frames.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {

using testkit::Packet;

inline const MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x0a}};
inline const MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x0b}};
inline const IpAddress kOurV4 = *IpAddress::parse("10.77.0.1");
inline const IpAddress kPeerV4 = *IpAddress::parse("10.77.0.2");
inline const IpAddress kOurV6 = *IpAddress::parse("fd77::1");
inline const IpAddress kPeerV6 = *IpAddress::parse("fd77::2");

struct LabOptions {
  std::uint32_t mtu = 1500;
  std::uint32_t queues = 1;       // of our side, receive; the peer has as many for transmit
  std::uint32_t peer_queues = 0;  // 0: as many as ours
};

// Long enough for any healthy machine; a wait that ends here is a failure.
inline constexpr std::chrono::milliseconds kPatience{5000};

class VethLab : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  void build(const LabOptions& options = {});
  // Runs `what` with the thread in the peer's namespace; sockets made there stay there.
  void in_b(const std::function<void()>& what);
  static void must(const std::string& command);

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

 private:
  void prepare(const IpAddress& v4, const IpAddress& v6);
  UniqueFd home_;
  UniqueFd a_;
  UniqueFd b_;
  bool made_ = false;
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
