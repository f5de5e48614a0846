// What a claim says: which packets of an interface are ours. A flow is named from the receiver's side. A peer
// of port 0 and unspecified address is a wildcard: every peer that no exact flow names. An exact flow
// outranks a wildcard (netchannels, 2006).
#pragma once

#include <compare>
#include <cstdint>

#include "netchannel/address.hpp"

namespace netchannel {

enum class Protocol : std::uint8_t { icmp = 1, tcp = 6, udp = 17, icmpv6 = 58 };

struct FlowKey {
  Protocol protocol = Protocol::udp;
  Endpoint
      local;      // always a specific address: "any" is expanded, one claim for each address of the interface
  Endpoint peer;  // all zero: a wildcard
  constexpr bool is_wildcard() const { return peer == Endpoint{}; }
  constexpr FlowKey wildcard() const { return {protocol, local, {}}; }
  friend constexpr auto operator<=>(const FlowKey&, const FlowKey&) = default;
};

}  // namespace netchannel
