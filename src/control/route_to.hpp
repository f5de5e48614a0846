// The kernel's own answer to "which way to this peer?", with everything that the mirror leaves out: policy
// rules, other tables, path MTUs learnt from ICMP. Asked once when a path is chosen, not for each packet.
#pragma once

#include <cstdint>
#include <string>

#include "netchannel/address.hpp"
#include "netchannel/error.hpp"

namespace netchannel::control {

struct RouteTo {
  std::string interface_name;
  std::uint32_t interface_index = 0;
  IpAddress source;       // the address that a socket would get
  IpAddress gateway;      // unspecified: the peer is on the link
  std::uint32_t mtu = 0;  // of the path, if it is known to be smaller than the interface's; else 0
  bool local = false;     // the peer is an address of this machine (the interface is lo then)
};

// Any thread; the namespace is the caller's. A link-local IPv6 peer says nothing of its interface, so the
// answer for one is the kernel's guess. Errors: unreachable, invalid_argument, system.
Result<RouteTo> interface_for(const IpAddress& peer);

// The interface that a program means which names none: that of the default route, else the only Ethernet
// interface that is up. Errors: no_such_device (none, or several to choose from), system.
Result<std::string> default_interface();

}  // namespace netchannel::control
