#include "netchannel/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace netchannel {
namespace {

std::optional<unsigned> parse_number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc{} || end != text.data() + text.size() || value > most)
    return std::nullopt;
  return value;
}

}  // namespace

IpAddress IpAddress::from_network(Bytes network_order) {
  IpAddress out = network_order.size() == 4 ? any_v4() : any_v6();
  std::memcpy(out.bytes_.data() + (16 - network_order.size()), network_order.data(), network_order.size());
  return out;
}

Bytes IpAddress::network_bytes() const {
  const Bytes all = std::as_bytes(std::span(bytes_));
  return is_v4() ? all.subspan(12) : all;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  // inet_pton would stop at a zero byte and take what stands before it.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string terminated(text);
  IpAddress out;
  if (inet_pton(AF_INET, terminated.c_str(), out.bytes_.data() + 12) == 1) {
    out.bytes_[10] = out.bytes_[11] = 0xff;
    return out;
  }
  if (inet_pton(AF_INET6, terminated.c_str(), out.bytes_.data()) == 1) return out;
  return std::nullopt;
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = "";
  const Bytes network = network_bytes();
  inet_ntop(is_v4() ? AF_INET : AF_INET6, network.data(), text, sizeof text);
  return text;
}

bool Prefix::contains(const IpAddress& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  const Bytes mine = address.network_bytes(), theirs = other.network_bytes();
  const std::size_t whole = length / 8u, rest = length % 8u;
  if (whole > mine.size() || (whole == mine.size() && rest != 0)) return false;
  if (!std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(whole), theirs.begin()))
    return false;
  if (rest == 0) return true;
  const unsigned mask = 0xff00u >> rest & 0xff;
  return (load_u8(mine, whole) & mask) == (load_u8(theirs, whole) & mask);
}

std::optional<Prefix> Prefix::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  const auto length = parse_number(text.substr(slash + 1), address->is_v4() ? 32 : 128);
  if (!length) return std::nullopt;
  return Prefix{*address, static_cast<std::uint8_t>(*length)};
}

std::string Prefix::to_string() const { return address.to_string() + "/" + std::to_string(length); }

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
  std::string_view host = text, port;
  if (const auto colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  const auto number = parse_number(port, 65535);
  if (!address || !number || address->is_v6() != bracketed) return std::nullopt;
  return Endpoint{*address, static_cast<std::uint16_t>(*number)};
}

std::string Endpoint::to_string() const {
  const std::string host = address.is_v4() ? address.to_string() : "[" + address.to_string() + "]";
  return host + ":" + std::to_string(port);
}

std::string to_string(const MacAddress& mac) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const auto byte : mac.bytes) {
    if (!out.empty()) out += ':';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
  return out;
}

std::optional<MacAddress> parse_mac(std::string_view text) {
  MacAddress mac;
  if (text.size() != 17) return std::nullopt;
  for (std::size_t i = 0; i < 6; ++i) {
    const char* from = text.data() + 3 * i;
    const auto [end, status] = std::from_chars(from, from + 2, mac.bytes[i], 16);
    if (status != std::errc{} || end != from + 2) return std::nullopt;
    if (i < 5 && *end != ':') return std::nullopt;
  }
  return mac;
}

}  // namespace netchannel
