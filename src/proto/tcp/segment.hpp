// Segments as values, so that TCP is a dialogue of plain structs: SegmentIn is what has arrived (made from a
// wire::TcpView, its payload as frames), SegmentOut is what is to be sent (the stack makes bytes of it with
// wire::TcpRepr and takes the payload out of the send queue), TxBatch is a handful of the latter.
//
// Both may stand for a super-frame: many segments of the same flow in one, each of `segment_size` bytes of
// payload but the last. FIN and PSH belong to the last of them, CWR to the first.
#pragma once

#include <cstdint>
#include <span>

#include "netchannel/frame.hpp"
#include "netchannel/wire/tcp.hpp"
#include "proto/tcp/seq.hpp"

namespace netchannel::tcp {

// The two bits of the IP header (RFC 3168 section 5).
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

struct SegmentIn {
  Seq seq;
  Seq ack;  // meaningful with the ACK flag
  wire::TcpFlags flags;
  std::uint16_t window = 0;  // as on the wire, not scaled
  Ecn ecn = Ecn::not_ect;
  std::uint16_t segments = 1;  // how many came as this one
  std::uint32_t length = 0;    // bytes of payload, the sum of the frames
  wire::TcpOptions options;
  // Each frame's bytes are payload, in order. Those that the connection keeps are moved from; the rest stay
  // the caller's to drop.
  std::span<Frame> payload;

  // RFC 9293 section 3.4: sequence numbers that the segment occupies.
  std::uint32_t sequence_length() const { return length + (flags.syn() ? 1U : 0U) + (flags.fin() ? 1U : 0U); }
  Seq end() const { return seq + sequence_length(); }
};

// Reads header and options; the caller adds payload, segments and ecn. Malformed options hold up to where
// they went wrong (RFC 9293 MUST-7).
SegmentIn segment_from(const wire::TcpView& view);

struct SegmentOut {
  Seq seq;
  Seq ack;
  wire::TcpFlags flags;
  std::uint16_t window = 0;  // as on the wire
  Ecn ecn = Ecn::not_ect;
  bool retransmission = false;
  std::uint16_t segment_size = 0;  // payload of each segment but the last, if `length` is larger; else 0
  std::uint32_t length = 0;        // bytes of payload, at `seq` in the send queue
  wire::TcpOptions options;
  friend bool operator==(const SegmentOut&, const SegmentOut&) = default;
};

using TxBatch = wire::FixedList<SegmentOut, 32>;

// What the device below takes at a time.
struct TxLimits {
  std::uint32_t segments = TxBatch::capacity();  // at most this many in the batch
  std::uint32_t super_frame = 0;  // bytes of payload that one of them may hold; below two segments: one each
};

}  // namespace netchannel::tcp
