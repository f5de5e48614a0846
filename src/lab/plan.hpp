// Who has which address in a lab. A pure function of the lab's name, so that every program that joins in
// knows it without asking. X is the lab's number: 1 for "default", else 2 to 254 by its name. Labs are
// namespaces of their own, so two with the same X do not clash; different numbers only keep people from
// confusing them.
//
//      side a                                          side b
//      eth0  10.77.X.1/24   <------- veth ------->     10.77.X.2/24    eth0
//            fd77:0:0:X::1/64                          fd77:0:0:X::2/64
//
//   TAP i of a side (0 to 31), a subnet of its own behind that side's kernel, which forwards:
//            10.78.X.(4i)/30                           10.78.X.(128+4i)/30
//            fd78:0:X:a00+i::/64                       fd78:0:X:b00+i::/64
//            the kernel has host 1 of it, the stack on the TAP host 2, and the default gateway is the kernel
//            reached from the other side through 10.78.X.0/25, fd78:0:X:a00::/56 | 10.78.X.128/25,
//            fd78:0:X:b00::/56
//
// Within IPv6 addresses X and the TAP's number stand in hexadecimal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "netchannel/address.hpp"

namespace netchannel::lab {

enum class Side : std::uint8_t { a, b };
constexpr Side other(Side side) { return side == Side::a ? Side::b : Side::a; }
std::optional<Side> parse_side(std::string_view text);  // "a" or "b"
std::string_view to_string(Side side);

inline constexpr const char* kInterface = "eth0";  // in both namespaces
inline constexpr unsigned kTapsPerSide = 32;

struct TapPlan {
  Prefix kernel_v4, kernel_v6;  // for the interface that the kernel sees
  Prefix stack_v4, stack_v6;    // for the stack that reads and writes the TAP
  // The stack's default gateways are kernel_v4.address and kernel_v6.address.
};

class Plan {
 public:
  // Any name; whether it is a good one is for up() to say.
  explicit Plan(std::string_view name);
  unsigned number() const { return number_; }   // X
  std::string namespace_name(Side side) const;  // for `ip netns`: "ncdefault-a"
  Prefix v4(Side side) const;                   // of eth0
  Prefix v6(Side side) const;
  Prefix link_v4() const;  // the network of both eth0
  Prefix link_v6() const;
  TapPlan tap(Side side, unsigned index = 0) const;  // index below kTapsPerSide
  Prefix taps_v4(Side side) const;                   // the network of all TAPs of a side
  Prefix taps_v6(Side side) const;

 private:
  std::string name_;
  unsigned number_;
};

}  // namespace netchannel::lab
