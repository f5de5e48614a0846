#include "kernel/udp_socket.hpp"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "kernel/batches.hpp"
#include "kernel/socket_address.hpp"
#include "kernel/socket_calls.hpp"

namespace netchannel::kernel {

namespace {

tl::unexpected<Error> connect_error(int sys_errno) {
  switch (sys_errno) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return fail(ErrorCode::unreachable, "no route to the peer; add one", sys_errno);
    case EACCES:
    case EPERM:
      return fail(ErrorCode::not_permitted, "the peer is a broadcast address or forbidden; set broadcast",
                  sys_errno);
    case EAGAIN:
    case EADDRINUSE:
      return fail(ErrorCode::address_in_use, "no free port to connect from", sys_errno);
    default:
      return fail(ErrorCode::invalid_argument, "cannot connect to that peer; its family must be the socket's",
                  sys_errno);
  }
}

}  // namespace

UdpSocket::UdpSocket(UniqueFd fd, int family, FramePool& pool, CounterPage& counters)
    : fd_(std::move(fd)), family_(family), pool_(&pool), counters_(&counters) {}
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&&) noexcept = default;
UdpSocket::~UdpSocket() = default;

Result<UdpSocket> UdpSocket::open(const Endpoint& local, const UdpKernelOptions& options, FramePool& pool,
                                  CounterPage& counters) {
  const int family = local.address.is_v4() ? AF_INET : AF_INET6;
  // Blocking, since a plain program's is; whoever must not wait says so in each call.
  UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return tl::unexpected(open_error(errno));
  UdpSocket socket(std::move(fd), family, pool, counters);
  if (auto done = socket.set_up(local, options); !done) return tl::unexpected(done.error());
  return socket;
}

Result<void> UdpSocket::set_up(const Endpoint& local, const UdpKernelOptions& options) {
  zone_ = options.interface_index;
  v6_only_ = options.v6_only;
  tos_and_ttl_ = options.tos_and_ttl;
  if (auto done = set_flags(options); !done) return done;
  set_receive_buffer(options.receive_buffer);
  if (options.batched) set_up_batches(options);
  if (auto done = bind_to(local); !done) return done;
  auto got = local_name(fd());
  if (!got) return tl::unexpected(got.error());
  bound_ = local_ = *got;
  want_local_address(bound_.address.is_unspecified());
  return {};
}

Result<void> UdpSocket::set_flags(const UdpKernelOptions& options) {
  bool ok = true;
  if (family_ == AF_INET6) ok = set_option(fd(), IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0);
  if (options.reuse_address) ok = ok && set_option(fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (options.reuse_port) ok = ok && set_option(fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (options.broadcast) ok = ok && set_option(fd(), SOL_SOCKET, SO_BROADCAST, 1);
  if (tos_and_ttl_) {
    ok = ok && set_option(fd(), IPPROTO_IP, IP_RECVTOS, 1) && set_option(fd(), IPPROTO_IP, IP_RECVTTL, 1);
    if (family_ == AF_INET6) {
      ok = ok && set_option(fd(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
           set_option(fd(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    }
  }
  if (!ok)
    return fail(ErrorCode::not_supported, "the kernel refuses a socket option; see the error number", errno);
  if (options.busy_poll_microseconds != 0) {
    busy_poll_ = set_option(fd(), SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(options.busy_poll_microseconds));
  }
  return {};
}

void UdpSocket::set_receive_buffer(std::uint32_t bytes) {
  const int asked = static_cast<int>(std::min<std::uint32_t>(bytes, 1u << 30));
  set_option(fd(), SOL_SOCKET, SO_RCVBUF, asked);
  // The kernel keeps twice what it is asked for, for its own overhead, and caps it at net.core.rmem_max
  // unless forced.
  if (get_option(fd(), SOL_SOCKET, SO_RCVBUF) / 2 < asked)
    set_option(fd(), SOL_SOCKET, SO_RCVBUFFORCE, asked);
  got_buffer_ = static_cast<std::uint32_t>(std::max(0, get_option(fd(), SOL_SOCKET, SO_RCVBUF))) / 2;
}

void UdpSocket::set_up_batches(const UdpKernelOptions& options) {
  receive_batch_ = std::make_unique<ReceiveBatch>();
  send_batch_ = std::make_unique<SendBatch>();
  // In a smaller frame a GRO message would be cut off, and with it datagrams that would have fitted alone.
  if (options.gro && pool_->region().slot_size() >= kGroFrame)
    gro_ = set_option(fd(), IPPROTO_UDP, UDP_GRO, 1);
  if (options.gso && get_option(fd(), IPPROTO_UDP, UDP_SEGMENT) >= 0) gso_limit_ = kMaxPayloadV4;
}

Result<void> UdpSocket::bind_to(const Endpoint& local) {
  const SocketAddress address(local, family_, zone_);
  if (::bind(fd(), &address.any, address.length) != 0) return tl::unexpected(bind_error(errno));
  return {};
}

void UdpSocket::want_local_address(bool on) {
  local_from_kernel_ = on;
  if (family_ == AF_INET) {
    set_option(fd(), IPPROTO_IP, IP_PKTINFO, on ? 1 : 0);
  } else {
    set_option(fd(), IPPROTO_IPV6, IPV6_RECVPKTINFO,
               on ? 1 : 0);  // tells IPv4 addresses too, as ::ffff:a.b.c.d
  }
}

void UdpSocket::want_errors(bool on) {
  set_option(fd(), IPPROTO_IP, IP_RECVERR, on ? 1 : 0);
  if (family_ == AF_INET6) set_option(fd(), IPPROTO_IPV6, IPV6_RECVERR, on ? 1 : 0);
}

Result<void> UdpSocket::connect(const Endpoint& peer) {
  if (peer.port == 0 && peer.address.is_unspecified()) return disconnect();
  if (peer.port == 0 || (family_ == AF_INET && peer.address.is_v6()) || (v6_only_ && peer.address.is_v4())) {
    return fail(ErrorCode::invalid_argument, "the peer needs a port and the socket's family");
  }
  // The first connect chose a local address by the route to the first peer: choose again.
  if (connected()) {
    if (auto done = disconnect(); !done) return done;
  }
  // Before, so that no error can come in between.
  want_errors(true);
  const SocketAddress address(peer, family_, zone_);
  if (::connect(fd(), &address.any, address.length) != 0) {
    const int why = errno;
    want_errors(false);
    return connect_error(why);
  }
  peer_ = peer_name(fd()).value_or(peer);
  if (auto got = local_name(fd())) local_ = *got;
  if (local_from_kernel_) want_local_address(false);
  return {};
}

Result<void> UdpSocket::disconnect() {
  if (!connected()) return {};
  SocketAddress nobody;
  nobody.any.sa_family = AF_UNSPEC;
  if (::connect(fd(), &nobody.any, sizeof(nobody.v6)) != 0) return connect_error(errno);
  peer_ = {};
  want_errors(false);
  errors_ = {};
  get_option(fd(), SOL_SOCKET, SO_ERROR);  // reading forgets it
  auto got = local_name(fd());
  if (!got) return tl::unexpected(got.error());
  // A port that the kernel chose is given up when the socket disconnects.
  if (got->port != bound_.port) {
    if (auto done = bind_to(bound_); !done) return done;
  }
  local_ = bound_;
  want_local_address(bound_.address.is_unspecified());
  return {};
}

std::uint64_t UdpSocket::kernel_drops() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t size = sizeof(values);
  if (::getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, values.data(), &size) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

std::string_view UdpSocket::mode() const {
  if (!receive_batch_) return local_from_kernel_ || tos_and_ttl_ ? "recvmsg, sendto" : "recvfrom, sendto";
  if (gro_) return gso() ? "recvmmsg + GRO, sendmmsg + GSO" : "recvmmsg + GRO, sendmmsg";
  return gso() ? "recvmmsg, sendmmsg + GSO" : "recvmmsg, sendmmsg";
}

}  // namespace netchannel::kernel
