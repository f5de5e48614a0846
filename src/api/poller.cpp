#include "netchannel/poller.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/host_impl.hpp"
#include "api/tcp_impl.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

// However busy the sockets are, descriptors are looked at this often: a system call of a third of a
// microsecond.
constexpr Duration kDescriptorInterval = std::chrono::microseconds(50);

std::uint32_t to_epoll(std::uint32_t interest) {
  std::uint32_t events = 0;
  if ((interest & kReadable) != 0) events |= EPOLLIN;
  if ((interest & kWritable) != 0) events |= EPOLLOUT;
  return events;
}

std::uint32_t from_epoll(std::uint32_t events) {
  std::uint32_t readiness = 0;
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) readiness |= kReadable;
  if ((events & EPOLLOUT) != 0) readiness |= kWritable;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) readiness |= kError;
  return readiness;
}

}  // namespace

Result<void> PollerImpl::open() {
  if (epoll_) return {};
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_)
    return fail(ErrorCode::system, "cannot make an epoll instance; raise the limit of open files", errno);
  return {};
}

Result<void> PollerImpl::add(Pollable* socket, int fd, std::uint64_t token, std::uint32_t interest) {
  if (socket != nullptr ? socket->watched != nullptr : foreign_.contains(fd)) {
    return fail(ErrorCode::invalid_argument,
                "this socket or descriptor is in the poller already; remove it first");
  }
  auto entry = std::make_unique<PollerEntry>(
      PollerEntry{.socket = socket, .fd = fd, .token = token, .interest = interest});
  if (fd >= 0) {
    if (auto opened = open(); !opened) return opened;
    epoll_event event{};
    event.events = to_epoll(interest);
    event.data.ptr = entry.get();
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return fail(ErrorCode::invalid_argument, "the kernel cannot watch this descriptor", errno);
    }
  }
  if (socket == nullptr) {
    foreign_[fd] = std::move(entry);
    return {};
  }
  socket->watched = entry.get();
  heat(*entry);
  sockets_[socket] = std::move(entry);
  return {};
}

void PollerImpl::heat(PollerEntry& entry) {
  if (std::exchange(entry.hot, true)) return;
  hot_.push_back(&entry);
}

void PollerImpl::leave(PollerEntry& entry) {
  if (entry.hot) std::erase(hot_, &entry);
  // A descriptor that was closed before has left the epoll instance by itself.
  if (entry.fd >= 0) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.fd, nullptr);
}

Result<void> PollerImpl::remove(Pollable* socket) {
  if (socket->watched == nullptr) {
    return fail(ErrorCode::invalid_argument, "this socket is not in the poller");
  }
  leave(*socket->watched);
  socket->watched = nullptr;
  sockets_.erase(socket);
  return {};
}

Result<void> PollerImpl::remove(int foreign_fd) {
  const auto found = foreign_.find(foreign_fd);
  if (found == foreign_.end()) {
    return fail(ErrorCode::invalid_argument, "this descriptor is not in the poller");
  }
  leave(*found->second);
  foreign_.erase(found);
  return {};
}

void PollerImpl::forget(Pollable* socket) {
  if (socket->watched != nullptr) (void)remove(socket);
}

// It may be in the middle of being asked: the entry stays where it is.
void PollerImpl::moved(Pollable& socket) {
  if (socket.watched == nullptr || !open()) return;
  PollerEntry& entry = *socket.watched;
  entry.fd = socket.fd();
  epoll_event event{};
  event.events = to_epoll(entry.interest);
  event.data.ptr = &entry;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.fd, &event);
  heat(entry);
}

// Level-triggered: who is ready stays in the list, behind the others. On a kernel path nobody says that
// something has happened, so everybody stays.
std::size_t PollerImpl::look_at_sockets(std::span<Event> out) {
  std::size_t n = 0;
  ++round_;
  for (std::size_t left = hot_.size(); left > 0 && n < out.size(); --left) {
    PollerEntry& entry = *hot_.front();
    hot_.pop_front();
    const std::uint32_t ready = entry.socket->readiness() & (entry.interest | kError);
    entry.hot = ready != 0 || entry.fd >= 0;
    if (entry.hot) hot_.push_back(&entry);
    if (ready == 0) continue;
    entry.round = round_;
    entry.at = n;
    out[n++] = Event{entry.token, ready};
  }
  return n;
}

// Behind the `filled` first of `out`, which are the sockets' own words; returns how many there are then.
std::size_t PollerImpl::look_at_descriptors(std::span<Event> out, std::size_t filled) {
  std::array<epoll_event, 64> events;
  const auto room = static_cast<int>(std::min(out.size() - filled, events.size()));
  if (room == 0) return filled;
  const int found = ::epoll_wait(epoll_.get(), events.data(), room, 0);
  std::size_t n = filled;
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(found, 0)))) {
    const auto& entry = *static_cast<const PollerEntry*>(event.data.ptr);
    if (entry.round == round_ && entry.at < filled) {
      out[entry.at].readiness |= from_epoll(event.events);
    } else {
      out[n++] = Event{entry.token, from_epoll(event.events)};
    }
  }
  return n;
}

Result<std::size_t> PollerImpl::wait(std::span<Event> out, Instant deadline) {
  if (out.empty()) return 0;
  host_.look_closely = true;
  for (;;) {
    const bool moved = host_.poll();
    const Instant now = device::monotonic_now();
    std::size_t n = look_at_sockets(out);
    // With a full `out` the last place is the descriptors': neither side can starve the other.
    if (epoll_ && (n == 0 || now - looked_at_descriptors_ > kDescriptorInterval)) {
      looked_at_descriptors_ = now;
      n = std::min(n, out.size() > 1 ? out.size() - 1 : n);
      n = look_at_descriptors(out, n);
    }
    if (n != 0 || now >= deadline) {
      if (n != 0) host_.busy();
      return n;
    }
    if (moved) {
      host_.busy();
    } else if (!host_.idle(deadline, epoll_.get())) {
      return fail(ErrorCode::interrupted, "a signal came while waiting", EINTR);
    }
  }
}

Result<void> Poller::watch(Pollable& socket, std::uint64_t token, std::uint32_t interest) {
  if (&socket.host() != &host_) {
    return fail(ErrorCode::invalid_argument, "the socket belongs to another host; use that host's poller");
  }
  const auto lock = host_.hold();
  return host_.poller_impl.add(&socket, socket.fd(), token, interest);
}

Result<void> Poller::add(UdpSocket& socket, std::uint64_t token, std::uint32_t interest) {
  return watch(socket.impl(), token, interest);
}

Result<void> Poller::add(TcpSocket& socket, std::uint64_t token, std::uint32_t interest) {
  return watch(socket.impl(), token, interest);
}

Result<void> Poller::add(TcpListener& listener, std::uint64_t token) {
  return watch(listener.impl(), token, kReadable);
}

Result<void> Poller::add(int foreign_fd, std::uint64_t token, std::uint32_t interest) {
  if (foreign_fd < 0) return fail(ErrorCode::invalid_argument, "not a descriptor");
  const auto lock = host_.hold();
  return host_.poller_impl.add(nullptr, foreign_fd, token, interest);
}

Result<void> Poller::remove(UdpSocket& socket) {
  const auto lock = host_.hold();
  return host_.poller_impl.remove(&socket.impl());
}

Result<void> Poller::remove(TcpSocket& socket) {
  const auto lock = host_.hold();
  return host_.poller_impl.remove(&socket.impl());
}

Result<void> Poller::remove(TcpListener& listener) {
  const auto lock = host_.hold();
  return host_.poller_impl.remove(&listener.impl());
}

Result<void> Poller::remove(int foreign_fd) {
  const auto lock = host_.hold();
  return host_.poller_impl.remove(foreign_fd);
}

Result<std::size_t> Poller::wait(std::span<Event> out, Instant deadline) {
  const auto lock = host_.hold();
  return host_.poller_impl.wait(out, deadline);
}

}  // namespace netchannel
