// The bytes that the application has written and the peer has not acknowledged, in frames. The only copy is
// at write(); a segment is a range of it, sent as often as need be.
//
//        begin()                     end()
//     ------|--------------------------|----->  sequence space
//           | frame | frame | frame |          each up to `fill` bytes, so that whole segments stand in one
//           frame
//
// Invariant: the frames are contiguous in sequence space. Called by connection.hpp; read by the stack, which
// makes packets of it. A frame that a device still reads stays alive through the device's own reference.
#pragma once

#include <span>

#include "netchannel/frame.hpp"
#include "proto/tcp/seq.hpp"
#include "proto/tcp/shared.hpp"

namespace netchannel::tcp {

struct WriteLayout {
  std::uint16_t headroom = 128;  // left free in each frame for headers
  std::uint32_t fill =
      1460;  // bytes of data in a frame, a multiple of the segment size; at most what the slot takes
  std::uint32_t most_frames = 0xffffffff;  // that may be taken from the pool
  bool new_frame = false;  // do not append to a frame that was sent already, so that its bytes start a packet
};

class SendQueue {
 public:
  struct Slice {
    Bytes bytes;
    const Frame* frame = nullptr;  // which they are of; bytes need not be all of it
  };

  explicit SendQueue(Slab<FrameNode>& nodes) : nodes_(nodes) {}
  ~SendQueue() { clear(); }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // Where the first byte will stand; only while empty.
  void start(Seq first);
  // Copies from `data` as much as frames can be had for, at most `limit` bytes; returns how much.
  std::size_t write(Bytes data, FramePool& pool, const WriteLayout& layout);
  // Takes a whole frame without a copy. False if no node is free; the frame stays the caller's.
  bool append(Frame&& frame);

  Seq begin() const { return begin_; }
  Seq end() const { return end_; }
  std::uint32_t size() const { return distance(begin_, end_); }
  std::uint32_t frames() const { return frames_; }

  // The peer has everything before `una`; whole frames go home.
  void release(Seq una);
  // Cuts [from, from + length), which is inside, along the frames; returns how many slices were filled.
  // Nearly constant time when ranges are asked for in rising order.
  std::size_t slices(Seq from, std::uint32_t length, std::span<Slice> out);
  void clear();

 private:
  std::uint32_t find(Seq at);
  Seq end_of(const FrameNode& node) const {
    return node.begin + static_cast<std::uint32_t>(node.frame.size());
  }

  Slab<FrameNode>& nodes_;
  std::uint32_t first_ = kNoNode;
  std::uint32_t last_ = kNoNode;
  std::uint32_t new_hint_ = kNoNode;    // where the last search near the end ended
  std::uint32_t retry_hint_ = kNoNode;  // where the last search near the beginning ended
  std::uint32_t frames_ = 0;
  Seq begin_, end_;
};

}  // namespace netchannel::tcp
