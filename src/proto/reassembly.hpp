// Datagrams from fragments, IPv4 (RFC 791, RFC 815's purpose by other means) and IPv6 (RFC 8200 section 4.5,
// RFC 5722).
//
// A datagram being put together has one large buffer, into which each fragment is copied at its offset, and
// two bitmaps of one bit for eight bytes: which blocks are there, and where a fragment began. So taking in a
// fragment costs as much as its length and never as much as the number of fragments before it, which is what
// FragmentSmack (CVE-2018-5391) lives on.
//
//   present  1 1 1 1 1 0 0 0 1 1        a block that is there twice is an overlap: the whole datagram is
//   dropped begins   1 0 0 1 0 0 0 0 1 0        only an exact duplicate (same begin, end and bytes) is
//   ignored
//
// Memory is bounded: so many datagrams together and for each source, the oldest making room (RFC 1858 and
// common sense); buffers come from the pool given, whose slots hold 65536 bytes. A datagram that was found
// bad stays known for a second without its buffer, so that what is still to come of it is dropped and not
// begun anew (RFC 5722 section 4).
//
// wire::parse_ip() has already refused fragments that can be in no datagram (empty, past 65535 bytes, not in
// units of 8, first without a transport header). Left out on purpose: the ICMP error for a datagram that was
// not completed in time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/time.hpp"
#include "netchannel/wire/packet.hpp"

namespace netchannel::proto {

inline constexpr Duration kReassemblyTimeV4 =
    std::chrono::seconds(30);  // Linux's; RFC 1122 section 3.3.2 has 60 to 120
inline constexpr Duration kReassemblyTimeV6 = std::chrono::seconds(60);  // RFC 8200 section 4.5
inline constexpr Duration kBadDatagramTime = std::chrono::seconds(1);
inline constexpr std::uint32_t kReassemblySpan = 65536;   // bytes that a datagram's offsets can name
inline constexpr std::uint16_t kReassemblyHeadroom = 64;  // before it, for whoever wants to put a header back
inline constexpr std::uint32_t kReassemblySlot =
    131072;  // a buffer for both; memory only where it is touched

// A whole datagram: what stood behind the IP header (IPv6: behind the fragment header).
struct Reassembled {
  Frame payload;
  IpAddress source, destination;
  Protocol protocol = Protocol::udp;
  std::uint8_t version = 4;
  std::uint8_t ttl = 0;  // of the first fragment
  std::uint8_t tos = 0;  // of the first fragment, with the ECN of all (RFC 3168 section 5.3)
};

class Reassembler {
 public:
  struct Options {
    std::uint32_t datagrams = 64;
    std::uint32_t of_source = 16;
    SipKey key;
  };
  // `buffers` has slots of kReassemblySlot bytes. Drops and events are counted in `counters`.
  Reassembler(FramePool& buffers, CounterPage& counters, const Options& options);

  // Takes in a fragment (packet.fragment has a value); the bytes are copied. The datagram, if this completed
  // it.
  std::optional<Reassembled> add(const wire::IpPacket& packet, Instant now);

  // Frees what has waited too long, one list's head after the other; bounded by the number of datagrams.
  void expire(Instant now);
  Instant next_deadline() const;
  // Gives up the oldest datagram's buffer to somebody who needs one. False: there is none.
  bool evict_oldest();
  std::size_t size() const { return used_; }  // datagrams known, bad ones included

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kWords = kReassemblySpan / 8 / 64;
  using Bitmap = std::array<std::uint64_t, kWords>;
  enum List : std::uint8_t { kWaitingV4, kWaitingV6, kBad, kLists };
  struct Context {
    IpAddress source, destination;
    std::uint32_t id = 0;
    Protocol protocol = Protocol::udp;
    std::uint8_t version = 4, ttl = 0, tos = 0;
    std::uint8_t ecn_seen = 0;  // one bit for each code point
    List list = kWaitingV4;
    std::uint32_t end = 0;     // bytes of the datagram; 0: the last fragment has not come
    std::uint32_t extent = 0;  // end of the furthest fragment
    std::uint32_t blocks = 0;  // that are there
    Instant expires;
    Frame buffer;
    std::uint32_t next_in_bucket = kNone, older = kNone, newer = kNone;
  };
  struct Maps {
    Bitmap present, begins;
  };

  std::uint32_t bucket_of(const wire::IpPacket& packet) const;
  std::uint32_t find(const wire::IpPacket& packet, std::uint32_t bucket) const;
  std::uint32_t begin(const wire::IpPacket& packet, std::uint32_t bucket, Instant now);
  std::optional<DropReason> place(std::uint32_t index, const wire::IpPacket& packet);
  bool is_duplicate(std::uint32_t index, const wire::IpPacket& packet) const;
  Reassembled finish(std::uint32_t index);
  void condemn(std::uint32_t index, DropReason reason, Instant now);
  void make_room(const IpAddress& source);
  void remove(std::uint32_t index);
  void append_to_list(std::uint32_t index, List list);
  void unlink_from_list(std::uint32_t index);

  FramePool& buffers_;
  CounterPage& counters_;
  Options options_;
  std::vector<Context> contexts_;
  std::vector<Maps> maps_;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> free_;
  std::array<std::uint32_t, kLists> oldest_, newest_;
  std::size_t used_ = 0;
};

}  // namespace netchannel::proto
