// Numbers that nobody off the path can guess, made of a secret and of what both ends know: initial sequence
// numbers (RFC 6528) and the offsets of the timestamp clock (RFC 7323 section 7.1). SipHash-2-4 by libsodium;
// the secrets are 16 random bytes each that come in through options and are never logged.
#pragma once

#include <array>
#include <cstdint>

#include "netchannel/flow.hpp"
#include "netchannel/time.hpp"
#include "proto/tcp/seq.hpp"

namespace netchannel::tcp {

using Secret = std::array<std::uint8_t, 16>;

struct Secrets {
  Secret isn{};
  Secret timestamps{};
  Secret cookies{};
};

// The keyed hash of a flow and 8 more bytes.
std::uint64_t keyed_hash(const Secret& secret, const FlowKey& flow, std::uint64_t more = 0);

// RFC 6528 section 3: ISN = M + F(flow, secret), where M steps every 4 microseconds. Of the same flow the
// later one is larger, so that an old connection's segments fall outside the new one's window; of different
// flows nothing follows.
Seq initial_sequence(const Secret& secret, const FlowKey& flow, Instant now);
std::uint32_t timestamp_offset(const Secret& secret, const FlowKey& flow);

}  // namespace netchannel::tcp
