#include "proto/path_mtu.hpp"

#include <algorithm>
#include <bit>

namespace netchannel::proto {

PathMtuTable::PathMtuTable(std::uint32_t capacity, const SipKey& key)
    : key_(key), sets_(std::bit_ceil(std::max<std::uint32_t>(capacity, kWays) / kWays)) {}

std::size_t PathMtuTable::set_of(const IpAddress& destination) const {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(destination.bytes());
  return siphash(key_, words) & (sets_.size() - 1);
}

std::uint32_t PathMtuTable::mtu(const IpAddress& destination, std::uint32_t link_mtu, Instant now) const {
  if (next_expiry_ == kForever) return link_mtu;
  for (const Entry& entry : sets_[set_of(destination)]) {
    if (entry.mtu == 0 || entry.destination != destination || entry.expires <= now) continue;
    return std::min(entry.mtu, link_mtu);
  }
  return link_mtu;
}

PathMtuTable::Verdict PathMtuTable::lower(const IpAddress& destination, std::uint32_t claimed,
                                          std::uint32_t link_mtu, Instant now) {
  // RFC 8201 section 4: a message below the IPv6 minimum is discarded. No IPv4 link is narrower than 68 bytes
  // either, and the routers of before RFC 1191 that said 0 are gone.
  if (claimed < (destination.is_v4() ? kMinMtuV4 : kMinMtuV6)) return Verdict::impossible;
  const std::uint32_t value = destination.is_v4() ? std::max(claimed, kFloorMtuV4) : claimed;
  if (value >= mtu(destination, link_mtu, now))
    return claimed > link_mtu ? Verdict::impossible : Verdict::unchanged;
  Set& set = sets_[set_of(destination)];
  auto place = std::find_if(set.begin(), set.end(),
                            [&](const Entry& e) { return e.mtu != 0 && e.destination == destination; });
  if (place == set.end()) {
    place = std::min_element(set.begin(), set.end(), [](const Entry& a, const Entry& b) {
      return (a.mtu == 0 ? Instant{} : a.expires) < (b.mtu == 0 ? Instant{} : b.expires);
    });
  }
  *place = {destination, value, now + kPathMtuAge};
  next_expiry_ = earlier(next_expiry_, place->expires);
  return Verdict::lowered;
}

bool PathMtuTable::expire(Instant now) {
  if (now < next_expiry_) return false;
  bool forgot = false;
  next_expiry_ = kForever;
  for (Set& set : sets_) {
    for (Entry& entry : set) {
      if (entry.mtu == 0) continue;
      if (entry.expires <= now) {
        entry = {};
        forgot = true;
      } else {
        next_expiry_ = earlier(next_expiry_, entry.expires);
      }
    }
  }
  return forgot;
}

}  // namespace netchannel::proto
