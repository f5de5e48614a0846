// The packet that an ICMP or ICMPv6 error quotes: the beginning of one that we have sent, or that somebody
// says we have. Enough of it is read to find the flow it belonged to, and of TCP the sequence number, which
// proves to a connection that the sender of the error has seen its traffic (RFC 5927 section 4.1).
//
// A quote is cut off by its nature, so its length fields are not compared with the bytes present; the headers
// that are read must be there in full, with at least the eight bytes behind them that RFC 792 promises.
#pragma once

#include "netchannel/flow.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

struct QuotedPacket {
  FlowKey flow{};  // from our side: local is the quoted packet's source. Ports are 0 unless has_ports.
  bool has_ports = false;          // TCP or UDP, and not a later fragment
  std::uint32_t tcp_sequence = 0;  // of TCP
  std::uint16_t udp_length = 0;    // of UDP, as quoted

  // `bytes` begins with the quoted IP header of the version that the error's own protocol implies.
  static Parsed<QuotedPacket> parse_v4(Bytes bytes);
  static Parsed<QuotedPacket> parse_v6(Bytes bytes);
};

}  // namespace netchannel::wire
