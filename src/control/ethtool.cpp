#include "control/ethtool.hpp"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.hpp"

namespace netchannel::control {

namespace {

// Each feature is read and written by a pair of commands of its own, or is a bit of the flags command.
struct Access {
  Feature feature;
  std::string_view name;
  std::uint32_t get, set;
  std::uint32_t flag;  // 0: the value is the feature
};
constexpr std::array<Access, kFeatures.size()> kAccess{{
    {Feature::rx_checksum, "rx", ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM, 0},
    {Feature::tx_checksum, "tx", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 0},
    {Feature::scatter_gather, "sg", ETHTOOL_GSG, ETHTOOL_SSG, 0},
    {Feature::tso, "tso", ETHTOOL_GTSO, ETHTOOL_STSO, 0},
    {Feature::gso, "gso", ETHTOOL_GGSO, ETHTOOL_SGSO, 0},
    {Feature::gro, "gro", ETHTOOL_GGRO, ETHTOOL_SGRO, 0},
    {Feature::lro, "lro", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO},
    {Feature::rx_vlan, "rxvlan", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_RXVLAN},
    {Feature::tx_vlan, "txvlan", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN},
}};

const Access& access_of(Feature feature) {
  return *std::find_if(kAccess.begin(), kAccess.end(), [&](const Access& a) { return a.feature == feature; });
}

tl::unexpected<Error> ethtool_error(int error) {
  switch (error) {
    case ENODEV:
      return fail(ErrorCode::no_such_device,
                  "no interface of that name in this network namespace; `ip link` lists them", error);
    case EPERM:
      return fail(ErrorCode::not_permitted, "changing an interface needs CAP_NET_ADMIN; use root", error);
    case EOPNOTSUPP:
      return fail(ErrorCode::not_supported, "the interface's driver does not have that setting", error);
    case EBUSY:
      return fail(ErrorCode::device_busy, "the interface is in use and cannot be changed now", error);
    case EINVAL:
    case ERANGE:
      return fail(ErrorCode::invalid_argument, "the interface's driver does not take that value", error);
    default:
      return fail(ErrorCode::system, "the interface's driver did not answer", error);
  }
}

// One command, whose structure begins with its number. 0 or errno.
int command(const std::string& interface_name, void* data) {
  if (interface_name.empty() || interface_name.size() >= IFNAMSIZ) return ENODEV;
  const UniqueFd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, interface_name.data(), interface_name.size());
  request.ifr_data = static_cast<char*>(data);
  return ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0 ? 0 : errno;
}

Result<std::uint32_t> read_value(const std::string& interface_name, std::uint32_t number) {
  ethtool_value value{.cmd = number, .data = 0};
  if (const int error = command(interface_name, &value); error != 0) return ethtool_error(error);
  return value.data;
}

}  // namespace

std::string_view to_string(Feature feature) { return access_of(feature).name; }

Result<std::string> driver_name(const std::string& interface_name) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (const int error = command(interface_name, &info); error != 0) return ethtool_error(error);
  return std::string(info.driver, ::strnlen(info.driver, sizeof info.driver));
}

Result<Channels> channels(const std::string& interface_name) {
  ethtool_channels got{};
  got.cmd = ETHTOOL_GCHANNELS;
  if (const int error = command(interface_name, &got); error != 0) return ethtool_error(error);
  return Channels{.rx = got.rx_count,
                  .tx = got.tx_count,
                  .combined = got.combined_count,
                  .max_rx = got.max_rx,
                  .max_tx = got.max_tx,
                  .max_combined = got.max_combined};
}

Result<void> set_channels(const std::string& interface_name, const Channels& wanted) {
  ethtool_channels now{};
  now.cmd = ETHTOOL_GCHANNELS;
  if (const int error = command(interface_name, &now); error != 0) return ethtool_error(error);
  now.cmd = ETHTOOL_SCHANNELS;
  now.rx_count = wanted.rx;
  now.tx_count = wanted.tx;
  now.combined_count = wanted.combined;
  if (const int error = command(interface_name, &now); error != 0) return ethtool_error(error);
  return {};
}

Result<bool> feature(const std::string& interface_name, Feature which) {
  const Access& access = access_of(which);
  const auto value = read_value(interface_name, access.get);
  if (!value) return tl::unexpected(value.error());
  return access.flag == 0 ? *value != 0 : (*value & access.flag) != 0;
}

Result<void> set_feature(const std::string& interface_name, Feature which, bool on) {
  const Access& access = access_of(which);
  ethtool_value value{.cmd = access.set, .data = on ? 1u : 0u};
  if (access.flag != 0) {
    const auto flags = read_value(interface_name, access.get);
    if (!flags) return tl::unexpected(flags.error());
    value.data = on ? *flags | access.flag : *flags & ~access.flag;
  }
  if (const int error = command(interface_name, &value); error != 0) return ethtool_error(error);
  // The kernel drops a wish that another setting forbids without an error.
  const auto now = feature(interface_name, which);
  if (!now) return tl::unexpected(now.error());
  if (*now != on) {
    return fail(ErrorCode::not_supported,
                "the kernel did not change it: fixed, or another setting forbids it", EOPNOTSUPP);
  }
  return {};
}

}  // namespace netchannel::control
