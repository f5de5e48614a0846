#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/udp.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::UdpView::parse(bytes);
  if (!view) return 0;
  fuzz::require_inside(view->datagram(), bytes);
  fuzz::require(view->payload().size() + wire::kUdpHeaderSize == view->length());
  const IpAddress from = IpAddress::v4(10, 0, 0, 1), to = IpAddress::v4(10, 0, 0, 2);
  fuzz::use(check_checksum(*view, from, to).has_value());
  fuzz::use(has_partial_checksum(*view, from, to));

  const auto repr = wire::UdpRepr::from(*view);
  std::vector<std::byte> out(view->length());
  auto rest = wire::copy_and_checksum(MutableBytes(out).subspan(wire::kUdpHeaderSize), view->payload());
  rest.add(wire::pseudo_header(from, to, Protocol::udp, repr.datagram_size()));
  repr.emit(out, rest);
  const auto again = wire::UdpView::parse(out).value();
  fuzz::require(wire::UdpRepr::from(again) == repr);
  fuzz::require(again.checksum_field() != 0 && check_checksum(again, from, to));
  return 0;
}
