#include "control/mirror.hpp"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <tuple>
#include <utility>

#include "control/parse.hpp"

namespace netchannel::control {

namespace {

constexpr std::size_t kMessagesPerRefresh = 1024;  // bounded work: the rest is read by the next call
constexpr std::uint32_t kGroups = RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                  RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;

// A flag, so that neither the kernel collects nor we read statistics.
constexpr std::uint32_t kSkipStatistics = 1 << 3;  // RTEXT_FILTER_SKIP_STATS

auto search_order(const Route& route) {
  return std::tuple(route.destination.address.is_v6(), route.table, 255 - route.destination.length,
                    route.destination.address, route.metric);
}

// The kernel's order decides among equals, so the sort is stable.
void sort_for_search(std::vector<Route>& routes) {
  std::vector<std::size_t> order(routes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto left = search_order(routes[a]), right = search_order(routes[b]);
    return left != right ? left < right : a < b;
  });
  std::vector<Route> sorted;
  sorted.reserve(routes.size());
  for (const std::size_t i : order) sorted.push_back(routes[i]);
  routes = std::move(sorted);
}

// An address is one by its prefix; its other fields may change.
template <class List>
auto address_in(List& list, const InterfaceAddress& address) {
  return std::lower_bound(list.begin(), list.end(), address,
                          [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
}

template <class List>
auto neighbour_in(List& list, const IpAddress& address) {
  return std::lower_bound(list.begin(), list.end(), address,
                          [](const Neighbour& a, const IpAddress& b) { return a.address < b; });
}

bool put_neighbour(std::vector<Neighbour>& list, const Neighbour& neighbour) {
  const auto at = neighbour_in(list, neighbour.address);
  const bool known = at != list.end() && at->address == neighbour.address;
  if (neighbour.state == NeighbourState::none) {
    if (known) list.erase(at);
    return known;
  }
  if (known && *at == neighbour) return false;
  if (known) {
    *at = neighbour;
  } else {
    list.insert(at, neighbour);
  }
  return true;
}

bool put_address(std::vector<InterfaceAddress>& list, const InterfaceAddress& address, bool present) {
  const auto at = address_in(list, address);
  const bool known = at != list.end() && at->prefix == address.prefix;
  if (!present) {
    if (known) list.erase(at);
    return known;
  }
  if (known && *at == address) return false;
  if (known) {
    *at = address;
  } else {
    list.insert(at, address);
  }
  return true;
}

// Replaces `now` and says whether that changed anything.
template <class T>
bool replace(T& now, T next) {
  if (now == next) return false;
  now = std::move(next);
  return true;
}

}  // namespace

const Route* find_route(const Snapshot& snapshot, const IpAddress& destination) {
  const auto at = std::find_if(snapshot.routes.begin(), snapshot.routes.end(),
                               [&](const Route& route) { return route.destination.contains(destination); });
  return at == snapshot.routes.end() ? nullptr : &*at;
}

const Neighbour* find_neighbour(const Snapshot& snapshot, const IpAddress& address) {
  const auto at = neighbour_in(snapshot.neighbours, address);
  return at != snapshot.neighbours.end() && at->address == address ? &*at : nullptr;
}

Result<Mirror> Mirror::open(const std::string& interface_name, const MirrorOptions& options) {
  // Subscribed before the first dump, so that nothing falls between the two.
  auto events = Netlink::open({.groups = kGroups, .receive_buffer = options.receive_buffer});
  if (!events) return tl::unexpected(events.error());
  auto requests = Netlink::open({});
  if (!requests) return tl::unexpected(requests.error());
  Mirror mirror(std::move(*events), std::move(*requests));
  mirror.snapshot_.link.name = interface_name;
  const int error = mirror.dump_all();
  if (error != 0)
    return fail(ErrorCode::system, "the kernel's network state cannot be read through netlink", error);
  if (mirror.snapshot_.gone) {
    return fail(ErrorCode::no_such_device,
                "no interface of that name in this network namespace; `ip link` lists them", ENODEV);
  }
  mirror.changes_ = {};
  return mirror;
}

const Changes& Mirror::refresh() {
  changes_.mask = 0;
  changes_.neighbours.clear();
  if (snapshot_.gone) {
    events_.drain(kMessagesPerRefresh, [](const nlmsghdr&) {});
    return changes_;
  }
  const Drained drained =
      events_.drain(kMessagesPerRefresh, [this](const nlmsghdr& message) { on_event(message); });
  if (snapshot_.gone) return changes_;
  int error = 0;
  if (drained == Drained::overrun || all_dirty_) {
    changes_.mask |= kResync;
    error = dump_all();
    all_dirty_ = error != 0;
  } else if (routes_dirty_) {
    error = dump_routes();
  }
  if (error != 0) changes_.mask |= kStale;
  return changes_;
}

void Mirror::on_event(const nlmsghdr& message) {
  if (snapshot_.gone) return;
  switch (message.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return on_link(message);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return on_address(message);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return on_neighbour(message);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      routes_dirty_ = true;
      return;
    default:
      return;
  }
}

void Mirror::on_link(const nlmsghdr& message) {
  const auto link = parse_link(message);
  if (!link) return;
  const bool deleted = message.nlmsg_type == RTM_DELLINK;
  // Any interface that goes down takes its IPv4 routes with it, without a word about them.
  routes_dirty_ = routes_dirty_ || deleted || !link->up || !link->running;
  if (link->index != snapshot_.link.index) return;
  if (deleted) return become_gone();
  if (link->up != snapshot_.link.up || link->running != snapshot_.link.running) routes_dirty_ = true;
  if (replace(snapshot_.link, *link)) changes_.mask |= kLinkChanged;
}

void Mirror::on_address(const nlmsghdr& message) {
  const auto parsed = parse_address(message);
  if (!parsed) return;
  const bool deleted = message.nlmsg_type == RTM_DELADDR;
  routes_dirty_ = routes_dirty_ || deleted;  // IPv4 routes that prefer a deleted source vanish in silence
  if (parsed->interface_index != snapshot_.link.index) return;
  if (put_address(snapshot_.addresses, parsed->address, !deleted && parsed->usable)) {
    changes_.mask |= kAddressesChanged;
  }
}

void Mirror::on_neighbour(const nlmsghdr& message) {
  auto parsed = parse_neighbour(message);
  if (!parsed || parsed->interface_index != snapshot_.link.index) return;
  if (message.nlmsg_type == RTM_DELNEIGH) parsed->neighbour.state = NeighbourState::none;
  if (!put_neighbour(snapshot_.neighbours, parsed->neighbour)) return;
  changes_.mask |= kNeighboursChanged;
  auto& updates = changes_.neighbours;
  const auto earlier = std::find_if(updates.begin(), updates.end(), [&](const Neighbour& update) {
    return update.address == parsed->neighbour.address;
  });
  if (earlier != updates.end()) {
    *earlier = parsed->neighbour;
  } else {
    updates.push_back(parsed->neighbour);
  }
}

int Mirror::dump_all() {
  if (const int error = dump_link(); error != 0) return error;
  if (snapshot_.gone) return 0;
  if (const int error = dump_addresses(); error != 0) return error;
  if (const int error = dump_neighbours(); error != 0) return error;
  return dump_routes();
}

int Mirror::dump_link() {
  Request request(RTM_GETLINK, 0);
  auto& header = request.header<ifinfomsg>();
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = static_cast<int>(snapshot_.link.index);
  request.attribute(IFLA_EXT_MASK, kSkipStatistics);
  if (snapshot_.link.index == 0) {
    if (snapshot_.link.name.empty() || snapshot_.link.name.size() >= IFNAMSIZ) {
      snapshot_.gone = true;
      return 0;
    }
    request.attribute(IFLA_IFNAME, snapshot_.link.name.c_str());
  }
  std::optional<Link> link;
  const int error = requests_.request(request, [&](const nlmsghdr& message) { link = parse_link(message); });
  if (error == ENODEV) {
    become_gone();
    return 0;
  }
  if (error != 0 || !link) return error != 0 ? error : EPROTO;
  if (replace(snapshot_.link, *link)) changes_.mask |= kLinkChanged;
  return 0;
}

int Mirror::dump_addresses() {
  Request request(RTM_GETADDR, NLM_F_DUMP);
  request.header<ifaddrmsg>().ifa_family = AF_UNSPEC;
  std::vector<InterfaceAddress> addresses;
  const int error = requests_.request(
      request,
      [&](const nlmsghdr& message) {
        const auto parsed = parse_address(message);
        if (!parsed || parsed->interface_index != snapshot_.link.index) return;
        put_address(addresses, parsed->address, parsed->usable);
      },
      [&] { addresses.clear(); });
  if (error != 0) return error;
  if (replace(snapshot_.addresses, std::move(addresses))) changes_.mask |= kAddressesChanged;
  return 0;
}

int Mirror::dump_routes() {
  std::vector<Route> routes;
  for (const int family : {AF_INET, AF_INET6}) {
    Request request(RTM_GETROUTE, NLM_F_DUMP);
    request.header<rtmsg>().rtm_family = static_cast<std::uint8_t>(family);
    const std::size_t before = routes.size();
    const int error = requests_.request(
        request, [&](const nlmsghdr& message) { parse_route(message, routes); },
        [&] { routes.resize(before); });
    if (error != 0) return error;
  }
  sort_for_search(routes);
  if (replace(snapshot_.routes, std::move(routes))) changes_.mask |= kRoutesChanged;
  routes_dirty_ = false;
  return 0;
}

int Mirror::dump_neighbours() {
  Request request(RTM_GETNEIGH, NLM_F_DUMP);
  request.header<ndmsg>().ndm_family = AF_UNSPEC;
  std::vector<Neighbour> neighbours;
  const int error = requests_.request(
      request,
      [&](const nlmsghdr& message) {
        const auto parsed = parse_neighbour(message);
        if (!parsed || parsed->interface_index != snapshot_.link.index) return;
        put_neighbour(neighbours, parsed->neighbour);
      },
      [&] { neighbours.clear(); });
  if (error != 0) return error;
  std::swap(snapshot_.neighbours, neighbours);
  note_neighbours(neighbours);
  return 0;
}

// After a dump: what differs from `before`, both sorted by address.
void Mirror::note_neighbours(const std::vector<Neighbour>& before) {
  changes_.neighbours.clear();
  for (const Neighbour& old : before) {
    if (find_neighbour(snapshot_, old.address) == nullptr) {
      changes_.neighbours.push_back({old.address, {}, NeighbourState::none});
    }
  }
  for (const Neighbour& now : snapshot_.neighbours) {
    const auto old = neighbour_in(before, now.address);
    if (old == before.end() || *old != now) changes_.neighbours.push_back(now);
  }
  if (!changes_.neighbours.empty()) changes_.mask |= kNeighboursChanged;
}

void Mirror::become_gone() {
  snapshot_.gone = true;
  snapshot_.link.up = snapshot_.link.running = false;
  snapshot_.addresses.clear();
  snapshot_.routes.clear();
  snapshot_.neighbours.clear();
  changes_.mask |= kGone | kLinkChanged;
}

Result<void> Mirror::resolve(const IpAddress& address) {
  if (snapshot_.gone)
    return fail(ErrorCode::no_such_device, "the interface was deleted; open it again", ENODEV);
  if (!snapshot_.link.up) {
    return fail(ErrorCode::device_down, "the interface is down; `ip link set NAME up` brings it up",
                ENETDOWN);
  }
  if (address.is_unspecified() || address.is_multicast()) {
    return fail(ErrorCode::invalid_argument, "only a unicast address has a neighbour to resolve", EINVAL);
  }
  // NTF_USE starts the kernel's own resolution, and REPLACE lets it touch an entry that exists.
  Request request(RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);
  auto& header = request.header<ndmsg>();
  header.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
  header.ndm_ifindex = static_cast<int>(snapshot_.link.index);
  header.ndm_state = NUD_NONE;
  header.ndm_flags = NTF_USE;
  request.attribute(NDA_DST, address.network_bytes());
  const int error = requests_.request(request, [](const nlmsghdr&) {});
  if (error == 0) return {};
  if (error == EPERM) {
    return fail(ErrorCode::not_permitted, "asking the kernel to resolve a neighbour needs CAP_NET_ADMIN",
                error);
  }
  if (error == ENODEV)
    return fail(ErrorCode::no_such_device, "the interface was deleted; open it again", error);
  return fail(ErrorCode::system, "the kernel did not start to resolve a neighbour", error);
}

Result<std::vector<Link>> links() {
  auto netlink = Netlink::open({});
  if (!netlink) return tl::unexpected(netlink.error());
  Request request(RTM_GETLINK, NLM_F_DUMP);
  request.header<ifinfomsg>().ifi_family = AF_UNSPEC;
  request.attribute(IFLA_EXT_MASK, kSkipStatistics);
  std::vector<Link> out;
  const int error = netlink->request(
      request,
      [&](const nlmsghdr& message) {
        if (auto link = parse_link(message)) out.push_back(std::move(*link));
      },
      [&] { out.clear(); });
  if (error != 0) return fail(ErrorCode::system, "the kernel's list of interfaces cannot be read", error);
  std::sort(out.begin(), out.end(), [](const Link& a, const Link& b) { return a.index < b.index; });
  return out;
}

}  // namespace netchannel::control
