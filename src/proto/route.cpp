#include "proto/route.hpp"

#include <algorithm>
#include <tuple>

namespace netchannel::proto {
namespace {

// The gateway only to make the order complete.
bool before(const Route& a, const Route& b) {
  return std::tie(b.destination.length, a.destination.address, a.metric, a.gateway) <
         std::tie(a.destination.length, b.destination.address, b.metric, b.gateway);
}

bool ours(const IpAddress& address, std::span<const Prefix> addresses) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const Prefix& p) { return p.address == address; });
}

}  // namespace

IpAddress masked(const IpAddress& address, std::uint8_t length) {
  auto bytes = address.bytes();
  const std::size_t begin = address.is_v4() ? 12 : 0;
  for (std::size_t i = begin; i < bytes.size(); ++i) {
    const std::size_t bit = (i - begin) * 8;
    if (bit >= length) {
      bytes[i] = 0;
    } else if (length - bit < 8) {
      bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00u >> (length - bit)));
    }
  }
  return IpAddress::v6(bytes);
}

std::optional<IpAddress> subnet_broadcast(const Prefix& prefix) {
  // RFC 3021: a /31 has no broadcast address.
  if (!prefix.address.is_v4() || prefix.length > 30) return std::nullopt;
  return IpAddress::v4(prefix.address.v4_value() | 0xffffffffu >> prefix.length);
}

void RouteTable::set(std::span<const Route> routes) {
  v4_.routes.clear();
  v6_.routes.clear();
  for (Route route : routes) {
    route.destination.address = masked(route.destination.address, route.destination.length);
    (route.destination.address.is_v4() ? v4_ : v6_).routes.push_back(route);
  }
  v4_.build();
  v6_.build();
}

void RouteTable::Family::build() {
  std::sort(routes.begin(), routes.end(), before);
  // Of equal prefixes only the one with the lowest metric can ever be chosen.
  const auto same = [](const Route& a, const Route& b) { return a.destination == b.destination; };
  routes.erase(std::unique(routes.begin(), routes.end(), same), routes.end());
  lengths.clear();
  for (std::uint32_t i = 0; i < routes.size(); ++i) {
    const std::uint8_t length = routes[i].destination.length;
    if (lengths.empty() || lengths.back().length != length) lengths.push_back({length, i, i});
    lengths.back().end = i + 1;
  }
}

const Route* RouteTable::Family::lookup(const IpAddress& destination) const {
  for (const Range& range : lengths) {
    const IpAddress network = masked(destination, range.length);
    const auto first = routes.begin() + range.begin, last = routes.begin() + range.end;
    const auto found = std::lower_bound(
        first, last, network, [](const Route& r, const IpAddress& a) { return r.destination.address < a; });
    if (found != last && found->destination.address == network) return &*found;
  }
  return nullptr;
}

const Route* RouteTable::lookup(const IpAddress& destination) const {
  return (destination.is_v4() ? v4_ : v6_).lookup(destination);
}

std::optional<IpAddress> choose_source(const IpAddress& destination, const Route& route,
                                       std::span<const Prefix> addresses) {
  if (ours(route.preferred_source, addresses)) return route.preferred_source;
  const IpAddress& next_hop = route.gateway.is_unspecified() ? destination : route.gateway;
  const bool v4 = destination.is_v4();
  // RFC 6724 section 5, rule 2: a link-local destination wants a link-local source, a global one a global
  // source.
  const bool local_scope =
      destination.is_link_local() ||
      (destination.is_v6() && destination.is_multicast() && (destination.bytes()[1] & 0xf) == 2);
  std::optional<IpAddress> best;
  int best_score = -1;
  for (const Prefix& mine : addresses) {
    if (mine.address.is_v4() != v4) continue;
    const bool scope_fits = mine.address.is_link_local() == local_scope;
    const int score = (scope_fits ? 2 : 0) + (mine.contains(next_hop) ? 1 : 0);
    // Of equals the first: the kernel lists an interface's primary address first.
    if (score > best_score) best = mine.address, best_score = score;
  }
  return best;
}

}  // namespace netchannel::proto
