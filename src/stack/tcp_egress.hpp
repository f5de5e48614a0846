// Segments into frames: the last step of TCP, where a SegmentOut of many segments is cut for a device that
// takes one packet a frame, once, into frames of one burst; or handed over whole where the device cuts.
//
//   send queue:   [frame .......][frame .......]       the only copy was write()'s
//   a segment that is one whole frame there:  headers go into its headroom and the frame itself to the device
//   any other:                                its bytes are copied behind headers in a frame of their own
//   super-frame:                              [headers] -> [frame] -> [frame] ..., one descriptor each
//
// A frame that a device has not returned yet is never written to: its retransmission is a copy.
#pragma once

#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "proto/tcp/segment.hpp"
#include "proto/tcp/send_queue.hpp"
#include "stack/egress.hpp"
#include "stack/tcp_header.hpp"

namespace netchannel::stack {

class TcpEgress {
 public:
  TcpEgress(Egress& egress, FramePool& frames, LinkFacts& link, CounterPage& counters)
      : egress_(egress), frames_(frames), link_(link), counters_(counters) {}

  // Left free in the frames of send queues.
  static constexpr std::uint16_t kHeadroom = 128;
  static_assert(TcpHeader::kMaxSize <= kHeadroom);

  bool takes_super_frames() const { return egress_.takes_super_frames(); }
  // What a poll_tx() may ask for with `mss` bytes a segment; segments = 0: nothing now.
  tcp::TxLimits limits(std::uint32_t mss);
  // Frames for the segment were there when limits() was asked. `data`: the queue that its payload is in.
  void send(const TcpPath& path, const tcp::SegmentOut& segment, tcp::SendQueue* data);

 private:
  void send_piece(const TcpHeader& header, const TcpHeader::Piece& piece, tcp::SendQueue* data);
  bool send_in_place(const TcpHeader& header, const TcpHeader::Piece& piece,
                     const tcp::SendQueue::Slice& slice);
  bool send_super_frame(const TcpHeader& header, const tcp::SegmentOut& segment, tcp::SendQueue& data);
  void finish(Frame frame, const TcpHeader& header, const TcpHeader::Piece& piece);

  // With the headers' frame one more: what every device takes in a packet.
  static constexpr std::size_t kMostSlices = 17;
  Egress& egress_;
  FramePool& frames_;
  LinkFacts& link_;
  CounterPage& counters_;
};

}  // namespace netchannel::stack
