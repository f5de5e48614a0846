#include "testkit/hex.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "netchannel/address.hpp"
#include "testkit/frames.hpp"

namespace netchannel::testkit {
namespace {

std::string hex(unsigned value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "%0*x", digits, value);
  return text;
}

std::string mac_at(Bytes frame, std::size_t at) {
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) mac.bytes[i] = load_u8(frame, at + i);
  return to_string(mac);
}

std::string protocol_name(std::uint8_t protocol) {
  switch (protocol) {
    case 1:
      return "icmp";
    case 6:
      return "tcp";
    case 17:
      return "udp";
    case 58:
      return "icmpv6";
    default:
      return "protocol " + std::to_string(protocol);
  }
}

// An IP packet whose addresses stand at `addresses`, `size` bytes each, and whose transport header is at
// `l4`.
struct IpLayout {
  std::size_t addresses;
  std::size_t size;
  std::size_t l4;
  std::uint8_t protocol;
};

std::string describe_ip(Bytes packet, const IpLayout& layout) {
  const bool ports = (layout.protocol == 6 || layout.protocol == 17) && packet.size() >= layout.l4 + 4;
  const auto end = [&](std::size_t which) {
    const auto address =
        IpAddress::from_network(packet.subspan(layout.addresses + which * layout.size, layout.size));
    return ports ? Endpoint{address, load_be16(packet, layout.l4 + which * 2)}.to_string()
                 : address.to_string();
  };
  return end(0) + " > " + end(1) + " " + protocol_name(layout.protocol);
}

std::string describe_payload(std::uint16_t type, Bytes packet) {
  if (type == kIpv4 && packet.size() >= 20) {
    return "ipv4 " +
           describe_ip(packet, {12, 4, (load_u8(packet, 0) & 0xfu) * std::size_t{4}, load_u8(packet, 9)});
  }
  if (type == kIpv6 && packet.size() >= 40)
    return "ipv6 " + describe_ip(packet, {8, 16, 40, load_u8(packet, 6)});
  if (type == kArp && packet.size() >= 28) {
    const auto sender = IpAddress::from_network(packet.subspan(14, 4)),
               target = IpAddress::from_network(packet.subspan(24, 4));
    return load_be16(packet, 6) == 1 ? "arp who has " + target.to_string() + " tell " + sender.to_string()
                                     : "arp " + sender.to_string() + " is at " + mac_at(packet, 8);
  }
  return "type 0x" + hex(type, 4);
}

}  // namespace

std::string hex_dump(Bytes bytes, std::string_view indent) {
  std::string out;
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    out += indent;
    out += hex(static_cast<unsigned>(line), 4) + ":";
    const Bytes here = bytes.subspan(line, std::min<std::size_t>(16, bytes.size() - line));
    for (std::size_t i = 0; i < here.size(); ++i) out += (i % 2 == 0 ? " " : "") + hex(load_u8(here, i), 2);
    out += '\n';
  }
  return out;
}

std::string summary(Bytes frame) {
  const std::string size = " " + std::to_string(frame.size()) + " bytes";
  if (frame.size() < 14) return "no Ethernet header," + size;
  return mac_at(frame, 6) + " > " + mac_at(frame, 0) + " " +
         describe_payload(load_be16(frame, 12), frame.subspan(14)) + size;
}

}  // namespace netchannel::testkit
