#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/ipv6.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::Ipv6View::parse(bytes);
  if (!view) return 0;
  fuzz::require(view->header_length() + view->payload().size() ==
                wire::kIpv6HeaderSize + view->payload_length());
  fuzz::require_inside(view->payload(), bytes);
  if (!view->fragment()) fuzz::require(!wire::is_ipv6_extension(static_cast<std::uint8_t>(view->protocol())));
  if (const auto fragment = view->fragment()) fuzz::require(fragment->offset != 0 || fragment->more);
  if (const auto unknown = view->unknown_option()) {
    fuzz::require(unknown->pointer < wire::kIpv6HeaderSize + view->payload_length());
    fuzz::require(unknown->action != wire::Ipv6OptionAction::skip);
  }

  const auto repr = wire::Ipv6Repr::from(*view);
  std::vector<std::byte> out(bytes);
  repr.emit(out);
  const auto again = wire::Ipv6View::parse(out).value();
  fuzz::require(wire::Ipv6Repr::from(again) == repr);
  fuzz::require(again.protocol() == view->protocol() && again.fragment() == view->fragment());
  fuzz::require(again.header_length() == view->header_length());
  fuzz::require(std::equal(out.begin(), out.end(), bytes.begin()));
  return 0;
}
