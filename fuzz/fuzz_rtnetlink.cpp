// One rtnetlink message of any content into each parser of the mirror. The kernel is trusted, its future is
// not: a message of unknown layout may be skipped, never misread.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "control/parse.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace netchannel::control;
  if (size < sizeof(nlmsghdr)) return 0;
  // A copy of exactly that size, so that a byte read past it is found; the length is what the socket has
  // checked.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  std::memcpy(copy.get(), data, size);
  const auto length = static_cast<std::uint32_t>(size);
  std::memcpy(copy.get(), &length, sizeof length);
  const void* start = copy.get();
  const auto& message = *static_cast<const nlmsghdr*>(start);

  if (const auto link = parse_link(message); link && link->name.size() > size) std::abort();
  (void)parse_address(message);
  (void)parse_neighbour(message);
  (void)parse_answer(message);
  std::vector<Route> routes;
  parse_route(message, routes);
  if (routes.size() > size) std::abort();
  return 0;
}
