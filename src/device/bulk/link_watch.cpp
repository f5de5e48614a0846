#include "device/bulk/link_watch.hpp"

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

namespace netchannel::device {
namespace {

constexpr std::size_t kLargestMessage = 16384;
constexpr int kMostMessages = 64;  // of other interfaces, mostly, in one look

Result<UniqueFd> open_socket(std::uint32_t groups) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(ErrorCode::system, "cannot ask the kernel about interfaces: no netlink socket", errno);
  }
  return fd;
}

// One datagram from the kernel; from anybody else it counts as an empty one.
ssize_t receive(int fd, std::span<std::byte> buffer) {
  sockaddr_nl from{};
  socklen_t size = sizeof from;
  const ssize_t got =
      ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
  return got > 0 && from.nl_pid != 0 ? 0 : got;
}

template <class T>
void copy_to(T& out, const nlattr* attribute) {
  if (mnl_attr_get_payload_len(attribute) >= sizeof out)
    std::memcpy(&out, mnl_attr_get_payload(attribute), sizeof out);
}

int read_attribute(const nlattr* attribute, void* data) {
  auto& out = *static_cast<LinkFacts*>(data);
  switch (mnl_attr_get_type(attribute)) {
    case IFLA_ADDRESS:
      copy_to(out.mac.bytes, attribute);
      break;
    case IFLA_MTU:
      copy_to(out.mtu, attribute);
      break;
    case IFLA_GSO_MAX_SIZE:
      copy_to(out.gso_max_size, attribute);
      break;
    case IFLA_STATS64: {
      rtnl_link_stats64 stats{};
      copy_to(stats, attribute);
      out.tx_dropped = stats.tx_dropped;
      break;
    }
    default:
      break;
  }
  return MNL_CB_OK;
}

std::optional<ifinfomsg> header_of(const nlmsghdr& message) {
  ifinfomsg info;
  if (mnl_nlmsg_get_payload_len(&message) < sizeof info) return std::nullopt;
  std::memcpy(&info, mnl_nlmsg_get_payload(&message), sizeof info);
  // A bridge speaks of its ports in messages of the same type.
  return info.ifi_family == AF_UNSPEC ? std::optional(info) : std::nullopt;
}

// What the message does not say stays as it was: a wireless event says next to nothing.
LinkFacts facts_of(const nlmsghdr& message, const ifinfomsg& info, LinkFacts out) {
  out.index = static_cast<std::uint32_t>(info.ifi_index);
  out.ethernet = info.ifi_type == ARPHRD_ETHER;
  out.up = (info.ifi_flags & IFF_UP) != 0;
  mnl_attr_parse(&message, sizeof info, read_attribute, &out);
  return out;
}

// By name if it is not empty, else by index. The kernel answers within the call that asks.
Result<LinkFacts> ask_kernel(const std::string& name, std::uint32_t index) {
  auto fd = open_socket(0);
  if (!fd) return tl::unexpected(fd.error());
  alignas(nlmsghdr) std::array<std::byte, kLargestMessage> buffer;
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETLINK;
  request->nlmsg_flags = NLM_F_REQUEST;
  auto* info = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ifinfomsg)));
  info->ifi_index = static_cast<int>(index);
  if (!name.empty()) mnl_attr_put_strz(request, IFLA_IFNAME, name.c_str());
  if (::send(fd->get(), request, request->nlmsg_len, 0) < 0)
    return fail(ErrorCode::system, "cannot ask the kernel about an interface", errno);
  const ssize_t got = receive(fd->get(), buffer);
  if (got < 0) return fail(ErrorCode::system, "the kernel does not answer about an interface", errno);
  const auto* answer = reinterpret_cast<const nlmsghdr*>(buffer.data());
  if (mnl_nlmsg_ok(answer, static_cast<int>(got)) && answer->nlmsg_type == RTM_NEWLINK) {
    if (const auto header = header_of(*answer)) return facts_of(*answer, *header, {});
  }
  return fail(ErrorCode::no_such_device, "there is no interface of that name here: see ip link", ENODEV);
}

}  // namespace

Result<LinkFacts> LinkWatch::ask(std::uint32_t index) { return ask_kernel({}, index); }

Result<LinkWatch> LinkWatch::open(const std::string& interface) {
  if (interface.empty() || interface.size() >= IFNAMSIZ) {
    return fail(ErrorCode::no_such_device, "there is no interface of that name here: see ip link", ENODEV);
  }
  // Subscribed before it is asked, so that no change falls between.
  auto fd = open_socket(RTMGRP_LINK);
  if (!fd) return tl::unexpected(fd.error());
  auto facts = ask_kernel(interface, 0);
  if (!facts) return tl::unexpected(facts.error());
  LinkWatch watch;
  watch.fd_ = std::move(*fd);
  watch.facts_ = *facts;
  return watch;
}

void LinkWatch::take(const nlmsghdr& message) noexcept {
  const auto info = header_of(message);
  if (!info || static_cast<std::uint32_t>(info->ifi_index) != facts_.index) return;
  if (message.nlmsg_type == RTM_DELLINK) present_ = false;
  if (message.nlmsg_type == RTM_NEWLINK) facts_ = facts_of(message, *info, facts_);
}

void LinkWatch::look() noexcept {
  alignas(nlmsghdr) std::array<std::byte, kLargestMessage> buffer;
  for (int i = 0; i < kMostMessages; ++i) {
    const ssize_t got = receive(fd_.get(), buffer);
    if (got < 0 && errno == ENOBUFS) {
      // Some were lost: ask. An interface that has gone is not found.
      const auto now = ask(facts_.index);
      if (now) facts_ = *now;
      if (!now && now.error().code == ErrorCode::no_such_device) present_ = false;
      continue;
    }
    if (got < 0) return;
    int left = static_cast<int>(got);
    const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
    while (mnl_nlmsg_ok(message, left)) {
      take(*message);
      message = mnl_nlmsg_next(message, &left);
    }
  }
}

}  // namespace netchannel::device
