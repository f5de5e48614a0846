// What a socket or a port claims on its host's interface: one claim for each address that it is bound to,
// kept in step with the interface's addresses, and given back when this goes. On a bare device everything is
// ours and there is nothing to claim.
#pragma once

#include <set>

#include "netchannel/error.hpp"
#include "netchannel/flow.hpp"

namespace netchannel {

class ChannelHost;

class ClaimSet {
 public:
  ClaimSet(ChannelHost& host, Protocol protocol, bool v6_only);
  ~ClaimSet();
  ClaimSet(const ClaimSet&) = delete;
  ClaimSet& operator=(const ClaimSet&) = delete;

  // All zero: every peer. Errors: those of ChannelHost::claim; what was claimed before stays.
  Result<void> set(const Endpoint& bound, const Endpoint& peer);
  // The addresses have changed.
  Result<void> update();

 private:
  std::set<FlowKey> wanted() const;
  ChannelHost& host_;
  Protocol protocol_;
  bool v6_only_;
  Endpoint bound_, peer_;
  std::set<FlowKey> claims_;
};

}  // namespace netchannel
