// The bytes that have arrived and the application has not taken, in the frames they came in: no copy, but for
// small segments, which are gathered in the tail of the frame before so that a slot is not spent on a byte.
//
//           taken by the application      rcv_nxt
//     ---------|===========================|......|=====|.........|===|-------  sequence space
//              | ready, in order           | hole | island | hole | island
//
// Islands are kept sorted, disjoint and not touching; each is a SACK block (RFC 2018). Data that was received
// first wins: an overlapping segment only fills holes and never changes a byte that is already here. Bounded:
// at most kMaxIslands islands and frame_limit() frames, and out of order no more than as many as are left to
// all others; beyond that the island furthest to the right is given up (the peer keeps its data until it is
// acknowledged cumulatively, RFC 2018 section 8), so an insertion costs at most a walk over kMaxIslands.
#pragma once

#include <array>
#include <span>

#include "netchannel/frame.hpp"
#include "netchannel/wire/tcp.hpp"
#include "proto/tcp/seq.hpp"
#include "proto/tcp/shared.hpp"

namespace netchannel::tcp {

class ReceiveQueue {
 public:
  static constexpr std::uint32_t kMaxIslands = 1024;
  static constexpr std::size_t kCopyLimit = 256;  // segments up to here are gathered

  struct Inserted {
    std::uint32_t advanced = 0;  // bytes that became ready: rcv_nxt moves by as much
    std::uint32_t kept = 0;      // bytes that were new
    bool duplicate = false;      // some bytes were here already
    bool lost = false;           // some new bytes found no room: as if the network had dropped them
    wire::SackBlock duplicates;  // the first run of them, for a D-SACK (RFC 2883 section 4)
  };

  explicit ReceiveQueue(Shared& shared) : shared_(shared) {}
  ~ReceiveQueue() { clear(); }
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  void start(Seq first) { next_ = first; }
  // `frame` holds the bytes that begin at `seq`, none of them left of next() or right of the window.
  Inserted insert(Seq seq, Frame&& frame);

  Seq next() const { return next_; }  // rcv_nxt without a FIN
  std::uint32_t readable() const { return readable_; }
  std::uint32_t out_of_order() const { return out_of_order_; }  // bytes in islands
  bool has_islands() const { return first_island_ != kNoNode; }
  std::uint32_t frames() const { return frames_; }

  // Views of the ready bytes, in order; they last until consume() or take(). Returns how many were filled.
  std::size_t spans(std::span<Bytes> out) const;
  void consume(std::size_t bytes);  // at most readable()
  // The first ready frame, now the caller's. Empty if there is none.
  Frame take();

  // Blocks for the SACK option: the island that was touched last first (RFC 2018 section 4), `room` of them
  // at most.
  void sack_blocks(wire::FixedList<wire::SackBlock, wire::kMaxSackBlocks>& out, std::size_t room) const;

  std::uint32_t frame_limit() const { return frame_limit_; }
  void set_frame_limit(std::uint32_t frames) { frame_limit_ = frames; }
  // What lies behind holes goes: nothing can follow what is ready.
  void drop_islands();
  void clear();

 private:
  struct Chain {
    std::uint32_t first = kNoNode;
    std::uint32_t last = kNoNode;
  };
  struct Piece {
    Seq begin, end;
  };
  bool append(Chain& chain, Seq begin, Frame&& frame, bool growable);
  bool append_piece(Chain& chain, Piece piece, Seq seq, Frame& frame);
  struct Place {
    std::uint32_t before = kNoNode;
    std::uint32_t at = kNoNode;
  };
  Place find(Seq seq) const;
  void touch(std::uint32_t index);
  void forget(std::uint32_t index);
  Inserted insert_island(Seq seq, Frame&& frame);
  bool new_island(std::uint32_t before, Seq seq, Frame&& frame);
  void widen(Island& island, Seq seq, Frame&& frame, Inserted& out);
  void island_to_ready();
  void give_up_last();
  void free_chain(std::uint32_t first);
  void unlink_ready();

  Shared& shared_;
  Chain ready_;
  std::uint32_t first_island_ = kNoNode;
  std::uint32_t islands_ = 0;
  std::array<std::uint32_t, wire::kMaxSackBlocks> recent_{kNoNode, kNoNode, kNoNode,
                                                          kNoNode};  // touched last, first
  std::uint32_t frames_ = 0;
  std::uint32_t frame_limit_ = 0xffffffff;
  std::uint32_t allowed_ = 0;  // frames that the insertion under way may bring us to
  std::uint32_t readable_ = 0;
  std::uint32_t out_of_order_ = 0;
  Seq next_;
};

}  // namespace netchannel::tcp
