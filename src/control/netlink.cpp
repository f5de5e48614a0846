#include "control/netlink.hpp"

#include <libmnl/libmnl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace netchannel::control {

namespace {

constexpr std::size_t kBufferSize =
    std::size_t{64} * 1024;  // the kernel fills at most 32 KiB of one datagram
constexpr int kDumpTries = 16;

// The messages of one datagram, in order; stops early if `visit` returns false.
template <class Visit>
void for_each_message(const std::byte* data, long size, Visit visit) {
  int left = static_cast<int>(size);
  const void* at = data;
  for (auto* message = static_cast<const nlmsghdr*>(at); mnl_nlmsg_ok(message, left);
       message = mnl_nlmsg_next(message, &left)) {
    if (!visit(*message)) return;
  }
}

// 0 or the errno that an NLMSG_ERROR or the end of a dump carries.
int error_of(const nlmsghdr& message) {
  if (mnl_nlmsg_get_payload_len(&message) < sizeof(std::int32_t)) return 0;
  std::int32_t error = 0;
  std::memcpy(&error, mnl_nlmsg_get_payload(&message), sizeof error);
  return error < 0 ? -error : error;
}

}  // namespace

Request::Request(std::uint16_t type, std::uint16_t flags)
    : buffer_{}, message_(mnl_nlmsg_put_header(buffer_.data())) {
  message_->nlmsg_type = type;
  message_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

void* Request::put_header(std::size_t size) { return mnl_nlmsg_put_extra_header(message_, size); }

void Request::attribute(std::uint16_t type, std::span<const std::byte> value) {
  mnl_attr_put(message_, type, value.size(), value.data());
}
void Request::attribute(std::uint16_t type, std::uint32_t value) { mnl_attr_put_u32(message_, type, value); }
void Request::attribute(std::uint16_t type, const char* text) { mnl_attr_put_strz(message_, type, text); }

Netlink::Netlink(UniqueFd fd, std::uint32_t port)
    : fd_(std::move(fd)), port_(port), buffer_(std::make_unique<std::byte[]>(kBufferSize)) {}

Result<Netlink> Netlink::open(const Options& options) {
  UniqueFd fd{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)};
  if (!fd)
    return fail(ErrorCode::system, "cannot open a netlink socket; is the limit of open files reached?",
                errno);
  if (options.receive_buffer != 0) {
    const int size = static_cast<int>(options.receive_buffer);
    // A smaller buffer than asked for only means an earlier overrun, which is mended by a dump.
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = options.groups;
  socklen_t length = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail(ErrorCode::system, "cannot bind a netlink socket", errno);
  }
  return Netlink(std::move(fd), address.nl_pid);
}

long Netlink::receive() {
  for (;;) {
    sockaddr_nl from{};
    socklen_t from_length = sizeof from;
    const ssize_t n = ::recvfrom(fd_.get(), buffer_.get(), kBufferSize, MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&from), &from_length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (from.nl_pid != 0) continue;  // not the kernel
    if (static_cast<std::size_t>(n) > kBufferSize) return -ENOBUFS;
    return n;
  }
}

int Netlink::request_once(Request& request, const OnMessage& on_message) {
  nlmsghdr& message = request.message();
  message.nlmsg_seq = ++sequence_;
  const bool acknowledged = (message.nlmsg_flags & NLM_F_ACK) != 0;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(fd_.get(), &message, message.nlmsg_len, 0, reinterpret_cast<const sockaddr*>(&kernel),
               sizeof kernel) < 0) {
    return errno;
  }
  bool interrupted = false;
  for (;;) {
    const long n = receive();
    if (n < 0) return static_cast<int>(-n);
    std::optional<int> end;
    for_each_message(buffer_.get(), n, [&](const nlmsghdr& answer) {
      if (answer.nlmsg_seq != sequence_ || answer.nlmsg_pid != port_) return true;
      // A dump is read to its end even then: the next one may not start before.
      interrupted = interrupted || (answer.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (answer.nlmsg_type == NLMSG_ERROR || answer.nlmsg_type == NLMSG_DONE) {
        end = error_of(answer);
        return false;
      }
      if (answer.nlmsg_type < NLMSG_MIN_TYPE) return true;
      on_message(answer);
      if ((answer.nlmsg_flags & NLM_F_MULTI) != 0) return true;
      if (!acknowledged) end = 0;
      return !end.has_value();
    });
    if (end.has_value()) return interrupted ? EINTR : *end;
  }
}

int Netlink::request(Request& request, const OnMessage& on_message, const std::function<void()>& on_restart) {
  for (int i = 0; i < kDumpTries; ++i) {
    const int error = request_once(request, on_message);
    if (error != EINTR) return error;  // EINTR: NLM_F_DUMP_INTR, the tables changed while they were dumped
    if (on_restart) on_restart();
  }
  return EINTR;
}

Drained Netlink::drain(std::size_t bound, const OnMessage& on_message) {
  for (std::size_t i = 0; i < bound; ++i) {
    const long n = receive();
    if (n == -EAGAIN) return Drained::empty;
    if (n < 0) return Drained::overrun;  // ENOBUFS; and after any other error only a dump is certain
    for_each_message(buffer_.get(), n, [&](const nlmsghdr& message) {
      if (message.nlmsg_type >= NLMSG_MIN_TYPE) on_message(message);
      return true;
    });
  }
  return Drained::bounded;
}

}  // namespace netchannel::control
