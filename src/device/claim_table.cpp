#include "device/claim_table.hpp"

#include <bpf/bpf.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "claims.h"

namespace netchannel::device {
namespace {

bool is_claimable(const FlowKey& flow) {
  const bool protocol = flow.protocol == Protocol::udp || flow.protocol == Protocol::tcp;
  const bool peer = flow.is_wildcard() || (flow.peer.port != 0 && !flow.peer.address.is_unspecified());
  return protocol && peer && flow.local.port != 0 && !flow.local.address.is_unspecified();
}

netchannel_claim key_of(const FlowKey& flow) {
  netchannel_claim claim{};
  std::copy(flow.local.address.bytes().begin(), flow.local.address.bytes().end(), claim.local);
  std::copy(flow.peer.address.bytes().begin(), flow.peer.address.bytes().end(), claim.peer);
  claim.local_port = htons(flow.local.port);
  claim.peer_port = htons(flow.peer.port);
  claim.protocol = static_cast<std::uint8_t>(flow.protocol);
  return claim;
}

}  // namespace

Result<void> ClaimTable::claim(const FlowKey& flow) {
  if (!is_claimable(flow)) {
    return fail(ErrorCode::not_supported,
                "only UDP and TCP flows of a specific local address and port can be claimed");
  }
  const netchannel_claim key = key_of(flow);
  const std::uint32_t unused = 0;
  // Counted before it is there: the program looks for exact claims only if there are some.
  if (!flow.is_wildcard()) __atomic_fetch_add(&exact_claims_, 1, __ATOMIC_RELEASE);
  if (bpf_map_update_elem(map_, &key, &unused, BPF_NOEXIST) == 0) return {};
  const int error = errno;
  if (!flow.is_wildcard()) __atomic_fetch_sub(&exact_claims_, 1, __ATOMIC_RELEASE);
  if (error == EEXIST) return fail(ErrorCode::address_in_use, "this flow is claimed already", error);
  if (error == E2BIG || error == ENOMEM) {
    return fail(ErrorCode::no_memory, "the claim table is full: raise max_claims or close connections",
                error);
  }
  return fail(ErrorCode::system, "the claim could not be entered into the BPF program's map", error);
}

Result<void> ClaimTable::unclaim(const FlowKey& flow) {
  const netchannel_claim key = key_of(flow);
  if (bpf_map_delete_elem(map_, &key) != 0) {
    return errno == ENOENT
               ? fail(ErrorCode::invalid_argument, "this flow is not claimed", errno)
               : fail(ErrorCode::system, "the claim could not be taken out of the BPF program's map", errno);
  }
  if (!flow.is_wildcard()) __atomic_fetch_sub(&exact_claims_, 1, __ATOMIC_RELEASE);
  return {};
}

}  // namespace netchannel::device
