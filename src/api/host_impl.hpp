// What a Host is on every path: a poll loop, a way to sleep, and words for the user. The paths differ in
// poll() and in the descriptors they sleep on; how long to spin before sleeping is decided here, once.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "api/keeper.hpp"
#include "api/poller_impl.hpp"
#include "api/tcp_impl.hpp"
#include "api/udp_impl.hpp"
#include "netchannel/host.hpp"

namespace netchannel {

struct HostImpl {
  explicit HostImpl(HostOptions given) : options(std::move(given)), poller(*this), poller_impl(*this) {}
  virtual ~HostImpl() = default;
  HostImpl(const HostImpl&) = delete;
  HostImpl& operator=(const HostImpl&) = delete;

  virtual Result<std::unique_ptr<UdpSocketImpl>> open_udp(const Endpoint& local, const UdpOptions& given) = 0;
  virtual Result<std::unique_ptr<TcpListenerImpl>> listen(const Endpoint& local,
                                                          const ListenOptions& given) = 0;
  // The handshake has begun, or is over.
  virtual Result<std::unique_ptr<TcpSocketImpl>> connect(const Endpoint& peer,
                                                         const ConnectOptions& given) = 0;
  // One turn of the path's loop; true if anything moved.
  virtual bool poll() = 0;
  // False: there is work, do not sleep. Otherwise sleep_fds says what to sleep on.
  virtual bool prepare_sleep() = 0;
  virtual Instant next_deadline() const = 0;
  virtual std::uint64_t counter(Counter counter) const = 0;
  virtual std::uint64_t syscalls() const = 0;
  // Before a wait for anything at all: `also` becomes a descriptor that is readable when a socket is that
  // poll() does not serve. False: one has something already.
  virtual bool watch_all(int&) { return true; }

  // Called by whoever has polled and found nothing: spins or sleeps as the wait mode says, until the deadline
  // at the latest. `also` is one more descriptor to wake up for, or -1. False: a signal came while asleep.
  bool idle(Instant deadline, int also = -1, short events = POLLIN);
  // Around each call from outside: keeps the keeper away. Empty without one.
  std::unique_lock<std::mutex> hold() { return keeper ? keeper->hold() : std::unique_lock<std::mutex>(); }
  // Something was found: the next idle() starts to spin anew.
  void busy() { idle_since = {}; }

  HostOptions options;
  Path path = Path::automatic;
  std::string mode;
  std::vector<std::string> explain;
  Poller poller;
  PollerImpl poller_impl;
  std::vector<int> sleep_fds;
  CounterPage counters;  // this room's own
  // When the last turn that looked at the clock was; zero: this path's turns do not look. A turn that finds
  // nothing need not, so it may be some turns old: less than a microsecond.
  Instant turned_at;
  bool look_closely = true;  // the next turn must not be such a short one
  // poll() does nothing on this path. A poller's wait then sleeps on the poller's descriptors alone: what has
  // come for a socket that it does not watch is none of its business.
  bool passive = false;
  std::uint64_t sleeps = 0;
  std::unique_ptr<Keeper> keeper;  // to be stopped before anything that poll() uses goes

 private:
  bool sleep(Instant now, Instant deadline, pollfd also);
  Instant idle_since;  // zero: not idle
};

// Around each call of a handle, see HostImpl::hold().
inline std::unique_lock<std::mutex> hold(Pollable& socket) { return socket.host().hold(); }
// Destroys what a handle stands on, with the host held.
template <class Impl>
void destroy(std::unique_ptr<Impl>& impl) {
  if (impl == nullptr) return;
  const auto lock = hold(*impl);
  impl.reset();
}

// Each path's opening. Errors as Host::open.
Result<std::unique_ptr<HostImpl>> open_kernel_host(const HostOptions& options);
Result<std::unique_ptr<HostImpl>> open_channel_host(const HostOptions& options);

}  // namespace netchannel
