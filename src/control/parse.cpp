#include "control/parse.hpp"

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace netchannel::control {

namespace {

// The attributes of a message or of a nest, by type; the last of a type wins and those past kTypes, none of
// which is used here, are passed over.
class Attributes {
 public:
  // Those after a message's own header. (mnl_attr_parse() would round the message's length up.)
  Attributes(const nlmsghdr& message, std::size_t header) {
    const Bytes all{static_cast<const std::byte*>(mnl_nlmsg_get_payload(&message)),
                    mnl_nlmsg_get_payload_len(&message)};
    const Bytes rest = all.subspan(std::min(all.size(), std::size_t{MNL_ALIGN(header)}));
    mnl_attr_parse_payload(rest.data(), rest.size(), keep, &table_);
  }
  explicit Attributes(const nlattr* nest) {
    if (nest != nullptr) mnl_attr_parse_nested(nest, keep, &table_);
  }
  Attributes(const void* payload, std::size_t size) { mnl_attr_parse_payload(payload, size, keep, &table_); }

  const nlattr* raw(std::uint16_t type) const { return table_[type]; }
  Bytes bytes(std::uint16_t type) const {
    const nlattr* attribute = table_[type];
    if (attribute == nullptr) return {};
    return {static_cast<const std::byte*>(mnl_attr_get_payload(attribute)),
            mnl_attr_get_payload_len(attribute)};
  }
  std::uint32_t u32(std::uint16_t type) const {
    std::uint32_t value = 0;
    const Bytes payload = bytes(type);
    if (payload.size() >= sizeof value) std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
  std::string text(std::uint16_t type) const {
    const Bytes payload = bytes(type);
    std::string out;
    for (const std::byte byte : payload) {
      if (byte == std::byte{0}) break;
      out.push_back(static_cast<char>(byte));
    }
    return out;
  }
  // Unspecified ("::") if it is missing or of a strange size.
  IpAddress address(std::uint16_t type) const {
    const Bytes payload = bytes(type);
    return payload.size() == 4 || payload.size() == 16 ? IpAddress::from_network(payload) : IpAddress{};
  }

 private:
  static constexpr std::size_t kTypes = 64;
  using Table = std::array<const nlattr*, kTypes>;
  static int keep(const nlattr* attribute, void* data) {
    const std::uint16_t type = mnl_attr_get_type(attribute);
    if (type < kTypes) (*static_cast<Table*>(data))[type] = attribute;
    return MNL_CB_OK;
  }
  Table table_{};
};

template <class Header>
const Header* header_of(const nlmsghdr& message) {
  if (mnl_nlmsg_get_payload_len(&message) < sizeof(Header)) return nullptr;
  return static_cast<const Header*>(mnl_nlmsg_get_payload(&message));
}

MacAddress mac_of(Bytes payload) {
  MacAddress mac;
  if (payload.size() == mac.bytes.size()) std::memcpy(mac.bytes.data(), payload.data(), payload.size());
  return mac;
}

// RTA_VIA carries a next hop of the other family: struct rtvia, then the address.
IpAddress gateway_of(const Attributes& attributes) {
  if (attributes.raw(RTA_GATEWAY) != nullptr) return attributes.address(RTA_GATEWAY);
  const Bytes via = attributes.bytes(RTA_VIA);
  if (via.size() <= sizeof(rtvia)) return {};
  const Bytes address = via.subspan(sizeof(rtvia));
  return address.size() == 4 || address.size() == 16 ? IpAddress::from_network(address) : IpAddress{};
}

std::optional<RouteType> type_of(std::uint8_t type) {
  switch (type) {
    case RTN_UNICAST:
      return RouteType::unicast;
    case RTN_LOCAL:
      return RouteType::local;
    case RTN_BROADCAST:
      return RouteType::broadcast;
    case RTN_MULTICAST:
      return RouteType::multicast;
    case RTN_ANYCAST:
      return RouteType::anycast;
    case RTN_BLACKHOLE:
      return RouteType::blackhole;
    case RTN_UNREACHABLE:
    case RTN_PROHIBIT:
    case RTN_THROW:
      return RouteType::unreachable;
    default:
      return std::nullopt;
  }
}

// All but the table and the hops of a multipath route.
std::optional<Route> common_parts(const rtmsg& header, const Attributes& attributes) {
  const std::optional<RouteType> type = type_of(header.rtm_type);
  if (!type) return std::nullopt;
  const Attributes metrics(attributes.raw(RTA_METRICS));
  Route route;
  route.type = *type;
  route.destination.length = header.rtm_dst_len;
  route.destination.address = attributes.address(RTA_DST);
  const bool v4 = header.rtm_family == AF_INET;
  if (attributes.raw(RTA_DST) == nullptr && v4) route.destination.address = IpAddress::any_v4();
  route.metric = attributes.u32(RTA_PRIORITY);
  route.preferred_source = attributes.address(RTA_PREFSRC);
  route.mtu = metrics.u32(RTAX_MTU);
  route.interface_index = attributes.u32(RTA_OIF);
  route.gateway = gateway_of(attributes);
  return route;
}

// rtnexthop records, each with its own length and attributes.
void parse_multipath(Bytes hops, const Route& common, std::vector<Route>& out) {
  while (hops.size() >= sizeof(rtnexthop)) {
    rtnexthop hop{};
    std::memcpy(&hop, hops.data(), sizeof hop);
    if (hop.rtnh_len < sizeof hop || hop.rtnh_len > hops.size()) return;
    if ((hop.rtnh_flags & RTNH_F_DEAD) == 0) {
      const Attributes own(hops.data() + sizeof hop, hop.rtnh_len - sizeof hop);
      Route route = common;
      route.interface_index = static_cast<std::uint32_t>(hop.rtnh_ifindex);
      route.gateway = gateway_of(own);
      out.push_back(route);
    }
    hops = hops.subspan(std::min<std::size_t>(hops.size(), NLMSG_ALIGN(std::size_t{hop.rtnh_len})));
  }
}

}  // namespace

std::optional<Link> parse_link(const nlmsghdr& message) {
  const auto* header = header_of<ifinfomsg>(message);
  // The bridge sends RTM_DELLINK of its own family for a port that leaves.
  if (header == nullptr || header->ifi_family != AF_UNSPEC) return std::nullopt;
  const Attributes attributes(message, sizeof *header);
  const Attributes info(attributes.raw(IFLA_LINKINFO));
  const Attributes xdp(attributes.raw(IFLA_XDP));
  Link link;
  link.index = static_cast<std::uint32_t>(header->ifi_index);
  link.name = attributes.text(IFLA_IFNAME);
  link.kind = info.text(IFLA_INFO_KIND);
  link.alias = attributes.text(IFLA_IFALIAS);
  link.mac = mac_of(attributes.bytes(IFLA_ADDRESS));
  link.mtu = attributes.u32(IFLA_MTU);
  link.rx_queues = attributes.u32(IFLA_NUM_RX_QUEUES);
  link.tx_queues = attributes.u32(IFLA_NUM_TX_QUEUES);
  link.xdp_program_id = xdp.u32(IFLA_XDP_PROG_ID);
  link.up = (header->ifi_flags & IFF_UP) != 0;
  link.running = (header->ifi_flags & IFF_RUNNING) != 0;
  link.loopback = (header->ifi_flags & IFF_LOOPBACK) != 0;
  link.ethernet = header->ifi_type == ARPHRD_ETHER;
  return link;
}

std::optional<ParsedAddress> parse_address(const nlmsghdr& message) {
  const auto* header = header_of<ifaddrmsg>(message);
  if (header == nullptr || (header->ifa_family != AF_INET && header->ifa_family != AF_INET6))
    return std::nullopt;
  const Attributes attributes(message, sizeof *header);
  const std::uint32_t flags =
      attributes.raw(IFA_FLAGS) != nullptr ? attributes.u32(IFA_FLAGS) : header->ifa_flags;
  ParsedAddress out;
  out.interface_index = header->ifa_index;
  // On a point-to-point interface IFA_ADDRESS is the far end; IPv6 leaves IFA_LOCAL out if there is none.
  const bool has_local = attributes.raw(IFA_LOCAL) != nullptr;
  if (!has_local && attributes.raw(IFA_ADDRESS) == nullptr) return std::nullopt;
  out.address.prefix = {attributes.address(has_local ? IFA_LOCAL : IFA_ADDRESS), header->ifa_prefixlen};
  if (header->ifa_family == AF_INET) out.address.broadcast = attributes.address(IFA_BROADCAST);
  out.address.scope = header->ifa_scope;
  out.address.deprecated = (flags & IFA_F_DEPRECATED) != 0;
  const bool tentative = (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0;  // RFC 4429
  out.usable = !tentative && (flags & IFA_F_DADFAILED) == 0;
  return out;
}

void parse_route(const nlmsghdr& message, std::vector<Route>& out) {
  const auto* header = header_of<rtmsg>(message);
  if (header == nullptr || (header->rtm_family != AF_INET && header->rtm_family != AF_INET6)) return;
  if ((header->rtm_flags & (RTM_F_CLONED | RTNH_F_DEAD)) != 0) return;
  if (header->rtm_tos != 0 || header->rtm_src_len != 0) return;
  const Attributes attributes(message, sizeof *header);
  const std::uint32_t table =
      attributes.raw(RTA_TABLE) != nullptr ? attributes.u32(RTA_TABLE) : header->rtm_table;
  if (table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL) return;
  auto route = common_parts(*header, attributes);
  if (!route) return;
  route->table = table == RT_TABLE_LOCAL ? RouteTable::local : RouteTable::main;
  if (attributes.raw(RTA_MULTIPATH) != nullptr) {
    parse_multipath(attributes.bytes(RTA_MULTIPATH), *route, out);
  } else {
    out.push_back(*route);
  }
}

std::optional<Route> parse_answer(const nlmsghdr& message) {
  const auto* header = header_of<rtmsg>(message);
  if (header == nullptr) return std::nullopt;
  return common_parts(*header, Attributes(message, sizeof *header));
}

std::optional<ParsedNeighbour> parse_neighbour(const nlmsghdr& message) {
  const auto* header = header_of<ndmsg>(message);
  if (header == nullptr || (header->ndm_family != AF_INET && header->ndm_family != AF_INET6))
    return std::nullopt;
  if ((header->ndm_flags & NTF_PROXY) != 0) return std::nullopt;
  const Attributes attributes(message, sizeof *header);
  if (attributes.raw(NDA_DST) == nullptr) return std::nullopt;
  ParsedNeighbour out;
  out.interface_index = static_cast<std::uint32_t>(header->ndm_ifindex);
  out.neighbour.address = attributes.address(NDA_DST);
  out.neighbour.mac = mac_of(attributes.bytes(NDA_LLADDR));
  out.neighbour.state = static_cast<NeighbourState>(header->ndm_state & 0xff);
  return out;
}

}  // namespace netchannel::control
