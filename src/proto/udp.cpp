#include "proto/udp.hpp"

#include <cstring>

#include "netchannel/frame.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"

namespace netchannel::proto {

ChecksumVerdict judge_udp_checksum(const wire::UdpView& udp, const IpAddress& source,
                                   const IpAddress& destination, std::uint16_t flags, bool virtual_link) {
  if ((flags & (kChecksumVerified | kChecksumPartial)) != 0) return ChecksumVerdict::accepted;
  const auto checked = wire::check_checksum(udp, source, destination);
  if (checked) return ChecksumVerdict::accepted;
  if (checked.error() == DropReason::udp_no_checksum_v6) return ChecksumVerdict::missing_v6;
  if (virtual_link && wire::has_partial_checksum(udp, source, destination))
    return ChecksumVerdict::accepted_partial;
  return ChecksumVerdict::wrong;
}

UdpHeader::UdpHeader(const Fields& fields) {
  const bool v4 = fields.destination.address.is_v4();
  const MutableBytes out(bytes_);
  const auto type = v4 ? wire::EtherType::ipv4 : wire::EtherType::ipv6;
  wire::EthernetRepr{fields.destination_mac, fields.source_mac, type, {}}.emit(out);
  const MutableBytes l3 = out.subspan(wire::kEthernetHeaderSize);
  const IpAddress &source = fields.source.address, &destination = fields.destination.address;
  std::size_t l3_size = wire::kIpv6HeaderSize;
  if (v4) {
    // RFC 6864 section 4.1: with DF set and no fragments the identification means nothing, so it is 0.
    wire::Ipv4Repr ip{.source = source,
                      .destination = destination,
                      .ttl = fields.ttl,
                      .tos = fields.tos,
                      .dont_fragment = fields.dont_fragment,
                      .options = {}};
    ip.emit(l3);
    l3_size = ip.size();
    store_be16(l3, 2, 0);
    store_be16(l3, 10, 0);
    ip_sum_ = wire::fold(wire::checksum_scalar(l3.first(l3_size)));
  } else {
    wire::Ipv6Repr{
        .source = source, .destination = destination, .hop_limit = fields.ttl, .traffic_class = fields.tos}
        .emit(l3);
  }
  wire::UdpRepr{fields.source.port, fields.destination.port, 0}.emit(l3.subspan(l3_size));
  size_ = static_cast<std::uint8_t>(wire::kEthernetHeaderSize + l3_size + wire::kUdpHeaderSize);
  pseudo_sum_ = wire::fold(wire::pseudo_header(source, destination, Protocol::udp, 0));
  udp_sum_ = pseudo_sum_ + fields.source.port + fields.destination.port;
}

void UdpHeader::stamp_lengths(MutableBytes out, std::size_t payload_length) const {
  const auto udp_length = static_cast<std::uint16_t>(payload_length + wire::kUdpHeaderSize);
  // Two copies of a fixed size are two moves each; one of a variable size is a call.
  std::memcpy(out.data(), bytes_.data(), 42);
  if (size_ == 42) {
    const auto total = static_cast<std::uint16_t>(udp_length + wire::kIpv4MinHeaderSize);
    store_be16(out, 16, total);
    store_be16(out, 24, wire::checksum({std::uint64_t{ip_sum_} + total}));
    store_be16(out, 38, udp_length);
  } else {
    std::memcpy(out.data() + 42, bytes_.data() + 42, kMaxSize - 42);
    store_be16(out, 18, udp_length);
    store_be16(out, 58, udp_length);
  }
}

void UdpHeader::stamp(MutableBytes out, std::size_t payload_length, wire::PartialSum sum) const {
  stamp_lengths(out, payload_length);
  // The length stands in the pseudo-header and in the header.
  sum.words += std::uint64_t{udp_sum_} + 2 * (payload_length + wire::kUdpHeaderSize);
  const std::uint16_t value = wire::checksum(sum);
  store_be16(out, l4_offset() + 6, value == 0 ? 0xffff : value);
}

void UdpHeader::stamp_partial(MutableBytes out, std::size_t payload_length) const {
  stamp_lengths(out, payload_length);
  store_be16(out, l4_offset() + 6,
             wire::fold({std::uint64_t{pseudo_sum_} + payload_length + wire::kUdpHeaderSize}));
}

}  // namespace netchannel::proto
