// What a measuring datagram carries, and the check of what arrives. As much of it as the size has room for:
//
//   0        4            12                        size
//   +--------+------------+--------------------------+
//   | number |   stamp    |  pattern ...             |      4 bytes and more have a number, 12 and more a
//   stamp;
//   +--------+------------+--------------------------+      1 to 3 have the number's low bytes, 0 nothing
//
// The number counts the messages of one flow (a peer's port) from 0. A FlowCheck sees, within a window of the
// last 1024 numbers, what came twice, what came late, and, told how many were sent, what never came. Loss and
// reordering are UDP's right and are counted; a message that came twice or altered, or more of them than were
// sent, is a wrong stream.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"
#include "netchannel/bytes.hpp"

namespace netchannel::bench {

inline constexpr std::size_t kNumberBytes = 4;
inline constexpr std::size_t kStampedBytes = 12;

// Lays the pattern down once; write_message() then changes number and stamp only.
void write_pattern(MutableBytes message);
void write_message(MutableBytes message, std::uint32_t number, std::int64_t stamp_ns);
// The number, or as much of it as the message carries (number_mask()).
std::uint32_t read_number(Bytes message);
constexpr std::uint32_t number_mask(std::size_t size) {
  return size >= kNumberBytes ? 0xffffffffu : (1u << (8 * size)) - 1;
}
// 0 if the message is too short to have one.
std::int64_t read_stamp(Bytes message);
// Where in a message of that size the pattern begins, and the pattern from any place in a message on (at
// least 4096 bytes of it).
std::size_t pattern_start(std::size_t size);
Bytes pattern_at(std::size_t place);
// What follows number and stamp is as write_pattern() left it.
bool pattern_intact(Bytes message);

// What a receiver saw, over all flows.
struct StreamCounts {
  std::uint64_t received = 0;    // whole messages, duplicates included
  std::uint64_t duplicates = 0;  // seen before
  std::uint64_t reordered = 0;   // after one with a higher number
  std::uint64_t corrupted = 0;   // wrong length or pattern; not in `received`
  std::uint64_t strangers = 0;   // from a peer beyond the number of flows that were announced
  bool wrong(std::uint64_t sent) const { return duplicates != 0 || corrupted != 0 || received > sent; }
};
Json to_json(const StreamCounts& counts);
StreamCounts counts_from_json(const Json& json);

class StreamCheck {
 public:
  StreamCheck(std::uint32_t size, std::uint32_t flows);
  // True if the message was whole and of a known flow.
  bool see(Bytes message, std::uint16_t peer_port) noexcept;
  void reset();  // forgets counts and numbers
  const StreamCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t kWindow = 1024;
  struct Flow {
    std::uint64_t epoch = 0;  // of the last reset() that it has seen
    std::uint32_t highest = 0;
    std::array<std::uint64_t, kWindow / 64> seen{};
  };
  Flow* flow_of(std::uint16_t peer_port) noexcept;
  void see_number(Flow& flow, std::uint32_t number) noexcept;

  std::uint32_t size_;
  std::uint32_t most_flows_;
  std::uint64_t epoch_ = 1;
  std::vector<Flow> flows_;
  std::vector<std::uint16_t> index_of_port_;  // 0: not seen yet
  StreamCounts counts_;
};

}  // namespace netchannel::bench
