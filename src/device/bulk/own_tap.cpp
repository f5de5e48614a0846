#include "device/bulk/own_tap.hpp"

#include <fcntl.h>
#include <linux/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "device/bulk/uapi.hpp"
#include "device/bulk/vnet_header.hpp"

namespace netchannel::device {
namespace {

// Below 1280, IPv6's least (RFC 8200 section 5), the kernel has no IPv6 on an interface at all: no link-local
// address, no multicast reports. Frames that are redirected to it are not measured by it.
constexpr int kMtuWithoutIpv6 = 1279;

constexpr unsigned kOffloads =
    TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | uapi::kTunUso4 | uapi::kTunUso6;

tl::unexpected<Error> refusal(int error) {
  if (error == EPERM || error == EACCES) {
    return fail(ErrorCode::not_permitted,
                "making the bulk lane's TAP needs CAP_NET_ADMIN: run as root or grant it with setcap", error);
  }
  return fail(ErrorCode::system, "cannot make the bulk lane's TAP", error);
}

Result<void> silence_kernel(const UniqueFd& control, ifreq& request) {
  request.ifr_mtu = kMtuWithoutIpv6;
  if (::ioctl(control.get(), SIOCSIFMTU, &request) != 0) return refusal(errno);
  if (::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) return refusal(errno);
  request.ifr_flags = static_cast<short>((request.ifr_flags | IFF_UP | IFF_NOARP) & ~IFF_MULTICAST);
  if (::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) return refusal(errno);
  return {};
}

}  // namespace

Result<OwnTap> OwnTap::make(std::uint32_t send_buffer) {
  OwnTap tap;
  tap.fd.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap.fd) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENODEV || error == ENXIO;
    return missing
               ? fail(ErrorCode::not_supported, "no /dev/net/tun; load the tun module (modprobe tun)", error)
               : refusal(error);
  }
  ifreq request{};
  constexpr std::string_view kPattern = "ncbulk%d";  // the kernel puts the first free number in
  kPattern.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tap.fd.get(), TUNSETIFF, &request) != 0) return refusal(errno);
  tap.name = request.ifr_name;

  int header_size = kVnetHeaderSize;
  int buffer = static_cast<int>(send_buffer);
  if (::ioctl(tap.fd.get(), TUNSETVNETHDRSZ, &header_size) != 0 ||
      ::ioctl(tap.fd.get(), TUNSETOFFLOAD, static_cast<unsigned long>(kOffloads)) != 0) {
    return fail(ErrorCode::not_supported, "the kernel's TAP has no UDP segmentation offload: Linux 6.2 has",
                errno);
  }
  if (::ioctl(tap.fd.get(), TUNSETSNDBUF, &buffer) != 0) return refusal(errno);

  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) return refusal(errno);
  if (::ioctl(control.get(), SIOCGIFINDEX, &request) != 0) return refusal(errno);
  tap.index = static_cast<std::uint32_t>(request.ifr_ifindex);
  if (auto silent = silence_kernel(control, request); !silent) return tl::unexpected(silent.error());
  return tap;
}

}  // namespace netchannel::device
