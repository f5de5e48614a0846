#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/tcp.hpp"

using namespace netchannel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::copy_of(data, size);
  const auto view = wire::TcpView::parse(bytes);
  if (!view) return 0;
  fuzz::require(view->header_length() + view->payload().size() == bytes.size());
  fuzz::require_inside(view->option_bytes(), bytes);
  fuzz::require_inside(view->payload(), bytes);
  fuzz::require(view->urgent_length() <= view->payload().size());
  fuzz::require(view->sequence_length() <= view->payload().size() + 2);
  auto options = view->options();
  while (const auto option = options.next()) fuzz::require_inside(option->data, view->option_bytes());
  const IpAddress from = IpAddress::v4(10, 0, 0, 1), to = IpAddress::v4(10, 0, 0, 2);
  fuzz::use(verify_checksum(*view, from, to));
  fuzz::use(has_partial_checksum(*view, from, to));

  const auto repr = wire::TcpRepr::from(*view);
  fuzz::require(repr.options.window_scale.value_or(0) <= wire::kMaxWindowScale);
  fuzz::require(repr.size() % 4 == 0 && repr.size() <= 60);
  std::vector<std::byte> out(repr.size());
  repr.emit(out, wire::pseudo_header(from, to, Protocol::tcp, out.size()));
  const auto again = wire::TcpView::parse(out).value();
  fuzz::require(wire::TcpRepr::from(again) == repr);
  fuzz::require(!parse_options(again).malformed);
  fuzz::require(verify_checksum(again, from, to));
  return 0;
}
