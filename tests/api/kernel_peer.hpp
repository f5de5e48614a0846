// The other side of a conversation: a plain kernel UDP socket, as any program has one.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"

namespace netchannel {

class KernelPeer {
 public:
  explicit KernelPeer(const Endpoint& local) : v4_(local.address.is_v4()) {
    fd_.reset(::socket(v4_ ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int buffer = 4 << 20;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    sockaddr_storage storage;
    const socklen_t length = fill(local, storage);
    bound_ = ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0;
  }
  bool bound() const { return bound_; }
  int fd() const { return fd_.get(); }

  bool send_to(const Endpoint& peer, Bytes payload) {
    sockaddr_storage storage;
    const socklen_t length = fill(peer, storage);
    return ::sendto(fd_.get(), payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&storage),
                    length) == static_cast<ssize_t>(payload.size());
  }

  struct Received {
    std::vector<std::byte> payload;
    Endpoint from;
  };
  std::optional<Received> receive(std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    pollfd ready{fd_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
    Received got;
    got.payload.resize(65536);
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    const auto n = ::recvfrom(fd_.get(), got.payload.data(), got.payload.size(), 0,
                              reinterpret_cast<sockaddr*>(&storage), &length);
    if (n < 0) return std::nullopt;
    got.payload.resize(static_cast<std::size_t>(n));
    got.from = endpoint_of(storage);
    return got;
  }
  Endpoint local() const {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&storage), &length);
    return endpoint_of(storage);
  }

 private:
  static socklen_t fill(const Endpoint& endpoint, sockaddr_storage& out) {
    out = {};
    const Bytes address = endpoint.address.network_bytes();
    if (endpoint.address.is_v4()) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(out);
      v4.sin_family = AF_INET;
      v4.sin_port = htons(endpoint.port);
      std::memcpy(&v4.sin_addr, address.data(), 4);
      return sizeof v4;
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&v6.sin6_addr, address.data(), 16);
    return sizeof v6;
  }
  static Endpoint endpoint_of(const sockaddr_storage& storage) {
    if (storage.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
      return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
    }
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    return {IpAddress::from_network(std::as_bytes(std::span(v6.sin6_addr.s6_addr))), ntohs(v6.sin6_port)};
  }

  bool v4_;
  bool bound_ = false;
  UniqueFd fd_;
};

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed = 0) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>((i * 131 + seed * 7 + 3) & 0xff);
  return out;
}

}  // namespace netchannel
