#include "api/claim_set.hpp"

#include "api/channel_host.hpp"

namespace netchannel {

ClaimSet::ClaimSet(ChannelHost& host, Protocol protocol, bool v6_only)
    : host_(host), protocol_(protocol), v6_only_(v6_only) {
  host_.add(*this);
}

ClaimSet::~ClaimSet() {
  for (const FlowKey& flow : claims_) host_.unclaim(flow);
  host_.remove(*this);
}

std::set<FlowKey> ClaimSet::wanted() const {
  std::set<FlowKey> wanted;
  if (!host_.steered() || bound_.port == 0) return wanted;
  const auto want = [&](const IpAddress& address) {
    if (peer_ != Endpoint{} && peer_.address.is_v4() != address.is_v4()) return;
    wanted.insert({protocol_, {address, bound_.port}, peer_});
  };
  if (!bound_.address.is_unspecified()) {
    want(bound_.address);
    return wanted;
  }
  for (const Prefix& ours : host_.stack().addresses()) {
    const bool v4 = ours.address.is_v4();
    if (bound_.address.is_v4() ? v4 : !v4 || !v6_only_) want(ours.address);
  }
  return wanted;
}

Result<void> ClaimSet::set(const Endpoint& bound, const Endpoint& peer) {
  bound_ = bound;
  peer_ = peer;
  return update();
}

Result<void> ClaimSet::update() {
  const std::set<FlowKey> now_wanted = wanted();
  // The new ones first, so that no packet of a flow that stays ours goes to the kernel in between.
  for (const FlowKey& flow : now_wanted) {
    if (claims_.contains(flow)) continue;
    if (auto claimed = host_.claim(flow); !claimed) return claimed;
    claims_.insert(flow);
  }
  std::erase_if(claims_, [&](const FlowKey& flow) {
    if (now_wanted.contains(flow)) return false;
    host_.unclaim(flow);
    return true;
  });
  return {};
}

}  // namespace netchannel
