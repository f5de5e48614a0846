// Our stack as the target of packet scripts: the whole of it behind its channel, with this file in the place
// of the driver and of the sockets' owner, in virtual time. What the script injects goes into receive slots
// as frames; what the stack puts on its ring comes back as packets. The device is a steered one whose kernel
// has told its neighbours, so that nothing but TCP is on the wire.
//
// The socket calls on top are the least that a script needs: what POSIX says of them is the posix room's.
#pragma once

#include <memory>

#include "testkit/packet_script_target.hpp"

namespace netchannel::packets {

std::unique_ptr<testkit::script::Target> open_stack_target(const testkit::script::Net& net);

}  // namespace netchannel::packets
