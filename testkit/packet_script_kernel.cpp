#include "testkit/packet_script_kernel.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>

#include "base/unique_fd.hpp"

namespace netchannel::testkit::script {
namespace {

constexpr char kDevice[] = "tun0";

// As our stack is by default: the settings in which Linux's own differ from version to version or from the
// RFCs' letter.
constexpr std::array<std::pair<const char*, const char*>, 12> kDefaults{{
    {"tcp_congestion_control", "cubic"},
    {"tcp_ecn", "2"},
    {"tcp_rmem", "4096 131072 6291456"},
    {"tcp_wmem", "4096 262144 4194304"},
    {"tcp_syn_linear_timeouts", "0"},  // a SYN's timeout doubles from the first on (RFC 6298)
    {"tcp_comp_sack_nr", "0"},         // acknowledgements are not held back to be compressed
    {"tcp_fastopen", "0"},
    {"tcp_no_metrics_save", "1"},
    {"tcp_autocorking", "0"},
    {"tcp_min_snd_mss", "48"},
    {"tcp_keepalive_intvl", "75"},
    {"ip_no_pmtu_disc", "0"},
}};

Error last_error(const char* what) { return {ErrorCode::system, errno, what}; }

sockaddr_storage address_of(const Endpoint& endpoint, socklen_t& size) {
  sockaddr_storage out{};
  const Bytes bytes = endpoint.address.network_bytes();
  if (endpoint.address.is_v4()) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    std::memcpy(&v4->sin_addr, bytes.data(), bytes.size());
    size = sizeof *v4;
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    std::memcpy(&v6->sin6_addr, bytes.data(), bytes.size());
    size = sizeof *v6;
  }
  return out;
}

bool write_file(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

ifreq request_for(const char* device) {
  ifreq out{};
  std::strncpy(out.ifr_name, device, IFNAMSIZ - 1);
  return out;
}

bool up(int socket, const char* device) {
  ifreq request = request_for(device);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags |= IFF_UP;
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

bool give_v4(int socket, const Net& net) {
  ifreq request = request_for(kDevice);
  socklen_t size = 0;
  sockaddr_storage address = address_of({net.local, 0}, size);
  std::memcpy(&request.ifr_addr, &address, size);
  if (::ioctl(socket, SIOCSIFADDR, &request) != 0) return false;
  address = address_of({IpAddress::v4(~0U << (32 - net.prefix)), 0}, size);
  std::memcpy(&request.ifr_netmask, &address, size);
  return ::ioctl(socket, SIOCSIFNETMASK, &request) == 0;
}

// struct in6_ifreq of linux/ipv6.h, which does not go with netinet/in.h.
struct In6Request {
  in6_addr address;
  std::uint32_t prefix;
  int index;
};

bool give_v6(const Net& net) {
  const UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  write_file("/proc/sys/net/ipv6/conf/tun0/accept_dad", "0");
  write_file("/proc/sys/net/ipv6/conf/tun0/router_solicitations", "0");
  In6Request request{};
  std::memcpy(&request.address, net.local.network_bytes().data(), sizeof request.address);
  request.prefix = net.prefix;
  request.index = static_cast<int>(::if_nametoindex(kDevice));
  return ::ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
}

// An IPv6 address is usable a moment after it was given.
bool usable(const Net& net) {
  for (int tries = 0; tries < 1000; ++tries) {
    const UniqueFd socket(::socket(net.local.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    socklen_t size = 0;
    const sockaddr_storage to = address_of({net.local, 0}, size);
    if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), size) == 0) return true;
    ::usleep(1000);
  }
  return false;
}

TcpInfo info_from(const tcp_info& i) {
  TcpInfo out;
  out.state = static_cast<TcpConnectionState>(i.tcpi_state);
  out.ca_state = i.tcpi_ca_state;
  out.retransmits = i.tcpi_retransmits;
  out.probes = i.tcpi_probes;
  out.backoff = i.tcpi_backoff;
  out.timestamps = (i.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  out.sack = (i.tcpi_options & TCPI_OPT_SACK) != 0;
  out.window_scaling = (i.tcpi_options & TCPI_OPT_WSCALE) != 0;
  out.ecn = (i.tcpi_options & TCPI_OPT_ECN) != 0;
  out.snd_wscale = i.tcpi_snd_wscale;
  out.rcv_wscale = i.tcpi_rcv_wscale;
  out.rto = i.tcpi_rto;
  out.snd_mss = i.tcpi_snd_mss;
  out.rcv_mss = i.tcpi_rcv_mss;
  out.advmss = i.tcpi_advmss;
  out.unacked = i.tcpi_unacked;
  out.sacked = i.tcpi_sacked;
  out.lost = i.tcpi_lost;
  out.rtt = i.tcpi_rtt;
  out.rttvar = i.tcpi_rttvar;
  out.min_rtt = i.tcpi_min_rtt;
  out.snd_ssthresh = i.tcpi_snd_ssthresh;
  out.snd_cwnd = i.tcpi_snd_cwnd;
  out.snd_wnd = i.tcpi_snd_wnd;
  out.total_retrans = i.tcpi_total_retrans;
  out.segs_in = i.tcpi_segs_in;
  out.segs_out = i.tcpi_segs_out;
  out.bytes_acked = i.tcpi_bytes_acked;
  out.bytes_received = i.tcpi_bytes_received;
  out.bytes_retrans = i.tcpi_bytes_retrans;
  out.notsent_bytes = i.tcpi_notsent_bytes;
  return out;
}

long answer(long value) { return value < 0 ? -errno : value; }

class KernelTarget final : public Target {
 public:
  explicit KernelTarget(const Net& net) : net_(net) {}

  Result<void> open() {
    ::prctl(PR_SET_TIMERSLACK, 1);
    tun_ = UniqueFd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!tun_) return tl::unexpected(last_error("/dev/net/tun cannot be opened"));
    ifreq request = request_for(kDevice);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (::ioctl(tun_.get(), TUNSETIFF, &request) != 0)
      return tl::unexpected(last_error("no TUN device can be made"));
    const UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    request.ifr_mtu = static_cast<int>(net_.mtu);
    if (!control || ::ioctl(control.get(), SIOCSIFMTU, &request) != 0)
      return tl::unexpected(last_error("the TUN device's MTU cannot be set"));
    const bool given = net_.local.is_v4() ? give_v4(control.get(), net_) : give_v6(net_);
    if (!given || !up(control.get(), "lo") || !up(control.get(), kDevice) || !usable(net_))
      return tl::unexpected(last_error("the TUN device cannot be given an address and set up"));
    for (const auto& [name, value] : kDefaults) sysctl(name, value);
    return open_tap();
  }

  Whose whose() const override { return Whose::kernel; }
  // A timer of 4 ms ticks, rounded up by an eighth of its length, and a machine that does other work as well.
  Duration tolerance(Duration waited) const override { return std::chrono::milliseconds(14) + waited / 8; }

  Instant now() override {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return {time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec};
  }

  std::optional<SentPacket> next_sent(Instant until) override {
    while (true) {
      drain_tun();
      while (auto packet = take_packet()) waiting_.push_back(std::move(*packet));
      if (!waiting_.empty() && waiting_.front().when <= until) {
        SentPacket packet = std::move(waiting_.front());
        waiting_.pop_front();
        return packet;
      }
      const Duration left = until - now();
      if (left <= Duration{0}) return std::nullopt;
      std::array<pollfd, 2> fds{{{tap_.get(), POLLIN, 0}, {tun_.get(), POLLIN, 0}}};
      const timespec timeout{left / std::chrono::seconds(1), (left % std::chrono::seconds(1)).count()};
      ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
    }
  }

  void arrive(Bytes packet) override {
    [[maybe_unused]] const ssize_t written = ::write(tun_.get(), packet.data(), packet.size());
  }

  std::optional<std::string> sysctl(const std::string& name, const std::string& value) override {
    // A namespace may not choose every algorithm that its sockets may.
    if (name == "tcp_congestion_control") {
      congestion_ = value;
      return std::nullopt;
    }
    if (write_file("/proc/sys/net/ipv4/" + name, value)) return std::nullopt;
    return "this kernel does not take the value (" + std::string(std::strerror(errno)) + ")";
  }

  long socket() override {
    const int family = net_.local.is_v4() ? AF_INET : AF_INET6;
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    const auto size = static_cast<socklen_t>(congestion_.size());
    return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_.data(), size) == 0 ? fd : -errno;
  }
  long bind(int fd, std::uint16_t port) override {
    socklen_t size = 0;
    const sockaddr_storage to =
        address_of({net_.local.is_v4() ? IpAddress::any_v4() : IpAddress::any_v6(), port}, size);
    return answer(::bind(fd, reinterpret_cast<const sockaddr*>(&to), size));
  }
  long listen(int fd, int backlog) override { return answer(::listen(fd, backlog)); }
  long accept(int fd) override {
    return answer(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  long connect(int fd, const Endpoint& peer) override {
    socklen_t size = 0;
    const sockaddr_storage to = address_of(peer, size);
    return answer(::connect(fd, reinterpret_cast<const sockaddr*>(&to), size));
  }
  long connected(int fd) override {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) return -EINPROGRESS;
    long error = 0;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, error);
    return -error;
  }
  long read(int fd, MutableBytes to) override { return answer(::recv(fd, to.data(), to.size(), 0)); }
  long write(int fd, Bytes from, bool more) override {
    return answer(::send(fd, from.data(), from.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0)));
  }
  long shutdown(int fd, int how) override { return answer(::shutdown(fd, how)); }
  long close(int fd) override { return answer(::close(fd)); }
  long setsockopt(int fd, int level, int name, long value) override {
    const int number = static_cast<int>(value);
    return answer(::setsockopt(fd, level, name, &number, sizeof number));
  }
  long linger(int fd, bool on, int seconds) override {
    const struct linger value{on ? 1 : 0, seconds};
    return answer(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value));
  }
  long getsockopt(int fd, int level, int name, long& value) override {
    int number = 0;
    socklen_t size = sizeof number;
    const long result = answer(::getsockopt(fd, level, name, &number, &size));
    value = number;
    return result;
  }
  long poll(int fd, short events) override {
    pollfd ready{fd, events, 0};
    const long result = answer(::poll(&ready, 1, 0));
    return result < 0 ? result : ready.revents;
  }
  long ioctl(int fd, unsigned long request) override {
    int number = 0;
    const long result = answer(::ioctl(fd, request, &number));
    return result < 0 ? result : number;
  }
  std::optional<TcpInfo> info(int fd) override {
    tcp_info raw{};
    socklen_t size = sizeof raw;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &raw, &size) != 0) return std::nullopt;
    return info_from(raw);
  }

 private:
  // The packet socket.
  Result<void> open_tap() {
    tap_ = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!tap_) return tl::unexpected(last_error("no packet socket"));
    const int on = 1;
    ::setsockopt(tap_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(ETH_P_ALL);
    where.sll_ifindex = static_cast<int>(::if_nametoindex(kDevice));
    if (::bind(tap_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
      return tl::unexpected(last_error("the packet socket cannot be bound to the TUN device"));
    return {};
  }

  void drain_tun() {
    std::array<std::byte, 64> start;
    while (::read(tun_.get(), start.data(), start.size()) > 0) {
    }
  }

  static bool is_tcp(Bytes packet) {
    if (packet.size() < 40) return false;
    return load_u8(packet, load_u8(packet, 0) >> 4 == 4 ? 9 : 6) == IPPROTO_TCP;
  }

  // The next TCP packet that the kernel has sent, if there is one.
  std::optional<SentPacket> take_packet() {
    while (true) {
      Packet bytes(65536);
      iovec part{bytes.data(), bytes.size()};
      sockaddr_ll from{};
      alignas(cmsghdr) std::array<char, 128> control{};
      msghdr message{};
      message.msg_name = &from;
      message.msg_namelen = sizeof from;
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t size = ::recvmsg(tap_.get(), &message, 0);
      if (size < 0) return std::nullopt;
      bytes.resize(static_cast<std::size_t>(size));
      if (from.sll_pkttype != PACKET_OUTGOING || !is_tcp(bytes)) continue;
      return SentPacket{stamp_of(message), std::move(bytes)};
    }
  }
  Instant stamp_of(msghdr& message) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPNS) continue;
      timespec time{};
      std::memcpy(&time, CMSG_DATA(c), sizeof time);
      return {time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec};
    }
    return now();
  }

  Net net_;
  std::string congestion_;
  UniqueFd tun_, tap_;
  std::deque<SentPacket> waiting_;
};

}  // namespace

Result<std::unique_ptr<Target>> open_kernel_target(const Net& net) {
  auto target = std::make_unique<KernelTarget>(net);
  if (auto opened = target->open(); !opened) return tl::unexpected(opened.error());
  return target;
}

}  // namespace netchannel::testkit::script
