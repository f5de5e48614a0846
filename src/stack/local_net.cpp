#include "stack/local_net.hpp"

#include <algorithm>

#include "netchannel/wire/icmpv6.hpp"
#include "proto/route.hpp"

namespace netchannel::stack {

void LocalNet::set(std::span<const Prefix> addresses) {
  prefixes_.assign(addresses.begin(), addresses.end());
  sorted_.clear();
  broadcasts_.clear();
  for (const Prefix& prefix : prefixes_) {
    sorted_.push_back(prefix.address);
    if (const auto broadcast = proto::subnet_broadcast(prefix)) broadcasts_.push_back(*broadcast);
  }
  std::sort(sorted_.begin(), sorted_.end());
}

bool LocalNet::search(const IpAddress& address) const {
  return std::binary_search(sorted_.begin(), sorted_.end(), address);
}

bool LocalNet::search_broadcast(const IpAddress& address) const {
  return address.is_limited_broadcast() ||
         std::find(broadcasts_.begin(), broadcasts_.end(), address) != broadcasts_.end();
}

bool LocalNet::is_on_link(const IpAddress& address) const {
  return std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](const Prefix& prefix) { return prefix.contains(address); });
}

bool LocalNet::is_our_group(const IpAddress& group) const {
  static constexpr IpAddress kAllNodes = IpAddress::v6({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  if (group == kAllNodes) return true;
  return std::any_of(sorted_.begin(), sorted_.end(), [&](const IpAddress& mine) {
    return mine.is_v6() && wire::solicited_node(mine) == group;
  });
}

}  // namespace netchannel::stack
