// What is common to the fragments of both IP versions, and what can be said of one fragment alone (RFC 791,
// RFC 8200 section 4.5). How fragments fit together is reassembly's.
#pragma once

#include "netchannel/flow.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

// Where a payload stands in its datagram.
struct FragmentInfo {
  std::uint32_t id = 0;
  std::uint32_t offset = 0;  // in bytes
  bool more = false;
  friend constexpr bool operator==(const FragmentInfo&, const FragmentInfo&) = default;
};

// What of a transport header must be in one piece before anything is decided by it (RFC 1858, RFC 7112).
constexpr std::size_t least_transport_header(Protocol protocol) {
  switch (protocol) {
    case Protocol::tcp:
      return 20;
    case Protocol::udp:
    case Protocol::icmp:
    case Protocol::icmpv6:
      return 8;
    default:
      return 0;
  }
}

// `length` is that of the fragment's payload; `before` is what of the whole datagram stands before its first
// payload byte and counts against 65535: IPv4's header, IPv6's extension headers.
constexpr Parsed<void> check_fragment(const FragmentInfo& fragment, std::size_t length, std::size_t before) {
  if (length == 0 || (fragment.more && length % 8 != 0)) return drop(DropReason::frag_bad_length);
  if (before + fragment.offset + length > 65535) return drop(DropReason::frag_too_large);
  return {};
}

}  // namespace netchannel::wire
