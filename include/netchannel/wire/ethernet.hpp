// Ethernet II (RFC 894, RFC 2464) with up to two tags of IEEE 802.1Q or 802.1ad. A third tag is refused
// rather than guessed at.
//
//   0           6           12    14
//   | destination | source  | [tag 4] [tag 4] | type | payload, perhaps with padding at its end
//
// The frame's length says nothing about the packet's: IP's own length trims the padding. LLC (a type below
// 0x600) and unknown types are values here; who asks for a flow refuses them.
#pragma once

#include "netchannel/address.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

// Any 16-bit value can stand here; these are the ones that have a meaning for us.
enum class EtherType : std::uint16_t {
  ipv4 = 0x0800,
  arp = 0x0806,
  vlan = 0x8100,
  ipv6 = 0x86dd,
  qinq = 0x88a8
};

inline constexpr std::size_t kEthernetHeaderSize = 14;
inline constexpr std::size_t kVlanTagSize = 4;
inline constexpr std::size_t kMaxVlanTags = 2;

constexpr bool is_vlan(EtherType type) { return type == EtherType::vlan || type == EtherType::qinq; }

struct VlanTag {
  EtherType type = EtherType::vlan;  // vlan or qinq
  std::uint16_t control = 0;         // priority 3 bits, drop-eligible 1 bit, identifier 12 bits
  constexpr std::uint16_t id() const { return control & 0x0fff; }
  constexpr std::uint8_t priority() const { return static_cast<std::uint8_t>(control >> 13); }
  friend constexpr bool operator==(const VlanTag&, const VlanTag&) = default;
};
using VlanTags = FixedList<VlanTag, kMaxVlanTags>;  // the outer one first

constexpr MacAddress load_mac(Bytes from, std::size_t at) {
  MacAddress mac;
  for (std::size_t i = 0; i < 6; ++i) mac.bytes[i] = load_u8(from, at + i);
  return mac;
}
constexpr void store_mac(MutableBytes to, std::size_t at, const MacAddress& mac) {
  for (std::size_t i = 0; i < 6; ++i) store_u8(to, at + i, mac.bytes[i]);
}

class EthernetView {
 public:
  static constexpr Parsed<EthernetView> parse(Bytes frame) {
    if (frame.size() < kEthernetHeaderSize) return drop(DropReason::eth_truncated);
    std::size_t type_at = 12;
    while (is_vlan(EtherType{load_be16(frame, type_at)})) {
      if (type_at == 12 + kMaxVlanTags * kVlanTagSize) return drop(DropReason::eth_vlan_too_deep);
      type_at += kVlanTagSize;
      if (frame.size() < type_at + 2) return drop(DropReason::eth_vlan_truncated);
    }
    return EthernetView(frame, type_at + 2);
  }

  constexpr MacAddress destination() const { return load_mac(frame_, 0); }
  constexpr MacAddress source() const { return load_mac(frame_, 6); }
  constexpr VlanTags tags() const {
    VlanTags tags;
    for (std::size_t at = 12; at + 2 < header_length_; at += kVlanTagSize) {
      tags.push_back({EtherType{load_be16(frame_, at)}, load_be16(frame_, at + 2)});
    }
    return tags;
  }
  // The type behind the tags.
  constexpr EtherType ether_type() const { return EtherType{load_be16(frame_, header_length_ - 2)}; }
  constexpr std::size_t header_length() const { return header_length_; }
  // Padding included.
  constexpr Bytes payload() const { return frame_.subspan(header_length_); }

 private:
  constexpr EthernetView(Bytes frame, std::size_t header_length)
      : frame_(frame), header_length_(header_length) {}
  Bytes frame_;
  std::size_t header_length_;
};

// Whether a frame is for a station of this address: unicast to it, multicast or broadcast, and from somebody
// else.
constexpr Parsed<void> check_addresses(const EthernetView& frame, const MacAddress& ours) {
  const MacAddress destination = frame.destination(), source = frame.source();
  if (destination != ours && !destination.is_multicast()) return drop(DropReason::eth_not_ours);
  if (source.is_multicast() || source.is_zero() || source == ours) return drop(DropReason::eth_bad_source);
  return {};
}

struct EthernetRepr {
  MacAddress destination, source;
  EtherType ether_type = EtherType::ipv4;
  VlanTags tags{};

  static constexpr EthernetRepr from(const EthernetView& view) {
    return {view.destination(), view.source(), view.ether_type(), view.tags()};
  }
  constexpr std::size_t size() const { return kEthernetHeaderSize + kVlanTagSize * tags.size(); }
  // `out` has at least size() bytes.
  constexpr void emit(MutableBytes out) const {
    assert(out.size() >= size());
    store_mac(out, 0, destination);
    store_mac(out, 6, source);
    std::size_t at = 12;
    for (const VlanTag& tag : tags) {
      store_be16(out, at, static_cast<std::uint16_t>(tag.type));
      store_be16(out, at + 2, tag.control);
      at += kVlanTagSize;
    }
    store_be16(out, at, static_cast<std::uint16_t>(ether_type));
  }
  friend constexpr bool operator==(const EthernetRepr&, const EthernetRepr&) = default;
};

}  // namespace netchannel::wire
