// The lab: two network namespaces joined by a veth pair, on one machine, in which anything may be tried. Its
// state is the kernel's alone (what `ip netns` and `ip link` show); nothing is kept in files or memory, so
// any process can ask for it, use it or remove it, and what a killed process leaves half made is found and
// cleaned by the next up() or down().
//
//      +---- ncNAME-a ----+                   +---- ncNAME-b ----+
//      |  TAPs, if any    |                   |    TAPs, if any  |
//      |       eth0 ------|------- veth ------|------ eth0       |
//      +------------------+                   +------------------+          addresses: plan.hpp
//
// Both sides have lo up, forward, and skip duplicate address detection, so that addresses work at once. The
// kernel's TCP is CUBIC over eth0 and to 127.0.0.1, whatever the system's default is, as ours is. Needs
// root, or enter_user_namespace() (user_namespace.hpp) first. Any thread, one at a time; up() and down()
// exclude each other between processes.
//
// Delay and loss are netem's, on the sending side of each eth0, so a round trip has them twice. AF_XDP sends
// past the queueing discipline, so its frames are neither delayed nor lost on their way out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/mirror.hpp"
#include "lab/error.hpp"
#include "lab/plan.hpp"
#include "netchannel/time.hpp"

namespace netchannel::lab {

struct LabOptions {
  std::string name = "default";  // 1 to 32 of a-z, A-Z, 0-9, "_" and "-"
  std::uint32_t mtu = 1500;      // 1280 (IPv6's least) to 65535
  std::uint32_t queues = 1;      // receive and transmit queues of each eth0, 1 to 64
  Duration delay{};              // one way
  double loss_percent = 0;       // of frames, each way
};

struct SideStatus {
  std::string namespace_name;
  bool exists = false;
  std::optional<control::Link> link;  // eth0; none in a half-made lab
  std::vector<control::InterfaceAddress> addresses;
  std::vector<pid_t> processes;  // that stand in the namespace
};

struct LabStatus {
  std::string name;
  bool exists = false;  // any part of it
  bool whole = false;   // made to the end, and up
  std::string made_as;  // in words: "mtu 1500, queues 1"; empty unless whole
  SideStatus a, b;
};

struct DownReport {
  bool existed = false;
  // They were not started by the lab and are left alone, in a nameless namespace that has only lo.
  std::vector<pid_t> still_running;
};

// Makes the lab and returns when frames pass. If it is there with the same options, nothing is done; with
// others, or half made, it is made anew, unless a process stands in it. Leaves nothing behind on failure.
LabResult<Plan> up(const LabOptions& options);

// Removes it; nothing there is no error.
LabResult<DownReport> down(const std::string& name);

LabResult<LabStatus> status(const std::string& name);

// To be called in a side's namespace by whoever has just made the TAP: gives the interface that the kernel
// sees its addresses and brings it up. The way to and from the other side is there already.
LabResult<void> configure_tap(const std::string& interface_name, const TapPlan& plan);

}  // namespace netchannel::lab
