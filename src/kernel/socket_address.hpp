// An Endpoint as the kernel wants it. A socket has one family for life: an IPv6 socket sees IPv4 peers as
// ::ffff:a.b.c.d, which is how IpAddress keeps them anyway, so dual-stack needs no case of its own here.
//
// An Endpoint has no zone. For link-local IPv6 addresses the zone is the interface that the socket was opened
// for.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "netchannel/address.hpp"

namespace netchannel::kernel {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t length;

  SocketAddress() : v6{}, length(0) {}
  // The endpoint's family must be one that the socket can use; zone: interface index for link-local
  // addresses, or 0.
  SocketAddress(const Endpoint& endpoint, int family, std::uint32_t zone) { set(endpoint, family, zone); }

  void set(const Endpoint& endpoint, int family, std::uint32_t zone) {
    if (family == AF_INET) {
      v4 = {};
      v4.sin_family = AF_INET;
      v4.sin_port = htons(endpoint.port);
      v4.sin_addr.s_addr = htonl(endpoint.address.v4_value());
      length = sizeof(v4);
      return;
    }
    v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&v6.sin6_addr, endpoint.address.bytes().data(), sizeof(v6.sin6_addr));
    if (zone != 0 && endpoint.address.is_link_local()) v6.sin6_scope_id = zone;
    length = sizeof(v6);
  }

  // All zero if the kernel wrote neither an IPv4 nor an IPv6 address.
  Endpoint endpoint() const {
    if (any.sa_family == AF_INET) {
      return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
    }
    if (any.sa_family == AF_INET6) return {address_of(v6.sin6_addr), ntohs(v6.sin6_port)};
    return {};
  }

  static IpAddress address_of(const in6_addr& from) {
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &from, bytes.size());
    return IpAddress::v6(bytes);
  }
};

}  // namespace netchannel::kernel
