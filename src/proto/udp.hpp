// UDP beyond its eight bytes (RFC 768, RFC 1122 section 4.1): how a received checksum is judged, and the
// headers of datagrams to be sent, which are written once for each pair of endpoints and then only stamped
// with a length, a checksum and, over IPv4, an identification.
//
//   | Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | payload
//   |<----------- UdpHeader ---------------->|
#pragma once

#include <array>
#include <cstdint>

#include "netchannel/address.hpp"
#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/udp.hpp"

namespace netchannel::proto {

// The longest payload that an IP datagram can carry; over IPv6 without a jumbogram.
constexpr std::size_t max_udp_payload(bool v4) { return v4 ? 65507 : 65527; }

enum class ChecksumVerdict : std::uint8_t {
  accepted,
  accepted_partial,  // the sender left it to its device, and the device cannot damage packets: to be counted
  wrong,
  missing_v6,  // RFC 8200 section 8.1: over IPv6 there must be one
};

// `flags` are the frame's (FrameFlag). A partial checksum that nobody marked is accepted only from a virtual
// link, and is looked for only after the checksum has been found wrong, so it costs nothing where it does not
// occur.
ChecksumVerdict judge_udp_checksum(const wire::UdpView& udp, const IpAddress& source,
                                   const IpAddress& destination, std::uint16_t flags, bool virtual_link);

class UdpHeader {
 public:
  struct Fields {
    MacAddress source_mac, destination_mac;
    Endpoint source, destination;  // of one family
    std::uint8_t ttl = 64, tos = 0;
    bool dont_fragment = true;  // IPv4
  };
  static constexpr std::size_t kMaxSize = 62;

  UdpHeader() = default;
  explicit UdpHeader(const Fields& fields);

  std::size_t size() const { return size_; }
  std::size_t l4_offset() const { return size_ - wire::kUdpHeaderSize; }
  // Bytes of layer 3 without the payload.
  std::size_t l3_overhead() const { return size_ - 14u; }

  // Writes all headers to `out` (size() bytes). `sum` is the payload's.
  void stamp(MutableBytes out, std::size_t payload_length, wire::PartialSum sum) const;
  // As stamp(), but the checksum field gets the pseudo-header's sum only, for a device that completes it.
  void stamp_partial(MutableBytes out, std::size_t payload_length) const;

 private:
  void stamp_lengths(MutableBytes out, std::size_t payload_length) const;
  std::array<std::byte, kMaxSize> bytes_{};
  std::uint8_t size_ = 0;
  std::uint32_t ip_sum_ = 0;      // IPv4 header without total length
  std::uint32_t pseudo_sum_ = 0;  // pseudo-header without length
  std::uint32_t udp_sum_ = 0;     // and ports
};

}  // namespace netchannel::proto
