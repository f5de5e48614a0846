#include "kernel/pending_errors.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace netchannel::kernel {

namespace {

constexpr std::uint64_t kMostDrained = 1024;  // bounds the work of one call however fast errors come in

// The errno that a queued error stands for, or 0 if the send that caused it has told it already.
int errno_of(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
    const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(c), sizeof(error));
    const bool icmp = error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6;
    return icmp ? static_cast<int>(error.ee_errno) : 0;
  }
  return 0;
}

}  // namespace

Error receive_error(int sys_errno) {
  switch (sys_errno) {
    case ECONNREFUSED:
      return {ErrorCode::refused, sys_errno, "the peer's port is closed (ICMP port unreachable)"};
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENONET:
      return {ErrorCode::unreachable, sys_errno,
              "the peer cannot be reached; check the route and that it is up"};
    case EMSGSIZE:
      return {ErrorCode::message_too_long, sys_errno,
              "a datagram was longer than the path takes; send shorter ones"};
    case EINTR:
      return {ErrorCode::interrupted, sys_errno, "a signal came during the wait; call again"};
    case EBADF:
      return {ErrorCode::closed, sys_errno, "the socket is closed"};
    default:
      return {ErrorCode::system, sys_errno, "the kernel could not receive; see the error number"};
  }
}

void PendingErrors::push(const Error& error) {
  const auto end = errors_.begin() + count_;
  const bool known = std::any_of(errors_.begin(), end, [&](const Error& e) { return e.code == error.code; });
  if (!known && count_ < kKinds) errors_[count_++] = error;
}

Error PendingErrors::pop() {
  const Error oldest = errors_.front();
  std::move(errors_.begin() + 1, errors_.begin() + count_, errors_.begin());
  --count_;
  return oldest;
}

void PendingErrors::put_back(const Error& oldest) {
  count_ = std::min(count_ + 1, kKinds);
  std::move_backward(errors_.begin(), errors_.begin() + count_ - 1, errors_.begin() + count_);
  errors_.front() = oldest;
}

bool PendingErrors::take(ErrorCode code) {
  const auto end = errors_.begin() + count_;
  const auto found = std::find_if(errors_.begin(), end, [&](const Error& e) { return e.code == code; });
  if (found == end) return false;
  std::move(found + 1, end, found);
  --count_;
  return true;
}

PendingErrors::Drained PendingErrors::drain(int fd) {
  Drained drained;
  while (drained.syscalls < kMostDrained) {
    alignas(cmsghdr) std::array<std::byte, 512> control;
    std::byte quoted{};
    iovec piece{&quoted, sizeof(quoted)};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ++drained.syscalls;
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    const int sys_errno = errno_of(message);
    if (sys_errno == 0) continue;
    push(receive_error(sys_errno));
    ++drained.icmp_errors;
  }
  return drained;
}

}  // namespace netchannel::kernel
