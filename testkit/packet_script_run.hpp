// Runs a packet script against a target: injects what arrives, makes the calls, and compares what is sent
// with the script, packet by packet, in order, and at the time the script says.
//
// Sequence numbers of a script count from its SYNs: ours (the peer's) begin shortly before 2^32 on the wire,
// so that every longer dialogue wraps; the target's are learnt from its SYN. Timestamps that a script lets
// the target send are names for what it did send, used again in "ecr"; their advance is compared with the
// time. Payload is a pattern by place in the stream, and verified both ways.
//
// Strict (the default): a packet that the script does not mention is a failure, at the end too.
#pragma once

#include <string>

#include "testkit/packet_script.hpp"
#include "testkit/packet_script_target.hpp"

namespace netchannel::testkit::script {

struct Outcome {
  enum class Kind : std::uint8_t { passed, failed, skipped };
  Kind kind = Kind::passed;
  std::string message;  // why; with the transcript if it has failed
};

struct RunOptions {
  bool strict = true;
};

Outcome run_script(const Script& script, const Net& net, Target& target, RunOptions options = {});

}  // namespace netchannel::testkit::script
