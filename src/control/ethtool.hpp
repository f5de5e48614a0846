// What a driver says of itself, and the switches that matter to us, through the ethtool ioctls. (Not through
// /sys/class/net, which shows the network namespace in which sysfs was mounted.) Reading needs no privilege;
// setting needs CAP_NET_ADMIN and is for labs: on a machine of its own purpose the administrator decides.
//
// Any thread; the interface is looked for in the thread's network namespace.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "netchannel/error.hpp"

namespace netchannel::control {

// Errors of all functions here: no_such_device, not_permitted, not_supported (the driver has no such thing,
// or the setting is fixed), device_busy, system.

// "veth", "tun", "virtio_net", "ixgbe", ...
Result<std::string> driver_name(const std::string& interface_name);

struct Channels {
  std::uint32_t rx = 0, tx = 0, combined = 0;  // in use: receive queues are rx + combined
  std::uint32_t max_rx = 0, max_tx = 0, max_combined = 0;
  std::uint32_t rx_queues() const { return rx + combined; }
  std::uint32_t tx_queues() const { return tx + combined; }
  friend bool operator==(const Channels&, const Channels&) = default;
};
Result<Channels> channels(const std::string& interface_name);
// rx, tx and combined are set; the maxima are not looked at. More than the driver's maxima: invalid_argument.
Result<void> set_channels(const std::string& interface_name, const Channels& wanted);

enum class Feature : std::uint8_t {
  rx_checksum,
  tx_checksum,  // a veth peer with it on sends packets with partial checksums
  scatter_gather,
  tso,
  gso,
  gro,
  lro,
  rx_vlan,  // the tag is taken out of the frame, so XDP does not see it
  tx_vlan,
};
inline constexpr std::array kFeatures{Feature::rx_checksum, Feature::tx_checksum, Feature::scatter_gather,
                                      Feature::tso,         Feature::gso,         Feature::gro,
                                      Feature::lro,         Feature::rx_vlan,     Feature::tx_vlan};
// As `ethtool -K` takes it: "rx", "tx", "sg", "tso", "gso", "gro", "lro", "rxvlan", "txvlan".
std::string_view to_string(Feature feature);

// Whether it is on now. Of TSO and of the checksums: whether any kind is.
Result<bool> feature(const std::string& interface_name, Feature which);
// Returns without error only if the feature then is as wanted. What depends on it goes off with it (without
// tx checksums no TSO), and comes back with it.
Result<void> set_feature(const std::string& interface_name, Feature which, bool on);

}  // namespace netchannel::control
