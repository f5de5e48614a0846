// The virtio-net header, twelve bytes before each frame that crosses a TAP with offloads (virtio 1.2, section
// 5.1.6): whether the transport checksum is still to be done, and how large the segments of a super-frame
// are.
//
//   | flags | gso_type | hdr_len | gso_size | csum_start | csum_offset | num_buffers |  frame ...
//   0       1          2         4          6            8             10            12
//
// Two pure functions, one for each direction, between such a header and what a FrameDesc says. A header that
// contradicts its frame is refused with a DropReason; nothing of it is used before it has been compared with
// the bytes that are there. To compare, both look for the transport header of the frame and at no more of it
// than protocol and length: packets are the stack's business.
//
// Left out on purpose: a partial checksum that is not the outer transport header's (a tunnel inside of a
// claimed UDP flow, from a sender on the same machine) cannot be said in a FrameDesc and is refused.
#pragma once

#include <array>
#include <cstdint>

#include <tl/expected.hpp>

#include "netchannel/bytes.hpp"
#include "netchannel/drop_reason.hpp"
#include "netchannel/frame.hpp"

namespace netchannel::device {

inline constexpr std::size_t kVnetHeaderSize = 12;
using VnetHeader = std::array<std::byte, kVnetHeaderSize>;

// What a header says about its frame, in the words of FrameDesc.
struct FrameOffload {
  std::uint16_t flags = 0;  // kChecksumVerified, kChecksumPartial
  std::uint16_t segment_size = 0;
  std::uint16_t l4_offset = 0;  // with kChecksumPartial or a segment size; else 0
  friend bool operator==(const FrameOffload&, const FrameOffload&) = default;
};

// Of a received frame: `header` has kVnetHeaderSize bytes, `frame` is all that came behind it.
tl::expected<FrameOffload, DropReason> parse_vnet_header(Bytes header, Bytes frame);

struct FrameToSend {
  Bytes front;            // the frame from its first byte on; at least up to the end of its transport header
  std::size_t bytes = 0;  // of the whole frame, which may go on elsewhere
  FrameOffload offload;   // a segment size needs kChecksumPartial
};
// device_frame_too_large: the frame, or a segment of it, is longer than `mtu` allows.
// device_bad_descriptor: `offload` does not fit the frame.
tl::expected<VnetHeader, DropReason> make_vnet_header(const FrameToSend& frame, std::uint32_t mtu);

}  // namespace netchannel::device
