// The options of a kernel TCP socket and what TCP_INFO says of it. Left out on purpose: asking for ECN, which
// Linux has for the whole machine only (net.ipv4.tcp_ecn).
#pragma once

#include <cstdint>
#include <string_view>

#include "netchannel/error.hpp"
#include "netchannel/tcp_info.hpp"
#include "netchannel/time.hpp"

namespace netchannel::kernel {

// The kernel's own defaults: only what differs is set, so that a socket without wishes costs no call.
struct TcpKernelOptions {
  bool no_delay = false;
  bool quick_ack = false;            // for good: TCP_QUICKACK is set again after each read
  std::uint32_t send_buffer = 0;     // bytes, as SO_SNDBUF is asked for; 0: the kernel's, which grows
  std::uint32_t receive_buffer = 0;  // likewise
  std::uint16_t max_segment = 0;     // 0: the path's
  Duration user_timeout{0};
  bool keepalive = false;
  Duration keepalive_idle = std::chrono::hours(2);
  Duration keepalive_interval = std::chrono::seconds(75);
  std::uint8_t keepalive_probes = 9;
  std::string_view congestion{};  // the algorithm's name, with static storage; empty: the system's
  std::uint8_t ttl = 64, tos = 0;
  friend bool operator==(const TcpKernelOptions&, const TcpKernelOptions&) = default;
};

// Sets what differs between `now` and `wanted`. Adds the calls made to `syscalls`. Errors: not_supported (a
// congestion control that the kernel does not have), invalid_argument.
Result<void> set_tcp_options(int fd, const TcpKernelOptions& now, const TcpKernelOptions& wanted,
                             std::uint64_t& syscalls);
// Acknowledges what waits, and what comes next, at once.
void set_quick_ack(int fd);

// All zero if the socket is closed.
TcpInfo tcp_info(int fd);
// Whether all that was written, the end included, has been acknowledged, or nothing will be any more.
bool all_acknowledged(const TcpInfo& info);

}  // namespace netchannel::kernel
