#include "proto/tcp/syn_cookie.hpp"

#include <array>

namespace netchannel::tcp {
namespace {

constexpr std::uint32_t kLowBits = 0xffffff;
// Sizes that paths have; the smallest is what every peer can take.
constexpr std::array<std::uint16_t, 8> kSizes{wire::kMinMss, 536, 1220, 1360, 1440, 1460, 4036, 8940};

std::uint32_t period(Instant now) { return static_cast<std::uint32_t>(now.ns / 64'000'000'000); }

// Two hashes with one secret: the low half of `more` tells them apart from each other and from any irs.
std::uint32_t hash_of_flow(const Secret& secret, const FlowKey& flow, Seq irs) {
  return static_cast<std::uint32_t>(keyed_hash(secret, flow, std::uint64_t{irs.value} << 32));
}
std::uint32_t hash_of_period(const Secret& secret, const FlowKey& flow, Seq irs, std::uint32_t count) {
  return static_cast<std::uint32_t>(
      keyed_hash(secret, flow, std::uint64_t{irs.value} << 32 | (count % 256 + 1)));
}

constexpr std::uint32_t kHidden = 0x3f;
constexpr std::uint32_t kNoScale = 0xf;
constexpr std::uint32_t kSackBit = 0x10;
constexpr std::uint32_t kEcnBit = 0x20;

}  // namespace

Seq make_cookie(const Secret& secret, const FlowKey& flow, Seq irs, std::uint16_t mss, Instant now) {
  std::uint32_t index = 0;
  while (index + 1 < kSizes.size() && kSizes[index + 1] <= mss) ++index;
  const std::uint32_t count = period(now);
  const std::uint32_t low = (hash_of_period(secret, flow, irs, count) + index) & kLowBits;
  return {hash_of_flow(secret, flow, irs) + (count << 24) + low};
}

std::optional<std::uint16_t> open_cookie(const Secret& secret, const FlowKey& flow, Seq irs, Seq cookie,
                                         Instant now) {
  const std::uint32_t rest = cookie.value - hash_of_flow(secret, flow, irs);
  const std::uint32_t count = period(now);
  const std::uint32_t age = (count - (rest >> 24)) % 256;
  if (age > 1) return std::nullopt;
  const std::uint32_t index = (rest - hash_of_period(secret, flow, irs, count - age)) & kLowBits;
  if (index >= kSizes.size()) return std::nullopt;
  return kSizes[index];
}

std::uint32_t hide_in_timestamp(std::uint32_t tsval, const CookieOptions& options) {
  const std::uint32_t bits = (options.window_scale ? *options.window_scale : kNoScale) |
                             (options.sack ? kSackBit : 0) | (options.ecn ? kEcnBit : 0);
  const std::uint32_t out = (tsval & ~kHidden) | bits;
  return out > tsval ? out - (kHidden + 1) : out;
}

CookieOptions read_from_timestamp(std::uint32_t echo) {
  CookieOptions out;
  const std::uint32_t scale = echo & kNoScale;
  if (scale <= wire::kMaxWindowScale) out.window_scale = static_cast<std::uint8_t>(scale);
  out.sack = (echo & kSackBit) != 0;
  out.ecn = (echo & kEcnBit) != 0;
  return out;
}

}  // namespace netchannel::tcp
