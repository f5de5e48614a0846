// Readiness of a host's sockets and of foreign descriptors, in one wait. Sockets are asked (no system call),
// those of a kernel path for what they have taken from the kernel and not handed on; everything with a
// descriptor stands in one epoll instance, which the host also sleeps on. Each is named once a wait.
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
    std::uint64_t round = 0;  // in which it was put into `out` by its own word,
    std::size_t at = 0;       // there
  };
  Result<void> open();
  std::size_t look_at_sockets(std::span<Event> out);
  std::size_t look_at_descriptors(std::span<Event> out, std::size_t filled);
  std::vector<std::unique_ptr<Entry>>::iterator find(const Pollable* socket, int fd);

  HostImpl& host_;
  UniqueFd epoll_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::size_t next_socket_ = 0;  // where the next look starts, so that none is starved by a full `out`
  std::uint64_t round_ = 0;      // of looks
  Instant looked_at_descriptors_;
};

}  // namespace netchannel
