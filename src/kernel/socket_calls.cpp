#include "kernel/socket_calls.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "kernel/clock.hpp"
#include "kernel/pending_errors.hpp"
#include "kernel/socket_address.hpp"

namespace netchannel::kernel {

namespace {

template <class Call>
Result<Endpoint> name(int fd, Call call) {
  SocketAddress address;
  address.length = sizeof(address.v6);
  if (call(fd, &address.any, &address.length) != 0) {
    return fail(ErrorCode::system, "the kernel does not tell a socket's address", errno);
  }
  return address.endpoint();
}

}  // namespace

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

int get_option(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

Result<Endpoint> local_name(int fd) { return name(fd, ::getsockname); }
Result<Endpoint> peer_name(int fd) { return name(fd, ::getpeername); }

Error open_error(int sys_errno) {
  switch (sys_errno) {
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return {ErrorCode::not_supported, sys_errno,
              "this kernel has no sockets of that family; use the other"};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::no_memory, sys_errno, "too many open descriptors; close some or raise the limit"};
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::no_memory, sys_errno, "no memory for a socket; free some"};
    default:
      return {ErrorCode::system, sys_errno, "cannot make a socket; see the error number"};
  }
}

Error bind_error(int sys_errno) {
  switch (sys_errno) {
    case EADDRINUSE:
      return {ErrorCode::address_in_use, sys_errno, "the port is taken; choose another or stop its owner"};
    case EADDRNOTAVAIL:
      return {ErrorCode::address_not_available, sys_errno,
              "no interface has that address; bind to one that exists"};
    case EACCES:
    case EPERM:
      return {ErrorCode::not_permitted, sys_errno,
              "a port below 1024 needs CAP_NET_BIND_SERVICE; choose a higher one"};
    case EINVAL:
      return {ErrorCode::invalid_argument, sys_errno,
              "a link-local address needs the interface that it belongs to"};
    default:
      return {ErrorCode::system, sys_errno, "cannot bind the socket; see the error number"};
  }
}

Result<short> wait_for(int fd, short events, Instant deadline, std::uint64_t& syscalls) noexcept {
  timespec remaining{};
  if (deadline != kForever) {
    const std::int64_t ns = (deadline - monotonic_now()).count();
    if (ns <= 0) return short{0};
    remaining = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  pollfd wanted{fd, events, 0};
  ++syscalls;
  const int ready = ::ppoll(&wanted, 1, deadline == kForever ? nullptr : &remaining, nullptr);
  if (ready < 0) return tl::unexpected(receive_error(errno));
  return wanted.revents;
}

}  // namespace netchannel::kernel
