// What one recvmmsg or sendmmsg is told, kept between calls so that a call touches only what it uses. Private
// to the files of kernel::UdpSocket.
//
//   receive:  | handed out | next .. filled: here, not yet handed out | .. window: armed with an empty frame
//   |
//
// Messages are received only when none is left between next and filled, so their order is the kernel's.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/socket_address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/frame.hpp"

namespace netchannel::kernel {

inline constexpr std::size_t kMessages = 64;     // in one call
inline constexpr std::uint32_t kSegments = 64;   // in one GSO message (UDP_MAX_SEGMENTS of older kernels)
inline constexpr std::size_t kGroFrame = 65536;  // a frame that any GRO message fits in
inline constexpr std::size_t kMaxPayloadV4 =
    65507;  // 65535 less the IPv4 (RFC 791) and UDP (RFC 768) headers
inline constexpr std::size_t kMaxPayloadV6 =
    65527;  // RFC 8200: the payload length leaves the IPv6 header out
// A GSO message with its headers (VLAN, IPv6, UDP) must stay below 64 KiB, or the kernel segments it before
// the device.
inline constexpr std::size_t kMaxSuper = 65535 - 18 - 40 - 8;
// A segment that fits the least IPv6 MTU (RFC 8200 section 5) cannot be refused for its size.
inline constexpr std::size_t kSegmentThatAlwaysFits = 1280 - 40 - 8;

// Room for the GRO size, the local address, TOS and TTL, each of both families.
struct alignas(cmsghdr) ReceiveControl {
  std::array<std::byte, 192> bytes;
};

struct ReceiveBatch {
  std::array<mmsghdr, kMessages> headers{};
  std::array<iovec, kMessages> pieces{};
  std::array<SocketAddress, kMessages> senders;
  std::array<ReceiveControl, kMessages> controls;
  std::array<Frame, kMessages> frames;
  std::size_t next = 0;
  std::size_t filled = 0;
  std::size_t offset = 0;  // within message `next`: what of a GRO message has been handed out
  std::size_t window =
      8;  // asked for in one call; grows while calls fill it, so that a quiet socket keeps few frames
};

struct alignas(cmsghdr) SegmentControl {
  std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
};

struct SendBatch {
  static constexpr std::size_t kPieces = 1024;

  // One message to the kernel: one datagram, or a run of them to one peer that GSO will cut apart again.
  struct Group {
    std::size_t first = 0;  // index of its first datagram
    Bytes payload;          // of the first
    const Endpoint* peer = nullptr;
    std::size_t piece = 0;  // index of its first iovec
    std::size_t bytes = 0;
    std::uint32_t segments = 0;
    bool complete = false;  // a shorter last segment is in
  };

  std::array<mmsghdr, kMessages> headers{};
  std::array<iovec, kPieces> pieces{};
  std::array<SocketAddress, kMessages> peers;
  std::array<SegmentControl, kMessages> controls;
  std::array<Group, kMessages> groups;
  std::size_t count = 0;
  std::size_t piece_count = 0;
};

// Where in the datagrams of one send() we are.
struct SendPosition {
  std::size_t index = 0;
  Bytes before;  // the payload of the datagram before it, for `same`
};

}  // namespace netchannel::kernel
