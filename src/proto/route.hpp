// Which way a packet goes: longest prefix match (RFC 1812 section 5.2.4.3) over routes that are static or
// mirrored from the kernel, and the choice of a source address (the useful part of RFC 6724 for a host with
// one interface).
//
// Sorted by prefix length, then network, then metric; a lookup is one binary search for each length that
// occurs. Tables change rarely and as a whole: set() replaces everything. Policy routing and several tables
// are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "netchannel/address.hpp"

namespace netchannel::proto {

struct Route {
  Prefix destination;
  IpAddress gateway{};           // unspecified: the destination is on the link
  std::uint32_t metric = 0;      // the lowest wins among equal prefixes
  IpAddress preferred_source{};  // unspecified: chosen by choose_source()
  bool elsewhere = false;        // leads through another interface: not ours to send
  friend bool operator==(const Route&, const Route&) = default;
};

class RouteTable {
 public:
  // Replaces all routes. Allocates; not for the packet path. Host bits below the prefix length are ignored.
  void set(std::span<const Route> routes);
  // The best route, or null. Valid until the next set().
  const Route* lookup(const IpAddress& destination) const;
  std::size_t size() const { return v4_.routes.size() + v6_.routes.size(); }

 private:
  struct Family {
    struct Range {
      std::uint8_t length;
      std::uint32_t begin, end;
    };
    std::vector<Route> routes;
    std::vector<Range> lengths;  // longest first
    void build();
    const Route* lookup(const IpAddress& destination) const;
  };
  Family v4_, v6_;
};

// The address to send from: the route's preferred one if it is ours, else one in the next hop's prefix, else
// one of the destination's scope (link-local to link-local, global to global), else any of the family. No
// value: none.
std::optional<IpAddress> choose_source(const IpAddress& destination, const Route& route,
                                       std::span<const Prefix> addresses);

// `address` with the bits beyond `length` cleared.
IpAddress masked(const IpAddress& address, std::uint8_t length);
// The last address of an IPv4 prefix of at most 30 bits; no value where there is no broadcast address.
std::optional<IpAddress> subnet_broadcast(const Prefix& prefix);

}  // namespace netchannel::proto
