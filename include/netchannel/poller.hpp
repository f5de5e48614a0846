// Waits for sockets of a host and for foreign descriptors (pipes, timers, kernel sockets) in one call.
// Level-triggered: what is ready stays ready until it is dealt with. Foreign descriptors are looked at in
// every wait, however busy the host's own sockets are, and cannot starve or be starved. Belongs to the host's
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

class Pollable;
class TcpListener;
class TcpSocket;
class UdpSocket;
struct HostImpl;

enum Readiness : std::uint32_t {
  kReadable = 1,
  kWritable = 2,
  kError = 4,  // foreign descriptors: EPOLLERR or EPOLLHUP; sockets: an error is pending
};

struct Event {
  std::uint64_t token = 0;  // as given to add()
  std::uint32_t readiness = 0;
};

class Poller {
 public:
  // Errors: invalid_argument (added already, or another host's).
  Result<void> add(UdpSocket& socket, std::uint64_t token, std::uint32_t interest = kReadable);
  // kWritable: connected and room to write; kReadable: data, or the end of the stream.
  Result<void> add(TcpSocket& socket, std::uint64_t token, std::uint32_t interest = kReadable);
  // kReadable: a connection waits to be accepted.
  Result<void> add(TcpListener& listener, std::uint64_t token);
  Result<void> add(int foreign_fd, std::uint64_t token, std::uint32_t interest = kReadable);
  Result<void> remove(UdpSocket& socket);
  Result<void> remove(TcpSocket& socket);
  Result<void> remove(TcpListener& listener);
  Result<void> remove(int foreign_fd);
  // Fills `out` with what is ready and returns how many; waits until something is, or the deadline (0
  // events). Errors: interrupted.
  Result<std::size_t> wait(std::span<Event> out, Instant deadline = kForever);

 private:
  friend struct HostImpl;
  explicit Poller(HostImpl& host) : host_(host) {}
  Result<void> watch(Pollable& socket, std::uint64_t token, std::uint32_t interest);
  HostImpl& host_;
};

}  // namespace netchannel
