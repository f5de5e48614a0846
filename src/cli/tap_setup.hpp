// A host on a TAP is a host of its own behind this machine's kernel: its addresses, its gateway, and what the
// kernel's side of the TAP has to be given once it exists. The addresses are those of a lab's plan, so that
// they work inside a lab and collide with nothing outside one.
#pragma once

#include <string>
#include <vector>

#include "bench/transport.hpp"
#include "cli/arguments.hpp"

namespace netchannel::cli {

struct TapSetup {
  std::vector<Prefix> addresses;
  std::vector<IpAddress> gateways;
  bench::HostHook on_host;
};

// `device` as given to the host; empty is its default name.
TapSetup tap_setup(const lab::TapPlan& plan, const std::string& device);

}  // namespace netchannel::cli
