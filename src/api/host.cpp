#include "netchannel/host.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/host_impl.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

struct PathName {
  Path path;
  std::string_view name;
};
constexpr std::array kPaths = {
    PathName{Path::automatic, "auto"},
    PathName{Path::kernel, "kernel"},
    PathName{Path::kernel_batched, "kernel-batched"},
    PathName{Path::xdp, "xdp"},
    PathName{Path::bulk, "bulk"},
    PathName{Path::tap, "tap"},
    PathName{Path::local, "local"},
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::string_view to_string(Path path) {
  return std::find_if(kPaths.begin(), kPaths.end(), [&](const auto& p) { return p.path == path; })->name;
}

std::optional<Path> parse_path(std::string_view name) {
  const auto found =
      std::find_if(kPaths.begin(), kPaths.end(), [&](const auto& p) { return p.name == name; });
  if (found == kPaths.end()) return std::nullopt;
  return found->path;
}

std::string_view to_string(WaitMode mode) {
  switch (mode) {
    case WaitMode::adaptive:
      return "adaptive";
    case WaitMode::spin:
      return "spin";
    case WaitMode::block:
      return "block";
  }
  return "unknown";
}

std::optional<WaitMode> parse_wait_mode(std::string_view name) {
  for (const auto mode : {WaitMode::adaptive, WaitMode::spin, WaitMode::block}) {
    if (to_string(mode) == name) return mode;
  }
  return std::nullopt;
}

bool HostImpl::idle(Instant deadline, int also, short events) {
  counters.add(Counter::host_empty_polls);
  if (options.wait == WaitMode::spin) {
    relax();
    return true;
  }
  const Instant now = turned_at != Instant{} ? turned_at : device::monotonic_now();
  if (options.wait == WaitMode::adaptive) {
    if (idle_since == Instant{}) idle_since = now;
    if (now - idle_since < options.spin_time) {
      relax();
      return true;
    }
  }
  const bool poller_only = passive && also >= 0;
  return (!poller_only && !prepare_sleep()) || sleep(now, deadline, {also, events, 0});
}

bool HostImpl::sleep(Instant now, Instant deadline, pollfd also) {
  std::array<pollfd, 16> fds;
  std::size_t n = 0;
  if (!passive || also.fd < 0) {
    for (const int fd : sleep_fds) fds[n++] = pollfd{fd, POLLIN, 0};
  }
  if (also.fd >= 0) fds[n++] = also;
  const Instant until = earlier(deadline, next_deadline());
  if (until <= now) return true;
  const Duration left = until - now;
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  counters.add(Counter::host_sleeps);
  ++sleeps;
  if (keeper) keeper->asleep();
  const int woken = ::ppoll(fds.data(), n, until == kForever ? nullptr : &timeout, nullptr);
  const int reason = errno;
  if (keeper) keeper->awake();
  if (woken > 0) counters.add(Counter::host_wakeups);
  idle_since = {};
  look_closely = true;
  return woken >= 0 || reason != EINTR;
}

namespace {

Result<std::unique_ptr<HostImpl>> open_on(HostOptions options, Path path) {
  options.path = path;
  const bool kernel = path == Path::kernel || path == Path::kernel_batched;
  return kernel ? open_kernel_host(options) : open_channel_host(options);
}

std::string why_not(Path path, const Error& error) {
  return "not " + std::string(to_string(path)) + ": " + describe(error);
}

// The best that works: xdp has the least latency, bulk the most bytes, and bulk is better than an XDP that is
// only generic (which costs the kernel's path first, and drops a virtual peer's super-frames). Whatever
// cannot be accelerated runs on the kernel, and the user is told why.
Result<std::unique_ptr<HostImpl>> open_best(const HostOptions& options) {
  std::vector<std::string> reasons;
  const auto say = [&](std::unique_ptr<HostImpl> host) {
    host->explain.insert(host->explain.end(), reasons.begin(), reasons.end());
    return host;
  };
  const bool bulk_first = options.prefer == Prefer::throughput;
  for (const Path path : {bulk_first ? Path::bulk : Path::xdp, bulk_first ? Path::xdp : Path::bulk}) {
    auto host = open_on(options, path);
    if (host && path == Path::xdp && !bulk_first && (*host)->mode.starts_with("generic")) {
      const std::string mode = (*host)->mode;
      host->reset();
      if (auto bulk = open_on(options, Path::bulk)) {
        reasons.push_back("not xdp: only in mode " + mode + " on this interface");
        return say(std::move(*bulk));
      }
      host = open_on(options, Path::xdp);
    }
    if (host) return say(std::move(*host));
    reasons.push_back(why_not(path, host.error()));
  }
  auto host = open_on(options, Path::kernel_batched);
  if (!host) return host;
  for (std::string& reason : reasons) reason = "not accelerated: " + reason;
  return say(std::move(*host));
}

}  // namespace

Result<Host> Host::open(HostOptions options) {
  auto impl = options.path == Path::automatic ? open_best(options) : open_on(options, options.path);
  if (!impl) return tl::unexpected(impl.error());
  return Host(std::move(*impl));
}

Host::Host(std::unique_ptr<HostImpl> impl) : impl_(std::move(impl)) {}
Host::Host(Host&&) noexcept = default;
Host& Host::operator=(Host&&) noexcept = default;
Host::~Host() = default;

Result<UdpSocket> Host::udp(const Endpoint& local, UdpOptions options) {
  const auto lock = impl_->hold();
  auto socket = impl_->open_udp(local, options);
  if (!socket) return tl::unexpected(socket.error());
  return UdpSocket(std::move(*socket));
}

Result<TcpListener> Host::listen(const Endpoint& local, ListenOptions options) {
  const auto lock = impl_->hold();
  auto listener = impl_->listen(local, options);
  if (!listener) return tl::unexpected(listener.error());
  return TcpListener(std::move(*listener));
}

Result<TcpSocket> Host::connect(const Endpoint& peer, ConnectOptions options) {
  const auto lock = impl_->hold();
  auto socket = impl_->connect(peer, options);
  if (!socket) return tl::unexpected(socket.error());
  if (options.deadline != kNow) {
    if (auto connected = (*socket)->finish_connect(options.deadline); !connected) {
      return tl::unexpected(connected.error());
    }
  }
  return TcpSocket(std::move(*socket));
}

bool Host::poll() {
  const auto lock = impl_->hold();
  impl_->look_closely = true;
  const bool moved = impl_->poll();
  if (moved) impl_->busy();
  return moved;
}

void Host::wait(Instant deadline) {
  const auto lock = impl_->hold();
  int also = -1;
  if (impl_->watch_all(also)) (void)impl_->idle(deadline, also);
}
Instant Host::now() const { return device::monotonic_now(); }
Poller& Host::poller() { return impl_->poller; }
Path Host::path() const { return impl_->path; }
const std::string& Host::mode() const { return impl_->mode; }
const std::vector<std::string>& Host::explain() const { return impl_->explain; }
std::uint64_t Host::counter(Counter counter) const { return impl_->counter(counter); }
std::uint64_t Host::syscalls() const { return impl_->syscalls(); }

}  // namespace netchannel
