// UDP (RFC 768). The view ends where the UDP length says, so a longer IP payload is never delivered. A port
// of 0 to send from is allowed ("no reply expected"), to send to is not. The checksum is a separate call and
// has three answers: right, wrong, and over IPv6 missing.
#pragma once

#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kUdpHeaderSize = 8;

class UdpView {
 public:
  // `bytes` is the IP payload.
  static constexpr Parsed<UdpView> parse(Bytes bytes) {
    if (bytes.size() < kUdpHeaderSize) return drop(DropReason::udp_truncated);
    const std::size_t length = load_be16(bytes, 4);
    if (length < kUdpHeaderSize || length > bytes.size()) return drop(DropReason::udp_bad_length);
    if (load_be16(bytes, 2) == 0) return drop(DropReason::udp_bad_port);
    return UdpView(bytes.first(length));
  }

  constexpr std::uint16_t source_port() const { return load_be16(bytes_, 0); }
  constexpr std::uint16_t destination_port() const { return load_be16(bytes_, 2); }
  constexpr std::uint16_t length() const { return load_be16(bytes_, 4); }
  constexpr std::uint16_t checksum_field() const { return load_be16(bytes_, 6); }
  constexpr Bytes payload() const { return bytes_.subspan(kUdpHeaderSize); }
  constexpr Bytes datagram() const { return bytes_; }  // header and payload

 private:
  constexpr explicit UdpView(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

inline Parsed<void> check_checksum(const UdpView& view, const IpAddress& source,
                                   const IpAddress& destination) {
  if (view.checksum_field() == 0) {
    // RFC 768: the sender did not make one. RFC 8200 section 8.1: over IPv6 it must.
    if (source.is_v4()) return {};
    return drop(DropReason::udp_no_checksum_v6);
  }
  PartialSum sum = pseudo_header(source, destination, Protocol::udp, view.length());
  sum.add(checksum_fast(view.datagram()));
  if (fold(sum) != 0xffff) return drop(DropReason::udp_bad_checksum);
  return {};
}

// True if the sender left the checksum to its device; see is_partial_checksum().
inline bool has_partial_checksum(const UdpView& view, const IpAddress& source, const IpAddress& destination) {
  return is_partial_checksum(view.checksum_field(),
                             pseudo_header(source, destination, Protocol::udp, view.length()));
}

struct UdpRepr {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t payload_length = 0;  // at most 65527

  static constexpr UdpRepr from(const UdpView& view) {
    return {view.source_port(), view.destination_port(), static_cast<std::uint16_t>(view.payload().size())};
  }
  static constexpr std::size_t size() { return kUdpHeaderSize; }
  constexpr std::size_t datagram_size() const { return kUdpHeaderSize + payload_length; }
  // Writes the header without a checksum. `out` has at least size() bytes.
  constexpr void emit(MutableBytes out) const {
    assert(out.size() >= size());
    store_be16(out, 0, source_port);
    store_be16(out, 2, destination_port);
    store_be16(out, 4, static_cast<std::uint16_t>(datagram_size()));
    store_be16(out, 6, 0);
  }
  // Writes the header with its checksum over itself and `rest_of_sum`: the pseudo-header of datagram_size()
  // and the payload.
  constexpr void emit(MutableBytes out, PartialSum rest_of_sum) const {
    emit(out);
    rest_of_sum.words += std::uint64_t{source_port} + destination_port + datagram_size();
    const std::uint16_t value = checksum(rest_of_sum);
    store_be16(out, 6, value == 0 ? 0xffff : value);  // RFC 768: 0 would say that there is none
  }
  friend constexpr bool operator==(const UdpRepr&, const UdpRepr&) = default;
};

}  // namespace netchannel::wire
