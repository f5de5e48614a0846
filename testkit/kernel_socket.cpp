#include "testkit/kernel_socket.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace netchannel::testkit {

using Clock = std::chrono::steady_clock;

bool wait_readable(int fd, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
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
  const std::size_t headers = 14 + (load_be16(frame, 12) == kIpv6 ? 40 : 20) + 8;
  return frame.size() < headers ? Packet{}
                                : Packet(frame.begin() + static_cast<std::ptrdiff_t>(headers), frame.end());
}

}  // namespace netchannel::testkit
