// The lab without privileges: a user namespace in which the caller is root, with network and mount namespaces
// of its own. Labs, veth, TAP and routing work there as for root; BPF, and so AF_XDP, does not (the kernel
// asks for privileges outside). The real machine cannot be touched from inside, and all goes when the last
// process in it ends.
#pragma once

#include "lab/error.hpp"

namespace netchannel::lab {

// Moves the calling process in, for good. It must have one thread only. Its /run is new and empty, so that
// `ip netns` can work there. The error says which setting of the system forbids it and how to allow it.
LabResult<void> enter_user_namespace();

// Whether enter_user_namespace() would succeed, tried in a child; the error is the same.
LabResult<void> can_enter_user_namespace();

}  // namespace netchannel::lab
