// The kernel's TCP as the target of packet scripts: the oracle that a script is right. It has a TUN device in
// the network namespace of the calling process, which must be its own (in_network_namespace()), and runs in
// real time. Packets that it sends are taken from a packet socket, with the kernel's timestamps, so that a
// process that is scheduled late measures correctly all the same.
#pragma once

#include <memory>

#include "netchannel/error.hpp"
#include "testkit/packet_script_target.hpp"

namespace netchannel::testkit::script {

// Errors: whatever a system call says, with what it was for.
Result<std::unique_ptr<Target>> open_kernel_target(const Net& net);

}  // namespace netchannel::testkit::script
