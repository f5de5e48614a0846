// Readiness of a host's sockets and of foreign descriptors, in one wait. Sockets that something has happened
// to are asked (no system call), those of a kernel path for what they have taken from the kernel and not
// handed on; everything with a descriptor stands in one epoll instance, which the host also sleeps on. Each
// is named once a wait.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "api/pollable.hpp"
#include "base/unique_fd.hpp"
#include "netchannel/poller.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

struct PollerEntry {
  Pollable* socket = nullptr;  // null: foreign
  int fd = -1;                 // -1: a channel socket
  std::uint64_t token = 0;
  std::uint32_t interest = 0;
  bool hot = false;         // in the list of those to be asked
  std::uint64_t round = 0;  // in which it was put into `out` by its own word,
  std::size_t at = 0;       // there
};

class PollerImpl {
 public:
  explicit PollerImpl(HostImpl& host) : host_(host) {}

  Result<void> add(Pollable* socket, int fd, std::uint64_t token, std::uint32_t interest);
  Result<void> remove(Pollable* socket);
  Result<void> remove(int foreign_fd);
  // A socket that goes away is forgotten.
  void forget(Pollable* socket);
  // It has another descriptor now.
  void moved(Pollable& socket);
  // Something has happened to the socket: it is asked in the next wait.
  void wake(Pollable& socket) {
    if (socket.watched != nullptr) heat(*socket.watched);
  }
  bool has_sockets() const { return !sockets_.empty(); }
  Result<std::size_t> wait(std::span<Event> out, Instant deadline);

 private:
  Result<void> open();
  void heat(PollerEntry& entry);
  void leave(PollerEntry& entry);
  std::size_t look_at_sockets(std::span<Event> out);
  std::size_t look_at_descriptors(std::span<Event> out, std::size_t filled);

  HostImpl& host_;
  UniqueFd epoll_;
  std::unordered_map<const Pollable*, std::unique_ptr<PollerEntry>> sockets_;
  std::unordered_map<int, std::unique_ptr<PollerEntry>> foreign_;
  // Sockets that something has happened to, or that were ready when they were asked last; the longest not
  // asked first. A wait costs as much as these are, however many others there are.
  std::deque<PollerEntry*> hot_;
  std::uint64_t round_ = 0;  // of looks
  Instant looked_at_descriptors_;
};

}  // namespace netchannel
