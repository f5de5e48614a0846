// ICMP, ICMPv6 and ARP as a host does them: errors go to the socket that caused them; on a bare device echo
// is answered, neighbours are asked and told, and errors are sent. On a steered device the kernel does all
// but the first.
#pragma once

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {

// How the packet came. Answers go back to the station that it came from, so that nobody can make us fill the
// neighbour table by asking in others' names.
struct LinkSource {
  MacAddress mac;
  bool group = false;        // to a multicast or broadcast MAC
  bool rx_slot = false;      // in a receive slot, not a large one
  bool to_us_alone = true;   // the IP destination is one of our addresses, no group or broadcast
  bool reassembled = false;  // put together from fragments
};

void receive_arp(World& world, Bytes payload);
void receive_icmp(World& world, const wire::IpPacket& packet, const LinkSource& from);
void receive_icmpv6(World& world, const wire::IpPacket& packet, const LinkSource& from);
// Nobody listens on the port that `packet` is for.
void answer_port_unreachable(World& world, const wire::IpPacket& packet, const LinkSource& from);
// RFC 8200 section 4.2: an unknown option that asks to be reported. `l3` begins with the IPv6 header.
void answer_unknown_option(World& world, Bytes l3, const LinkSource& from);

}  // namespace netchannel::stack
