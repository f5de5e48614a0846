#include "kernel/tcp_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "kernel/socket_address.hpp"
#include "kernel/socket_calls.hpp"

namespace netchannel::kernel {

namespace {

Error stream_error(int sys_errno) {
  switch (sys_errno) {
    case EAGAIN:
      return {ErrorCode::would_block, sys_errno, "nothing can be done now; wait until the socket is ready"};
    case EINTR:
      return {ErrorCode::interrupted, sys_errno, "a signal came during the wait; call again"};
    case ECONNRESET:
      return {ErrorCode::reset, sys_errno, "the peer has reset the connection"};
    case ETIMEDOUT:
      return {ErrorCode::timed_out, sys_errno, "the peer does not answer any more; check it and the path"};
    case EPIPE:
      return {ErrorCode::closed, sys_errno, "written after the end of the connection"};
    case ENOTCONN:
    case EBADF:
      return {ErrorCode::closed, sys_errno, "the socket is not connected, or closed"};
    case ECONNREFUSED:
      return {ErrorCode::refused, sys_errno, "nobody listens at the peer's port"};
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENONET:
      return {ErrorCode::unreachable, sys_errno,
              "the peer cannot be reached; check the route and that it is up"};
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::no_memory, sys_errno, "the kernel has no memory for the connection; free some"};
    default:
      return {ErrorCode::system, sys_errno, "the kernel failed on the connection; see the error number"};
  }
}

Error connect_error(int sys_errno) {
  switch (sys_errno) {
    case EINPROGRESS:
    case EALREADY:
      return {ErrorCode::would_block, sys_errno, "the handshake is not over yet; wait until it is writable"};
    case EAGAIN:
    case EADDRNOTAVAIL:
      return {ErrorCode::address_not_available, sys_errno,
              "no free local port towards that peer; close connections or widen ip_local_port_range"};
    case EADDRINUSE:
      return {ErrorCode::address_in_use, sys_errno, "that local port is connected to this peer already"};
    case EACCES:
    case EPERM:
      return {ErrorCode::not_permitted, sys_errno, "a firewall or the peer's address forbids the connection"};
    case EINVAL:
    case EAFNOSUPPORT:
      return {ErrorCode::invalid_argument, sys_errno, "cannot connect to that peer from that local address"};
    default:
      return stream_error(sys_errno);
  }
}

bool goes_on(ErrorCode code) { return code == ErrorCode::would_block || code == ErrorCode::interrupted; }

int dont_wait(Blocking blocking) { return blocking == Blocking::yes ? 0 : MSG_DONTWAIT; }

// The kernel's iovec is not const, though sendmsg writes nothing.
template <class Piece>
std::size_t to_pieces(std::span<const Piece> from, std::array<iovec, kMostPieces>& out) {
  const std::size_t n = std::min(from.size(), out.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = {const_cast<void*>(static_cast<const void*>(from[i].data())), from[i].size()};
  }
  return n;
}

Result<TcpDescriptor> open_descriptor(int family, Blocking blocking, std::uint64_t& syscalls) {
  ++syscalls;
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | (blocking == Blocking::yes ? 0 : SOCK_NONBLOCK);
  UniqueFd fd(::socket(family, kind, 0));
  if (!fd) return tl::unexpected(open_error(errno));
  return TcpDescriptor(std::move(fd), blocking, syscalls);
}

Result<void> bind_to(const TcpDescriptor& to, const Endpoint& local, int family) {
  const SocketAddress address(local, family, 0);
  ++to.syscalls();
  if (::bind(to.get(), &address.any, address.length) != 0) return tl::unexpected(bind_error(errno));
  return {};
}

}  // namespace

void TcpDescriptor::make(Blocking wanted) noexcept {
  if (blocking_ == wanted) return;
  ++*syscalls_;
  if (::fcntl(fd_.get(), F_SETFL, wanted == Blocking::yes ? 0 : O_NONBLOCK) == 0) blocking_ = wanted;
}

void TcpDescriptor::close() noexcept {
  if (fd_) ++*syscalls_;
  fd_.reset();
}

Result<TcpSocket> TcpSocket::open(const Endpoint& peer, const Endpoint& local,
                                  const TcpKernelOptions& options, Blocking blocking,
                                  std::uint64_t& syscalls) {
  const bool named = !local.address.is_unspecified();
  if (peer.port == 0 || (named && local.address.is_v4() != peer.address.is_v4())) {
    return fail(ErrorCode::invalid_argument, "the peer needs a port, and the local address its family",
                EINVAL);
  }
  const int family = peer.address.is_v4() ? AF_INET : AF_INET6;
  auto descriptor = open_descriptor(family, blocking, syscalls);
  if (!descriptor) return tl::unexpected(descriptor.error());
  const int fd = descriptor->get();
  if (auto done = set_tcp_options(fd, {}, options, syscalls); !done) return tl::unexpected(done.error());
  if (named || local.port != 0) {
    // The port is chosen when the peer is known, so that one port can serve many peers.
    if (local.port == 0) {
      ++syscalls;
      set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    }
    const Endpoint at =
        named ? local : Endpoint{family == AF_INET ? IpAddress::any_v4() : IpAddress::any_v6(), local.port};
    if (auto bound = bind_to(*descriptor, at, family); !bound) return tl::unexpected(bound.error());
  }
  return TcpSocket(std::move(*descriptor), options, peer, State::opened);
}

Result<void> TcpSocket::connect(Blocking blocking) noexcept {
  if (state_ == State::connected) return {};
  if (state_ == State::failed) return tl::unexpected(failure_);
  descriptor_.make(blocking);
  const int family = peer_.address.is_v4() ? AF_INET : AF_INET6;
  const SocketAddress address(peer_, family, 0);
  ++descriptor_.syscalls();
  // Asked again, connect(2) says how it stands.
  if (::connect(descriptor_.get(), &address.any, address.length) == 0 || errno == EISCONN) {
    state_ = State::connected;
    return {};
  }
  const Error error = connect_error(errno);
  state_ = State::connecting;
  if (goes_on(error.code)) return tl::unexpected(error);
  state_ = State::failed;
  failure_ = error;
  return tl::unexpected(error);
}

Result<std::size_t> TcpSocket::read(std::span<const MutableBytes> to, Blocking blocking) noexcept {
  if (blocking == Blocking::yes) descriptor_.make(blocking);
  ++descriptor_.syscalls();
  ssize_t n = 0;
  if (to.size() == 1) {
    n = ::recv(descriptor_.get(), to[0].data(), to[0].size(), dont_wait(blocking));
  } else {
    std::array<iovec, kMostPieces> pieces;
    msghdr message{};
    message.msg_iovlen = to_pieces(to, pieces);
    message.msg_iov = pieces.data();
    n = ::recvmsg(descriptor_.get(), &message, dont_wait(blocking));
  }
  if (n < 0) return tl::unexpected(stream_error(errno));
  if (options_.quick_ack) {
    ++descriptor_.syscalls();
    set_quick_ack(descriptor_.get());
  }
  return static_cast<std::size_t>(n);
}

Result<std::size_t> TcpSocket::write(std::span<const Bytes> from, bool more, Blocking blocking) noexcept {
  if (blocking == Blocking::yes) descriptor_.make(blocking);
  const int flags = MSG_NOSIGNAL | dont_wait(blocking) | (more ? MSG_MORE : 0);
  ++descriptor_.syscalls();
  ssize_t n = 0;
  if (from.size() == 1) {
    n = ::send(descriptor_.get(), from[0].data(), from[0].size(), flags);
  } else {
    std::array<iovec, kMostPieces> pieces;
    msghdr message{};
    message.msg_iovlen = to_pieces(from, pieces);
    message.msg_iov = pieces.data();
    n = ::sendmsg(descriptor_.get(), &message, flags);
  }
  if (n < 0) return tl::unexpected(stream_error(errno));
  return static_cast<std::size_t>(n);
}

Result<void> TcpSocket::shutdown_write() noexcept {
  ++descriptor_.syscalls();
  if (::shutdown(descriptor_.get(), SHUT_WR) != 0) return tl::unexpected(stream_error(errno));
  return {};
}

void TcpSocket::close() noexcept { descriptor_.close(); }

void TcpSocket::abort() noexcept {
  if (descriptor_.get() < 0) return;
  const linger at_once{1, 0};
  ++descriptor_.syscalls();
  ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  descriptor_.close();
}

Error TcpSocket::take_error() noexcept {
  ++descriptor_.syscalls();
  return stream_error(std::max(get_option(descriptor_.get(), SOL_SOCKET, SO_ERROR), 0));
}

Result<void> TcpSocket::set_options(const TcpKernelOptions& wanted) noexcept {
  auto done = set_tcp_options(descriptor_.get(), options_, wanted, descriptor_.syscalls());
  if (done) options_ = wanted;
  return done;
}

Endpoint TcpSocket::local() const { return local_name(descriptor_.get()).value_or(Endpoint{}); }

Result<TcpListener> TcpListener::open(const Endpoint& local, const TcpListenerOptions& options,
                                      std::uint64_t& syscalls) {
  const int family = local.address.is_v4() ? AF_INET : AF_INET6;
  auto descriptor = open_descriptor(family, Blocking::no, syscalls);
  if (!descriptor) return tl::unexpected(descriptor.error());
  const int fd = descriptor->get();
  bool ok = family == AF_INET || set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0);
  if (options.reuse_address) ok = ok && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (options.reuse_port) ok = ok && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (!ok)
    return fail(ErrorCode::not_supported, "the kernel refuses a socket option; see the error number", errno);
  if (auto done = set_tcp_options(fd, {}, options.tcp, syscalls); !done) return tl::unexpected(done.error());
  if (auto bound = bind_to(*descriptor, local, family); !bound) return tl::unexpected(bound.error());
  const int backlog = static_cast<int>(std::clamp<std::uint32_t>(options.backlog, 1, 1u << 20));
  if (::listen(fd, backlog) != 0) return tl::unexpected(bind_error(errno));
  TcpListener listener(std::move(*descriptor), options.tcp);
  auto name = local_name(fd);
  if (!name) return tl::unexpected(name.error());
  listener.local_ = *name;
  return listener;
}

Result<TcpSocket> TcpListener::accept(Blocking blocking) noexcept {
  descriptor_.make(blocking);
  SocketAddress peer;
  for (;;) {
    peer.length = sizeof(peer.v6);
    ++descriptor_.syscalls();
    UniqueFd fd(::accept4(descriptor_.get(), &peer.any, &peer.length, SOCK_CLOEXEC));
    if (fd) {
      return TcpSocket(TcpDescriptor(std::move(fd), Blocking::yes, descriptor_.syscalls()), options_,
                       peer.endpoint(), TcpSocket::State::connected);
    }
    const int why = errno;
    if (why == EMFILE || why == ENFILE) return tl::unexpected(open_error(why));
    // accept(2): an error of the network that the new connection met already; the next one may be well.
    const Error error = stream_error(why);
    const bool of_connection = why == ECONNABORTED || why == EPROTO || why == ENOPROTOOPT ||
                               why == EOPNOTSUPP || error.code == ErrorCode::unreachable ||
                               error.code == ErrorCode::reset || error.code == ErrorCode::timed_out;
    if (!of_connection) return tl::unexpected(error);
  }
}

}  // namespace netchannel::kernel
