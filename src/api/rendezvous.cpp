#include "api/rendezvous.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace netchannel::rendezvous {
namespace {

constexpr int kBacklog = 1024;
constexpr std::size_t kMostDescriptors = 2;

// An abstract name begins with a zero byte and is as long as it is.
socklen_t fill(sockaddr_un& address, const std::string& name) {
  address.sun_family = AF_UNIX;
  const std::size_t n = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), n);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
}

UniqueFd open_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

constexpr const char* kNoSocket = "cannot open a socket; raise the limit of open files";

bool send_bytes(int fd, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec payload{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::vector<UniqueFd> descriptors_of(msghdr& message) {
  std::vector<UniqueFd> out;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      out.emplace_back(fd);
    }
  }
  return out;
}

template <class Message>
Result<Received<Message>> receive(int fd) {
  Received<Message> got;
  iovec payload{&got.message, sizeof got.message};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return fail(ErrorCode::would_block, "nothing has come yet", EAGAIN);
  got.memory = n > 0 ? descriptors_of(message) : std::vector<UniqueFd>{};
  const bool whole = n == sizeof got.message && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || got.message.magic != Hello::kMagic)
    return fail(ErrorCode::closed, "the other side has gone, or is no netchannel host");
  return got;
}

}  // namespace

std::string name_of(Protocol protocol, const Endpoint& local, bool v6_only) {
  std::string name = protocol == Protocol::tcp ? "netchannel/tcp/" : "netchannel/udp/";
  name += local.to_string();
  const bool any_v6 = local.address.is_unspecified() && local.address.is_v6();
  if (any_v6 && v6_only) name += "/v6only";
  return name;
}

std::vector<std::string> names_for(Protocol protocol, const Endpoint& peer) {
  std::vector<std::string> names = {name_of(protocol, peer, false)};
  if (peer.address.is_v4()) {
    names.push_back(name_of(protocol, {IpAddress::any_v4(), peer.port}, false));
  } else {
    names.push_back(name_of(protocol, {IpAddress::any_v6(), peer.port}, true));
  }
  names.push_back(name_of(protocol, {IpAddress::any_v6(), peer.port}, false));
  return names;
}

Result<UniqueFd> listen(const std::string& name) {
  UniqueFd fd = open_socket();
  if (!fd) return fail(ErrorCode::system, kNoSocket, errno);
  sockaddr_un address{};
  const socklen_t length = fill(address, name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return errno == EADDRINUSE
               ? fail(ErrorCode::address_in_use, "another local host has that port's name already", errno)
               : fail(ErrorCode::system, "cannot bind the name of a port", errno);
  }
  if (::listen(fd.get(), kBacklog) != 0)
    return fail(ErrorCode::system, "cannot listen under a port's name", errno);
  return fd;
}

Result<UniqueFd> connect(const std::vector<std::string>& names) {
  UniqueFd fd = open_socket();
  if (!fd) return fail(ErrorCode::system, kNoSocket, errno);
  for (const std::string& name : names) {
    sockaddr_un address{};
    const socklen_t length = fill(address, name);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
    if (errno == EAGAIN) return fail(ErrorCode::would_block, "the host there does not answer", errno);
  }
  return fail(ErrorCode::refused, "no netchannel host has that port", ECONNREFUSED);
}

std::optional<UniqueFd> accept(int listening) {
  UniqueFd fd(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return std::nullopt;
  return fd;
}

bool is_trusted(int fd) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return false;
  return who.uid == ::geteuid() || who.uid == 0;
}

const char* reason_of(std::uint32_t status) {
  switch (status) {
    case Welcome::other_user:
      return "it is another user's and takes its own user's peers only";
    case Welcome::other_version:
      return "it speaks another version";
    case Welcome::no_room:
      return "it has as many peers as it can have";
    default:
      return "it did not take our memory";
  }
}

bool send(int fd, const Hello& hello, std::array<int, 2> memory) {
  return send_bytes(fd, std::as_bytes(std::span(&hello, 1)), memory);
}

bool send(int fd, const Welcome& welcome, int memory) {
  const std::span<const int> one(&memory, memory >= 0 ? 1 : 0);
  return send_bytes(fd, std::as_bytes(std::span(&welcome, 1)), one);
}

Result<Received<Hello>> receive_hello(int fd) { return receive<Hello>(fd); }
Result<Received<Welcome>> receive_welcome(int fd) { return receive<Welcome>(fd); }

}  // namespace netchannel::rendezvous
