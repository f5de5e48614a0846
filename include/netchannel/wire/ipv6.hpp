// IPv6 (RFC 8200) and its extension headers. parse() walks the chain once, at most eight headers, and the
// view then knows what is behind it. The walk is strict where the RFC lets a receiver be: hop-by-hop options
// only first, each other header once (destination options twice), routing header 0 refused (RFC 5095),
// padding of more than seven bytes refused (RFC 4942 section 2.1.9.5). No jumbograms. AH, ESP, mobility and
// all others end the walk as a protocol.
//
//   | header 40 | hop-by-hop | destination | routing | fragment | destination | transport ...
//                                                               ^ a fragment's payload begins here
//
// A packet that is a fragment has fragment() and its payload begins behind the fragment header, where
// reassembly works; of a first fragment the rest of the chain must be there too (RFC 7112). An atomic
// fragment (RFC 6946) is not one: its header is skipped. An unknown option does not stop the walk:
// unknown_option() says what its action bits ask for.
//
// Addresses of ::ffff:0:0/96 are IPv4's inside this program and may not be in an IPv6 header on any wire, or
// a packet of one family could speak for the other: parse() refuses them.
#pragma once

#include <cstring>
#include <optional>

#include "netchannel/address.hpp"
#include "netchannel/flow.hpp"
#include "netchannel/wire/fragment.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kIpv6HeaderSize = 40;
inline constexpr std::size_t kIpv6FragmentHeaderSize = 8;
inline constexpr int kMaxIpv6Extensions = 8;

struct Ipv6NextHeader {
  static constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kNone = 59, kDestination = 60;
};

constexpr bool is_ipv6_extension(std::uint8_t next_header) {
  return next_header == Ipv6NextHeader::kHopByHop || next_header == Ipv6NextHeader::kRouting ||
         next_header == Ipv6NextHeader::kFragment || next_header == Ipv6NextHeader::kDestination;
}

// RFC 8200 section 4.2: the top two bits of an option's type.
enum class Ipv6OptionAction : std::uint8_t { skip = 0, discard = 1, report = 2, report_unless_multicast = 3 };

constexpr Ipv6OptionAction ipv6_option_action(std::uint8_t type) {
  return Ipv6OptionAction{static_cast<std::uint8_t>(type >> 6)};
}

struct Ipv6UnknownOption {
  Ipv6OptionAction action = Ipv6OptionAction::skip;
  std::uint32_t pointer =
      0;  // where its type byte is, for a Parameter Problem: from the first byte walked or parsed
};

// The fragment header at `at`.
constexpr FragmentInfo load_ipv6_fragment(Bytes from, std::size_t at) {
  const std::uint16_t word = load_be16(from, at + 2);
  return {load_be32(from, at + 4), word & 0xfff8u, (word & 1) != 0};
}

// What is behind a chain of extension headers.
struct Ipv6Chain {
  Protocol protocol = Protocol{Ipv6NextHeader::kNone};
  std::size_t length = 0;  // bytes of extension headers before the payload
  std::optional<FragmentInfo> fragment;
  std::optional<Ipv6UnknownOption> unknown_option;  // the first whose action is not to skip it
};

// Walks from a header of type `next_header` at bytes[0]. Also for a datagram put together from fragments.
Parsed<Ipv6Chain> walk_ipv6_extensions(std::uint8_t next_header, Bytes bytes);

inline IpAddress load_ipv6_address(Bytes from, std::size_t at) {
  std::array<std::uint8_t, 16> raw;
  std::memcpy(raw.data(), from.subspan(at, raw.size()).data(), raw.size());
  return IpAddress::v6(raw);
}
inline void store_ipv6_address(MutableBytes to, std::size_t at, const IpAddress& address) {
  std::memcpy(to.subspan(at, address.bytes().size()).data(), address.bytes().data(), address.bytes().size());
}

class Ipv6View {
 public:
  // `bytes` begins with the header and may have a tail that is not the packet's.
  static Parsed<Ipv6View> parse(Bytes bytes) {
    if (bytes.size() < kIpv6HeaderSize) return drop(DropReason::ipv6_truncated);
    if (load_u8(bytes, 0) >> 4 != 6) return drop(DropReason::ipv6_bad_version);
    const std::size_t length = load_be16(bytes, 4);
    const std::uint8_t next = load_u8(bytes, 6);
    if (length > bytes.size() - kIpv6HeaderSize) return drop(DropReason::ipv6_bad_payload_length);
    if (length == 0 && next != Ipv6NextHeader::kNone) return drop(DropReason::ipv6_bad_payload_length);
    if (load_ipv6_address(bytes, 8).is_v4()) return drop(DropReason::ip_martian_source);
    if (load_ipv6_address(bytes, 24).is_v4()) return drop(DropReason::ip_not_ours);
    const Bytes packet = bytes.first(kIpv6HeaderSize + length);
    if (!is_ipv6_extension(next)) return Ipv6View(packet, Protocol{next});
    const auto chain = walk_ipv6_extensions(next, packet.subspan(kIpv6HeaderSize));
    if (!chain) return drop(chain.error());
    return Ipv6View(packet, *chain);
  }

  std::uint8_t traffic_class() const { return static_cast<std::uint8_t>(load_be16(bytes_, 0) >> 4); }
  std::uint8_t dscp() const { return traffic_class() >> 2; }
  Ecn ecn() const { return Ecn{static_cast<std::uint8_t>(traffic_class() & 3)}; }
  std::uint32_t flow_label() const { return load_be32(bytes_, 0) & 0xfffff; }
  std::uint16_t payload_length() const { return load_be16(bytes_, 4); }  // extension headers included
  std::uint8_t next_header() const { return load_u8(bytes_, 6); }        // the first one
  std::uint8_t hop_limit() const { return load_u8(bytes_, 7); }
  IpAddress source() const { return load_ipv6_address(bytes_, 8); }
  IpAddress destination() const { return load_ipv6_address(bytes_, 24); }

  // The last next header: the transport protocol, or of a fragment that of the header behind the fragment
  // header.
  Protocol protocol() const { return protocol_; }
  std::optional<FragmentInfo> fragment() const {
    if (!is_fragment_) return std::nullopt;
    return load_ipv6_fragment(bytes_, header_length_ - kIpv6FragmentHeaderSize);
  }
  // The first option that may not be skipped.
  std::optional<Ipv6UnknownOption> unknown_option() const {
    if (unknown_at_ == 0) return std::nullopt;
    return Ipv6UnknownOption{ipv6_option_action(load_u8(bytes_, unknown_at_)), unknown_at_};
  }
  // Extension headers included.
  std::size_t header_length() const { return header_length_; }
  Bytes payload() const { return bytes_.subspan(header_length_); }

 private:
  Ipv6View(Bytes bytes, Protocol protocol) : bytes_(bytes), protocol_(protocol) {}
  Ipv6View(Bytes bytes, const Ipv6Chain& chain)
      : bytes_(bytes),
        header_length_(static_cast<std::uint16_t>(kIpv6HeaderSize + chain.length)),
        protocol_(chain.protocol),
        is_fragment_(chain.fragment.has_value()) {
    if (chain.unknown_option) {
      unknown_at_ = static_cast<std::uint16_t>(kIpv6HeaderSize + chain.unknown_option->pointer);
    }
  }
  Bytes bytes_;
  std::uint16_t header_length_ = kIpv6HeaderSize;
  std::uint16_t unknown_at_ = 0;  // 0: there is none
  Protocol protocol_;
  bool is_fragment_ = false;  // its header is then the last before the payload
};

// The fixed header alone. A packet with extension headers writes them behind it and counts them in
// payload_length.
struct Ipv6Repr {
  IpAddress source{}, destination{};
  std::uint8_t next_header = static_cast<std::uint8_t>(Protocol::udp);
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint16_t payload_length = 0;

  static Ipv6Repr from(const Ipv6View& view) {
    return {view.source(),        view.destination(), view.next_header(),   view.hop_limit(),
            view.traffic_class(), view.flow_label(),  view.payload_length()};
  }
  static constexpr std::size_t size() { return kIpv6HeaderSize; }
  // `out` has at least size() bytes.
  void emit(MutableBytes out) const {
    assert(out.size() >= size());
    store_be32(out, 0, 6u << 28 | std::uint32_t{traffic_class} << 20 | (flow_label & 0xfffff));
    store_be16(out, 4, payload_length);
    store_u8(out, 6, next_header);
    store_u8(out, 7, hop_limit);
    store_ipv6_address(out, 8, source);
    store_ipv6_address(out, 24, destination);
  }
  friend bool operator==(const Ipv6Repr&, const Ipv6Repr&) = default;
};

// The fragment header (RFC 8200 section 4.5), for who sends fragments.
struct Ipv6FragmentRepr {
  std::uint8_t next_header = static_cast<std::uint8_t>(Protocol::udp);
  FragmentInfo fragment{};  // the offset is a multiple of 8 below 65536

  static constexpr std::size_t size() { return kIpv6FragmentHeaderSize; }
  // `out` has at least size() bytes.
  constexpr void emit(MutableBytes out) const {
    assert(out.size() >= size());
    store_u8(out, 0, next_header);
    store_u8(out, 1, 0);
    store_be16(out, 2, static_cast<std::uint16_t>((fragment.offset & 0xfff8) | (fragment.more ? 1u : 0u)));
    store_be32(out, 4, fragment.id);
  }
  friend constexpr bool operator==(const Ipv6FragmentRepr&, const Ipv6FragmentRepr&) = default;
};

}  // namespace netchannel::wire
