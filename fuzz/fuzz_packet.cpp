#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"

using namespace netchannel;

namespace {

void check_packet(const wire::IpPacket& packet, Bytes l3) {
  fuzz::require_inside(packet.header, l3);
  fuzz::require_inside(packet.payload, l3);
  fuzz::require(packet.header.size() + packet.payload.size() <= l3.size());
  fuzz::require(packet.source.is_v4() == (packet.version == 4));
  fuzz::require(packet.destination.is_v4() == (packet.version == 4));
  if (packet.fragment) {
    fuzz::require(!packet.payload.empty() && packet.fragment->offset + packet.payload.size() <= 65535);
  }
  fuzz::use(verify_header_checksum(packet));
  fuzz::use(check_source(packet).has_value());
}

void check_flow(const wire::FlowInfo& info, const wire::IpPacket& packet) {
  using wire::PacketKind;
  fuzz::require(info.l4_offset == info.l3_offset + packet.header_length());
  fuzz::require((info.kind == PacketKind::fragment) == packet.fragment.has_value());
  if (info.kind == PacketKind::icmp_error) {
    fuzz::require(info.key.local.address == packet.destination);
    return;
  }
  fuzz::require(info.key.protocol == packet.protocol);
  fuzz::require(info.key.local.address == packet.destination && info.key.peer.address == packet.source);
  if (info.kind != PacketKind::flow) return;
  fuzz::require(info.key.peer.port == load_be16(packet.payload, 0));
  fuzz::require(info.key.local.port == load_be16(packet.payload, 2));
  fuzz::require(info.key.local != info.key.peer);
}

}  // namespace

// The straight road of flow_of() and parse_ip() must say the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto frame = fuzz::copy_of(data, size);
  const auto ethernet = wire::EthernetView::parse(frame);
  const auto info = wire::flow_of(frame);
  if (!ethernet) {
    fuzz::require(info.error() == ethernet.error());
    return 0;
  }
  const Bytes l3 = ethernet->payload();
  const auto packet = wire::parse_ip(l3);
  if (packet) check_packet(*packet, l3);

  const auto type = ethernet->ether_type();
  const bool ip = (type == wire::EtherType::ipv4 && !l3.empty() && load_u8(l3, 0) >> 4 == 4) ||
                  (type == wire::EtherType::ipv6 && !l3.empty() && load_u8(l3, 0) >> 4 == 6);
  if (!ip) {
    fuzz::require(info.has_value() == (type == wire::EtherType::arp));
    return 0;
  }
  if (!packet) fuzz::require(!info && info.error() == packet.error());
  if (info) check_flow(*info, *packet);
  return 0;
}
