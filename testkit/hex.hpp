// Packets as text: a hex dump as tcpdump -xx prints it, and a line that says what a frame is.
#pragma once

#include <string>

#include "netchannel/bytes.hpp"

namespace netchannel::testkit {

std::string hex_dump(Bytes bytes, std::string_view indent = "");
// "02:..:0a > 02:..:0b ipv4 10.0.0.1:5 > 10.0.0.2:7 udp 100 bytes"; says what it can of a broken frame.
std::string summary(Bytes frame);

}  // namespace netchannel::testkit
