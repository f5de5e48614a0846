// What the two halves of the parser share.
#pragma once

#include "testkit/packet_script.hpp"
#include "testkit/packet_script_cursor.hpp"

namespace netchannel::testkit::script {

// From "<" or ">" on.
PacketEvent parse_packet(Cursor& in);

}  // namespace netchannel::testkit::script
