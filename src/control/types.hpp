// What the kernel knows of an interface, as plain values. They are made from rtnetlink messages (parse.hpp),
// kept current by Mirror and copied into tables by whoever sends packets. Left out on purpose: policy rules
// (ip rule), other tables than main and local, routes for one type of service or one source prefix: whoever
// needs those asks the kernel for each peer (interface_for).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "netchannel/address.hpp"

namespace netchannel::control {

struct Link {
  std::uint32_t index = 0;
  std::string name;
  std::string kind;   // rtnetlink's: "veth", "tun" (also a TAP), "bridge", ...; empty for hardware and for lo
  std::string alias;  // what somebody wrote on it (`ip link set NAME alias TEXT`)
  MacAddress mac;
  std::uint32_t mtu = 0;        // layer-3 bytes
  std::uint32_t rx_queues = 0;  // allocated; ethtool's channels() says how many are in use
  std::uint32_t tx_queues = 0;
  std::uint32_t xdp_program_id = 0;  // of a program that is attached now, whosever it is; 0: none
  bool up = false;                   // IFF_UP: the administrator wants it
  bool running = false;              // IFF_RUNNING: the carrier is there
  bool loopback = false;
  bool ethernet = false;  // has Ethernet headers and 6-byte addresses
  friend bool operator==(const Link&, const Link&) = default;
};

// An address of the interface that may be used now: an IPv6 address whose duplicate detection runs or failed
// is not in the list (RFC 4862 section 5.4).
struct InterfaceAddress {
  Prefix prefix;            // the local address and the length of its network part
  IpAddress broadcast;      // IPv4: the subnet's broadcast address; unspecified if there is none
  std::uint8_t scope = 0;   // RT_SCOPE_*: 0 universe, 253 link, 254 host
  bool deprecated = false;  // not to be chosen as the source of something new (RFC 4862 section 5.5.4)
  friend auto operator<=>(const InterfaceAddress&, const InterfaceAddress&) = default;
};

enum class RouteTable : std::uint8_t { local, main };  // in the order in which they are searched
enum class RouteType : std::uint8_t {
  unicast,
  local,      // an address of this machine
  broadcast,  // of a subnet of this machine
  multicast,
  anycast,
  unreachable,  // as are "prohibit" and "throw", which differ in the error only
  blackhole,    // drop without a word
};

// One next hop: a multipath route is as many Routes, in the kernel's order.
struct Route {
  RouteTable table = RouteTable::main;
  RouteType type = RouteType::unicast;
  Prefix destination;                 // ::/0 and 0.0.0.0/0 are the default routes
  std::uint32_t metric = 0;           // the smaller wins
  std::uint32_t interface_index = 0;  // may be another interface's; 0 if the type needs none
  IpAddress gateway;           // unspecified: the destination is on the link; may be IPv6 for an IPv4 route
  IpAddress preferred_source;  // unspecified: choose among the interface's addresses
  std::uint32_t mtu = 0;       // the route's own limit; 0: the interface's
  friend auto operator<=>(const Route&, const Route&) = default;
};

// Bits as in NUD_*. The state machine is RFC 4861 section 7.3.2, which the kernel runs for ARP too.
enum class NeighbourState : std::uint16_t {
  none = 0,  // the kernel has forgotten it
  incomplete = 0x01,
  reachable = 0x02,
  stale = 0x04,  // usable; resolve() makes the kernel confirm it
  delay = 0x08,
  probe = 0x10,
  failed = 0x20,  // did not answer; resolve() tries again
  noarp = 0x40,
  permanent = 0x80,
};
// The MAC may be used (NUD_VALID).
constexpr bool is_usable(NeighbourState state) { return (static_cast<unsigned>(state) & 0xdeu) != 0; }

struct Neighbour {
  IpAddress address;
  MacAddress mac;  // all zero while it is not known
  NeighbourState state = NeighbourState::none;
  friend auto operator<=>(const Neighbour&, const Neighbour&) = default;
};

struct Snapshot {
  bool gone =
      false;  // the interface was deleted or moved to another namespace; the rest is as it last was, or empty
  Link link;
  std::vector<InterfaceAddress> addresses;  // sorted
  // Every route that can win or lose a lookup, other interfaces' too, so that a more specific route elsewhere
  // is seen. Sorted in the order of the search: IPv4 and IPv6 apart, table local before main, longest prefix,
  // smallest metric. So the first that contains a destination is the kernel's choice.
  std::vector<Route> routes;
  std::vector<Neighbour> neighbours;  // of this interface, sorted by address
};

// The route of a destination, or null: unreachable. It may name another interface.
const Route* find_route(const Snapshot& snapshot, const IpAddress& destination);
// The neighbour's entry, or null.
const Neighbour* find_neighbour(const Snapshot& snapshot, const IpAddress& address);

}  // namespace netchannel::control
