// ICMP and ICMPv6 as a host needs them: what an error means to the flow it quotes, whether an error may be
// sent about a packet, how much of that packet it quotes, and how often (RFC 792, RFC 1122 section 3.2.2, RFC
// 1812 section 4.3.2, RFC 4443 section 2.4).
#pragma once

#include <cstdint>

#include "netchannel/flow.hpp"
#include "netchannel/time.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/packet.hpp"

namespace netchannel::proto {

struct IcmpError {
  enum class Kind : std::uint8_t {
    port_unreachable,
    protocol_unreachable,
    host_unreachable,  // host or network; nobody there
    prohibited,        // by a filter
    too_big,           // mtu says what fits
    time_exceeded,
    parameter_problem,
  };
  Kind kind = Kind::host_unreachable;
  FlowKey flow;                    // from our side; TCP or UDP, with ports
  std::uint32_t mtu = 0;           // of too_big, as claimed: untrusted
  std::uint32_t tcp_sequence = 0;  // of TCP
  // RFC 1122 section 4.2.3.9: only a hard error ends anything; a soft one is a hint.
  bool hard() const { return kind != Kind::host_unreachable && kind != Kind::time_exceeded; }
};

// Reads an error; drop reasons: icmp_ignored (not an error, or one without meaning to a host),
// icmp_bad_quote, icmp_unmatched (quotes neither TCP nor UDP, or a later fragment).
wire::Parsed<IcmpError> read_icmp_error(const wire::IcmpView& message);
wire::Parsed<IcmpError> read_icmpv6_error(const wire::Icmpv6View& message);

// Whether an error may be sent about a received packet: not about an error, a multicast or broadcast, a later
// fragment, or from an address that names no single host. `link_multicast`: the frame was not addressed to us
// alone. `to_multicast_too`: of ICMPv6 packet too big and parameter problem code 2 (RFC 4443 section 2.4
// (e)).
bool may_send_error(const wire::IpPacket& about, bool link_multicast, bool to_multicast_too = false,
                    bool to_loopback_too = false);

// How many bytes of the packet an error quotes, from its IP header on: all, but the error stays below 576
// bytes (RFC 1812 section 4.3.2.3) or 1280 (RFC 4443 section 2.4 (c)).
std::size_t quote_length(const wire::IpPacket& about);

// So many tokens a second, of which so many can be saved up.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t per_second, std::uint32_t burst)
      : step_(per_second == 0 ? 0 : 1'000'000'000 / per_second), span_(step_ * burst) {}
  bool take(Instant now);

 private:
  std::int64_t step_;  // nanoseconds a token; 0: none, ever
  std::int64_t span_;  // nanoseconds that can be saved up
  Instant spent_until_{std::numeric_limits<std::int64_t>::min() / 2};
};

}  // namespace netchannel::proto
