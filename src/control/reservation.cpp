#include "control/reservation.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace netchannel::control {

namespace {

constexpr std::size_t kLargestDatagram = 65536;  // more than the length field of UDP can say

struct Name {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
};

// IPv4 endpoints on an IPv6 socket stay ::ffff:a.b.c.d, which is how IpAddress keeps them. No value: an IPv6
// endpoint on an IPv4 socket.
std::optional<Name> to_name(const Endpoint& endpoint, int family, std::uint32_t zone) {
  Name name;
  if (family == AF_INET) {
    if (!endpoint.address.is_v4()) return std::nullopt;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.v4_value());
    std::memcpy(&name.storage, &v4, sizeof v4);
    name.length = sizeof v4;
    return name;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  std::memcpy(&v6.sin6_addr, endpoint.address.bytes().data(), sizeof v6.sin6_addr);
  if (endpoint.address.is_v6() && endpoint.address.is_link_local()) v6.sin6_scope_id = zone;
  std::memcpy(&name.storage, &v6, sizeof v6);
  name.length = sizeof v6;
  return name;
}

Endpoint to_endpoint(const Name& name) {
  if (name.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &name.storage, sizeof v4);
    return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &name.storage, sizeof v6);
  return {IpAddress::from_network(std::as_bytes(std::span(v6.sin6_addr.s6_addr))), ntohs(v6.sin6_port)};
}

// The destination address that came with a datagram.
IpAddress destination_of(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
      in_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(control), sizeof info);
      return IpAddress::v4(ntohl(info.ipi_addr.s_addr));
    }
    if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(control), sizeof info);
      return IpAddress::from_network(std::as_bytes(std::span(info.ipi6_addr.s6_addr)));
    }
  }
  return {};
}

// Of each of the datagrams that were joined, but the last, which may be shorter; 0: there is one only.
std::size_t segment_size_of(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != IPPROTO_UDP || control->cmsg_type != UDP_GRO) continue;
    int size = 0;
    std::memcpy(&size, CMSG_DATA(control), sizeof size);
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  return 0;
}

tl::unexpected<Error> socket_error(int error) {
  switch (error) {
    case ECONNREFUSED:
      return fail(ErrorCode::refused, "the peer has nobody on that port (ICMP port unreachable)", error);
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
      return fail(ErrorCode::unreachable, "the kernel has no way to that address", error);
    case EMSGSIZE:
      return fail(ErrorCode::message_too_long, "the datagram is larger than UDP or the path takes", error);
    case EAGAIN:
    case ENOBUFS:
      return fail(ErrorCode::would_block, "the kernel's send buffer is full; try again", error);
    case EACCES:
    case EPERM:
      return fail(ErrorCode::not_permitted,
                  "a firewall forbids it, or it is a broadcast and SO_BROADCAST is off", error);
    case EINVAL:
    case EAFNOSUPPORT:
      return fail(ErrorCode::invalid_argument, "an address that this socket cannot send to", error);
    default:
      return fail(ErrorCode::system, "the kernel's socket failed", error);
  }
}

tl::unexpected<Error> bind_error(int error) {
  switch (error) {
    case EADDRINUSE:
      return fail(ErrorCode::address_in_use, "the port is taken; `ss -anp` shows by whom", error);
    case EACCES:
    case EPERM:
      return fail(ErrorCode::not_permitted, "a port below 1024 needs CAP_NET_BIND_SERVICE; use a higher one",
                  error);
    case EADDRNOTAVAIL:
    case ENODEV:
      return fail(ErrorCode::address_not_available, "no such local address; `ip addr` lists them", error);
    case EINVAL:  // a link-local IPv6 address without a zone
      return fail(ErrorCode::invalid_argument, "a link-local address can be bound only with its interface",
                  error);
    default:
      return fail(ErrorCode::system, "the port cannot be reserved", error);
  }
}

}  // namespace

Result<Reservation> Reservation::open(Protocol protocol, const Endpoint& local,
                                      const ReserveOptions& options) {
  if (protocol != Protocol::udp && protocol != Protocol::tcp) {
    return fail(ErrorCode::invalid_argument, "only TCP and UDP have ports to reserve", EINVAL);
  }
  const int type = (protocol == Protocol::udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int family = local.address.is_v4() ? AF_INET : AF_INET6;
  UniqueFd fd{::socket(family, type, 0)};
  if (!fd && errno == EAFNOSUPPORT) {
    return fail(ErrorCode::not_supported, "this kernel has no IPv6; use an IPv4 address", errno);
  }
  if (!fd) return fail(ErrorCode::system, "cannot open a socket; is the limit of open files reached?", errno);
  Reservation made(std::move(fd), protocol, family, options.interface_index);
  if (auto set = made.set_options(options); !set) return tl::unexpected(set.error());
  if (auto bound = made.bind(local); !bound) return tl::unexpected(bound.error());
  return made;
}

Result<void> Reservation::set_options(const ReserveOptions& options) {
  bool good = true;
  const auto set = [&](int level, int name, int value) {
    good = good && ::setsockopt(fd_.get(), level, name, &value, sizeof value) == 0;
  };
  if (options.reuse_address) set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (options.reuse_port) set(SOL_SOCKET, SO_REUSEPORT, 1);
  if (options.broadcast) set(SOL_SOCKET, SO_BROADCAST, 1);
  if (options.receive_buffer != 0) set(SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.receive_buffer));
  if (family_ == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0);
  if (protocol_ == Protocol::udp) {
    if (family_ == AF_INET) set(IPPROTO_IP, IP_PKTINFO, 1);
    if (family_ == AF_INET6) set(IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    if (options.coalesce) set(IPPROTO_UDP, UDP_GRO, 1);
  }
  if (!good) return fail(ErrorCode::system, "the kernel refused an option of the reserving socket", errno);
  return {};
}

Result<void> Reservation::bind(const Endpoint& local) {
  auto name = to_name(local, family_, zone_);
  if (!name) return fail(ErrorCode::invalid_argument, "an IPv6 address on an IPv4 socket", EINVAL);
  if (::bind(fd_.get(), name->address(), name->length) != 0) return bind_error(errno);
  Name bound;
  if (::getsockname(fd_.get(), bound.address(), &bound.length) != 0) return bind_error(errno);
  local_ = to_endpoint(bound);
  return {};
}

Result<void> Reservation::connect(const Endpoint& peer) {
  if (protocol_ != Protocol::udp)
    return fail(ErrorCode::invalid_argument, "only UDP reservations connect", EINVAL);
  if (peer == Endpoint{}) return disconnect();
  auto name = to_name(peer, family_, zone_);
  if (!name) return fail(ErrorCode::invalid_argument, "an IPv6 peer on an IPv4 socket", EAFNOSUPPORT);
  if (::connect(fd_.get(), name->address(), name->length) != 0) return socket_error(errno);
  return {};
}

IpAddress Reservation::source() const {
  Name now;
  if (::getsockname(fd_.get(), now.address(), &now.length) != 0) return {};
  return to_endpoint(now).address;
}

Result<void> Reservation::disconnect() {
  Name none;
  none.storage.ss_family = AF_UNSPEC;
  if (::connect(fd_.get(), none.address(), sizeof(sockaddr_in6)) != 0) return socket_error(errno);
  Name now;
  if (::getsockname(fd_.get(), now.address(), &now.length) != 0) return bind_error(errno);
  // The kernel gives a port that it had chosen itself back on disconnecting.
  if (to_endpoint(now).port == local_.port) return {};
  return bind(local_);
}

Result<std::optional<SlowDatagram>> Reservation::receive() {
  if (!holds_more()) {
    const auto got = receive_joined();
    if (!got) return tl::unexpected(got.error());
    if (!*got) return std::optional<SlowDatagram>{};
  }
  last_.payload = rest_.first(std::min(segment_size_, rest_.size()));
  rest_ = rest_.subspan(last_.payload.size());
  return last_;
}

// False: nothing there.
Result<bool> Reservation::receive_joined() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kLargestDatagram);
  Name from;
  iovec payload{buffer_.get(), kLargestDatagram};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) +
                                     CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_name = from.address();
  message.msg_namelen = from.length;
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do {
    n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return false;
  if (n < 0) return socket_error(errno);
  rest_ = {buffer_.get(), static_cast<std::size_t>(n)};
  segment_size_ = segment_size_of(message);
  if (segment_size_ == 0) segment_size_ = rest_.size();
  last_.peer = to_endpoint(from);
  last_.local = {destination_of(message), local_.port};
  return true;
}

Result<void> Reservation::send_to(Bytes payload, const Endpoint& peer) {
  auto name = to_name(peer, family_, zone_);
  if (!name) return fail(ErrorCode::invalid_argument, "an IPv6 peer on an IPv4 socket", EAFNOSUPPORT);
  ssize_t n = -1;
  do {
    n = ::sendto(fd_.get(), payload.data(), payload.size(), MSG_DONTWAIT | MSG_NOSIGNAL, name->address(),
                 name->length);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return socket_error(errno);
  return {};
}

}  // namespace netchannel::control
