// Sending a datagram in pieces: where each piece begins and ends (RFC 791 section 3.2, RFC 8200 section 4.5),
// and where the identification comes from. Copying the pieces into frames is the stack's.
#pragma once

#include <array>
#include <cstdint>

#include "base/siphash.hpp"
#include "netchannel/address.hpp"

namespace netchannel::proto {

struct FragmentPiece {
  std::uint32_t offset = 0;  // in the IP payload, a multiple of 8
  std::uint32_t length = 0;
  bool more = false;
};

// Cuts an IP payload of `length` bytes into pieces that fit `mtu` with a header of `header` bytes (for IPv6
// the fragment header included). All but the last are multiples of 8 and as long as they can be. `mtu` is at
// least header + 8.
class FragmentPlan {
 public:
  FragmentPlan(std::uint32_t length, std::uint32_t mtu, std::uint32_t header)
      : length_(length), step_((mtu - header) / 8 * 8) {}
  std::uint32_t count() const { return length_ == 0 ? 1 : (length_ + step_ - 1) / step_; }
  FragmentPiece piece(std::uint32_t i) const {
    const std::uint32_t offset = i * step_, rest = length_ - offset;
    return {offset, rest < step_ ? rest : step_, rest > step_};
  }

 private:
  std::uint32_t length_;
  std::uint32_t step_;
};

// Identifications that do not repeat soon for one pair of addresses and that a third party cannot foresee
// (RFC 7739 section 5.3): a keyed hash of the pair chooses a counter and an offset to it.
class IdentificationSource {
 public:
  explicit IdentificationSource(const SipKey& key) : key_(key) {}
  std::uint32_t next(const IpAddress& source, const IpAddress& destination);

 private:
  SipKey key_;
  std::array<std::uint32_t, 256> counters_{};
};

}  // namespace netchannel::proto
