// Which of many sockets of one host to receive from next: in turn, so that none starves. A channel path knows
// without a call where something waits; a kernel path asks the poller, as a program on many kernel sockets
// does, in which the sockets stand under their ports' numbers.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "bench/options.hpp"
#include "netchannel/host.hpp"

namespace netchannel::bench {

// Whether the host's sockets are asked, and not its poller.
inline bool is_channel(const Host& host) {
  return host.path() != Path::kernel && host.path() != Path::kernel_batched;
}
// Whether waits have no deadline: a plain program blocks in the call itself, and with a deadline the kernel
// path must ask ppoll first, a second call. The ticker (signals.hpp) ends them.
inline bool waits_without_deadline(const Host& host, const BlockOptions& options) {
  return !is_channel(host) && options.wait != WaitMode::spin && options.rate == 0;
}

class ReadyPorts {
 public:
  explicit ReadyPorts(Host& host) : host_(host) {}
  // A port that may have something; nothing: the deadline has passed or a signal came. has_something(port) is
  // what a channel path knows.
  template <class HasSomething>
  Result<std::optional<std::size_t>> next(std::size_t ports, Instant deadline, HasSomething has_something) {
    if (!is_channel(host_)) return next_of_poller(deadline);
    for (;;) {
      for (std::size_t i = 0; i < ports; ++i) {
        const std::size_t port = turn_;
        turn_ = (turn_ + 1) % ports;
        if (has_something(port)) return port;
      }
      if (host_.poll()) continue;
      if (host_.now() >= deadline) return std::nullopt;
      host_.wait(deadline);
    }
  }

 private:
  Result<std::optional<std::size_t>> next_of_poller(Instant deadline) {
    if (named_.empty()) {
      std::array<Event, 64> events;
      const auto woken = host_.poller().wait(events, deadline);
      if (!woken && woken.error().code != ErrorCode::interrupted) return tl::unexpected(woken.error());
      for (std::size_t i = 0; woken && i < *woken; ++i) named_.push_back(events[i].token);
    }
    if (named_.empty()) return std::nullopt;
    const std::size_t port = named_.back();
    named_.pop_back();
    return port;
  }

  Host& host_;
  std::vector<std::size_t> named_;  // by the poller, and not received from yet
  std::size_t turn_ = 0;
};

}  // namespace netchannel::bench
