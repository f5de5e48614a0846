#include "stack/tcp_egress.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace netchannel::stack {
namespace {

// An item of a batch that is cut here: enough that asking for it costs little, few enough that a ring of a
// usual size takes several.
constexpr std::uint32_t kSegmentsTogether = 16;
// IPv4's total length and IPv6's payload length have 16 bits; the headers count in the former.
constexpr std::uint32_t kLargestPacket = 65535;
constexpr std::uint32_t kMostHeaders =
    wire::kIpv6HeaderSize + wire::kTcpMinHeaderSize + wire::kTcpMaxOptionsSize;

}  // namespace

tcp::TxLimits TcpEgress::limits(std::uint32_t mss) {
  const std::uint32_t slot = frames_.region().slot_size() - kHeadroom;
  tcp::TxLimits limits;
  if (takes_super_frames()) {
    const std::uint32_t gathered = slot * static_cast<std::uint32_t>(kMostSlices - 1);
    limits.super_frame = std::min(std::min(kLargestPacket, link_.max_tx_frame - 14) - kMostHeaders, gathered);
    // The headers' frame, and slices: each frame of a queue is full but where the application paused.
    const std::uint32_t most = 1 + static_cast<std::uint32_t>(kMostSlices);
    limits.segments = std::min<std::uint32_t>(egress_.room(most * limits.segments) / most, limits.segments);
    return limits;
  }
  const std::uint32_t frames = (mss + kHeadroom + slot - 1) / slot;  // of one segment
  const std::uint32_t wanted = limits.segments * kSegmentsTogether;
  const std::uint32_t room = egress_.room(wanted * frames) / frames;
  const std::uint32_t together = std::min(room, kSegmentsTogether);
  limits.super_frame = together * mss;
  limits.segments = together == 0 ? 0 : std::min<std::uint32_t>(room / together, limits.segments);
  return limits;
}

void TcpEgress::send(const TcpPath& path, const tcp::SegmentOut& segment, tcp::SendQueue* data) {
  const TcpHeader header(path, segment);
  const std::uint32_t size = segment.segment_size;
  if (size == 0 || segment.length <= size) {
    return send_piece(header, {segment.seq, segment.flags, segment.length}, data);
  }
  if (takes_super_frames() && send_super_frame(header, segment, *data)) return;
  using wire::TcpFlags;
  for (std::uint32_t at = 0; at < segment.length; at += size) {
    // FIN and PSH belong to the last, CWR to the first (segment.hpp).
    TcpFlags flags = segment.flags;
    if (at + size < segment.length)
      flags.bits &= static_cast<std::uint8_t>(~(TcpFlags::kFin | TcpFlags::kPsh));
    if (at != 0) flags.bits &= static_cast<std::uint8_t>(~TcpFlags::kCwr);
    send_piece(header, {segment.seq + at, flags, std::min(size, segment.length - at)}, data);
  }
}

// Headers into the headroom of a frame whose bytes are the payload, and away.
void TcpEgress::finish(Frame frame, const TcpHeader& header, const TcpHeader::Piece& piece) {
  if (link_.tx_checksum) {
    header.stamp_partial(frame.prepend(header.size()), piece);
    frame.set_flags(kChecksumPartial, static_cast<std::uint16_t>(header.l4_offset()));
  } else {
    const wire::PartialSum sum = wire::checksum_fast(frame.bytes());
    header.stamp(frame.prepend(header.size()), piece, sum);
    frame.set_flags(0, 0);
  }
  egress_.stage(std::move(frame));
}

bool TcpEgress::send_in_place(const TcpHeader& header, const TcpHeader::Piece& piece,
                              const tcp::SendQueue::Slice& slice) {
  const Frame& queued = *slice.frame;
  const bool whole = slice.bytes.size() == piece.length && slice.bytes.data() == queued.bytes().data();
  if (!whole || queued.headroom() < header.size() || !frames_.exclusive(queued)) return false;
  Frame frame = queued.share();
  frame.drop_back(frame.size() - piece.length);
  finish(std::move(frame), header, piece);
  return true;
}

void TcpEgress::send_piece(const TcpHeader& header, const TcpHeader::Piece& piece, tcp::SendQueue* data) {
  const auto length = static_cast<std::uint32_t>(piece.length);
  if (tcp::SendQueue::Slice first; length != 0 && data->slices(piece.seq, length, {&first, 1}) == 1) {
    if (send_in_place(header, piece, first)) return;
  }
  auto frame = frames_.allocate(kHeadroom);
  if (!frame || frame->tailroom() < length) return counters_.drop(DropReason::no_frames);
  std::byte* const to = frame->append(length).data();
  std::array<tcp::SendQueue::Slice, kMostSlices> slices;
  for (std::uint32_t copied = 0; copied < length;) {
    const std::size_t count = data->slices(piece.seq + copied, length - copied, slices);
    if (count == 0) return counters_.drop(DropReason::no_frames);
    for (const tcp::SendQueue::Slice& slice : std::span(slices).first(count)) {
      std::memcpy(to + copied, slice.bytes.data(), slice.bytes.size());
      copied += static_cast<std::uint32_t>(slice.bytes.size());
    }
  }
  finish(std::move(*frame), header, piece);
}

// False: the application wrote in pieces so small that they are too many to be gathered.
bool TcpEgress::send_super_frame(const TcpHeader& header, const tcp::SegmentOut& segment,
                                 tcp::SendQueue& data) {
  std::array<tcp::SendQueue::Slice, kMostSlices> slices;
  const std::size_t count = data.slices(segment.seq, segment.length, slices);
  std::size_t covered = 0;
  for (std::size_t i = 0; i < count; ++i) covered += slices[i].bytes.size();
  if (covered != segment.length) return false;
  auto head = frames_.allocate(kHeadroom);
  if (!head) return false;
  header.stamp_partial(head->prepend(header.size()), {segment.seq, segment.flags, segment.length});
  head->set_flags(kChecksumPartial | kContinues, static_cast<std::uint16_t>(header.l4_offset()));
  head->set_segment_size(segment.segment_size);
  egress_.stage(std::move(*head));
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes bytes = slices[i].bytes;
    Frame part = slices[i].frame->share();
    part.drop_front(static_cast<std::size_t>(bytes.data() - part.bytes().data()));
    part.drop_back(part.size() - bytes.size());
    part.set_flags(i + 1 < count ? kContinues : 0, 0);
    egress_.stage(std::move(part));
  }
  return true;
}

}  // namespace netchannel::stack
