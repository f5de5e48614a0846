#include "packets.hpp"

#include <cctype>

namespace netchannel::wire::test {
namespace {

std::uint8_t digit(char c) {
  return static_cast<std::uint8_t>(c <= '9' ? c - '0' : std::tolower(c) - 'a' + 10);
}

PartialSum covered(const IpAddress& from, Protocol protocol, std::size_t header, const Buffer& payload) {
  const bool v4 = from.is_v4();
  PartialSum sum = pseudo_header(from, v4 ? kOur4 : kOur6, protocol, header + payload.size());
  sum.add(checksum_scalar(payload));
  return sum;
}

Buffer udp(const IpAddress& from, const Buffer& payload) {
  const UdpRepr repr{kPeerPort, kOurPort, static_cast<std::uint16_t>(payload.size())};
  Buffer header(UdpRepr::size());
  repr.emit(header, covered(from, Protocol::udp, header.size(), payload));
  return header + payload;
}

Buffer tcp(const IpAddress& from, TcpFlags flags, const Buffer& raw_options, const Buffer& payload) {
  const TcpRepr repr{.source_port = kPeerPort,
                     .destination_port = kOurPort,
                     .sequence = 1000,
                     .acknowledgment = 2000,
                     .flags = flags,
                     .window = 65535,
                     .urgent_pointer = 0,
                     .options = {}};
  Buffer header(kTcpMinHeaderSize);
  repr.emit(header);
  header = header + raw_options;
  store_u8(header, 12, static_cast<std::uint8_t>(header.size() / 4 << 4));
  PartialSum sum = covered(from, Protocol::tcp, header.size(), payload);
  sum.add(checksum_scalar(header));
  store_be16(header, 16, checksum(sum));
  return header + payload;
}

}  // namespace

Buffer hex(std::string_view digits) {
  Buffer out;
  std::string_view rest = digits;
  while (!rest.empty()) {
    if (rest[0] == ' ') {
      rest.remove_prefix(1);
      continue;
    }
    out.push_back(std::byte{static_cast<std::uint8_t>(digit(rest[0]) << 4 | digit(rest[1]))});
    rest.remove_prefix(2);
  }
  return out;
}

Buffer filler(std::size_t count) {
  Buffer out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = std::byte{static_cast<std::uint8_t>(i * 7 + 1)};
  return out;
}

Buffer operator+(Buffer left, const Buffer& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Buffer patched(Buffer bytes, std::initializer_list<std::pair<std::size_t, std::uint8_t>> changes) {
  for (const auto& [at, value] : changes) bytes.at(at) = std::byte{value};
  return bytes;
}

Buffer cut(const Buffer& bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

Buffer frame(EtherType type, const Buffer& l3, const VlanTags& tags) {
  const EthernetRepr repr{kOurMac, kPeerMac, type, tags};
  Buffer header(repr.size());
  repr.emit(header);
  return header + l3;
}

Buffer ipv4(Protocol protocol, const Buffer& payload, Ipv4Repr repr) {
  if (repr.source.is_unspecified()) repr.source = kPeer4;
  if (repr.destination.is_unspecified()) repr.destination = kOur4;
  repr.protocol = protocol;
  repr.payload_length = static_cast<std::uint16_t>(payload.size());
  Buffer header(repr.size());
  repr.emit(header);
  return header + payload;
}

Buffer ipv6(std::uint8_t next_header, const Buffer& payload, Ipv6Repr repr) {
  if (repr.source.is_unspecified()) repr.source = kPeer6;
  if (repr.destination.is_unspecified()) repr.destination = kOur6;
  repr.next_header = next_header;
  repr.payload_length = static_cast<std::uint16_t>(payload.size());
  Buffer header(Ipv6Repr::size());
  repr.emit(header);
  return header + payload;
}

Buffer udp4(const Buffer& payload) { return ipv4(Protocol::udp, udp(kPeer4, payload)); }
Buffer udp6(const Buffer& payload) { return ipv6(17, udp(kPeer6, payload)); }
Buffer tcp4(TcpFlags flags, const Buffer& raw_options, const Buffer& payload) {
  return ipv4(Protocol::tcp, tcp(kPeer4, flags, raw_options, payload));
}
Buffer tcp6(TcpFlags flags, const Buffer& payload) { return ipv6(6, tcp(kPeer6, flags, {}, payload)); }

Buffer icmp4(const IcmpRepr& repr, const Buffer& payload) {
  Buffer header(IcmpRepr::size());
  repr.emit(header, checksum_scalar(payload));
  return ipv4(Protocol::icmp, header + payload);
}

Buffer icmp6(const Icmpv6Repr& repr, const Buffer& payload) {
  Buffer header(Icmpv6Repr::size());
  repr.emit(header, covered(kPeer6, Protocol::icmpv6, header.size(), payload));
  return ipv6(58, header + payload);
}

Buffer sent_udp4() {
  Buffer header(UdpRepr::size());
  UdpRepr{kOurPort, kPeerPort, 0}.emit(header);
  Ipv4Repr ip;
  ip.source = kOur4;
  ip.destination = kPeer4;
  return ipv4(Protocol::udp, header, ip);
}

Buffer sent_udp6() {
  Buffer header(UdpRepr::size());
  UdpRepr{kOurPort, kPeerPort, 0}.emit(header);
  Ipv6Repr ip;
  ip.source = kOur6;
  ip.destination = kPeer6;
  return ipv6(17, header, ip);
}

}  // namespace netchannel::wire::test
