// linux/tcp.h has the whole of tcp_info; libc's header, which cannot stand beside it, has half.
#include "kernel/tcp_options.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "kernel/socket_calls.hpp"

namespace netchannel::kernel {

namespace {

constexpr std::uint32_t kMostBuffer = 1u << 30;

// Remembers that one of its calls failed, and goes on.
class Setter {
 public:
  Setter(int fd, std::uint64_t& syscalls) : fd_(fd), syscalls_(syscalls) {}
  void set(int level, int name, std::int64_t value) {
    ++syscalls_;
    if (!set_option(fd_, level, name, static_cast<int>(std::clamp<std::int64_t>(value, 0, INT32_MAX))) &&
        failed_ == 0)
      failed_ = errno;
  }
  void set(int level, int name, std::string_view value) {
    ++syscalls_;
    if (::setsockopt(fd_, level, name, value.data(), static_cast<socklen_t>(value.size())) != 0 &&
        failed_ == 0)
      failed_ = errno;
  }
  int failed() const { return failed_; }

 private:
  int fd_;
  std::uint64_t& syscalls_;
  int failed_ = 0;
};

std::int64_t seconds_of(Duration duration) {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count(), 1);
}

std::int64_t milliseconds_of(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

void set_keepalive(Setter& to, const TcpKernelOptions& now, const TcpKernelOptions& wanted) {
  if (now.keepalive_idle != wanted.keepalive_idle)
    to.set(IPPROTO_TCP, TCP_KEEPIDLE, seconds_of(wanted.keepalive_idle));
  if (now.keepalive_interval != wanted.keepalive_interval)
    to.set(IPPROTO_TCP, TCP_KEEPINTVL, seconds_of(wanted.keepalive_interval));
  if (now.keepalive_probes != wanted.keepalive_probes)
    to.set(IPPROTO_TCP, TCP_KEEPCNT, wanted.keepalive_probes);
  if (now.keepalive != wanted.keepalive) to.set(SOL_SOCKET, SO_KEEPALIVE, wanted.keepalive);
}

// An IPv6 socket may have an IPv4 peer, whose options are the IPv4 ones.
void set_ip(Setter& to, int fd, const TcpKernelOptions& now, const TcpKernelOptions& wanted) {
  if (now.ttl == wanted.ttl && now.tos == wanted.tos) return;
  const bool v6 = get_option(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;
  if (now.ttl != wanted.ttl) {
    to.set(IPPROTO_IP, IP_TTL, wanted.ttl);
    if (v6) to.set(IPPROTO_IPV6, IPV6_UNICAST_HOPS, wanted.ttl);
  }
  if (now.tos != wanted.tos) {
    to.set(IPPROTO_IP, IP_TOS, wanted.tos);
    if (v6) to.set(IPPROTO_IPV6, IPV6_TCLASS, wanted.tos);
  }
}

// The kernel counts a path's headers of 40 or 60 bytes into its MTU.
std::uint32_t without_headers(int fd, std::uint32_t mtu) {
  const std::uint32_t headers = get_option(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6 ? 60 : 40;
  return mtu > headers ? mtu - headers : 0;
}

}  // namespace

Result<void> set_tcp_options(int fd, const TcpKernelOptions& now, const TcpKernelOptions& wanted,
                             std::uint64_t& syscalls) {
  if (now == wanted) return {};
  Setter to(fd, syscalls);
  if (now.no_delay != wanted.no_delay) to.set(IPPROTO_TCP, TCP_NODELAY, wanted.no_delay);
  if (now.quick_ack != wanted.quick_ack) to.set(IPPROTO_TCP, TCP_QUICKACK, wanted.quick_ack);
  // A buffer that was set does not grow by itself again.
  if (now.send_buffer != wanted.send_buffer && wanted.send_buffer != 0)
    to.set(SOL_SOCKET, SO_SNDBUF, std::min(wanted.send_buffer, kMostBuffer));
  if (now.receive_buffer != wanted.receive_buffer && wanted.receive_buffer != 0)
    to.set(SOL_SOCKET, SO_RCVBUF, std::min(wanted.receive_buffer, kMostBuffer));
  if (now.max_segment != wanted.max_segment) to.set(IPPROTO_TCP, TCP_MAXSEG, wanted.max_segment);
  if (now.user_timeout != wanted.user_timeout)
    to.set(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds_of(wanted.user_timeout));
  set_keepalive(to, now, wanted);
  set_ip(to, fd, now, wanted);
  if (to.failed() != 0)
    return fail(ErrorCode::invalid_argument, "the kernel refuses a TCP option; look at its value",
                to.failed());
  if (now.congestion != wanted.congestion && !wanted.congestion.empty()) {
    to.set(IPPROTO_TCP, TCP_CONGESTION, wanted.congestion);
    if (to.failed() != 0) {
      return fail(ErrorCode::not_supported,
                  "the kernel does not have that congestion control or does not allow it; see "
                  "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                  to.failed());
    }
  }
  return {};
}

void set_quick_ack(int fd) { set_option(fd, IPPROTO_TCP, TCP_QUICKACK, 1); }

TcpInfo tcp_info(int fd) {
  ::tcp_info from{};
  socklen_t size = sizeof(from);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &from, &size) != 0) return {};
  TcpInfo out;
  out.state = static_cast<TcpConnectionState>(from.tcpi_state);
  out.ca_state = from.tcpi_ca_state;
  out.retransmits = from.tcpi_retransmits;
  out.probes = from.tcpi_probes;
  out.backoff = from.tcpi_backoff;
  out.timestamps = (from.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  out.sack = (from.tcpi_options & TCPI_OPT_SACK) != 0;
  out.window_scaling = (from.tcpi_options & TCPI_OPT_WSCALE) != 0;
  out.ecn = (from.tcpi_options & TCPI_OPT_ECN) != 0;
  out.snd_wscale = from.tcpi_snd_wscale;
  out.rcv_wscale = from.tcpi_rcv_wscale;
  out.rto = from.tcpi_rto;
  out.ato = from.tcpi_ato;
  out.snd_mss = from.tcpi_snd_mss;
  out.rcv_mss = from.tcpi_rcv_mss;
  out.advmss = from.tcpi_advmss;
  out.pmtu_mss = without_headers(fd, from.tcpi_pmtu);
  out.unacked = from.tcpi_unacked;
  out.sacked = from.tcpi_sacked;
  out.lost = from.tcpi_lost;
  out.last_data_sent = from.tcpi_last_data_sent;
  out.last_data_recv = from.tcpi_last_data_recv;
  out.last_ack_recv = from.tcpi_last_ack_recv;
  out.rtt = from.tcpi_rtt;
  out.rttvar = from.tcpi_rttvar;
  out.min_rtt = from.tcpi_min_rtt;
  out.snd_ssthresh = from.tcpi_snd_ssthresh;
  out.snd_cwnd = from.tcpi_snd_cwnd;
  out.snd_wnd = from.tcpi_snd_wnd;
  out.rcv_space = from.tcpi_rcv_space;
  out.total_retrans = from.tcpi_total_retrans;
  out.segs_in = from.tcpi_segs_in;
  out.segs_out = from.tcpi_segs_out;
  out.bytes_acked = from.tcpi_bytes_acked;
  out.bytes_received = from.tcpi_bytes_received;
  out.bytes_retrans = from.tcpi_bytes_retrans;
  out.notsent_bytes = from.tcpi_notsent_bytes;
  return out;
}

bool all_acknowledged(const TcpInfo& info) {
  return info.state == TcpConnectionState::fin_wait2 || info.state == TcpConnectionState::time_wait ||
         info.state == TcpConnectionState::close;
}

}  // namespace netchannel::kernel
