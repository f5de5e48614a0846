// ICMPv6 (RFC 4443) and its neighbour discovery messages (RFC 4861): solicitation and advertisement with the
// link-layer address option. Neighbour messages are believed only under the rules of RFC 4861 section 7.1;
// the hop limit of 255 proves that no router has forwarded them. Router discovery and redirects are the
// kernel's or nobody's: they parse as messages and are ignored by who reads them. Checksums are separate
// calls, as everywhere in this room.
#pragma once

#include <optional>

#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/parsed.hpp"
#include "netchannel/wire/quote.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kIcmpv6HeaderSize = 8;

enum class Icmpv6Type : std::uint8_t {
  unreachable = 1,
  packet_too_big = 2,
  time_exceeded = 3,
  parameter_problem = 4,
  echo_request = 128,
  echo_reply = 129,
  neighbour_solicitation = 135,
  neighbour_advertisement = 136,
};

// Codes of unreachable (RFC 4443 section 3.1).
struct Icmpv6Unreachable {
  static constexpr std::uint8_t kNoRoute = 0, kProhibited = 1, kBeyondScope = 2, kAddress = 3, kPort = 4,
                                kPolicy = 5, kRejectRoute = 6;
};

// Codes of parameter problem (RFC 4443 section 3.4).
struct Icmpv6ParameterProblem {
  static constexpr std::uint8_t kHeaderField = 0, kNextHeader = 1, kOption = 2;
};

class Icmpv6View {
 public:
  // `bytes` is the IP payload.
  static constexpr Parsed<Icmpv6View> parse(Bytes bytes) {
    if (bytes.size() < kIcmpv6HeaderSize) return drop(DropReason::icmp_truncated);
    return Icmpv6View(bytes);
  }

  constexpr Icmpv6Type type() const { return Icmpv6Type{load_u8(bytes_, 0)}; }
  constexpr std::uint8_t code() const { return load_u8(bytes_, 1); }
  constexpr std::uint16_t checksum_field() const { return load_be16(bytes_, 2); }
  constexpr std::uint32_t rest() const { return load_be32(bytes_, 4); }
  // Of echo.
  constexpr std::uint16_t identifier() const { return load_be16(bytes_, 4); }
  constexpr std::uint16_t sequence() const { return load_be16(bytes_, 6); }
  // Of packet too big. Untrusted: below 1280 it is a lie (RFC 8201 section 4), and it never raises a path's
  // MTU.
  constexpr std::uint32_t mtu() const { return rest(); }
  // Of parameter problem.
  constexpr std::uint32_t pointer() const { return rest(); }
  // True if payload() quotes a packet of ours and somebody should hear of it.
  constexpr bool is_error() const {
    return type() >= Icmpv6Type::unreachable && type() <= Icmpv6Type::parameter_problem;
  }
  constexpr bool is_neighbour_message() const {
    return type() == Icmpv6Type::neighbour_solicitation || type() == Icmpv6Type::neighbour_advertisement;
  }
  // Of echo its data, of an error the quoted packet.
  constexpr Bytes payload() const { return bytes_.subspan(kIcmpv6HeaderSize); }
  constexpr Bytes message() const { return bytes_; }

 private:
  constexpr explicit Icmpv6View(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

inline bool verify_checksum(const Icmpv6View& view, const IpAddress& source, const IpAddress& destination) {
  PartialSum sum = pseudo_header(source, destination, Protocol::icmpv6, view.message().size());
  sum.add(checksum_fast(view.message()));
  return fold(sum) == 0xffff;
}

struct Icmpv6Repr {
  Icmpv6Type type = Icmpv6Type::echo_request;
  std::uint8_t code = 0;
  std::uint32_t rest = 0;  // the header's last four bytes, as the type says

  static constexpr Icmpv6Repr echo_request(std::uint16_t identifier, std::uint16_t sequence) {
    return {Icmpv6Type::echo_request, 0, std::uint32_t{identifier} << 16 | sequence};
  }
  static constexpr Icmpv6Repr echo_reply(std::uint16_t identifier, std::uint16_t sequence) {
    return {Icmpv6Type::echo_reply, 0, std::uint32_t{identifier} << 16 | sequence};
  }
  static constexpr Icmpv6Repr unreachable(std::uint8_t code) { return {Icmpv6Type::unreachable, code, 0}; }
  static constexpr Icmpv6Repr packet_too_big(std::uint32_t mtu) {
    return {Icmpv6Type::packet_too_big, 0, mtu};
  }
  static constexpr Icmpv6Repr time_exceeded(std::uint8_t code) {
    return {Icmpv6Type::time_exceeded, code, 0};
  }
  static constexpr Icmpv6Repr parameter_problem(std::uint8_t code, std::uint32_t pointer) {
    return {Icmpv6Type::parameter_problem, code, pointer};
  }

  static constexpr Icmpv6Repr from(const Icmpv6View& view) { return {view.type(), view.code(), view.rest()}; }
  static constexpr std::size_t size() { return kIcmpv6HeaderSize; }
  // Writes the header with its checksum over itself and `rest_of_sum`: the pseudo-header (its length counts
  // this header) and the bytes that follow. `out` has at least size() bytes.
  constexpr void emit(MutableBytes out, PartialSum rest_of_sum) const {
    assert(out.size() >= size());
    store_u8(out, 0, static_cast<std::uint8_t>(type));
    store_u8(out, 1, code);
    store_be16(out, 2, 0);
    store_be32(out, 4, rest);
    PartialSum sum = checksum_scalar(out.first(size()));
    sum.add(rest_of_sum);
    store_be16(out, 2, checksum(sum));
  }
  friend constexpr bool operator==(const Icmpv6Repr&, const Icmpv6Repr&) = default;
};

// ff02::1:ffXX:XXXX (RFC 4291 section 2.7.1): where a station listens for questions about `address`.
constexpr IpAddress solicited_node(const IpAddress& address) {
  std::array<std::uint8_t, 16> group{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  for (std::size_t i = 13; i < 16; ++i) group[i] = address.bytes()[i];
  return IpAddress::v6(group);
}

// 33:33 and the last four bytes of the group (RFC 2464 section 7).
constexpr MacAddress multicast_mac(const IpAddress& group) {
  const auto& b = group.bytes();
  return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

// A neighbour solicitation or advertisement that has passed RFC 4861 section 7.1, all but its checksum.
class NeighbourView {
 public:
  // What the IP header around the message said.
  struct Envelope {
    IpAddress source, destination;
    std::uint8_t hop_limit = 0;
  };
  static Parsed<NeighbourView> parse(const Icmpv6View& message, const Envelope& envelope);

  bool is_solicitation() const { return load_u8(bytes_, 0) == 135; }
  // Of an advertisement.
  bool router() const { return (load_u8(bytes_, 4) & 0x80) != 0; }
  bool solicited() const { return (load_u8(bytes_, 4) & 0x40) != 0; }
  bool override_flag() const { return (load_u8(bytes_, 4) & 0x20) != 0; }
  IpAddress target() const { return load_ipv6_address(bytes_, 8); }
  // Of a solicitation the source's, of an advertisement the target's.
  const std::optional<MacAddress>& link_layer() const { return link_layer_; }

 private:
  explicit NeighbourView(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
  std::optional<MacAddress> link_layer_;
};

struct NeighbourRepr {
  bool solicitation = true;
  bool router = false, solicited = false, override_flag = false;  // of an advertisement
  IpAddress target{};
  std::optional<MacAddress> link_layer{};  // the source's or the target's, as in the view

  static NeighbourRepr from(const NeighbourView& view);
  constexpr std::size_t size() const { return link_layer ? 32 : 24; }
  // Writes the whole message, its checksum included. `out` has at least size() bytes.
  void emit(MutableBytes out, const IpAddress& source, const IpAddress& destination) const;
  friend bool operator==(const NeighbourRepr&, const NeighbourRepr&) = default;
};

}  // namespace netchannel::wire
