// ARP (RFC 826) for IPv4 over Ethernet, the only pairing that exists in practice; any other is malformed
// here. Who asks and who answers, and what a table does with it, is proto's (RFC 1122 section 2.3.2).
#pragma once

#include "netchannel/address.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kArpSize = 28;

// Other values (RARP and its kin) parse and mean nothing to us.
enum class ArpOperation : std::uint16_t { request = 1, reply = 2 };

class ArpView {
 public:
  static constexpr Parsed<ArpView> parse(Bytes bytes) {
    if (bytes.size() < kArpSize) return drop(DropReason::arp_malformed);
    const bool ethernet = load_be16(bytes, 0) == 1 && load_u8(bytes, 4) == 6;
    const bool ipv4 = EtherType{load_be16(bytes, 2)} == EtherType::ipv4 && load_u8(bytes, 5) == 4;
    if (!ethernet || !ipv4) return drop(DropReason::arp_malformed);
    return ArpView(bytes.first(kArpSize));
  }

  constexpr ArpOperation operation() const { return ArpOperation{load_be16(bytes_, 6)}; }
  constexpr MacAddress sender_mac() const { return load_mac(bytes_, 8); }
  constexpr IpAddress sender() const { return IpAddress::v4(load_be32(bytes_, 14)); }
  constexpr MacAddress target_mac() const { return load_mac(bytes_, 18); }
  constexpr IpAddress target() const { return IpAddress::v4(load_be32(bytes_, 24)); }

 private:
  constexpr explicit ArpView(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

struct ArpRepr {
  ArpOperation operation = ArpOperation::request;
  MacAddress sender_mac;
  IpAddress sender = IpAddress::any_v4();
  MacAddress target_mac;
  IpAddress target = IpAddress::any_v4();

  static constexpr ArpRepr from(const ArpView& view) {
    return {view.operation(), view.sender_mac(), view.sender(), view.target_mac(), view.target()};
  }
  static constexpr std::size_t size() { return kArpSize; }
  // `out` has at least size() bytes; both addresses are IPv4.
  constexpr void emit(MutableBytes out) const {
    assert(out.size() >= size());
    store_be16(out, 0, 1);
    store_be16(out, 2, static_cast<std::uint16_t>(EtherType::ipv4));
    store_u8(out, 4, 6);
    store_u8(out, 5, 4);
    store_be16(out, 6, static_cast<std::uint16_t>(operation));
    store_mac(out, 8, sender_mac);
    store_be32(out, 14, sender.v4_value());
    store_mac(out, 18, target_mac);
    store_be32(out, 24, target.v4_value());
  }
  friend constexpr bool operator==(const ArpRepr&, const ArpRepr&) = default;
};

}  // namespace netchannel::wire
