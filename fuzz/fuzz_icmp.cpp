#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/icmp.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::IcmpView::parse(bytes);
  if (!view) return 0;
  fuzz::require_inside(view->message(), bytes);
  fuzz::require_inside(view->payload(), bytes);
  fuzz::use(view->is_error());
  fuzz::use(verify_checksum(*view));
  if (const auto quoted = wire::QuotedPacket::parse_v4(view->payload())) {
    fuzz::require(quoted->flow.local.address.is_v4() && quoted->flow.peer.address.is_v4());
    if (!quoted->has_ports) fuzz::require(quoted->flow.local.port == 0 && quoted->flow.peer.port == 0);
  }

  const auto repr = wire::IcmpRepr::from(*view);
  std::vector<std::byte> out(bytes);
  repr.emit(out, wire::checksum_fast(view->payload()));
  const auto again = wire::IcmpView::parse(out).value();
  fuzz::require(wire::IcmpRepr::from(again) == repr);
  fuzz::require(verify_checksum(again));
  return 0;
}
