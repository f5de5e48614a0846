#include "veth_lab.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace netchannel::device {
namespace {

using Clock = std::chrono::steady_clock;

bool wait_readable(int fd, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

}  // namespace

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
    if (opened->prepare_sleep() && !wait_readable(opened->info().sleep_fd, until)) break;
    if (Clock::now() > until) break;
  }
  return got;
}

bool VethLab::stays_silent(Opened& opened) {
  return receive(opened, 1, std::chrono::milliseconds(50)).empty();
}

socklen_t to_sockaddr(const Endpoint& endpoint, sockaddr_storage& out) {
  out = {};
  const Bytes address = endpoint.address.network_bytes();
  if (endpoint.address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(endpoint.port);
    std::memcpy(&in.sin_addr, address.data(), address.size());
    std::memcpy(&out, &in, sizeof(in));
    return sizeof(in);
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(endpoint.port);
  std::memcpy(&in.sin6_addr, address.data(), address.size());
  std::memcpy(&out, &in, sizeof(in));
  return sizeof(in);
}

KernelSocket KernelSocket::udp(const Endpoint& local) {
  sockaddr_storage address;
  const socklen_t size = to_sockaddr(local, address);
  KernelSocket out(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(out.fd(), reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  return out;
}

KernelSocket KernelSocket::packet(std::uint16_t type) {
  KernelSocket out(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(type);
  address.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
  EXPECT_EQ(::bind(out.fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << std::strerror(errno);
  return out;
}

bool KernelSocket::connect(const Endpoint& peer) {
  sockaddr_storage address;
  const socklen_t size = to_sockaddr(peer, address);
  return ::connect(fd(), reinterpret_cast<sockaddr*>(&address), size) == 0;
}

bool KernelSocket::send_to(const Endpoint& peer, Bytes payload) {
  sockaddr_storage address;
  const socklen_t size = to_sockaddr(peer, address);
  const auto sent =
      ::sendto(fd(), payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&address), size);
  return sent == static_cast<ssize_t>(payload.size());
}

bool KernelSocket::send(Bytes payload) {
  return ::send(fd(), payload.data(), payload.size(), 0) == static_cast<ssize_t>(payload.size());
}

std::optional<Packet> KernelSocket::receive(std::chrono::milliseconds patience) {
  error_ = 0;
  if (!wait_readable(fd(), Clock::now() + patience)) return std::nullopt;
  Packet buffer(65536);
  const auto size = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) {
    error_ = errno;
    return std::nullopt;
  }
  buffer.resize(static_cast<std::size_t>(size));
  return buffer;
}

Packet udp_payload(const Packet& frame) {
  const std::size_t headers = 14 + (load_be16(frame, 12) == testkit::kIpv6 ? 40 : 20) + 8;
  return frame.size() < headers ? Packet{}
                                : Packet(frame.begin() + static_cast<std::ptrdiff_t>(headers), frame.end());
}

}  // namespace netchannel::device
