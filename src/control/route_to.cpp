#include "control/route_to.hpp"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>

#include "control/mirror.hpp"
#include "control/netlink.hpp"
#include "control/parse.hpp"

namespace netchannel::control {

namespace {

Result<std::string> name_of(Netlink& netlink, std::uint32_t index) {
  Request request(RTM_GETLINK, 0);
  request.header<ifinfomsg>().ifi_index = static_cast<int>(index);
  std::optional<Link> link;
  const int error = netlink.request(request, [&](const nlmsghdr& message) { link = parse_link(message); });
  if (error != 0 || !link)
    return fail(ErrorCode::system, "the interface of a route has just vanished; try again", error);
  return link->name;
}

}  // namespace

Result<RouteTo> interface_for(const IpAddress& peer) {
  if (peer.is_unspecified()) {
    return fail(ErrorCode::invalid_argument, "no route leads to the unspecified address", EINVAL);
  }
  auto netlink = Netlink::open({});
  if (!netlink) return tl::unexpected(netlink.error());
  Request request(RTM_GETROUTE, 0);
  auto& header = request.header<rtmsg>();
  header.rtm_family = peer.is_v4() ? AF_INET : AF_INET6;
  header.rtm_dst_len = peer.is_v4() ? 32 : 128;
  request.attribute(RTA_DST, peer.network_bytes());
  std::optional<Route> route;
  const int error =
      netlink->request(request, [&](const nlmsghdr& message) { route = parse_answer(message); });
  constexpr const char* kNoRoute =
      "the kernel has no route to that address; `ip route get ADDRESS` shows why";
  // The error of an unreachable, prohibit and blackhole route (EHOSTUNREACH, EACCES, EINVAL), or of none.
  if (error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL) {
    return fail(ErrorCode::unreachable, kNoRoute, error);
  }
  if (error != 0 || !route)
    return fail(ErrorCode::system, "the kernel did not answer where a route leads", error);
  if (route->type == RouteType::unreachable || route->type == RouteType::blackhole) {
    return fail(ErrorCode::unreachable, kNoRoute, ENETUNREACH);
  }
  auto name = name_of(*netlink, route->interface_index);
  if (!name) return tl::unexpected(name.error());
  return RouteTo{.interface_name = std::move(*name),
                 .interface_index = route->interface_index,
                 .source = route->preferred_source,
                 .gateway = route->gateway,
                 .mtu = route->mtu,
                 .local = route->type == RouteType::local};
}

Result<std::string> default_interface() {
  // TEST-NET-1 and the documentation prefix (RFC 5737, RFC 3849): only a default route leads there.
  for (const char* nowhere : {"192.0.2.1", "2001:db8::1"}) {
    auto route = interface_for(*IpAddress::parse(nowhere));
    if (route && !route->local) return route->interface_name;
  }
  auto all = links();
  if (!all) return tl::unexpected(all.error());
  std::erase_if(*all, [](const Link& link) { return !link.ethernet || !link.up || link.loopback; });
  if (all->size() == 1) return all->front().name;
  return fail(ErrorCode::no_such_device,
              all->empty()
                  ? "there is no Ethernet interface that is up; name one, or make a lab: netchannel lab up"
                  : "no default route, and several interfaces to choose from; name one");
}

}  // namespace netchannel::control
