// Readiness of a host's sockets and of foreign descriptors, in one wait. Sockets of a channel path are asked
// (no system call); everything with a descriptor stands in one epoll instance, which the host also sleeps on.
#pragma once

#include <memory>
#include <vector>

#include "base/unique_fd.hpp"
#include "netchannel/poller.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

class Pollable;

class PollerImpl {
 public:
  explicit PollerImpl(HostImpl& host) : host_(host) {}

  Result<void> add(Pollable* socket, int fd, std::uint64_t token, std::uint32_t interest);
  Result<void> remove(const Pollable* socket, int fd);
  // A socket that goes away is forgotten.
  void forget(const Pollable* socket);
  Result<std::size_t> wait(std::span<Event> out, Instant deadline);

 private:
  struct Entry {
    Pollable* socket = nullptr;  // null: foreign
    int fd = -1;                 // -1: a channel socket
    std::uint64_t token = 0;
    std::uint32_t interest = 0;
  };
  Result<void> open();
  std::size_t look_at_sockets(std::span<Event> out);
  std::size_t look_at_descriptors(std::span<Event> out);
  std::vector<std::unique_ptr<Entry>>::iterator find(const Pollable* socket, int fd);

  HostImpl& host_;
  UniqueFd epoll_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::size_t next_socket_ = 0;  // where the next look starts, so that none is starved by a full `out`
  Instant looked_at_descriptors_;
};

}  // namespace netchannel
