#include "bench/control.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address to_address(const Endpoint& endpoint) {
  Address out;
  if (endpoint.address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.v4_value());
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.length = sizeof v4;
    return out;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  std::memcpy(&v6.sin6_addr, endpoint.address.bytes().data(), 16);
  std::memcpy(&out.storage, &v6, sizeof v6);
  out.length = sizeof v6;
  return out;
}

Endpoint to_endpoint(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  std::array<std::uint8_t, 16> bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, 16);
  return {IpAddress::v6(bytes), ntohs(v6.sin6_port)};
}

// 1 ready, 0 deadline, -1 interrupted for good.
int wait_for(int fd, short events, Instant deadline, bool heed_interrupts) {
  for (;;) {
    if (heed_interrupts && interrupted()) return -1;
    const Duration left = deadline - device::monotonic_now();
    if (left.count() < 0) return 0;
    pollfd one{fd, events, 0};
    const int n =
        ::poll(&one, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    if (n > 0) return 1;
  }
}

void set_no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// 0 or an errno.
int connect_once(UniqueFd& fd, const Endpoint& to, Instant deadline) {
  fd.reset(::socket(to.address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  Address address = to_address(to);
  if (::connect(fd.get(), address.any(), address.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const int ready = wait_for(fd.get(), POLLOUT, deadline, true);
  if (ready <= 0) return ready == 0 ? ETIMEDOUT : EINTR;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

tl::unexpected<Error> connect_error(int error) {
  switch (error) {
    case EINTR:
      return fail(ErrorCode::interrupted, "interrupted while connecting to the far end");
    case ECONNREFUSED:
      return fail(ErrorCode::refused, "nobody serves there; start `netchannel serve` on the far end first",
                  error);
    case ETIMEDOUT:
      return fail(ErrorCode::timed_out,
                  "the far end does not answer; is its address right and the control port open?", error);
    default:
      return fail(ErrorCode::unreachable, "cannot reach the far end; look at the address and the routes",
                  error);
  }
}

}  // namespace

Result<Control> Control::connect(const Endpoint& to, Duration within) {
  const Instant deadline = device::monotonic_now() + within;
  UniqueFd fd;
  int error = 0;
  do {
    error = connect_once(fd, to, deadline);
    if (error == 0) {
      set_no_delay(fd.get());
      return Control(std::move(fd));
    }
    if (error != ECONNREFUSED && error != EHOSTUNREACH && error != ENETUNREACH) break;
    const timespec pause{0, 20'000'000};
    ::nanosleep(&pause, nullptr);
  } while (device::monotonic_now() < deadline && !interrupted());
  return connect_error(error);
}

Result<void> Control::send(const Json& message) {
  const std::string line = to_text(message) + "\n";
  std::size_t sent = 0;
  const Instant deadline = device::monotonic_now() + std::chrono::seconds(5);
  while (sent < line.size()) {
    const ssize_t n = ::send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && wait_for(fd_.get(), POLLOUT, deadline, heed_interrupts_) == 1) continue;
    return fail(ErrorCode::closed, "the far end closed the control connection; look at its output", errno);
  }
  return {};
}

Result<Json> Control::receive(Duration within) {
  const Instant deadline = device::monotonic_now() + within;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto parsed = parse_json(std::string_view(buffer_).substr(0, end));
      buffer_.erase(0, end + 1);
      return parsed;
    }
    if (buffer_.size() > kLongestLine) {
      return fail(ErrorCode::invalid_argument,
                  "the far end speaks another protocol: a line that does not end");
    }
    const int ready = wait_for(fd_.get(), POLLIN, deadline, heed_interrupts_);
    if (ready < 0) return fail(ErrorCode::interrupted, "interrupted while waiting for the far end");
    if (ready == 0)
      return fail(ErrorCode::timed_out, "the far end does not answer on the control connection", ETIMEDOUT);
    std::array<char, 4096> chunk;
    const ssize_t n = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    return fail(ErrorCode::closed, "the far end closed the control connection; look at its output",
                n < 0 ? errno : 0);
  }
}

Result<Json> Control::ask(const Json& request, Duration within) {
  if (auto sent = send(request); !sent) return tl::unexpected(sent.error());
  auto answer = receive(within);
  if (!answer) return answer;
  error_text_ = get_text(*answer, "error");
  if (!error_text_.empty()) return fail(ErrorCode::refused, "the far end refused; its reason follows");
  return answer;
}

bool Control::readable() const {
  if (buffer_.find('\n') != std::string::npos) return true;
  pollfd one{fd_.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

Endpoint Control::local() const {
  Address address;
  return ::getsockname(fd_.get(), address.any(), &address.length) == 0 ? to_endpoint(address) : Endpoint{};
}

Result<ControlListener> ControlListener::open(const Endpoint& at) {
  const bool v6 = at.address.is_v6();
  UniqueFd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // "::" takes both families where there is IPv6 at all.
  if (!fd && v6 && at.address.is_unspecified()) return open({IpAddress::any_v4(), at.port});
  if (!fd) return fail(ErrorCode::system, "cannot make a TCP socket for the control connection", errno);
  const int on = 1, off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (v6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  Address address = to_address(at);
  if (::bind(fd.get(), address.any(), address.length) != 0) {
    if (errno == EADDRINUSE) {
      return fail(ErrorCode::address_in_use,
                  "the control port is taken: is a serve running already? Else choose --control-port", errno);
    }
    return fail(ErrorCode::system, "cannot bind the control port", errno);
  }
  if (::listen(fd.get(), 64) != 0) return fail(ErrorCode::system, "cannot listen on the control port", errno);
  return ControlListener(std::move(fd));
}

Result<Control> ControlListener::accept() {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return fail(ErrorCode::would_block, "nobody is waiting to be accepted", errno);
  set_no_delay(fd.get());
  return Control(std::move(fd));
}

}  // namespace netchannel::bench
