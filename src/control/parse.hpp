// rtnetlink messages into values. A message comes from the kernel, yet its lengths are compared with what is
// there before use, so that a message of a future or a broken kernel is skipped and never misread.
#pragma once

#include <linux/netlink.h>

#include <optional>
#include <vector>

#include "control/types.hpp"

namespace netchannel::control {

// No value: not a message of that kind about a network interface, or cut short.
std::optional<Link> parse_link(const nlmsghdr& message);

struct ParsedAddress {
  std::uint32_t interface_index = 0;
  InterfaceAddress address;
  bool usable = true;  // false: tentative or a duplicate
};
std::optional<ParsedAddress> parse_address(const nlmsghdr& message);

// One Route for each next hop that is alive; none if the route is not of those that types.hpp describes.
void parse_route(const nlmsghdr& message, std::vector<Route>& out);

// The answer to RTM_GETROUTE for one address: a single next hop, from whichever table.
std::optional<Route> parse_answer(const nlmsghdr& message);

struct ParsedNeighbour {
  std::uint32_t interface_index = 0;
  Neighbour neighbour;
};
// IPv4 and IPv6 neighbours only, no proxy entries, no bridge's forwarding table.
std::optional<ParsedNeighbour> parse_neighbour(const nlmsghdr& message);

}  // namespace netchannel::control
