#include "device/af_xdp/sockets.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "device/af_xdp/retry.hpp"
#include "device/af_xdp/uapi.hpp"

namespace netchannel::device {
namespace {

constexpr std::uint32_t kLargestChunk = 4096;   // the kernel's: a page
constexpr std::uint32_t kKernelHeadroom = 256;  // XDP_PACKET_HEADROOM, before every received frame
constexpr std::uint32_t kEthernetHeader = 14;
constexpr int kSendBuffer =
    16 << 20;  // bytes of frames, with the kernel's overhead, that may wait in an interface
constexpr int kSendBudget = 256;  // frames for each system call
constexpr int kBusyPollMicroseconds = 20;
constexpr int kBusyPollBudget = 64;

// libxdp leaves the rings of a UMEM mapped whose first bind failed, and a mapping keeps the socket and with
// it the pinned memory alive.
void unmap_rings(int fd, const XskQueue& queue) {
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof(offsets);
  if (::getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) return;
  const auto unmap = [](void* ring, std::uint64_t before, std::uint32_t entries) {
    if (ring == nullptr) return;
    ::munmap(static_cast<char*>(ring) - before, before + std::uint64_t{entries} * sizeof(std::uint64_t));
  };
  unmap(queue.fill.ring, offsets.fr.desc, queue.fill.size);
  unmap(queue.completion.ring, offsets.cr.desc, queue.completion.size);
}

tl::unexpected<Error> umem_error(int error) {
  switch (-error) {
    case EPERM:
    case EACCES:
      return fail(ErrorCode::not_permitted,
                  "AF_XDP sockets need CAP_NET_RAW: run as root or grant it with setcap", -error);
    case ENOBUFS:
      return fail(
          ErrorCode::memlock_too_small,
          "the frame memory cannot be pinned: raise the memlock limit (ulimit -l), grant CAP_IPC_LOCK, or "
          "use fewer frames",
          -error);
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ENOPROTOOPT:
      return fail(ErrorCode::not_supported, "this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)", -error);
    case ENOMEM:
      return fail(ErrorCode::no_memory,
                  "the kernel has no memory for the frames' registration: use fewer frames", -error);
    default:
      return fail(ErrorCode::system, "the kernel refused the frame memory as a UMEM", -error);
  }
}

tl::unexpected<Error> bind_error(int error, bool multi_buffer) {
  switch (-error) {
    case EBUSY:
      return fail(
          ErrorCode::device_busy,
          "a receive queue of the interface is in use by another AF_XDP socket: end that program first",
          -error);
    case EPERM:
      return fail(ErrorCode::not_permitted,
                  "AF_XDP sockets need CAP_NET_RAW: run as root or grant it with setcap", -error);
    case ENETDOWN:
      return fail(ErrorCode::device_down, "the interface went down: ip link set dev <interface> up", -error);
    case ENODEV:
      return fail(ErrorCode::no_such_device, "the interface went away", -error);
    case EOPNOTSUPP:
    case EINVAL:
      return multi_buffer ? fail(ErrorCode::not_supported,
                                 "the kernel (6.6 or newer) or driver cannot do packets of several buffers, "
                                 "which this MTU "
                                 "needs: lower the MTU to 3800 or below",
                                 -error)
                          : fail(ErrorCode::not_supported,
                                 "the driver or kernel refused an AF_XDP socket on a queue", -error);
    default:
      return fail(ErrorCode::system, "an AF_XDP socket could not be bound to a receive queue", -error);
  }
}

}  // namespace

std::uint32_t AfXdpDevice::slot_size_for(std::uint32_t mtu) {
  constexpr std::uint32_t kLargestMtu = 65535;
  if (mtu == 0 || mtu > kLargestMtu) return 0;
  std::uint32_t size = 2048;
  while (size < kKernelHeadroom + kEthernetHeader + mtu) size *= 2;
  return size;
}

Result<std::unique_ptr<XskSockets>> XskSockets::open(const XdpCapabilities& interface,
                                                     const AfXdpOptions& options, FrameRegion& region,
                                                     CounterPage& counters) {
  std::unique_ptr<XskSockets> sockets(new XskSockets);
  sockets->chunk_size = std::min(region.slot_size(), kLargestChunk);
  sockets->multi_buffer = kKernelHeadroom + kEthernetHeader + interface.mtu > sockets->chunk_size;
  sockets->need_wakeup = options.need_wakeup;
  sockets->busy_poll = options.busy_poll;

  if (options.copy != XdpCopy::copy) {
    sockets->zero_copy = true;
    auto bound = sockets->bind_all(interface, options, region, counters);
    if (bound) return sockets;
    sockets->close();
    const ErrorCode code = bound.error().code;
    if (code != ErrorCode::not_supported && code != ErrorCode::system) return tl::unexpected(bound.error());
    if (options.copy == XdpCopy::zero_copy) {
      return fail(ErrorCode::not_supported,
                  "the driver has no zero-copy AF_XDP on this interface: use copy or automatic",
                  bound.error().sys_errno);
    }
    sockets->why_not_zero_copy = "the driver has no zero-copy AF_XDP here";
  }
  sockets->zero_copy = false;
  auto bound = sockets->bind_all(interface, options, region, counters);
  if (!bound) return tl::unexpected(bound.error());
  return sockets;
}

XskSockets::~XskSockets() { close(); }

void XskSockets::close() {
  for (auto& queue : queues) {
    if (queue->socket != nullptr) xsk_socket__delete(queue->socket);
  }
  if (umem_ != nullptr) {
    if (!umem_bound_) unmap_rings(xsk_umem__fd(umem_), *queues[0]);
    xsk_umem__delete(umem_);
  }
  queues.clear();
  umem_ = nullptr;
  umem_bound_ = false;
  epoll_.reset();
}

Result<void> XskSockets::bind_all(const XdpCapabilities& interface, const AfXdpOptions& options,
                                  FrameRegion& region, CounterPage& counters) {
  // The first socket is the UMEM's own and cannot be bound a second time, so each try starts from nothing.
  int error = 0;
  bool registered = false;
  const int bound = retry_while_busy([&] {
    close();
    queues.push_back(std::make_unique<XskQueue>(RxChain(region, chunk_size, counters)));
    error = create_umem(options, region);
    registered = error == 0;
    return registered ? create_socket(interface, options, 0) : error;
  });
  if (!registered) return umem_error(error);
  if (bound != 0) return bind_error(bound, multi_buffer);
  umem_bound_ = true;
  for (std::uint32_t queue = 1; queue < interface.rx_queues; ++queue) {
    queues.push_back(std::make_unique<XskQueue>(RxChain(region, chunk_size, counters)));
    error = retry_while_busy([&] { return create_socket(interface, options, queue); });
    if (error != 0) return bind_error(error, multi_buffer);
  }
  if (auto tuned = tune(options); !tuned) return tuned;
  return queues.size() > 1 ? watch_all() : Result<void>{};
}

int XskSockets::create_umem(const AfXdpOptions& options, FrameRegion& region) {
  xsk_umem_config config{};
  config.fill_size = options.fill_ring;
  config.comp_size = options.completion_ring;
  config.frame_size = chunk_size;
  XskQueue& first = *queues[0];
  return xsk_umem__create(&umem_, region.memory().data(), region.memory().size(), &first.fill,
                          &first.completion, &config);
}

int XskSockets::create_socket(const XdpCapabilities& interface, const AfXdpOptions& options,
                              std::uint32_t queue) {
  xsk_socket_config config{};
  config.rx_size = options.rx_ring;
  config.tx_size = options.tx_ring;
  config.libbpf_flags = XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags =
      static_cast<std::uint16_t>((zero_copy ? XDP_ZEROCOPY : XDP_COPY) |
                                 (need_wakeup ? XDP_USE_NEED_WAKEUP : 0) | (multi_buffer ? XDP_USE_SG : 0));
  XskQueue& q = *queues[queue];
  const int error = xsk_socket__create_shared(&q.socket, interface.interface.c_str(), queue, umem_, &q.rx,
                                              queue == 0 ? &q.tx : nullptr, &q.fill, &q.completion, &config);
  if (error != 0) {
    q.socket = nullptr;
    return error;
  }
  q.fd = xsk_socket__fd(q.socket);
  return 0;
}

Result<void> XskSockets::tune(const AfXdpOptions& options) {
  const auto set = [](int fd, int level, int name, int value) {
    return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
  };
  for (auto& queue : queues) {
    if (::fcntl(queue->fd, F_SETFD, FD_CLOEXEC) != 0) {
      return fail(ErrorCode::system, "an AF_XDP socket could not be marked close-on-exec", errno);
    }
    if (!options.busy_poll) continue;
    if (!set(queue->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1) ||
        !set(queue->fd, SOL_SOCKET, SO_BUSY_POLL, kBusyPollMicroseconds) ||
        !set(queue->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, kBusyPollBudget)) {
      return fail(ErrorCode::not_supported,
                  "busy polling needs Linux 5.11 and CAP_NET_ADMIN: open without it", errno);
    }
  }
  // Both are only for speed: without them there are more system calls, and earlier EAGAIN.
  const int first = queues[0]->fd;
  if (!set(first, SOL_SOCKET, SO_SNDBUFFORCE, kSendBuffer)) set(first, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  set(first, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, kSendBudget);
  return {};
}

Result<void> XskSockets::watch_all() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail(ErrorCode::system, "no descriptor to sleep on: epoll_create1 failed", errno);
  for (auto& queue : queues) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, queue->fd, &event) != 0) {
      return fail(ErrorCode::system, "an AF_XDP socket cannot be waited for: epoll_ctl failed", errno);
    }
  }
  return {};
}

}  // namespace netchannel::device
