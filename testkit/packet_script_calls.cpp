#include "testkit/packet_script_calls.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "testkit/packet_script_peer.hpp"

namespace netchannel::testkit::script {
namespace {

struct Constant {
  std::string_view name;
  std::int64_t value;
};
#define NAMED(name) \
  Constant { #name, static_cast<std::int64_t>(name) }
constexpr std::array kConstants{
    NAMED(SOCK_STREAM), NAMED(SOCK_NONBLOCK), NAMED(SOCK_CLOEXEC), NAMED(IPPROTO_TCP), NAMED(IPPROTO_IP),
    NAMED(IPPROTO_IPV6), NAMED(SOL_SOCKET), Constant{"SOL_TCP", IPPROTO_TCP}, Constant{"SOL_IP", IPPROTO_IP},
    NAMED(SO_REUSEADDR), NAMED(SO_KEEPALIVE), NAMED(SO_OOBINLINE), NAMED(SO_LINGER), NAMED(SO_RCVBUF),
    NAMED(SO_SNDBUF), NAMED(SO_ERROR), NAMED(IP_TOS), NAMED(IPV6_TCLASS), NAMED(TCP_NODELAY), NAMED(TCP_CORK),
    NAMED(TCP_MAXSEG), NAMED(TCP_QUICKACK), NAMED(TCP_USER_TIMEOUT), NAMED(TCP_KEEPIDLE),
    NAMED(TCP_KEEPINTVL), NAMED(TCP_KEEPCNT), NAMED(TCP_SYNCNT), NAMED(TCP_LINGER2), NAMED(TCP_DEFER_ACCEPT),
    NAMED(TCP_NOTSENT_LOWAT), NAMED(TCP_WINDOW_CLAMP), NAMED(O_RDWR), NAMED(O_NONBLOCK), NAMED(F_GETFL),
    NAMED(F_SETFL), NAMED(SHUT_RD), NAMED(SHUT_WR), NAMED(SHUT_RDWR), NAMED(MSG_MORE), NAMED(MSG_DONTWAIT),
    NAMED(MSG_NOSIGNAL), NAMED(MSG_OOB), NAMED(MSG_PEEK), NAMED(POLLIN), NAMED(POLLOUT), NAMED(POLLERR),
    NAMED(POLLHUP), NAMED(POLLRDHUP), NAMED(SIOCINQ), NAMED(SIOCOUTQ), Constant{"FIONREAD", SIOCINQ},
    // Names of errors that SO_ERROR may hold.
    NAMED(ECONNREFUSED), NAMED(ECONNRESET), NAMED(ETIMEDOUT), NAMED(EHOSTUNREACH), NAMED(ENETUNREACH),
    NAMED(EPIPE), NAMED(EPROTO), NAMED(ENOPROTOOPT), NAMED(EMSGSIZE), NAMED(EACCES), NAMED(EAGAIN),
    NAMED(EINPROGRESS), NAMED(EALREADY), NAMED(EISCONN), NAMED(ENOTCONN), NAMED(EINVAL), NAMED(EADDRINUSE),
    NAMED(EADDRNOTAVAIL), NAMED(EOPNOTSUPP), NAMED(ENETDOWN), NAMED(EBADF),
    // tcp_info
    Constant{"TCP_ESTABLISHED", 1}, Constant{"TCP_SYN_SENT", 2}, Constant{"TCP_SYN_RECV", 3},
    Constant{"TCP_FIN_WAIT1", 4}, Constant{"TCP_FIN_WAIT2", 5}, Constant{"TCP_TIME_WAIT", 6},
    Constant{"TCP_CLOSE", 7}, Constant{"TCP_CLOSE_WAIT", 8}, Constant{"TCP_LAST_ACK", 9},
    Constant{"TCP_LISTEN", 10}, Constant{"TCP_CLOSING", 11}, Constant{"TCP_CA_Open", 0},
    Constant{"TCP_CA_Disorder", 1}, Constant{"TCP_CA_CWR", 2}, Constant{"TCP_CA_Recovery", 3},
    Constant{"TCP_CA_Loss", 4}, Constant{"TCP_INFINITE_SSTHRESH", 0x7fffffff}};
#undef NAMED

std::optional<std::int64_t> info_field(const TcpInfo& i, std::string_view name) {
  const std::array fields{Constant{"state", static_cast<std::int64_t>(i.state)},
                          Constant{"ca_state", i.ca_state},
                          Constant{"retransmits", i.retransmits},
                          Constant{"probes", i.probes},
                          Constant{"backoff", i.backoff},
                          Constant{"snd_wscale", i.snd_wscale},
                          Constant{"rcv_wscale", i.rcv_wscale},
                          Constant{"rto", i.rto},
                          Constant{"snd_mss", i.snd_mss},
                          Constant{"rcv_mss", i.rcv_mss},
                          Constant{"advmss", i.advmss},
                          Constant{"unacked", i.unacked},
                          Constant{"sacked", i.sacked},
                          Constant{"lost", i.lost},
                          Constant{"rtt", i.rtt},
                          Constant{"rttvar", i.rttvar},
                          Constant{"min_rtt", i.min_rtt},
                          Constant{"snd_ssthresh", i.snd_ssthresh},
                          Constant{"snd_cwnd", i.snd_cwnd},
                          Constant{"snd_wnd", i.snd_wnd},
                          Constant{"total_retrans", i.total_retrans},
                          Constant{"segs_in", i.segs_in},
                          Constant{"segs_out", i.segs_out},
                          Constant{"bytes_acked", static_cast<std::int64_t>(i.bytes_acked)},
                          Constant{"bytes_received", static_cast<std::int64_t>(i.bytes_received)},
                          Constant{"bytes_retrans", static_cast<std::int64_t>(i.bytes_retrans)},
                          Constant{"notsent_bytes", i.notsent_bytes},
                          Constant{"ecn", i.ecn ? 1 : 0},
                          Constant{"sack", i.sack ? 1 : 0},
                          Constant{"timestamps", i.timestamps ? 1 : 0},
                          Constant{"wscale", i.window_scaling ? 1 : 0}};
  for (const Constant& field : fields)
    if (field.name == name) return field.value;
  return std::nullopt;
}

// The number that an argument stands for.
std::optional<std::int64_t> number_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::number:
      return value.number;
    case Value::Kind::words: {
      std::int64_t out = 0;
      for (const std::string& word : value.words) {
        const auto known = constant(word);
        if (!known) return std::nullopt;
        out |= *known;
      }
      return out;
    }
    case Value::Kind::list:
      return value.items.size() == 1 ? number_of(value.items[0]) : std::nullopt;
    default:
      return std::nullopt;
  }
}

tl::unexpected<std::string> wrong(std::string why) { return tl::unexpected(std::move(why)); }

std::string describe(long value) {
  if (value >= 0) return std::to_string(value);
  return "-1 " + std::string(strerrorname_np(static_cast<int>(-value)));
}

Calls::Answer problem(std::string text) { return {.problem = std::move(text)}; }

// "{onoff=1, linger=0}" or "{fd=4, events=POLLIN}"
std::optional<std::int64_t> field_of(const Value& value, std::string_view name) {
  for (std::size_t i = 0; i < value.items.size(); ++i)
    if (value.names[i] == name) return number_of(value.items[i]);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> constant(std::string_view name) {
  for (const Constant& known : kConstants)
    if (known.name == name) return known.value;
  if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(name));
}

const std::map<std::string, Calls::Known, std::less<>>& Calls::known() {
  static const std::map<std::string, Known, std::less<>> calls{
      {"socket", {&Calls::do_socket, 3}},
      {"bind", {&Calls::do_bind, 3}},
      {"listen", {&Calls::do_listen, 2}},
      {"accept", {&Calls::do_accept, 3}},
      {"connect", {&Calls::do_connect, 3}},
      {"read", {&Calls::do_read, 3}},
      {"recv", {&Calls::do_read, 4}},
      {"write", {&Calls::do_write, 3}},
      {"send", {&Calls::do_write, 4}},
      {"shutdown", {&Calls::do_shutdown, 2}},
      {"close", {&Calls::do_close, 1}},
      {"setsockopt", {&Calls::do_setsockopt, 5}},
      {"getsockopt", {&Calls::do_getsockopt, 5}},
      {"fcntl", {&Calls::do_fcntl, 2}},
      {"poll", {&Calls::do_poll, 3}},
      {"ioctl", {&Calls::do_ioctl, 3}},
  };
  return calls;
}

Calls::Answer Calls::attempt(const CallEvent& call, Progress& progress) {
  const auto found = known().find(call.name);
  if (found == known().end()) return problem("the runner knows no call \"" + call.name + "\"");
  if (call.arguments.size() < found->second.arguments)
    return problem(call.name + " has " + std::to_string(found->second.arguments) + " arguments");
  return (this->*found->second.handler)(call, progress);
}

std::string Calls::compare(const CallEvent& call, const Answer& answer) {
  if (!answer.problem.empty()) return answer.problem;
  if (answer.waits) return call.name + " would have to wait";
  if (!call.error.empty()) {
    const bool same = answer.value < 0 && call.error == strerrorname_np(static_cast<int>(-answer.value));
    return same ? "" : call.name + " gave " + describe(answer.value) + ", not -1 " + call.error;
  }
  const auto wanted = number_of(call.result);
  if (call.name == "socket" || call.name == "accept") {
    if (answer.value < 0) return call.name + " gave " + describe(answer.value);
    if (!wanted) return "a number must stand for the new descriptor";
    if (sockets_.contains(*wanted)) return "descriptor " + std::to_string(*wanted) + " is in use";
    sockets_[*wanted] = {.live = static_cast<int>(answer.value)};
    if (call.name == "accept") connection_ = *wanted;
    return "";
  }
  if (call.result.kind == Value::Kind::any) return answer.value >= 0 ? "" : call.name + " failed";
  if (!wanted) return "the script's result is no number";
  if (*wanted == answer.value) return "";
  return call.name + " gave " + describe(answer.value) + ", not " + std::to_string(*wanted);
}

tl::expected<std::int64_t, std::string> Calls::evaluate(const std::string& term) {
  constexpr std::string_view kPrefix = "tcpi_";
  if (!term.starts_with(kPrefix)) {
    if (const auto known_value = constant(term)) return *known_value;
    return wrong("nothing is called \"" + term + "\"");
  }
  if (!sockets_.contains(connection_)) return wrong("there is no connection to ask");
  const auto info = target_.info(sockets_[connection_].live);
  if (!info) return wrong("the connection gives no information");
  const auto value = info_field(*info, std::string_view(term).substr(kPrefix.size()));
  if (!value) return wrong("tcp_info has no field \"" + term + "\" that the runner knows");
  return *value;
}

Calls::Socket* Calls::socket_of(const CallEvent& call, std::string& why) {
  const auto fd = number_of(call.arguments[0]);
  const auto found = fd ? sockets_.find(*fd) : sockets_.end();
  if (found != sockets_.end()) return &found->second;
  why = call.name + " is called with no open descriptor";
  return nullptr;
}

template <class Function>
Calls::Answer Calls::with_socket(const CallEvent& call, Function function) {
  std::string why;
  Socket* socket = socket_of(call, why);
  if (socket == nullptr) return problem(why);
  return function(*socket);
}

Calls::Answer Calls::do_socket(const CallEvent&, Progress&) { return {.value = target_.socket()}; }

// bind(3, ..., ...), or bind(3, 8081, ...) for another port than the script's usual one.
Calls::Answer Calls::do_bind(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const auto port = number_of(call.arguments[1]);
    return {.value = target_.bind(s.live, port ? static_cast<std::uint16_t>(*port) : net_.port)};
  });
}

Calls::Answer Calls::do_listen(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    return {.value = target_.listen(s.live, static_cast<int>(number_of(call.arguments[1]).value_or(1)))};
  });
}

Calls::Answer Calls::do_accept(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const long value = target_.accept(s.live);
    return {.value = value, .waits = value == -EAGAIN && s.blocking, .problem = {}};
  });
}

// connect(3, ..., ...) to the peer; connect(3, "224.0.0.1", ...) to another address.
Calls::Answer Calls::do_connect(const CallEvent& call, Progress& progress) {
  return with_socket(call, [&](Socket& s) -> Answer {
    Endpoint peer{net_.remote, net_.first_port};
    if (call.arguments[1].kind == Value::Kind::text) {
      const auto address = IpAddress::parse(call.arguments[1].text);
      if (!address) return problem("\"" + call.arguments[1].text + "\" is no address");
      peer.address = *address;
    }
    const long value = progress.begun ? target_.connected(s.live) : target_.connect(s.live, peer);
    progress.begun = true;
    connection_ = number_of(call.arguments[0]).value_or(-1);
    return {.value = value, .waits = value == -EINPROGRESS && s.blocking, .problem = {}};
  });
}

Calls::Answer Calls::do_read(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const std::int64_t flags = call.arguments.size() > 3 ? number_of(call.arguments[3]).value_or(0) : 0;
    std::vector<std::byte> bytes(static_cast<std::size_t>(number_of(call.arguments[2]).value_or(0)));
    const long value = target_.read(s.live, bytes);
    for (long i = 0; i < value; ++i) {
      if (bytes[static_cast<std::size_t>(i)] != stream_byte(s.read, false))
        return problem("byte " + std::to_string(s.read) + " of the stream is wrong");
      ++s.read;
    }
    const bool wait = s.blocking && (flags & MSG_DONTWAIT) == 0;
    return {.value = value, .waits = value == -EAGAIN && wait, .problem = {}};
  });
}

Calls::Answer Calls::do_write(const CallEvent& call, Progress& progress) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const std::int64_t flags = call.arguments.size() > 3 ? number_of(call.arguments[3]).value_or(0) : 0;
    if ((flags & ~(MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL)) != 0)
      return problem("flags that the runner cannot send with");
    const auto size = static_cast<std::size_t>(number_of(call.arguments[2]).value_or(0));
    std::vector<std::byte> bytes(size - progress.done);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = stream_byte(s.written + i, true);
    const long value = target_.write(s.live, bytes, (flags & MSG_MORE) != 0);
    const bool wait = s.blocking && (flags & MSG_DONTWAIT) == 0;
    if (value < 0)
      return {.value = progress.done != 0 && value != -EAGAIN ? static_cast<long>(progress.done) : value,
              .waits = value == -EAGAIN && wait,
              .problem = {}};
    s.written += static_cast<std::uint64_t>(value);
    progress.done += static_cast<std::size_t>(value);
    return {.value = static_cast<long>(progress.done), .waits = wait && progress.done < size, .problem = {}};
  });
}

Calls::Answer Calls::do_shutdown(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    return {.value = target_.shutdown(s.live, static_cast<int>(number_of(call.arguments[1]).value_or(0)))};
  });
}

Calls::Answer Calls::do_close(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const int live = s.live;
    sockets_.erase(*number_of(call.arguments[0]));
    return {.value = target_.close(live)};
  });
}

Calls::Answer Calls::do_setsockopt(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const auto level = number_of(call.arguments[1]), name = number_of(call.arguments[2]);
    if (!level || !name) return problem("an option that the runner does not know");
    const Value& value = call.arguments[3];
    if (*level == SOL_SOCKET && *name == SO_LINGER) {
      const auto on = field_of(value, "onoff"), seconds = field_of(value, "linger");
      if (!on || !seconds) return problem("SO_LINGER needs {onoff=1, linger=0}");
      return {.value = target_.linger(s.live, *on != 0, static_cast<int>(*seconds))};
    }
    const auto number = number_of(value);
    if (!number) return problem("an option's value that is no number");
    return {.value = target_.setsockopt(s.live, static_cast<int>(*level), static_cast<int>(*name), *number)};
  });
}

Calls::Answer Calls::do_getsockopt(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const auto level = number_of(call.arguments[1]), name = number_of(call.arguments[2]);
    if (!level || !name) return problem("an option that the runner does not know");
    long value = 0;
    const long result = target_.getsockopt(s.live, static_cast<int>(*level), static_cast<int>(*name), value);
    const auto wanted = number_of(call.arguments[3]);
    if (result == 0 && wanted && value != *wanted)
      return problem("the option is " + std::to_string(value) + ", not " + std::to_string(*wanted));
    return {.value = result};
  });
}

// The status flags are the script's own: the target never blocks.
Calls::Answer Calls::do_fcntl(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const auto what = number_of(call.arguments[1]);
    if (what == F_GETFL) return {.value = O_RDWR | (s.blocking ? 0 : O_NONBLOCK)};
    if (what != F_SETFL || call.arguments.size() < 3) return problem("fcntl knows F_GETFL and F_SETFL");
    s.blocking = (number_of(call.arguments[2]).value_or(0) & O_NONBLOCK) == 0;
    return {.value = 0};
  });
}

// poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1
Calls::Answer Calls::do_poll(const CallEvent& call, Progress&) {
  if (number_of(call.arguments[2]) != 0) return problem("poll is understood with a timeout of 0 only");
  long ready = 0;
  for (const Value& entry : call.arguments[0].items) {
    const auto fd = field_of(entry, "fd"), events = field_of(entry, "events");
    const std::int64_t wanted = field_of(entry, "revents").value_or(0);
    const auto found = fd ? sockets_.find(*fd) : sockets_.end();
    if (found == sockets_.end() || !events)
      return problem("poll needs {fd=4, events=POLLIN, revents=POLLIN}");
    const long got = target_.poll(found->second.live, static_cast<short>(*events));
    if (got != wanted)
      return problem("revents is " + std::to_string(got) + ", not " + std::to_string(wanted));
    ready += got != 0 ? 1 : 0;
  }
  return {.value = ready};
}

// ioctl(4, SIOCINQ, [1000]) = 0
Calls::Answer Calls::do_ioctl(const CallEvent& call, Progress&) {
  return with_socket(call, [&](Socket& s) -> Answer {
    const auto request = number_of(call.arguments[1]);
    if (!request) return problem("a request that the runner does not know");
    const long value = target_.ioctl(s.live, static_cast<unsigned long>(*request));
    if (value < 0) return {.value = value};
    const auto wanted = number_of(call.arguments[2]);
    if (wanted && *wanted != value)
      return problem("the answer is " + std::to_string(value) + ", not " + std::to_string(*wanted));
    return {.value = 0};
  });
}

}  // namespace netchannel::testkit::script
