// What routers have told us of paths narrower than the link (RFC 1191, RFC 8201). A message lowers a path's
// MTU, never raises it, never below a floor, and is forgotten after ten minutes, so a path that has become
// wider is found again.
//
// A fixed table of sets of four; a new path takes the place of the oldest in its set. The caller has made
// sure that the message quotes a flow of ours.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/address.hpp"
#include "netchannel/time.hpp"

namespace netchannel::proto {

inline constexpr std::uint32_t kMinMtuV4 = 68;  // RFC 791: every link carries this much
inline constexpr std::uint32_t kFloorMtuV4 =
    552;  // what a message is believed to at most, as Linux's min_pmtu
inline constexpr std::uint32_t kMinMtuV6 = 1280;  // RFC 8200 section 5
inline constexpr Duration kPathMtuAge = std::chrono::minutes(10);

class PathMtuTable {
 public:
  PathMtuTable(std::uint32_t capacity, const SipKey& key);

  // The path's MTU: `link_mtu`, or less if a router said so.
  std::uint32_t mtu(const IpAddress& destination, std::uint32_t link_mtu, Instant now) const;
  // What became of a message: the path is narrower now, it changes nothing, or it cannot be true.
  enum class Verdict : std::uint8_t { lowered, unchanged, impossible };
  Verdict lower(const IpAddress& destination, std::uint32_t claimed, std::uint32_t link_mtu, Instant now);
  // When the next entry is forgotten that may be: mtu() may answer differently from then on.
  Instant next_expiry() const { return next_expiry_; }
  // Forgets what is too old; true if anything was.
  bool expire(Instant now);

 private:
  struct Entry {
    IpAddress destination;
    std::uint32_t mtu = 0;  // 0: empty
    Instant expires;
  };
  static constexpr std::size_t kWays = 4;
  using Set = std::array<Entry, kWays>;
  std::size_t set_of(const IpAddress& destination) const;

  SipKey key_;
  std::vector<Set> sets_;
  Instant next_expiry_ = kForever;
};

}  // namespace netchannel::proto
