// Addresses as values: IPv4 and IPv6 in one 16-byte form (IPv4 as ::ffff:a.b.c.d, RFC 4291 section 2.5.5.2),
// so that every table and key has room for both. Comparable, hashable by their bytes, printable, parsed
// without the resolver.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "netchannel/bytes.hpp"

namespace netchannel {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
  constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }  // broadcast included
  constexpr bool is_broadcast() const { return *this == MacAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}; }
  constexpr bool is_zero() const { return *this == MacAddress{}; }
};

class IpAddress {
 public:
  constexpr IpAddress() = default;  // "::", which is_unspecified() and is not v4
  static constexpr IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return v4(std::uint32_t{a} << 24 | std::uint32_t{b} << 16 | std::uint32_t{c} << 8 | d);
  }
  // Made of two words rather than byte by byte, so that a copy made at once does not wait for sixteen stores.
  static constexpr IpAddress v4(std::uint32_t host_order) {
    IpAddress out;
    out.bytes_ = std::bit_cast<Raw>(std::array<std::uint64_t, 2>{0, in_memory_order(kMapped | host_order)});
    return out;
  }
  static constexpr IpAddress v6(const std::array<std::uint8_t, 16>& bytes) {
    IpAddress out;
    out.bytes_ = bytes;
    return out;
  }
  static constexpr IpAddress any_v4() { return v4(0); }
  static constexpr IpAddress any_v6() { return {}; }
  // 4 or 16 bytes in network order; the caller has checked the size.
  static IpAddress from_network(Bytes network_order);
  // Dotted quad or RFC 4291 text, no zone, no port.
  static std::optional<IpAddress> parse(std::string_view text);

  constexpr bool is_v4() const { return words()[0] == 0 && words()[1] >> 32 == kMapped >> 32; }
  constexpr bool is_v6() const { return !is_v4(); }
  // Host order; meaningful only if is_v4().
  constexpr std::uint32_t v4_value() const {
    return std::uint32_t{bytes_[12]} << 24 | std::uint32_t{bytes_[13]} << 16 |
           std::uint32_t{bytes_[14]} << 8 | bytes_[15];
  }
  constexpr const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }
  // 4 bytes if is_v4(), else 16, as they stand in a header.
  Bytes network_bytes() const;

  // 0.0.0.0 or ::
  constexpr bool is_unspecified() const {
    return words()[0] == 0 && (words()[1] == 0 || words()[1] == kMapped);
  }
  // 127/8 or ::1
  constexpr bool is_loopback() const {
    return is_v4() ? bytes_[12] == 127 : words()[0] == 0 && words()[1] == 1;
  }
  // 224/4 or ff00::/8
  constexpr bool is_multicast() const { return is_v4() ? (bytes_[12] & 0xf0) == 0xe0 : bytes_[0] == 0xff; }
  // 255.255.255.255
  constexpr bool is_limited_broadcast() const { return is_v4() && v4_value() == 0xffffffff; }
  // 169.254/16 or fe80::/10
  constexpr bool is_link_local() const {
    if (is_v4()) return bytes_[12] == 169 && bytes_[13] == 254;
    return bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
  }

  std::string to_string() const;
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
  // Not the default, which is a call of memcmp: it is asked several times of every packet.
  friend constexpr bool operator==(const IpAddress& a, const IpAddress& b) {
    const auto x = std::bit_cast<Words>(a.bytes_), y = std::bit_cast<Words>(b.bytes_);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
  }

 private:
  using Raw = std::array<std::uint8_t, 16>;
  using Words = std::array<std::uint64_t, 2>;
  static constexpr std::uint64_t kMapped = 0x0000ffff00000000;
  // A big-endian number as this machine holds its bytes, and back.
  static constexpr std::uint64_t in_memory_order(std::uint64_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap64(value);
  }
  // As two big-endian numbers.
  constexpr Words words() const {
    const auto raw = std::bit_cast<Words>(bytes_);
    return {in_memory_order(raw[0]), in_memory_order(raw[1])};
  }

  Raw bytes_{};
};

// An address with the length of its network part: 0 to 32 for IPv4, 0 to 128 for IPv6.
struct Prefix {
  IpAddress address;
  std::uint8_t length = 0;
  bool contains(const IpAddress& other) const;                // false across families
  static std::optional<Prefix> parse(std::string_view text);  // "10.0.0.1/24"
  std::string to_string() const;
  friend constexpr auto operator<=>(const Prefix&, const Prefix&) = default;
};

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;  // host order
  // "1.2.3.4:80" or "[::1]:80".
  static std::optional<Endpoint> parse(std::string_view text);
  std::string to_string() const;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

std::string to_string(const MacAddress& mac);
std::optional<MacAddress> parse_mac(std::string_view text);

}  // namespace netchannel
