#include "device/bulk/vnet_header.hpp"

#include <bit>
#include <cstring>
#include <optional>

#include "device/bulk/uapi.hpp"

namespace netchannel::device {
namespace {

static_assert(sizeof(uapi::VirtioNetHeader) == kVnetHeaderSize);

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kIpv6 = 40;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kCwr = 0x80;
constexpr int kMaxExtensions = 6;  // as bpf/classify.h claims at most

struct Transport {
  bool v6 = false;
  std::uint8_t protocol = 0;  // kTcp or kUdp
  std::size_t offset = 0;     // of its header, which is there as a whole
  std::size_t header = 0;     // its length
  std::size_t payload_at() const { return offset + header; }
  std::size_t checksum_offset() const { return protocol == kTcp ? 16 : 6; }
  std::uint8_t gso_type() const {
    if (protocol == kUdp) return uapi::kGsoUdpL4;
    return v6 ? uapi::kGsoTcp6 : uapi::kGsoTcp4;
  }
};

std::optional<Transport> with_length(Transport found, Bytes frame) {
  if (found.protocol == kUdp) {
    found.header = 8;
  } else if (found.protocol == kTcp && found.offset + 20 <= frame.size()) {
    found.header = std::size_t{load_u8(frame, found.offset + 12)} >> 4 << 2;
    if (found.header < 20) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return found.payload_at() <= frame.size() ? std::optional(found) : std::nullopt;
}

std::optional<Transport> transport_of_v6(Bytes frame) {
  Transport found{.v6 = true, .protocol = load_u8(frame, kEthernet + 6), .offset = kEthernet + kIpv6};
  for (int i = 0; i < kMaxExtensions; ++i) {
    const bool authentication = found.protocol == 51;
    const bool options = found.protocol == 0 || found.protocol == 43 || found.protocol == 60;
    if (!authentication && !options) break;
    if (found.offset + 2 > frame.size()) return std::nullopt;
    // RFC 4302 section 2.2 counts in units of four, all others (RFC 8200 section 4) of eight.
    const std::size_t length = load_u8(frame, found.offset + 1);
    found.protocol = load_u8(frame, found.offset);
    found.offset += authentication ? (length + 2) * 4 : (length + 1) * 8;
  }
  return with_length(found, frame);
}

// The transport header of an Ethernet frame; none if it is not TCP's or UDP's or not all there.
std::optional<Transport> transport_of(Bytes frame) {
  if (frame.size() < kEthernet + 20) return std::nullopt;
  const std::uint16_t type = load_be16(frame, 12);
  if (type == kEtherTypeIpv6) {
    return frame.size() < kEthernet + kIpv6 ? std::nullopt : transport_of_v6(frame);
  }
  if (type != kEtherTypeIpv4) return std::nullopt;
  const std::size_t ip_header = std::size_t{load_u8(frame, kEthernet)} % 16 * 4;
  if (ip_header < 20) return std::nullopt;
  return with_length({.protocol = load_u8(frame, kEthernet + 9), .offset = kEthernet + ip_header}, frame);
}

constexpr auto refused = [](DropReason reason) { return tl::unexpected(reason); };

}  // namespace

tl::expected<FrameOffload, DropReason> parse_vnet_header(Bytes header, Bytes frame) {
  uapi::VirtioNetHeader said;
  if (header.size() != kVnetHeaderSize) return refused(DropReason::device_bad_vnet_header);
  std::memcpy(&said, header.data(), sizeof said);
  FrameOffload out;
  if ((said.flags & uapi::kDataValid) != 0) out.flags = kChecksumVerified;
  const bool partial = (said.flags & uapi::kNeedsChecksum) != 0;
  const unsigned gso_type = said.gso_type & ~unsigned{uapi::kGsoEcn};
  const bool segments = gso_type != uapi::kGsoNone;
  if (!partial && !segments) return out;

  const auto transport = transport_of(frame);
  if (!transport) return refused(DropReason::device_bad_vnet_header);
  out.l4_offset = static_cast<std::uint16_t>(transport->offset);
  if (partial) {
    if (said.csum_start != transport->offset || said.csum_offset != transport->checksum_offset())
      return refused(DropReason::device_bad_vnet_header);
    out.flags = kChecksumPartial;
  }
  if (segments) {
    if (gso_type != transport->gso_type() || said.gso_size == 0 || said.hdr_len > frame.size())
      return refused(DropReason::device_bad_vnet_header);
    if (frame.size() - transport->payload_at() > said.gso_size) out.segment_size = said.gso_size;
  }
  return out;
}

tl::expected<VnetHeader, DropReason> make_vnet_header(const FrameToSend& frame, std::uint32_t mtu) {
  const FrameOffload& offload = frame.offload;
  const bool partial = (offload.flags & kChecksumPartial) != 0;
  const bool fits = frame.bytes <= kEthernet + mtu;
  VnetHeader out{};
  if (!partial) {
    // One checksum cannot be right for several segments.
    if (offload.segment_size != 0) return refused(DropReason::device_bad_descriptor);
    return fits ? tl::expected<VnetHeader, DropReason>(out) : refused(DropReason::device_frame_too_large);
  }
  const auto transport = transport_of(frame.front);
  if (!transport || transport->offset != offload.l4_offset) return refused(DropReason::device_bad_descriptor);
  uapi::VirtioNetHeader say;
  say.flags = uapi::kNeedsChecksum;
  say.csum_start = offload.l4_offset;
  say.csum_offset = static_cast<std::uint16_t>(transport->checksum_offset());
  // The kernel refuses to cut what is one segment already.
  if (offload.segment_size != 0 && frame.bytes - transport->payload_at() > offload.segment_size) {
    if (transport->payload_at() + offload.segment_size > kEthernet + mtu)
      return refused(DropReason::device_frame_too_large);
    say.gso_type = transport->gso_type();
    say.gso_size = offload.segment_size;
    say.hdr_len = static_cast<std::uint16_t>(transport->payload_at());
    // RFC 3168 section 6.1.2: CWR goes with the first segment only.
    if (transport->protocol == kTcp && (load_u8(frame.front, transport->offset + 13) & kCwr) != 0)
      say.gso_type |= uapi::kGsoEcn;
  } else if (!fits) {
    return refused(DropReason::device_frame_too_large);
  }
  return std::bit_cast<VnetHeader>(say);
}

}  // namespace netchannel::device
