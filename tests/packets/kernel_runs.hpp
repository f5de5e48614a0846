// Scripts against the kernel: each run in a process and a network namespace of its own, several at once,
// since they mostly wait. One that fails is run again alone, up to twice: its times are real ones, and the
// machine may have had other things to do.
#pragma once

#include <string>
#include <vector>

#include "testkit/packet_script_run.hpp"

namespace netchannel::packets {

struct KernelRun {
  const testkit::script::Script* script = nullptr;
  bool v6 = false;
};
// One outcome for each run, in their order. Where no namespace or TUN device can be made all are skipped, and
// say why.
std::vector<testkit::script::Outcome> run_on_kernel(const std::vector<KernelRun>& runs,
                                                    const testkit::script::RunOptions& options = {});

}  // namespace netchannel::packets
