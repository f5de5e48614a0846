// A host on the kernel path: the same handles over kernel sockets, one call a message or batched. It is what
// programs fall back to and what the other paths are measured against, so it does nothing that a program on
// its own sockets would not do.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "api/host_impl.hpp"
#include "api/kernel_tcp.hpp"
#include "base/unique_fd.hpp"
#include "device/clock.hpp"
#include "kernel/udp_socket.hpp"

namespace netchannel {
namespace {

// A slot holds the largest datagram or GRO message; memory is used only where it is touched.
constexpr std::uint32_t kSlotSize = 128 << 10;
constexpr std::uint32_t kSlots = 1024;

class KernelUdp;

class KernelHost final : public HostImpl {
 public:
  using HostImpl::HostImpl;

  Result<void> start() {
    auto region_opened = FrameRegion::open({.slot_size = kSlotSize, .slot_count = kSlots});
    if (!region_opened) return tl::unexpected(region_opened.error());
    region = std::move(*region_opened);
    pool = std::make_unique<FramePool>(*region, 0, kSlots, FramePool::Start::all_free);
    epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll)
      return fail(ErrorCode::system, "cannot make an epoll instance; raise the limit of open files", errno);
    sleep_fds = {epoll.get()};
    passive = true;
    path = options.path;
    batched = path == Path::kernel_batched;
    mode = batched ? "recvmmsg, sendmmsg, GSO and GRO" : "one call a message";
    explain.push_back("the kernel's sockets, " + mode);
    return {};
  }

  Result<std::unique_ptr<UdpSocketImpl>> open_udp(const Endpoint& local, const UdpOptions& given) override;
  Result<std::unique_ptr<TcpListenerImpl>> listen(const Endpoint& local,
                                                  const ListenOptions& given) override {
    return KernelTcpListener::open(*this, tcp, local, given);
  }
  Result<std::unique_ptr<TcpSocketImpl>> connect(const Endpoint& peer, const ConnectOptions& given) override {
    return KernelTcp::connect(*this, tcp, peer, given);
  }
  bool poll() override { return false; }
  bool prepare_sleep() override;
  Instant next_deadline() const override { return kForever; }
  std::uint64_t counter(Counter which) const override {
    return counters.read(which) + socket_counters.read(which);
  }
  std::uint64_t syscalls() const override;

  std::unique_ptr<FrameRegion> region;
  std::unique_ptr<FramePool> pool;
  CounterPage socket_counters;
  UniqueFd epoll;  // all sockets, for Host::wait()
  std::vector<KernelUdp*> sockets;
  KernelTcpSockets tcp;
  std::uint64_t calls_of_closed = 0;
  bool batched = false;
};

class KernelUdp final : public UdpSocketImpl {
 public:
  KernelUdp(KernelHost& host, kernel::UdpSocket socket) : host_(host), socket_(std::move(socket)) {
    host_.sockets.push_back(this);
  }
  ~KernelUdp() override {
    host_.poller_impl.forget(this);
    std::erase(host_.sockets, this);
    host_.calls_of_closed += socket_.syscalls();
  }

  Result<void> connect(const Endpoint& peer) override {
    return peer.address.is_unspecified() ? socket_.disconnect() : socket_.connect(peer);
  }
  Endpoint local() const override { return socket_.local(); }
  Endpoint peer() const override { return socket_.peer(); }
  std::size_t pending() const noexcept override { return socket_.pending(); }
  bool accelerated() const noexcept override { return false; }
  std::uint32_t readiness() noexcept override { return socket_.pending() != 0 ? kReadable : 0u; }
  int fd() const noexcept override { return socket_.fd(); }
  HostImpl& host() noexcept override { return host_; }
  std::uint64_t syscalls() const { return socket_.syscalls(); }

  Result<std::size_t> receive(std::span<Datagram> out, Wait wait) noexcept override {
    const std::size_t least = std::min(wait.least, out.size());
    if (host_.options.wait == WaitMode::block && least != 0) {
      return stamped(out, socket_.receive_blocking(out, least, wait.deadline));
    }
    return spin(out, least, wait.deadline);
  }

  Result<std::size_t> send(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                           More) noexcept override {
    if (!statuses.empty()) return socket_.send(in, statuses);
    std::size_t total = 0;
    while (total < in.size()) {
      std::array<SendStatus, 64> ignored;
      const std::size_t count = std::min(in.size() - total, ignored.size());
      const std::size_t taken = socket_.send(in.subspan(total, count), std::span(ignored).first(count));
      total += taken;
      if (taken < count) break;
    }
    return total;
  }

 private:
  // Asks again and again: for ever (spin) or for spin_time (adaptive), and blocks then.
  Result<std::size_t> spin(std::span<Datagram> out, std::size_t least, Instant deadline) noexcept {
    std::size_t n = 0;
    Instant started;
    for (;;) {
      const auto got = socket_.receive(out.subspan(n), {});
      if (!got) return n != 0 ? stamped(out, n) : got;
      n += *got;
      if (n >= least) return stamped(out, n);
      if (*got != 0) continue;
      const Instant now = device::monotonic_now();
      if (now >= deadline) return stamped(out, n);
      if (host_.options.wait == WaitMode::spin) continue;
      if (started == Instant{}) started = now;
      if (now - started < host_.options.spin_time) continue;
      const auto slept = socket_.receive_blocking(out.subspan(n), least - n, deadline);
      if (!slept) return n != 0 ? stamped(out, n) : slept;
      return stamped(out, n + *slept);
    }
  }

  // One reading of the clock for each batch.
  static Result<std::size_t> stamped(std::span<Datagram> out, Result<std::size_t> got) {
    if (!got || *got == 0) return got;
    const Instant now = device::monotonic_now();
    for (Datagram& datagram : out.first(*got)) datagram.arrival = now;
    return got;
  }

  KernelHost& host_;
  kernel::UdpSocket socket_;
};

bool KernelHost::prepare_sleep() {
  return tcp.prepare_sleep(epoll.get()) &&
         std::none_of(sockets.begin(), sockets.end(), [](const KernelUdp* s) { return s->pending() != 0; });
}

std::uint64_t KernelHost::syscalls() const {
  std::uint64_t total = calls_of_closed + sleeps + tcp.syscalls;
  for (const KernelUdp* socket : sockets) total += socket->syscalls();
  return total;
}

Result<std::unique_ptr<UdpSocketImpl>> KernelHost::open_udp(const Endpoint& local, const UdpOptions& given) {
  kernel::UdpKernelOptions wanted;
  wanted.batched = batched;
  wanted.receive_buffer = given.receive_buffer;
  wanted.reuse_address = given.reuse_address;
  wanted.reuse_port = given.reuse_port;
  wanted.v6_only = given.v6_only;
  wanted.broadcast = given.broadcast;
  auto socket = kernel::UdpSocket::open(local, wanted, *pool, socket_counters);
  if (!socket) return tl::unexpected(socket.error());
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket->fd(), &event) != 0) {
    return fail(ErrorCode::system, "cannot watch the socket", errno);
  }
  return std::unique_ptr<UdpSocketImpl>(std::make_unique<KernelUdp>(*this, std::move(*socket)));
}

}  // namespace

Result<std::unique_ptr<HostImpl>> open_kernel_host(const HostOptions& options) {
  auto host = std::make_unique<KernelHost>(options);
  if (auto started = host->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<HostImpl>(std::move(host));
}

}  // namespace netchannel
