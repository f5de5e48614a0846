#include "proto/icmp.hpp"

#include <algorithm>

namespace netchannel::proto {
namespace {

using Kind = IcmpError::Kind;

IcmpError from_quote(Kind kind, const wire::QuotedPacket& quote, std::uint32_t mtu) {
  return {.kind = kind,
          .flow = quote.flow,
          .mtu = kind == Kind::too_big ? mtu : 0,
          .tcp_sequence = quote.tcp_sequence};
}

Kind kind_of(const wire::IcmpView& message) {
  if (message.type() == wire::IcmpType::time_exceeded) return Kind::time_exceeded;
  if (message.type() == wire::IcmpType::parameter_problem) return Kind::parameter_problem;
  switch (message.code()) {
    case wire::IcmpUnreachable::kPort:
      return Kind::port_unreachable;
    case wire::IcmpUnreachable::kProtocol:
      return Kind::protocol_unreachable;
    case wire::IcmpUnreachable::kFragmentationNeeded:
      return Kind::too_big;
    case 9:
    case 10:
    case 13:
      return Kind::prohibited;  // RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1
    default:
      return Kind::host_unreachable;
  }
}

Kind kind_of(const wire::Icmpv6View& message) {
  switch (message.type()) {
    case wire::Icmpv6Type::packet_too_big:
      return Kind::too_big;
    case wire::Icmpv6Type::time_exceeded:
      return Kind::time_exceeded;
    case wire::Icmpv6Type::parameter_problem:
      return Kind::parameter_problem;
    default:
      break;
  }
  switch (message.code()) {
    case wire::Icmpv6Unreachable::kPort:
      return Kind::port_unreachable;
    case wire::Icmpv6Unreachable::kProhibited:
    case wire::Icmpv6Unreachable::kPolicy:
    case wire::Icmpv6Unreachable::kRejectRoute:
      return Kind::prohibited;
    default:
      return Kind::host_unreachable;
  }
}

template <class View>
wire::Parsed<IcmpError> read(const View& message, const wire::Parsed<wire::QuotedPacket>& quote) {
  if (!quote) return wire::drop(quote.error());
  if (!quote->has_ports) return wire::drop(DropReason::icmp_unmatched);
  return from_quote(kind_of(message), *quote, message.mtu());
}

bool is_error(const wire::IpPacket& packet) {
  if (packet.fragment && packet.fragment->offset != 0) return false;
  if (packet.protocol == Protocol::icmp && packet.version == 4) {
    const auto message = wire::IcmpView::parse(packet.payload);
    // RFC 1122 section 3.2.2: errors are all but the queries; an unknown type counts as an error, to be safe.
    return !message ||
           (message->type() != wire::IcmpType::echo_request && message->type() != wire::IcmpType::echo_reply);
  }
  if (packet.protocol == Protocol::icmpv6 && packet.version == 6) {
    return packet.payload.empty() || load_u8(packet.payload, 0) < 128;
  }
  return false;
}

}  // namespace

wire::Parsed<IcmpError> read_icmp_error(const wire::IcmpView& message) {
  if (!message.is_error()) return wire::drop(DropReason::icmp_ignored);
  return read(message, wire::QuotedPacket::parse_v4(message.payload()));
}

wire::Parsed<IcmpError> read_icmpv6_error(const wire::Icmpv6View& message) {
  if (!message.is_error()) return wire::drop(DropReason::icmp_ignored);
  return read(message, wire::QuotedPacket::parse_v6(message.payload()));
}

bool may_send_error(const wire::IpPacket& about, bool link_multicast, bool to_multicast_too,
                    bool to_loopback_too) {
  const bool group =
      about.destination.is_multicast() || about.destination.is_limited_broadcast() || link_multicast;
  if (group && !to_multicast_too) return false;
  if (about.fragment && about.fragment->offset != 0) return false;
  if (about.source.is_unspecified() || about.source.is_multicast()) return false;
  if (about.source.is_loopback() && !to_loopback_too) return false;
  if (about.source.is_limited_broadcast()) return false;
  return !is_error(about);
}

std::size_t quote_length(const wire::IpPacket& about) {
  const std::size_t whole = about.header.size() + about.payload.size();
  const std::size_t most = about.version == 4 ? 576 - wire::kIpv4MinHeaderSize - wire::kIcmpHeaderSize
                                              : 1280 - wire::kIpv6HeaderSize - wire::kIcmpv6HeaderSize;
  return std::min(whole, most);
}

bool TokenBucket::take(Instant now) {
  if (step_ == 0) return false;
  const Instant oldest = now - Duration{span_};
  const Instant start = spent_until_ < oldest ? oldest : spent_until_;
  if (start + Duration{step_} > now) return false;
  spent_until_ = start + Duration{step_};
  return true;
}

}  // namespace netchannel::proto
