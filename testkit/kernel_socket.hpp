// The kernel's sockets as a test's far end, with waits that end.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "testkit/frames.hpp"

namespace netchannel::testkit {

// Long enough for any healthy machine; a wait that ends here is a failure.
inline constexpr std::chrono::milliseconds kPatience{5000};

// False if there is nothing to read by then.
bool wait_readable(int fd, std::chrono::steady_clock::time_point until);

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

}  // namespace netchannel::testkit
