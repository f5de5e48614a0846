#include "base/keyed_table.hpp"

#include <sodium.h>

namespace netchannel {

HashKey random_hash_key() {
  HashKey key;
  // Safe to call often and from any thread; it only fails where there is no source of randomness at all.
  if (sodium_init() < 0) std::abort();
  randombytes_buf(key.data(), key.size());
  return key;
}

}  // namespace netchannel
