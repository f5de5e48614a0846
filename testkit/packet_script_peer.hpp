// One peer of a packet script: what its numbers are on the wire. Sequence numbers of a script count from each
// side's SYN; ours begin shortly before 2^32, so that every longer dialogue wraps, the target's are learnt
// from its SYN. Timestamps that the target sends have the script's names, under which "ecr" sends them back;
// their advance is compared with the time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "testkit/packet_script.hpp"
#include "testkit/packet_script_segment.hpp"
#include "testkit/packet_script_target.hpp"

namespace netchannel::testkit::script {

class Peer {
 public:
  Peer(const Net& net, std::uint16_t number)
      : net_(net),
        number_(number),
        remote_{net.remote, static_cast<std::uint16_t>(net.first_port + number - 1)} {}

  // The target's next SYN begins a new connection.
  void begin_anew() { learn_ = true; }

  // The whole packet, as it goes to the target. No value: this family has no such ICMP error.
  std::optional<Packet> arriving(const PacketEvent& packet);

  // Of the packet that is expected: what came in segments before, and when this one was sent, give or take.
  struct Progress {
    std::uint32_t bytes = 0;
    Instant when;
    Duration tolerance{0};
  };
  // Why the segment is not the next part of the packet; "" if it is.
  std::string compare(const PacketEvent& packet, const Segment& segment, const Progress& progress);

  // A segment of the target in the script's words.
  std::string describe(const Segment& segment) const;

 private:
  struct Stamp {
    std::uint32_t name, live;
    Instant when;
  };

  Segment to_wire(const PacketEvent& packet) const;
  std::optional<Packet> icmp(const PacketEvent& packet) const;
  std::uint32_t live_stamp(std::uint32_t name) const;

  void learn(const PacketEvent& packet, const Segment& segment);
  std::string compare_ends(const PacketEvent& packet, const Segment& segment) const;
  std::string compare_header(const PacketEvent& packet, const Segment& segment, std::uint32_t got) const;
  std::string compare_payload(const Segment& segment) const;
  std::string compare_options(const PacketEvent& packet, const Segment& segment, const Progress& progress);
  std::string note_stamp(std::uint32_t name, std::uint32_t live, const Progress& progress);
  std::string describe(const Option& option) const;

  Net net_;
  std::uint16_t number_;
  Endpoint remote_;
  std::uint32_t isn_ = 0;                          // the target's
  bool learn_ = true;                              // from its next SYN
  std::optional<std::uint32_t> syn_;               // sequence number of the last that came from here
  std::optional<std::uint16_t> port_;              // of the target
  std::map<std::uint32_t, std::uint32_t> stamps_;  // the script's TSval to the one on the wire
  std::optional<Stamp> first_stamp_;
};

// The byte at `place` (from 0) of a stream to or from the target.
std::byte stream_byte(std::uint64_t place, bool from_target);

}  // namespace netchannel::testkit::script
