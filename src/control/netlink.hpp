// An rtnetlink socket in the caller's network namespace. Two ways to use one: requests, which the kernel
// answers within the send itself (so reading the answer never waits for anybody else), and a subscription,
// which is read without blocking. Only messages from the kernel (port 0) are believed.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/unique_fd.hpp"
#include "netchannel/error.hpp"

namespace netchannel::control {

// Called for each message of an answer or of a subscription.
using OnMessage = std::function<void(const nlmsghdr&)>;

// A message under construction, large enough for every request made here.
class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags);
  // The fixed header that follows (ifinfomsg, rtmsg, ...), zeroed; once, before any attribute.
  template <class Header>
  Header& header() {
    return *static_cast<Header*>(put_header(sizeof(Header)));
  }
  void attribute(std::uint16_t type, std::span<const std::byte> value);
  void attribute(std::uint16_t type, std::uint32_t value);
  void attribute(std::uint16_t type, const char* text);
  nlmsghdr& message() { return *message_; }

 private:
  void* put_header(std::size_t size);
  alignas(NLMSG_ALIGNTO) std::array<char, 512> buffer_;
  nlmsghdr* message_;
};

enum class Drained : std::uint8_t {
  empty,    // nothing more to read now
  bounded,  // stopped after the bound; there may be more
  overrun,  // the kernel dropped messages because we read too seldom: dump again
};

class Netlink {
 public:
  struct Options {
    std::uint32_t groups = 0;          // RTMGRP_* to subscribe to; 0: for requests
    std::uint32_t receive_buffer = 0;  // bytes asked for; 0: the system's default
  };
  // Errors: system.
  static Result<Netlink> open(const Options& options);

  int fd() const { return fd_.get(); }
  // Sends and hands every message of the answer to on_message (an acknowledgement is not one). A dump that
  // the kernel marks as inconsistent is asked for again, so on_restart is called to forget what came so far.
  // Returns 0 or the errno that the kernel answered with.
  int request(Request& request, const OnMessage& on_message, const std::function<void()>& on_restart = {});
  // Reads what has been published, at most `bound` datagrams.
  Drained drain(std::size_t bound, const OnMessage& on_message);

 private:
  explicit Netlink(UniqueFd fd, std::uint32_t port);
  int request_once(Request& request, const OnMessage& on_message);
  long receive();  // bytes, or -errno
  UniqueFd fd_;
  std::uint32_t port_ = 0;
  std::uint32_t sequence_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
};

}  // namespace netchannel::control
