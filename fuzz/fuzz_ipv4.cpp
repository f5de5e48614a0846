#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/ipv4.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::Ipv4View::parse(bytes);
  if (!view) return 0;
  fuzz::require(view->header().size() + view->payload().size() == view->total_length());
  fuzz::require_inside(view->header(), bytes);
  fuzz::require_inside(view->payload(), bytes);
  fuzz::use(view->source_routed());
  fuzz::use(verify_checksum(*view));
  auto options = view->options();
  while (const auto option = options.next()) fuzz::require_inside(option->data, view->header());
  fuzz::require(!options.malformed());

  const auto repr = wire::Ipv4Repr::from(*view);
  std::vector<std::byte> out(view->total_length());
  repr.emit(out);
  const auto again = wire::Ipv4View::parse(out).value();
  fuzz::require(wire::Ipv4Repr::from(again) == repr);
  fuzz::require(verify_checksum(again));
  return 0;
}
