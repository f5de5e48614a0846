// The memory that two hosts share for one link, and the end of it that one of them holds. The connector makes
// it (a sealed memfd), the acceptor maps it; besides, each maps the other's frames, which it can only read.
//
//   link memory:    | cells there | cells back | slots home to the connector | slots home to the acceptor |
//   sender's frames | slot 0 | slot 1 | ...   read only for everybody else (F_SEAL_FUTURE_WRITE)
//
//   large frame:  sender --- cell: slot number ---> receiver copies it out of the sender's frames
//                 sender <-- slot number ---------- and sends the slot home
//
// A bell is a socket whose other end the peer has: a byte in it wakes the peer, and its end means that the
// peer is gone. No descriptor is shared whose flags or position the other could change.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "device/shm_cells.hpp"
#include "netchannel/error.hpp"
#include "ring/spsc.hpp"

namespace netchannel::device {

// Slots that a host may show: the size of the rings in which they come home.
inline constexpr std::uint32_t kMostShownSlots = 1024;
inline constexpr std::size_t kSlotRingSize = ring::memory_size<std::uint32_t>(kMostShownSlots);
inline constexpr std::size_t kLinkMemory = 2 * (kCellRingSize + kSlotRingSize);

enum class LinkRole : std::uint8_t { connector, acceptor };

// The connector's: memory and the memfd to give away. Errors: no_memory, system.
struct LinkMemory {
  UniqueFd fd;
  Mapping mapping;
};
Result<LinkMemory> make_link_memory();

// A peer's frames as they are mapped here, read only.
struct PeerFrames {
  Mapping mapping;  // none: not known yet
  std::uint32_t slots = 0;
  std::uint32_t slot_size = 0;
  bool holds(const CellHeader& frame) const {
    return mapping && frame.slot < slots && frame.offset <= slot_size &&
           frame.length <= slot_size - frame.offset;
  }
  Bytes bytes_of(const CellHeader& frame) const {
    return Bytes(mapping.bytes()).subspan(std::size_t{frame.slot} * slot_size + frame.offset, frame.length);
  }
};

// One end. Trusts nothing that it reads.
struct LinkEnd {
  LinkEnd(Mapping memory, LinkRole role, UniqueFd bell_end);

  Mapping memory;
  CellWriter out;
  CellReader in;
  ring::Producer<std::uint32_t> give_home;  // the peer's slots that we are done with
  ring::Consumer<std::uint32_t> came_home;  // ours
  PeerFrames peer;
  UniqueFd bell;

  std::uint32_t slots_out = 0;  // ours that the peer has
  bool broken() const { return out.broken() || came_home.broken(); }
};

}  // namespace netchannel::device
