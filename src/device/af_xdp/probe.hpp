// What an interface can do for AF_XDP, and what stands in the way, as plain values: for the device when it
// opens and for `doctor`, so that both give the same reason. Reads ioctls and the BPF system call; changes
// nothing, needs no privileges (but names a foreign program only to those who may see it). Works in the
// calling thread's network namespace, whatever /sys shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netchannel/address.hpp"
#include "netchannel/error.hpp"

namespace netchannel::device {

// The name our program has in the kernel.
inline constexpr const char* kProgramName = "netchannel_xdp";

struct AttachedProgram {
  std::uint32_t id = 0;
  std::string name;  // empty if we may not ask
  std::string mode;  // "native", "generic", "hardware"
  bool ours = false;
};

struct XdpCapabilities {
  std::string interface;
  unsigned index = 0;
  MacAddress mac;
  std::uint32_t mtu = 0;
  bool up = false;
  std::string driver;           // as ethtool names it; empty if the driver does not say
  bool virtual_driver = false;  // its frames may carry partial checksums
  std::uint32_t rx_queues = 1;  // in use now
  std::uint32_t tx_queues = 1;
  std::uint32_t max_rx_queues = 1;
  bool gro = false;
  bool lro = false;
  bool rx_vlan_offload = false;
  std::uint32_t single_buffer_mtu = 0;  // the largest that needs no multi-buffer packets
  std::uint32_t largest_mtu = 0;        // the largest that the device can be opened at
  std::optional<AttachedProgram> program;
  std::vector<std::string> traps;  // a sentence each: what goes wrong, and the command that mends it
};

// Errors: no_such_device, system.
Result<XdpCapabilities> xdp_capabilities(const std::string& interface);

}  // namespace netchannel::device
