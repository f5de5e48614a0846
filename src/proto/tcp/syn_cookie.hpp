// SYN cookies (RFC 4987 section 3.6): under a flood the SYN-ACK's sequence number carries what the listener
// would have to remember, and the last acknowledgement of the handshake brings it back. Nothing is stored.
//
//      cookie = H(flow, irs) + (minute << 24) + ((H(flow, irs, minute) + mss index) mod 2^24)
//
// A guess is right with a chance of 2^-28. Cookies of this and the last period of 64 s are good: between one
// and two minutes. With timestamps the low six bits of our TSval carry the window scale, SACK and ECN;
// without, those are lost.
#pragma once

#include <optional>

#include "netchannel/flow.hpp"
#include "netchannel/time.hpp"
#include "netchannel/wire/tcp.hpp"
#include "proto/tcp/isn.hpp"

namespace netchannel::tcp {

// Of the SYN whose sequence number is `irs`.
Seq make_cookie(const Secret& secret, const FlowKey& flow, Seq irs, std::uint16_t mss, Instant now);
// The MSS, at most that of the SYN; nothing if `cookie` is not one of ours for this flow, or is too old.
std::optional<std::uint16_t> open_cookie(const Secret& secret, const FlowKey& flow, Seq irs, Seq cookie,
                                         Instant now);

// What fits into a timestamp.
struct CookieOptions {
  std::optional<std::uint8_t> window_scale;
  bool sack = false;
  bool ecn = false;
  friend bool operator==(const CookieOptions&, const CookieOptions&) = default;
};
// The largest value that is not above `tsval` and carries the options.
std::uint32_t hide_in_timestamp(std::uint32_t tsval, const CookieOptions& options);
CookieOptions read_from_timestamp(std::uint32_t echo);

}  // namespace netchannel::tcp
