#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/arp.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::ArpView::parse(bytes);
  if (!view) return 0;
  const auto repr = wire::ArpRepr::from(*view);
  std::vector<std::byte> out(wire::ArpRepr::size());
  repr.emit(out);
  fuzz::require(wire::ArpRepr::from(wire::ArpView::parse(out).value()) == repr);
  fuzz::require(std::equal(out.begin(), out.end(), bytes.begin()));
  return 0;
}
