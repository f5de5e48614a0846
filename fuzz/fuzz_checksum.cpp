#include <algorithm>

#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/checksum.hpp"

using namespace netchannel;

// The first two bytes say where the rest is cut and how it is aligned.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto block = fuzz::copy_of(data + 2, size - 2);
  const Bytes bytes = Bytes(block).subspan(std::min<std::size_t>(data[0] % 32, block.size()));
  const std::uint16_t whole = fold(wire::checksum_scalar(bytes));
  fuzz::require(fold(wire::checksum_fast(bytes)) == whole);

  const std::size_t middle = std::min<std::size_t>(data[1], bytes.size());
  std::vector<std::byte> to(bytes.size());
  wire::PartialSum sum = wire::copy_and_checksum(to, bytes.first(middle));
  sum.add(wire::copy_and_checksum(MutableBytes(to).subspan(middle), bytes.subspan(middle)), middle);
  fuzz::require(fold(sum) == whole);
  fuzz::require(std::equal(bytes.begin(), bytes.end(), to.begin()));
  return 0;
}
