#include "proto/tcp/isn.hpp"

#include <sodium/crypto_shorthash.h>

#include <cstring>

#include "netchannel/bytes.hpp"

namespace netchannel::tcp {

static_assert(sizeof(Secret) == crypto_shorthash_KEYBYTES);

std::uint64_t keyed_hash(const Secret& secret, const FlowKey& flow, std::uint64_t more) {
  std::array<std::uint8_t, 44> message;
  std::memcpy(message.data(), flow.local.address.bytes().data(), 16);
  std::memcpy(message.data() + 16, flow.peer.address.bytes().data(), 16);
  std::memcpy(message.data() + 32, &flow.local.port, 2);
  std::memcpy(message.data() + 34, &flow.peer.port, 2);
  std::memcpy(message.data() + 36, &more, 8);
  std::array<std::uint8_t, crypto_shorthash_BYTES> hash;
  crypto_shorthash(hash.data(), message.data(), message.size(), secret.data());
  std::uint64_t out = 0;
  std::memcpy(&out, hash.data(), sizeof out);
  return out;
}

Seq initial_sequence(const Secret& secret, const FlowKey& flow, Instant now) {
  return {static_cast<std::uint32_t>(keyed_hash(secret, flow)) + static_cast<std::uint32_t>(now.ns / 4000)};
}

std::uint32_t timestamp_offset(const Secret& secret, const FlowKey& flow) {
  return static_cast<std::uint32_t>(keyed_hash(secret, flow));
}

}  // namespace netchannel::tcp
