// Messages that the kernel does not send today: they are skipped or read within their bounds. The rest of the
// parsers is tested through the mirror, against the kernel.
#include "control/parse.hpp"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace netchannel::control {
namespace {

// A message with a header and one attribute of 16 bytes; what lies behind a length that was cut is all ones.
class Message {
 public:
  template <class Header>
  Message(std::uint16_t type, const Header& header, std::uint16_t attribute) {
    bytes_.fill(std::byte{0xff});
    length_ = NLMSG_LENGTH(sizeof header) + NLA_HDRLEN + 16;
    const nlattr nla{NLA_HDRLEN + 16, attribute};
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &header, sizeof header);
    std::memcpy(bytes_.data() + NLMSG_LENGTH(sizeof header), &nla, sizeof nla);
    type_ = type;
  }
  std::size_t length() const { return length_; }
  const nlmsghdr& cut_to(std::size_t length) {
    const nlmsghdr header{static_cast<std::uint32_t>(length), type_, 0, 0, 0};
    std::memcpy(bytes_.data(), &header, sizeof header);
    const void* start = bytes_.data();
    return *static_cast<const nlmsghdr*>(start);
  }

 private:
  alignas(nlmsghdr) std::array<std::byte, 128> bytes_;
  std::size_t length_;
  std::uint16_t type_;
};

TEST(ParseTest, AnAddressCutShortAnywhereIsSkipped) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET6;
  Message message(RTM_NEWADDR, header, IFA_ADDRESS);
  EXPECT_TRUE(parse_address(message.cut_to(message.length())).has_value());
  for (std::size_t length = NLMSG_HDRLEN; length < message.length(); ++length) {
    EXPECT_FALSE(parse_address(message.cut_to(length)).has_value()) << length;
  }
}

TEST(ParseTest, ARouteCutShortHasNoHalfReadGateway) {
  rtmsg header{};
  header.rtm_family = AF_INET6;
  header.rtm_type = RTN_UNICAST;
  header.rtm_table = RT_TABLE_MAIN;
  Message message(RTM_NEWROUTE, header, RTA_GATEWAY);
  std::vector<Route> whole;
  parse_route(message.cut_to(message.length()), whole);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_FALSE(whole[0].gateway.is_unspecified());
  for (std::size_t length = NLMSG_HDRLEN; length < message.length(); ++length) {
    std::vector<Route> routes;
    parse_route(message.cut_to(length), routes);
    for (const Route& route : routes) EXPECT_TRUE(route.gateway.is_unspecified()) << length;
  }
}

TEST(ParseTest, AMultipathRouteWithAHopOfNoLengthEnds) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_type = RTN_UNICAST;
  header.rtm_table = RT_TABLE_MAIN;
  struct {
    rtmsg route;
    nlattr attribute;
    rtnexthop hops[2];
  } body{header,
         {NLA_HDRLEN + 2 * sizeof(rtnexthop), RTA_MULTIPATH},
         {{sizeof(rtnexthop), 0, 0, 7}, {0, 0, 0, 8}}};
  alignas(nlmsghdr) std::array<std::byte, NLMSG_HDRLEN + sizeof body> bytes{};
  const nlmsghdr start{sizeof bytes, RTM_NEWROUTE, 0, 0, 0};
  std::memcpy(bytes.data(), &start, sizeof start);
  std::memcpy(bytes.data() + NLMSG_HDRLEN, &body, sizeof body);
  const void* at = bytes.data();
  std::vector<Route> routes;
  parse_route(*static_cast<const nlmsghdr*>(at), routes);
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].interface_index, 7u);
}

TEST(ParseTest, OtherFamiliesAreSkipped) {
  for (const std::uint8_t family :
       {std::uint8_t{AF_UNSPEC}, std::uint8_t{AF_BRIDGE}, std::uint8_t{AF_MPLS}}) {
    ifaddrmsg address{};
    address.ifa_family = family;
    Message of_address(RTM_NEWADDR, address, IFA_ADDRESS);
    EXPECT_FALSE(parse_address(of_address.cut_to(of_address.length())).has_value());
    ndmsg neighbour{};
    neighbour.ndm_family = family;
    Message of_neighbour(RTM_NEWNEIGH, neighbour, NDA_DST);
    EXPECT_FALSE(parse_neighbour(of_neighbour.cut_to(of_neighbour.length())).has_value());
  }
  ifinfomsg link{};
  link.ifi_family = AF_BRIDGE;
  Message of_link(RTM_DELLINK, link, 0);
  EXPECT_FALSE(parse_link(of_link.cut_to(of_link.length())).has_value())
      << "a port that leaves a bridge lives on";
}

}  // namespace
}  // namespace netchannel::control
