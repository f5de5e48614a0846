#include "tests/packets/stack_target.hpp"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <sstream>

#include "tests/packets/stack_wire.hpp"

namespace netchannel::packets {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testkit::script::Net;
using testkit::script::SentPacket;
using testkit::script::Target;
using testkit::script::Whose;

long error_of(tcp::Failure failure) {
  switch (failure) {
    case tcp::Failure::none:
      return 0;
    case tcp::Failure::refused:
      return -ECONNREFUSED;
    case tcp::Failure::reset:
      return -ECONNRESET;
    case tcp::Failure::timed_out:
      return -ETIMEDOUT;
    case tcp::Failure::unreachable:
      return -EHOSTUNREACH;
    case tcp::Failure::aborted:
      return -ECONNABORTED;
  }
  return 0;
}

long error_of(const Error& error) { return -(error.sys_errno != 0 ? error.sys_errno : EINVAL); }

// Nothing more can come from the peer.
bool peer_has_closed(tcp::State state) {
  return state == tcp::State::close_wait || state == tcp::State::closing || state == tcp::State::last_ack ||
         state == tcp::State::time_wait || state == tcp::State::closed;
}

TcpConnectionState state_of(tcp::State state) {
  using Out = TcpConnectionState;
  switch (state) {
    case tcp::State::closed:
      return Out::close;
    case tcp::State::listen:
      return Out::listen;
    case tcp::State::syn_sent:
      return Out::syn_sent;
    case tcp::State::syn_received:
      return Out::syn_recv;
    case tcp::State::established:
      return Out::established;
    case tcp::State::fin_wait_1:
      return Out::fin_wait1;
    case tcp::State::fin_wait_2:
      return Out::fin_wait2;
    case tcp::State::close_wait:
      return Out::close_wait;
    case tcp::State::closing:
      return Out::closing;
    case tcp::State::last_ack:
      return Out::last_ack;
    case tcp::State::time_wait:
      return Out::time_wait;
  }
  return Out::close;
}

TcpInfo info_from(const tcp::TcpInfo& i) {
  TcpInfo out;
  out.state = state_of(i.state);
  out.ca_state = i.ca_state;
  out.retransmits = i.retransmits;
  out.probes = i.probes;
  out.backoff = i.backoff;
  out.timestamps = i.timestamps;
  out.sack = i.sack;
  out.window_scaling = i.window_scaling;
  out.ecn = i.ecn;
  out.snd_wscale = i.snd_wscale;
  out.rcv_wscale = i.rcv_wscale;
  out.rto = i.rto;
  out.snd_mss = i.snd_mss;
  out.rcv_mss = i.rcv_mss;
  out.advmss = i.advmss;
  out.unacked = i.unacked;
  out.sacked = i.sacked;
  out.lost = i.lost;
  out.rtt = i.rtt;
  out.rttvar = i.rttvar;
  out.min_rtt = i.min_rtt;
  out.snd_ssthresh = i.snd_ssthresh;
  out.snd_cwnd = i.snd_cwnd;
  out.snd_wnd = i.snd_wnd;
  out.total_retrans = i.total_retrans;
  out.segs_in = i.segs_in;
  out.segs_out = i.segs_out;
  out.bytes_acked = i.bytes_acked;
  out.bytes_received = i.bytes_received;
  out.bytes_retrans = i.bytes_retrans;
  out.notsent_bytes = i.notsent_bytes;
  return out;
}

// Settings that a script gives under the names of Linux's sysctls. False: the value is not one of ours.
struct Sysctl {
  std::function<bool(tcp::Settings&, const std::string&)> set;
};

bool set_buffer(const std::string& value, std::uint32_t& normal, std::uint32_t& most) {
  std::istringstream in(value);
  std::uint32_t least = 0;
  return static_cast<bool>(in >> least >> normal >> most);
}

template <class Field>
auto number(Field tcp::Settings::* field) {
  return [field](tcp::Settings& s, const std::string& v) {
    s.*field = static_cast<Field>(std::stoul(v));
    return true;
  };
}
auto flag(bool tcp::Settings::* field) {
  return [field](tcp::Settings& s, const std::string& v) {
    s.*field = v != "0";
    return true;
  };
}
template <class Unit>
auto duration(Duration tcp::Settings::* field) {
  return [field](tcp::Settings& s, const std::string& v) {
    s.*field = Unit(std::stol(v));
    return true;
  };
}

bool set_ecn(tcp::Settings& s, const std::string& value) {
  s.ecn = value == "0" ? tcp::EcnMode::off : value == "1" ? tcp::EcnMode::request : tcp::EcnMode::accept;
  return true;
}

bool set_congestion(tcp::Settings& s, const std::string& value) {
  s.congestion = value == "reno" ? tcp::CongestionAlgorithm::reno : tcp::CongestionAlgorithm::cubic;
  return value == "reno" || value == "cubic";
}

const std::map<std::string, Sysctl>& sysctls() {
  using S = tcp::Settings;
  static const std::map<std::string, Sysctl> all{
      {"tcp_timestamps", {flag(&S::timestamps)}},
      {"tcp_sack", {flag(&S::sack)}},
      {"tcp_window_scaling", {flag(&S::window_scaling)}},
      {"tcp_mtu_probing", {flag(&S::mtu_black_holes)}},
      {"tcp_ecn", {set_ecn}},
      {"tcp_congestion_control", {set_congestion}},
      {"tcp_syn_retries", {number(&S::syn_retries)}},
      {"tcp_retries2", {number(&S::retries)}},
      {"tcp_keepalive_probes", {number(&S::keepalive_probes)}},
      {"tcp_keepalive_time", {duration<seconds>(&S::keepalive_idle)}},
      {"tcp_keepalive_intvl", {duration<seconds>(&S::keepalive_interval)}},
      {"tcp_fin_timeout", {duration<seconds>(&S::fin_wait_2)}},
      {"tcp_rto_min_us", {duration<std::chrono::microseconds>(&S::min_rto)}},
      {"tcp_rmem",
       {[](S& s, const std::string& v) { return set_buffer(v, s.receive_buffer, s.receive_buffer_max); }}},
      {"tcp_wmem",
       {[](S& s, const std::string& v) { return set_buffer(v, s.send_buffer, s.send_buffer_max); }}},
  };
  return all;
}

// How Linux cuts its super-frames, paces and remembers: no packet of ours depends on it.
constexpr std::array<std::string_view, 4> kNothingToUs{"tcp_min_tso_segs", "tcp_tso_win_divisor",
                                                       "tcp_no_metrics_save", "tcp_autocorking"};

struct Socket {
  tcp::Settings settings;
  std::uint16_t port = 0;
  std::uint8_t tos = 0;
  std::optional<bool> linger_on;
  int linger_seconds = 0;
  stack::TcpListenerHandle listener;
  stack::TcpHandle connection;
  bool error_told = false;
};

class StackTarget final : public Target {
 public:
  explicit StackTarget(const Net& net) : net_(net), wire_(net) {}

  Whose whose() const override { return Whose::ours; }
  // The timing wheel's tick, and the scripts' digits.
  Duration tolerance(Duration) const override { return milliseconds(1); }
  Instant now() override { return wire_.now(); }
  std::optional<SentPacket> next_sent(Instant until) override { return wire_.next_sent(until); }
  void arrive(Bytes packet) override { wire_.arrive(packet); }

  std::optional<std::string> sysctl(const std::string& name, const std::string& value) override {
    if (name == "tcp_syncookies" && value != "2") {
      cookies_ = value != "0";
      return std::nullopt;
    }
    if (std::find(kNothingToUs.begin(), kNothingToUs.end(), name) != kNothingToUs.end()) return std::nullopt;
    const auto found = sysctls().find(name);
    if (found == sysctls().end()) return "our stack has no such setting";
    if (!found->second.set(defaults_, value)) return "our stack has no such value";
    return std::nullopt;
  }

  long socket() override {
    sockets_[++last_fd_].settings = defaults_;
    return last_fd_;
  }
  long bind(int fd, std::uint16_t port) override {
    at(fd).port = port;
    return 0;
  }
  // The queue of those to be accepted takes one more than its backlog, as Linux's does.
  long listen(int fd, int backlog) override {
    Socket& s = at(fd);
    const auto length = static_cast<std::uint32_t>(backlog) + 1;
    const auto listener =
        tcp().listen({.local = {net_.local.is_v4() ? IpAddress::any_v4() : IpAddress::any_v6(), s.port},
                      .backlog = length,
                      .syn_queue = length,
                      .cookies = cookies_,
                      .tos = s.tos,
                      .settings = s.settings});
    if (!listener) return error_of(listener.error());
    s.listener = *listener;
    return 0;
  }
  long accept(int fd) override {
    if (!at(fd).listener) return -EINVAL;
    const auto connection = tcp().accept(at(fd).listener);
    if (!connection) return -EAGAIN;
    Socket& s = sockets_[++last_fd_];
    s.connection = *connection;
    return last_fd_;
  }
  long connect(int fd, const Endpoint& peer) override {
    Socket& s = at(fd);
    const auto connection =
        tcp().connect({.local = {{}, s.port}, .peer = peer, .tos = s.tos, .settings = s.settings});
    if (!connection) return error_of(connection.error());
    s.connection = *connection;
    wire_.flush();
    return -EINPROGRESS;
  }
  long connected(int fd) override {
    const tcp::Connection* c = connection(fd);
    if (c == nullptr) return -ENOTCONN;
    const bool pending = c->state.state == tcp::State::syn_sent || c->state.state == tcp::State::syn_received;
    return pending ? -EINPROGRESS : take_error(at(fd));
  }

  long read(int fd, MutableBytes to) override {
    Socket& s = at(fd);
    const tcp::Connection* c = connection(fd);
    if (c == nullptr) return -ENOTCONN;
    std::size_t copied = 0;
    Bytes part;
    while (copied < to.size() && tcp().spans(s.connection, {&part, 1}) == 1) {
      part = part.first(std::min(part.size(), to.size() - copied));
      std::copy(part.begin(), part.end(), to.begin() + static_cast<std::ptrdiff_t>(copied));
      copied += part.size();
      tcp().consume(s.connection, part.size());
    }
    wire_.flush();
    if (copied != 0) return static_cast<long>(copied);
    if (const long error = take_error(s)) return error;
    return peer_has_closed(c->state.state) ? 0 : -EAGAIN;
  }
  long write(int fd, Bytes from, bool more) override {
    Socket& s = at(fd);
    const tcp::Connection* c = connection(fd);
    if (c == nullptr) return -EPIPE;
    if (const long error = take_error(s)) return error;
    if (c->state.fin_queued || c->state.state == tcp::State::closed) return -EPIPE;
    const bool corked = c->state.settings.cork;
    if (more) tcp().set_cork(s.connection, true);
    const std::size_t written = tcp().write(s.connection, from);
    if (more_ && !more && !corked_by_option_) tcp().set_cork(s.connection, false);
    more_ = more && !corked ? true : more_ && more;
    wire_.flush();
    return written == 0 && !from.empty() ? -EAGAIN : static_cast<long>(written);
  }
  long shutdown(int fd, int how) override {
    const tcp::Connection* c = connection(fd);
    if (c == nullptr || c->state.state == tcp::State::closed) return -ENOTCONN;
    if (how != SHUT_RD) tcp().shutdown_write(at(fd).connection);
    wire_.flush();
    return 0;
  }
  long close(int fd) override {
    const Socket s = at(fd);
    sockets_.erase(fd);
    if (s.listener) tcp().close(s.listener);
    const bool abort = s.linger_on.value_or(false) && s.linger_seconds == 0;
    if (s.connection && abort) tcp().abort(s.connection);
    if (s.connection && !abort) tcp().close(s.connection);
    wire_.flush();
    return 0;
  }

  long setsockopt(int fd, int level, int name, long value) override {
    Socket& s = at(fd);
    if ((level == IPPROTO_IP && name == IP_TOS) || (level == IPPROTO_IPV6 && name == IPV6_TCLASS)) {
      s.tos = static_cast<std::uint8_t>(value);
      if (s.connection) tcp().set_tos(s.connection, s.tos);
      return 0;
    }
    if (level == IPPROTO_TCP && name == TCP_CORK && s.connection) {
      corked_by_option_ = value != 0;
      tcp().set_cork(s.connection, corked_by_option_);
      wire_.flush();
      return 0;
    }
    if (level == IPPROTO_TCP && name == TCP_NODELAY && s.connection) {
      tcp().set_no_delay(s.connection, value != 0);
      wire_.flush();
      return 0;
    }
    tcp::Settings* settings = s.connection ? tcp().settings(s.connection) : &s.settings;
    if (settings == nullptr) return -EBADF;
    const bool keepalive = settings->keepalive;
    const bool known = level == SOL_SOCKET ? set_socket_option(*settings, name, value)
                                           : level == IPPROTO_TCP && set_tcp_option(*settings, name, value);
    const bool again = settings->keepalive != keepalive || (settings->keepalive && name == TCP_KEEPIDLE);
    if (s.connection && again) tcp().set_keepalive(s.connection, settings->keepalive);
    wire_.flush();
    return known ? 0 : -ENOPROTOOPT;
  }
  long linger(int fd, bool on, int wait) override {
    at(fd).linger_on = on;
    at(fd).linger_seconds = wait;
    return 0;
  }
  long getsockopt(int fd, int level, int name, long& value) override {
    if (level == SOL_SOCKET && name == SO_ERROR) {
      value = -take_error(at(fd));
      return 0;
    }
    const tcp::Connection* c = connection(fd);
    if (level != IPPROTO_TCP || name != TCP_MAXSEG || c == nullptr) return -ENOPROTOOPT;
    value = static_cast<long>(tcp::effective_mss(c->state));
    return 0;
  }

  long poll(int fd, short events) override {
    const Socket& s = at(fd);
    if (s.listener) return tcp().waiting(s.listener) != 0 ? events & POLLIN : 0;
    const tcp::Connection* c = connection(fd);
    if (c == nullptr) return POLLOUT | POLLHUP;
    const tcp::TcpState& state = c->state;
    const bool ended = peer_has_closed(state.state);
    int out = 0;
    if (c->receive.readable() != 0 || ended) out |= POLLIN;
    if (ended) out |= POLLRDHUP;
    if (tcp().writable(s.connection) != 0 || state.fin_queued || state.state == tcp::State::closed)
      out |= POLLOUT;
    if ((ended && state.fin_queued) || state.state == tcp::State::closed) out |= POLLHUP;
    if (state.failure != tcp::Failure::none && !s.error_told) out |= POLLERR;
    return out & (events | POLLERR | POLLHUP);
  }
  long ioctl(int fd, unsigned long request) override {
    const tcp::Connection* c = connection(fd);
    if (c == nullptr) return -EINVAL;
    if (request == SIOCINQ) return c->receive.readable();
    if (request == SIOCOUTQ) return static_cast<long>(c->send.size()) + (c->state.fin_sent ? 1 : 0);
    return -EINVAL;
  }
  std::optional<TcpInfo> info(int fd) override {
    if (connection(fd) == nullptr) return std::nullopt;
    return info_from(tcp().info(at(fd).connection));
  }

 private:
  stack::Tcp& tcp() { return wire_.stack().tcp(); }
  Socket& at(int fd) { return sockets_.at(fd); }
  const tcp::Connection* connection(int fd) { return tcp().find(at(fd).connection); }

  // The error of a connection is told once, as SO_ERROR's is.
  long take_error(Socket& s) {
    const tcp::Connection* c = tcp().find(s.connection);
    if (c == nullptr || c->state.state != tcp::State::closed || s.error_told) return 0;
    s.error_told = true;
    return error_of(c->state.failure);
  }

  static bool set_socket_option(tcp::Settings& settings, int name, long value) {
    const auto bytes = static_cast<std::uint32_t>(value);
    switch (name) {
      case SO_REUSEADDR:
        return true;
      case SO_KEEPALIVE:
        settings.keepalive = value != 0;
        return true;
      case SO_RCVBUF:
        settings.receive_buffer = settings.receive_buffer_max = bytes;
        return true;
      case SO_SNDBUF:
        settings.send_buffer = settings.send_buffer_max = bytes;
        return true;
      default:
        return false;
    }
  }
  static bool set_tcp_option(tcp::Settings& settings, int name, long value) {
    switch (name) {
      case TCP_NODELAY:
        settings.no_delay = value != 0;
        return true;
      case TCP_CORK:
        settings.cork = value != 0;
        return true;
      case TCP_MAXSEG:
        settings.mss_limit = static_cast<std::uint16_t>(value);
        return true;
      case TCP_QUICKACK:
        settings.quick_ack = value != 0;
        return true;
      case TCP_USER_TIMEOUT:
        settings.user_timeout = milliseconds(value);
        return true;
      case TCP_KEEPIDLE:
        settings.keepalive_idle = seconds(value);
        return true;
      case TCP_KEEPINTVL:
        settings.keepalive_interval = seconds(value);
        return true;
      case TCP_KEEPCNT:
        settings.keepalive_probes = static_cast<std::uint8_t>(value);
        return true;
      case TCP_SYNCNT:
        settings.syn_retries = static_cast<std::uint8_t>(value);
        return true;
      case TCP_LINGER2:
        settings.fin_wait_2 = seconds(value);
        return true;
      default:
        return false;
    }
  }

  Net net_;
  StackWire wire_;
  tcp::Settings defaults_;
  bool cookies_ = true;
  bool more_ = false;  // the last write said that more would come
  bool corked_by_option_ = false;
  std::map<int, Socket> sockets_;
  int last_fd_ = 2;
};

}  // namespace

std::unique_ptr<Target> open_stack_target(const Net& net) { return std::make_unique<StackTarget>(net); }

}  // namespace netchannel::packets
