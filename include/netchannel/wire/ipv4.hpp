// IPv4 (RFC 791). The view ends where the total length says, so link padding is never seen; its options are
// whole, so a walk over them cannot fail. Left to the caller: the header checksum (verify_checksum), what an
// option means (source routes are refused in packet.hpp), reassembly, and whether the addresses are ours.
#pragma once

#include "netchannel/address.hpp"
#include "netchannel/flow.hpp"
#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kIpv4MinHeaderSize = 20;
inline constexpr std::size_t kIpv4MaxOptionsSize = 40;

// RFC 3168 section 5: the low two bits of the type of service or traffic class.
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

struct Ipv4OptionKind {
  static constexpr std::uint8_t kRecordRoute = 7, kTimestamp = 68, kLooseSourceRoute = 131,
                                kRouterAlert = 148, kStrictSourceRoute = 137;
};

// False if an option is cut off or has a body too short for its kind.
constexpr bool ipv4_options_valid(Bytes options) {
  OptionCursor cursor(options);
  while (const auto option = cursor.next()) {
    switch (option->kind) {
      case Ipv4OptionKind::kRecordRoute:
      case Ipv4OptionKind::kLooseSourceRoute:
      case Ipv4OptionKind::kStrictSourceRoute:
        // RFC 791 section 3.1: a pointer, at least 4, then the route.
        if (option->data.empty() || load_u8(option->data, 0) < 4) return false;
        break;
      case Ipv4OptionKind::kTimestamp:
        // A pointer, at least 5, and the overflow and flag byte.
        if (option->data.size() < 2 || load_u8(option->data, 0) < 5) return false;
        break;
      case Ipv4OptionKind::kRouterAlert:
        if (option->data.size() != 2) return false;
        break;
      default:
        break;
    }
  }
  return !cursor.malformed();
}

class Ipv4View {
 public:
  // `bytes` begins with the header and may have a tail that is not the packet's.
  static constexpr Parsed<Ipv4View> parse(Bytes bytes) {
    if (bytes.size() < kIpv4MinHeaderSize) return drop(DropReason::ipv4_truncated);
    if (load_u8(bytes, 0) >> 4 != 4) return drop(DropReason::ipv4_bad_version);
    const std::size_t header = (load_u8(bytes, 0) & 0xf) * std::size_t{4};
    const std::size_t total = load_be16(bytes, 2);
    if (header < kIpv4MinHeaderSize || header > bytes.size()) return drop(DropReason::ipv4_bad_header_length);
    if (total < header || total > bytes.size()) return drop(DropReason::ipv4_bad_total_length);
    const Ipv4View view(bytes.first(total));
    if (header > kIpv4MinHeaderSize && !ipv4_options_valid(view.option_bytes())) {
      return drop(DropReason::ipv4_bad_option);
    }
    return view;
  }

  constexpr std::size_t header_length() const { return (load_u8(bytes_, 0) & 0xf) * std::size_t{4}; }
  constexpr std::uint16_t total_length() const { return load_be16(bytes_, 2); }
  constexpr std::uint8_t tos() const { return load_u8(bytes_, 1); }
  constexpr std::uint8_t dscp() const { return tos() >> 2; }
  constexpr Ecn ecn() const { return Ecn{static_cast<std::uint8_t>(tos() & 3)}; }
  constexpr std::uint16_t identification() const { return load_be16(bytes_, 4); }
  constexpr bool dont_fragment() const { return (load_u8(bytes_, 6) & 0x40) != 0; }
  constexpr bool more_fragments() const { return (load_u8(bytes_, 6) & 0x20) != 0; }
  // In bytes: 0 to 65528.
  constexpr std::uint32_t fragment_offset() const { return (load_be16(bytes_, 6) & 0x1fffu) * 8; }
  constexpr bool is_fragment() const { return (load_be16(bytes_, 6) & 0x3fff) != 0; }
  constexpr std::uint8_t ttl() const { return load_u8(bytes_, 8); }
  constexpr Protocol protocol() const { return Protocol{load_u8(bytes_, 9)}; }
  constexpr std::uint16_t header_checksum() const { return load_be16(bytes_, 10); }
  constexpr IpAddress source() const { return IpAddress::v4(load_be32(bytes_, 12)); }
  constexpr IpAddress destination() const { return IpAddress::v4(load_be32(bytes_, 16)); }
  constexpr Bytes header() const { return bytes_.first(header_length()); }
  constexpr Bytes option_bytes() const { return header().subspan(kIpv4MinHeaderSize); }
  // A walk that ends at the last whole option; it cannot meet a malformed one.
  constexpr OptionCursor options() const { return OptionCursor(option_bytes()); }
  constexpr bool source_routed() const {
    OptionCursor cursor = options();
    while (const auto option = cursor.next()) {
      if (option->kind == Ipv4OptionKind::kLooseSourceRoute) return true;
      if (option->kind == Ipv4OptionKind::kStrictSourceRoute) return true;
    }
    return false;
  }
  constexpr Bytes payload() const { return bytes_.subspan(header_length()); }

 private:
  constexpr explicit Ipv4View(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

inline bool verify_checksum(const Ipv4View& view) { return fold(checksum_fast(view.header())) == 0xffff; }

// The reserved flag bit is not kept: nobody may set it, and what arrives with it set is read as if it were
// clear.
struct Ipv4Repr {
  IpAddress source = IpAddress::any_v4(), destination = IpAddress::any_v4();
  Protocol protocol = Protocol::udp;
  std::uint8_t ttl = 64;
  std::uint8_t tos = 0;
  bool dont_fragment = false;
  bool more_fragments = false;
  std::uint16_t identification = 0;
  std::uint16_t fragment_offset = 0;                       // in bytes, a multiple of 8
  std::uint16_t payload_length = 0;                        // at most 65535 - size()
  FixedList<std::uint8_t, kIpv4MaxOptionsSize> options{};  // whole 32-bit words, as they stand in the header

  static constexpr Ipv4Repr from(const Ipv4View& view) {
    Ipv4Repr repr{.source = view.source(),
                  .destination = view.destination(),
                  .protocol = view.protocol(),
                  .ttl = view.ttl(),
                  .tos = view.tos(),
                  .dont_fragment = view.dont_fragment(),
                  .more_fragments = view.more_fragments(),
                  .identification = view.identification(),
                  .fragment_offset = static_cast<std::uint16_t>(view.fragment_offset()),
                  .payload_length = static_cast<std::uint16_t>(view.payload().size()),
                  .options = {}};
    for (const std::byte option : view.option_bytes())
      repr.options.push_back(std::to_integer<std::uint8_t>(option));
    return repr;
  }
  constexpr std::size_t size() const { return kIpv4MinHeaderSize + options.size(); }
  // Writes the header with its checksum. `out` has at least size() bytes; both addresses are IPv4.
  constexpr void emit(MutableBytes out) const {
    assert(out.size() >= size() && options.size() % 4 == 0 && fragment_offset % 8 == 0);
    const unsigned flags = (dont_fragment ? 0x4000u : 0u) | (more_fragments ? 0x2000u : 0u);
    store_u8(out, 0, static_cast<std::uint8_t>(0x40 | size() / 4));
    store_u8(out, 1, tos);
    store_be16(out, 2, static_cast<std::uint16_t>(size() + payload_length));
    store_be16(out, 4, identification);
    store_be16(out, 6, static_cast<std::uint16_t>(flags | fragment_offset / 8u));
    store_u8(out, 8, ttl);
    store_u8(out, 9, static_cast<std::uint8_t>(protocol));
    store_be16(out, 10, 0);
    store_be32(out, 12, source.v4_value());
    store_be32(out, 16, destination.v4_value());
    for (std::size_t i = 0; i < options.size(); ++i) store_u8(out, kIpv4MinHeaderSize + i, options[i]);
    store_be16(out, 10, checksum(checksum_scalar(out.first(size()))));
  }
  friend constexpr bool operator==(const Ipv4Repr&, const Ipv4Repr&) = default;
};

}  // namespace netchannel::wire
