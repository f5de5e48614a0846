#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/icmpv6.hpp"

using namespace netchannel;

// The first byte is the hop limit, 32 bytes of addresses follow, then the message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 33) return 0;
  const auto envelope_bytes = fuzz::copy_of(data, 33);
  const auto bytes = fuzz::copy_of(data + 33, size - 33);
  const wire::NeighbourView::Envelope envelope{wire::load_ipv6_address(envelope_bytes, 1),
                                               wire::load_ipv6_address(envelope_bytes, 17),
                                               load_u8(envelope_bytes, 0)};
  const auto view = wire::Icmpv6View::parse(bytes);
  if (!view) return 0;
  fuzz::require_inside(view->message(), bytes);
  fuzz::require_inside(view->payload(), bytes);
  fuzz::use(view->is_error());
  fuzz::use(verify_checksum(*view, envelope.source, envelope.destination));
  if (const auto quoted = wire::QuotedPacket::parse_v6(view->payload())) {
    fuzz::require(quoted->flow.local.address.is_v6() && quoted->flow.peer.address.is_v6());
  }

  const auto repr = wire::Icmpv6Repr::from(*view);
  std::vector<std::byte> out(bytes);
  auto rest = wire::pseudo_header(envelope.source, envelope.destination, Protocol::icmpv6, bytes.size());
  rest.add(wire::checksum_fast(view->payload()));
  repr.emit(out, rest);
  const auto again = wire::Icmpv6View::parse(out).value();
  fuzz::require(wire::Icmpv6Repr::from(again) == repr);
  fuzz::require(verify_checksum(again, envelope.source, envelope.destination));

  const auto neighbour = wire::NeighbourView::parse(*view, envelope);
  if (!neighbour) return 0;
  fuzz::require(envelope.hop_limit == 255 && !neighbour->target().is_multicast());
  const auto told = wire::NeighbourRepr::from(*neighbour);
  std::vector<std::byte> message(told.size());
  told.emit(message, envelope.source, envelope.destination);
  const auto parsed = wire::Icmpv6View::parse(message).value();
  fuzz::require(verify_checksum(parsed, envelope.source, envelope.destination));
  fuzz::require(wire::NeighbourRepr::from(wire::NeighbourView::parse(parsed, envelope).value()) == told);
  return 0;
}
