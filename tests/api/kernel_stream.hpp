// The other side of a connection: a plain kernel TCP socket, non-blocking, as any program has one.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "testkit/kernel_socket.hpp"

namespace netchannel {

class KernelStream {
 public:
  explicit KernelStream(UniqueFd fd) : fd_(std::move(fd)) {
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  }
  static KernelStream listening(const Endpoint& local) {
    KernelStream out(socket_for(local));
    sockaddr_storage storage;
    const socklen_t length = testkit::to_sockaddr(local, storage);
    const int on = 1;
    ::setsockopt(out.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(::bind(out.fd(), reinterpret_cast<sockaddr*>(&storage), length), 0);
    EXPECT_EQ(::listen(out.fd(), 128), 0);
    return out;
  }
  // The handshake goes on by itself.
  static KernelStream connecting(const Endpoint& peer) {
    KernelStream out(socket_for(peer));
    sockaddr_storage storage;
    const socklen_t length = testkit::to_sockaddr(peer, storage);
    EXPECT_TRUE(::connect(out.fd(), reinterpret_cast<sockaddr*>(&storage), length) == 0 ||
                errno == EINPROGRESS);
    return out;
  }
  std::optional<KernelStream> accept() {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) return std::nullopt;
    return KernelStream(std::move(fd));
  }
  // Bytes taken or read now; -1: an error, which errno tells.
  ssize_t send(Bytes bytes) { return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  ssize_t receive(MutableBytes to) { return ::recv(fd_.get(), to.data(), to.size(), 0); }
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }
  void reset_on_close() {
    const linger at_once{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

 private:
  static UniqueFd socket_for(const Endpoint& endpoint) {
    return UniqueFd(::socket(endpoint.address.is_v4() ? AF_INET : AF_INET6,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  UniqueFd fd_;
};

}  // namespace netchannel
