#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/ethernet.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto frame = fuzz::copy_of(data, size);
  const auto view = wire::EthernetView::parse(frame);
  if (!view) return 0;
  fuzz::require(view->header_length() + view->payload().size() == frame.size());
  fuzz::require_inside(view->payload(), frame);
  fuzz::use(wire::check_addresses(*view, view->destination()).has_value());

  const auto repr = wire::EthernetRepr::from(*view);
  fuzz::require(repr.size() == view->header_length());
  std::vector<std::byte> out(repr.size());
  repr.emit(out);
  fuzz::require(wire::EthernetRepr::from(wire::EthernetView::parse(out).value()) == repr);
  fuzz::require(std::equal(out.begin(), out.end(), frame.begin()));
  return 0;
}
