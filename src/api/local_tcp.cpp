#include "api/local_tcp.hpp"

#include <algorithm>
#include <cerrno>

#include "api/channel_host.hpp"
#include "api/channel_tcp.hpp"
#include "device/clock.hpp"

namespace netchannel {
namespace {

// How often a spinning accept() asks the kernel too.
constexpr Duration kAskKernel = std::chrono::microseconds(20);

}  // namespace

Result<std::unique_ptr<TcpListenerImpl>> LocalTcpListener::open(ChannelHost& host, const Endpoint& local,
                                                                const ListenOptions& options) {
  auto kernel = KernelTcpListener::open(host, host.kernel_tcp(), local, options);
  if (!kernel) return kernel;
  std::unique_ptr<LocalTcpListener> listener(new LocalTcpListener(host, std::move(*kernel), options.v6_only));
  stack::TcpListen wanted{.local = {local.address, listener->local().port},
                          .v6_only = options.v6_only,
                          .backlog = std::max(options.backlog, 1U),
                          .ttl = options.tcp.ttl,
                          .tos = options.tcp.tos,
                          .settings = tcp_settings(host, options.tcp)};
  const auto handle = host.stack().tcp().listen(wanted);
  // Two listeners of one host on one port (SO_REUSEPORT): the second is the kernel's alone.
  if (!handle) return std::unique_ptr<TcpListenerImpl>(std::move(listener));
  listener->handle_ = *handle;
  host.enter(*handle, listener.get());
  host.local()->offer(Protocol::tcp, wanted.local, options.v6_only);
  return std::unique_ptr<TcpListenerImpl>(std::move(listener));
}

LocalTcpListener::~LocalTcpListener() {
  host_.poller_impl.forget(this);
  if (!handle_) return;
  const Endpoint local = kernel_->local();
  host_.local()->withdraw(Protocol::tcp, local, v6_only_);
  host_.enter(handle_, nullptr);
  host_.stack().tcp().close(handle_);
  host_.stack().tcp().flush();
  host_.transmit();
}

HostImpl& LocalTcpListener::host() noexcept { return host_; }

Result<std::unique_ptr<TcpSocketImpl>> LocalTcpListener::accept(Instant deadline) noexcept {
  stack::Tcp& tcp = host_.stack().tcp();
  Instant ask_at{};
  host_.look_closely = true;
  for (bool polled = false;; polled = true) {
    if (tcp.waiting(handle_) != 0) {
      host_.busy();
      return std::unique_ptr<TcpSocketImpl>(std::make_unique<ChannelTcp>(host_, *tcp.accept(handle_)));
    }
    const Instant now = device::monotonic_now();
    if (now >= ask_at) {
      auto accepted = kernel_->accept(kNow);
      if (accepted || accepted.error().code != ErrorCode::would_block) return accepted;
      ask_at = now + kAskKernel;
    }
    if (polled && deadline == kNow) return fail(ErrorCode::would_block, "nothing to do now", EAGAIN);
    if (host_.poll()) {
      host_.busy();
      continue;
    }
    if (deadline == kNow) continue;
    if (now >= deadline) return fail(ErrorCode::timed_out, "the deadline has passed", ETIMEDOUT);
    const std::uint64_t before = host_.sleeps;
    if (!host_.idle(deadline, fd()))
      return fail(ErrorCode::interrupted, "a signal came while waiting", EINTR);
    if (host_.sleeps != before) ask_at = {};
  }
}

std::size_t LocalTcpListener::waiting() const noexcept { return host_.stack().tcp().waiting(handle_); }
std::uint32_t LocalTcpListener::readiness() noexcept { return waiting() != 0 ? kReadable : 0u; }

}  // namespace netchannel
