#include "testkit/packet_script_segment.hpp"

#include <algorithm>

namespace netchannel::testkit::script {
namespace {

constexpr std::uint8_t kTcp = 6, kIcmp = 1, kIcmp6 = 58;

tl::unexpected<std::string> wrong(std::string why) { return tl::unexpected(std::move(why)); }

void put8(Packet& out, unsigned value) { out.push_back(static_cast<std::byte>(value & 0xff)); }
void put16(Packet& out, unsigned value) { put8(out, value >> 8), put8(out, value); }
void put32(Packet& out, std::uint32_t value) { put16(out, value >> 16), put16(out, value & 0xffff); }
void put(Packet& out, Bytes value) { out.insert(out.end(), value.begin(), value.end()); }

// RFC 9293 section 3.1, RFC 8200 section 8.1; 0 if the packet's own checksum is in it and right.
std::uint16_t sum_with_addresses(const IpAddress& from, const IpAddress& to, std::uint8_t protocol,
                                 Bytes packet) {
  Packet all;
  put(all, from.network_bytes());
  put(all, to.network_bytes());
  put32(all, static_cast<std::uint32_t>(packet.size()));
  put32(all, protocol);
  put(all, packet);
  return internet_checksum(all);
}

void put_option(Packet& out, const Option& option) {
  using Kind = Option::Kind;
  switch (option.kind) {
    case Kind::mss:
      return put8(out, 2), put8(out, 4), put16(out, option.value);
    case Kind::wscale:
      return put8(out, 3), put8(out, 3), put8(out, option.value);
    case Kind::sack_permitted:
      return put8(out, 4), put8(out, 2);
    case Kind::sack:
      put8(out, 5), put8(out, static_cast<unsigned>(2 + 8 * option.blocks.size()));
      for (const auto& [left, right] : option.blocks) put32(out, left), put32(out, right);
      return;
    case Kind::timestamps:
      return put8(out, 8), put8(out, 10), put32(out, option.value), put32(out, option.echo);
    case Kind::nop:
      return put8(out, 1);
    case Kind::end:
      return put8(out, 0);
    case Kind::raw:
      return put(out, option.bytes);
  }
}

Option read_option(Bytes option) {
  using Kind = Option::Kind;
  Option out{.kind = Kind::raw, .blocks = {}, .bytes = {option.begin(), option.end()}};
  const std::uint8_t kind = load_u8(option, 0);
  const auto known = [&](Kind which) {
    out.kind = which;
    out.bytes.clear();
  };
  if (kind == 2 && option.size() == 4) {
    known(Kind::mss);
    out.value = load_be16(option, 2);
  } else if (kind == 3 && option.size() == 3) {
    known(Kind::wscale);
    out.value = load_u8(option, 2);
  } else if (kind == 4 && option.size() == 2) {
    known(Kind::sack_permitted);
  } else if (kind == 5 && option.size() % 8 == 2 && option.size() > 2) {
    known(Kind::sack);
    for (std::size_t at = 2; at < option.size(); at += 8)
      out.blocks.emplace_back(load_be32(option, at), load_be32(option, at + 4));
  } else if (kind == 8 && option.size() == 10) {
    known(Kind::timestamps);
    out.value = load_be32(option, 2);
    out.echo = load_be32(option, 6);
  }
  return out;
}

tl::expected<std::vector<Option>, std::string> read_options(Bytes bytes) {
  std::vector<Option> out;
  while (!bytes.empty()) {
    const std::uint8_t kind = load_u8(bytes, 0);
    if (kind == 0) break;
    if (kind == 1) {
      bytes = bytes.subspan(1);
      continue;
    }
    const std::size_t length = bytes.size() < 2 ? 0 : load_u8(bytes, 1);
    if (length < 2 || length > bytes.size()) return wrong("a TCP option of a wrong length");
    out.push_back(read_option(bytes.first(length)));
    bytes = bytes.subspan(length);
  }
  return out;
}

// The network header's part of a segment; returns the rest.
tl::expected<Bytes, std::string> read_ip(Bytes packet, Segment& out) {
  const unsigned version = packet.empty() ? 0 : load_u8(packet, 0) >> 4;
  if (version == 4 && packet.size() >= 20) {
    const std::size_t header = (load_u8(packet, 0) & 0xfu) * std::size_t{4};
    if (header < 20 || header > packet.size()) return wrong("an IPv4 header of a wrong length");
    if (internet_checksum(packet.first(header)) != 0) return wrong("a wrong IPv4 header checksum");
    if (load_be16(packet, 2) != packet.size()) return wrong("a wrong IPv4 total length");
    if ((load_be16(packet, 6) & 0x3fff) != 0) return wrong("an IPv4 fragment");
    if (load_u8(packet, 9) != kTcp) return wrong("not TCP");
    out.tos = load_u8(packet, 1);
    out.ttl = load_u8(packet, 8);
    out.from.address = IpAddress::from_network(packet.subspan(12, 4));
    out.to.address = IpAddress::from_network(packet.subspan(16, 4));
    return packet.subspan(header);
  }
  if (version == 6 && packet.size() >= 40) {
    if (load_be16(packet, 4) + std::size_t{40} != packet.size()) return wrong("a wrong IPv6 payload length");
    if (load_u8(packet, 6) != kTcp) return wrong("not TCP");
    out.tos = static_cast<std::uint8_t>(load_be16(packet, 0) >> 4 & 0xff);
    out.ttl = load_u8(packet, 7);
    out.from.address = IpAddress::from_network(packet.subspan(8, 16));
    out.to.address = IpAddress::from_network(packet.subspan(24, 16));
    return packet.subspan(40);
  }
  return wrong("not an IP packet");
}

struct IcmpNumbers {
  int type = -1;
  int code = 0;
};

IcmpNumbers icmp_numbers_v4(const IcmpPart& what) {
  using Kind = IcmpPart::Kind;
  switch (what.kind) {
    case Kind::unreachable:
      if (what.code == "net") return {3, 0};
      if (what.code == "host") return {3, 1};
      if (what.code == "protocol") return {3, 2};
      if (what.code == "port") return {3, 3};
      return {3, 13};
    case Kind::too_big:
      return {3, 4};
    case Kind::time_exceeded:
      return {11, 0};
    case Kind::parameter_problem:
      return {12, 0};
    case Kind::source_quench:
      return {4, 0};
  }
  return {};
}

IcmpNumbers icmp_numbers_v6(const IcmpPart& what) {
  using Kind = IcmpPart::Kind;
  switch (what.kind) {
    case Kind::unreachable:
      if (what.code == "net") return {1, 0};
      if (what.code == "host") return {1, 3};
      if (what.code == "protocol") return {4, 1};
      if (what.code == "port") return {1, 4};
      return {1, 1};
    case Kind::too_big:
      return {2, 0};
    case Kind::time_exceeded:
      return {3, 0};
    case Kind::parameter_problem:
      return {4, 0};
    case Kind::source_quench:
      return {};
  }
  return {};
}

}  // namespace

Packet packet_of(const Segment& segment, Spoiled spoiled) {
  Packet options;
  for (const Option& option : segment.options) put_option(options, option);
  while (options.size() % 4 != 0) put8(options, 1);
  Packet tcp;
  put16(tcp, segment.from.port);
  put16(tcp, segment.to.port);
  put32(tcp, segment.seq);
  put32(tcp, segment.ack);
  put8(tcp, static_cast<unsigned>((20 + options.size()) / 4 << 4) | segment.reserved);
  put8(tcp, segment.flags);
  put16(tcp, segment.window);
  put16(tcp, 0);
  put16(tcp, segment.urgent);
  put(tcp, options);
  put(tcp, segment.payload);
  const std::uint16_t sum = sum_with_addresses(segment.from.address, segment.to.address, kTcp, tcp);
  store_be16(tcp, 16, spoiled.checksum ? static_cast<std::uint16_t>(sum ^ 0x5a5a) : sum);
  Packet out = ip({.source = segment.from.address,
                   .destination = segment.to.address,
                   .protocol = kTcp,
                   .ttl = segment.ttl,
                   .tos = segment.tos},
                  tcp);
  if (spoiled.length) out.resize(out.size() - 1);
  return out;
}

tl::expected<Segment, std::string> read_segment(Bytes packet) {
  Segment out;
  const auto rest = read_ip(packet, out);
  if (!rest) return tl::unexpected(rest.error());
  const Bytes tcp = *rest;
  if (tcp.size() < 20) return wrong("no whole TCP header");
  const std::size_t header = (load_u8(tcp, 12) >> 4) * std::size_t{4};
  if (header < 20 || header > tcp.size()) return wrong("a wrong TCP data offset");
  if (sum_with_addresses(out.from.address, out.to.address, kTcp, tcp) != 0)
    return wrong("a wrong TCP checksum");
  out.from.port = load_be16(tcp, 0);
  out.to.port = load_be16(tcp, 2);
  out.seq = load_be32(tcp, 4);
  out.ack = load_be32(tcp, 8);
  out.reserved = load_u8(tcp, 12) & 0xf;
  out.flags = load_u8(tcp, 13);
  out.window = load_be16(tcp, 14);
  out.urgent = load_be16(tcp, 18);
  auto options = read_options(tcp.subspan(20, header - 20));
  if (!options) return tl::unexpected(options.error());
  out.options = std::move(*options);
  const Bytes payload = tcp.subspan(header);
  out.payload.assign(payload.begin(), payload.end());
  return out;
}

std::optional<Packet> icmp_error(const IcmpPart& what, const IpAddress& router, Bytes quoted) {
  const bool v4 = load_u8(quoted, 0) >> 4 == 4;
  const IcmpNumbers numbers = v4 ? icmp_numbers_v4(what) : icmp_numbers_v6(what);
  if (numbers.type < 0) return std::nullopt;
  const std::size_t quote = std::min<std::size_t>(quoted.size(), (v4 ? 20 : 40) + 20);
  const IpAddress to = IpAddress::from_network(v4 ? quoted.subspan(12, 4) : quoted.subspan(8, 16));
  Packet icmp;
  put8(icmp, static_cast<unsigned>(numbers.type));
  put8(icmp, static_cast<unsigned>(numbers.code));
  put16(icmp, 0);
  put32(icmp, what.mtu);
  put(icmp, quoted.first(quote));
  store_be16(icmp, 2, v4 ? internet_checksum(icmp) : sum_with_addresses(router, to, kIcmp6, icmp));
  return ip({.source = router, .destination = to, .protocol = v4 ? kIcmp : kIcmp6}, icmp);
}

std::string flag_letters(std::uint8_t flags) {
  constexpr std::string_view kLetters = "FSRP.UEW";
  std::string out;
  for (std::size_t bit = 0; bit < kLetters.size(); ++bit)
    if ((flags >> bit & 1) != 0) out += kLetters[bit];
  return out.empty() ? "-" : out;
}

}  // namespace netchannel::testkit::script
