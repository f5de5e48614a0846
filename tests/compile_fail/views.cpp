// Only parse() makes a view, so whoever holds one holds a packet whose lengths are right.
#include "netchannel/wire/arp.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/tcp.hpp"
#include "netchannel/wire/udp.hpp"

namespace netchannel::wire {

template <class View>
View parsed_before(const View& view) {
  return view;
}
template ArpView parsed_before(const ArpView&);
template Ipv4View parsed_before(const Ipv4View&);

#ifdef MUST_NOT_COMPILE
void made(Bytes bytes) {
  (void)EthernetView(bytes, 14);         // error: EthernetView.*private|private.*EthernetView
  (void)ArpView(bytes);                  // error: ArpView.*private|private.*ArpView
  (void)Ipv4View(bytes);                 // error: Ipv4View.*private|private.*Ipv4View
  (void)Ipv6View(bytes, Protocol::udp);  // error: Ipv6View.*private|private.*Ipv6View
  (void)IcmpView(bytes);                 // error: IcmpView.*private|private.*IcmpView
  (void)Icmpv6View(bytes);               // error: Icmpv6View.*private|private.*Icmpv6View
  (void)NeighbourView(bytes);            // error: NeighbourView.*private|private.*NeighbourView
  (void)UdpView(bytes);                  // error: UdpView.*private|private.*UdpView
  (void)TcpView(bytes);                  // error: TcpView.*private|private.*TcpView
}
void made_of_nothing() {
  Ipv4View ipv4;  // error: no matching function|no default constructor
  TcpView tcp{};  // error: no matching function|no default constructor
}
#endif

}  // namespace netchannel::wire
