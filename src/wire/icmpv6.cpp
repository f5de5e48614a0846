// Neighbour discovery messages: RFC 4861 section 7.1 is parse(), sections 4.3 and 4.4 are emit(). Their
// options are walked in units of 8 bytes, and none may have a length of 0, so the walk ends.
#include "netchannel/wire/icmpv6.hpp"

namespace netchannel::wire {
namespace {

constexpr std::size_t kNeighbourSize = 24;
constexpr std::uint8_t kSourceLinkLayer = 1, kTargetLinkLayer = 2;
constexpr std::uint8_t kSolicitedFlag = 0x40;

constexpr std::uint8_t link_layer_kind(bool solicitation) {
  return solicitation ? kSourceLinkLayer : kTargetLinkLayer;
}

// RFC 4861 section 4.6: options in units of 8 bytes, none of length 0. Sets the link-layer address if there
// is one of the wanted kind; false if an option is cut off or is an address of a wrong size.
bool read_options(Bytes options, std::uint8_t wanted, std::optional<MacAddress>& link_layer) {
  while (!options.empty()) {
    if (options.size() < 8) return false;
    const std::size_t length = std::size_t{load_u8(options, 1)} * 8;
    if (length == 0 || length > options.size()) return false;
    if (load_u8(options, 0) == wanted && !link_layer) {
      if (length != 8) return false;  // RFC 2464 section 6: 8 bytes for Ethernet
      link_layer = load_mac(options, 2);
    }
    options = options.subspan(length);
  }
  return true;
}

bool is_solicited_node(const IpAddress& address, const IpAddress& target) {
  return address == solicited_node(target);
}

}  // namespace

Parsed<NeighbourView> NeighbourView::parse(const Icmpv6View& message, const Envelope& envelope) {
  const auto malformed = drop(DropReason::nd_malformed);
  const Bytes bytes = message.message();
  if (!message.is_neighbour_message() || bytes.size() < kNeighbourSize) return malformed;
  if (envelope.hop_limit != 255 || message.code() != 0) return malformed;
  NeighbourView view(bytes);
  if (view.target().is_multicast() || view.target().is_v4()) return malformed;
  const bool solicitation = view.is_solicitation();
  if (!read_options(bytes.subspan(kNeighbourSize), link_layer_kind(solicitation), view.link_layer_))
    return malformed;
  if (solicitation && envelope.source.is_unspecified()) {
    // Section 7.1.1: duplicate address detection asks the target's group, and has no address to give.
    if (!is_solicited_node(envelope.destination, view.target()) || view.link_layer_) return malformed;
  }
  // Section 7.1.2: nobody has solicited an advertisement to a group.
  if (!solicitation && envelope.destination.is_multicast() && view.solicited()) return malformed;
  return view;
}

NeighbourRepr NeighbourRepr::from(const NeighbourView& view) {
  NeighbourRepr repr{
      .solicitation = view.is_solicitation(), .target = view.target(), .link_layer = view.link_layer()};
  if (repr.solicitation) return repr;
  repr.router = view.router();
  repr.solicited = view.solicited();
  repr.override_flag = view.override_flag();
  return repr;
}

void NeighbourRepr::emit(MutableBytes out, const IpAddress& source, const IpAddress& destination) const {
  assert(out.size() >= size());
  const auto type = solicitation ? Icmpv6Type::neighbour_solicitation : Icmpv6Type::neighbour_advertisement;
  const unsigned flags =
      solicitation ? 0u
                   : (router ? 0x80u : 0u) | (solicited ? kSolicitedFlag : 0u) | (override_flag ? 0x20u : 0u);
  store_ipv6_address(out, 8, target);
  if (link_layer) {
    store_u8(out, 24, link_layer_kind(solicitation));
    store_u8(out, 25, 1);
    store_mac(out, 26, *link_layer);
  }
  PartialSum sum = pseudo_header(source, destination, Protocol::icmpv6, size());
  sum.add(checksum_fast(out.subspan(kIcmpv6HeaderSize, size() - kIcmpv6HeaderSize)));
  Icmpv6Repr{type, 0, flags << 24}.emit(out, sum);
}

}  // namespace netchannel::wire
