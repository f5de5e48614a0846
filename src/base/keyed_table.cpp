#include "base/keyed_table.hpp"

#include <sodium.h>

#include <cstdlib>

namespace netchannel {

SipKey random_hash_key() {
  std::array<std::uint8_t, 16> bytes;
  // Safe to call often and from any thread; it only fails where there is no source of randomness at all.
  if (sodium_init() < 0) std::abort();
  randombytes_buf(bytes.data(), bytes.size());
  return SipKey::from(bytes);
}

}  // namespace netchannel
