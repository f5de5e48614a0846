#include "device/tap.hpp"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace netchannel::device {
namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

tl::unexpected<Error> refusal(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return fail(ErrorCode::not_permitted,
                  "may not use the TAP interface; run as root, in a namespace of your own (unshare -Urn), or "
                  "have root "
                  "make it for you: ip tuntap add dev NAME mode tap user YOU",
                  error);
    case EBUSY:
      return fail(ErrorCode::device_busy, "the TAP interface is in use by another program", error);
    case EINVAL:
      return fail(ErrorCode::invalid_argument, "an interface of that name exists and is no TAP", error);
    default:
      return fail(ErrorCode::system, "cannot open the TAP interface", error);
  }
}

Result<UniqueFd> attach(const std::string& name) {
  UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENODEV || errno == ENXIO)) {
    return fail(ErrorCode::not_supported, "no /dev/net/tun; load the tun module (modprobe tun)", errno);
  }
  if (!fd) return refusal(errno);
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (::ioctl(fd.get(), TUNSETIFF, &request) != 0) return refusal(errno);
  // A TAP that somebody made before us may have offloads on: then frames would come with partial checksums.
  if (::ioctl(fd.get(), TUNSETOFFLOAD, 0UL) != 0) {
    return fail(ErrorCode::system, "cannot switch the TAP's offloads off", errno);
  }
  return fd;
}

struct Interface {
  MacAddress mac;
  std::uint32_t mtu = 0;
};

// Sets the kernel's end up as asked and reads back what it is.
Result<Interface> configure(const TapOptions& options) {
  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) return fail(ErrorCode::system, "cannot make a socket to configure the TAP", errno);
  ifreq request = request_for(options.name);
  if (options.mtu != 0) {
    request.ifr_mtu = static_cast<int>(options.mtu);
    if (::ioctl(control.get(), SIOCSIFMTU, &request) != 0) {
      if (errno == EINVAL) return fail(ErrorCode::invalid_argument, "the TAP does not take that MTU", errno);
      return refusal(errno);
    }
  }
  if (::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) return refusal(errno);
  if ((request.ifr_flags & IFF_UP) == 0 && options.bring_up) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) {
      return fail(ErrorCode::device_down, "the TAP is down and may not be set up; ip link set NAME up",
                  errno);
    }
  }
  Interface out;
  if (::ioctl(control.get(), SIOCGIFMTU, &request) != 0) return refusal(errno);
  out.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
  if (::ioctl(control.get(), SIOCGIFHWADDR, &request) != 0) return refusal(errno);
  std::memcpy(out.mac.bytes.data(), request.ifr_hwaddr.sa_data, out.mac.bytes.size());
  return out;
}

Result<MacAddress> choose_mac(const TapOptions& options, const MacAddress& kernels) {
  if (options.mac) {
    if (options.mac->is_multicast() || options.mac->is_zero() || *options.mac == kernels) {
      return fail(ErrorCode::invalid_argument, "our end of a TAP needs a unicast MAC unlike the interface's");
    }
    return *options.mac;
  }
  MacAddress mac;
  do {
    if (::getrandom(mac.bytes.data(), mac.bytes.size(), 0) != static_cast<ssize_t>(mac.bytes.size())) {
      return fail(ErrorCode::system, "no random bytes for a MAC", errno);
    }
    mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfc) | 0x02);  // locally administered, unicast
  } while (mac == kernels);
  return mac;
}

}  // namespace

Result<std::unique_ptr<TapDevice>> TapDevice::open(const TapOptions& options, DeviceHome home) {
  if (options.name.empty() || options.name.size() >= IFNAMSIZ) {
    return fail(ErrorCode::invalid_argument, "an interface name has 1 to 15 characters");
  }
  if (options.rx_headroom >= home.region.slot_size()) {
    return fail(ErrorCode::invalid_argument,
                "a TAP's rx_headroom must be less than the size of a frame slot");
  }
  auto fd = attach(options.name);
  if (!fd) return tl::unexpected(fd.error());
  const auto interface = configure(options);
  if (!interface) return tl::unexpected(interface.error());
  const auto mac = choose_mac(options, interface->mac);
  if (!mac) return tl::unexpected(mac.error());

  DeviceInfo info;
  info.name = options.name;
  info.mode = "tap";
  info.mac = *mac;
  info.mtu = interface->mtu;
  info.max_tx_frame = interface->mtu + static_cast<std::uint32_t>(kEthernetHeader);
  info.bare = true;
  info.sleep_fd = fd->get();
  std::unique_ptr<TapDevice> device(
      new TapDevice(std::move(info), home, options.rx_headroom, std::move(*fd)));
  device->silence_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!device->silence_)
    return fail(ErrorCode::system, "cannot make an eventfd; raise the limit of open files", errno);
  return device;
}

TapDevice::TapDevice(DeviceInfo info, DeviceHome home, std::uint16_t rx_headroom, UniqueFd fd)
    : CopyingDevice(std::move(info), home, rx_headroom), fd_(std::move(fd)) {}

std::size_t TapDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  const std::size_t most = std::min(kMaxParts, parts_for(info_.mtu + kEthernetHeader + kVlanTag));
  std::size_t filled = 0;
  while (alive_ && lent_.size() >= most && out.size() - filled >= most) {
    std::array<iovec, kMaxParts + 1> parts;
    for (std::size_t i = 0; i < most; ++i) {
      const MutableBytes slot = home_.region.slot(lent_[lent_.size() - 1 - i]).subspan(rx_headroom_);
      parts[i] = {slot.data(), slot.size()};
    }
    // A TAP cuts a frame that does not fit without a word; one byte more tells.
    std::byte beyond;
    parts[most] = {&beyond, 1};
    const ssize_t got = ::readv(fd_.get(), parts.data(), static_cast<int>(most + 1));
    home_.counters.add(Counter::device_rx_wakeups);
    if (got < 0) {
      if (errno == EBADFD) bury();
      break;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (bytes > most * room()) {
      home_.counters.drop(DropReason::device_frame_too_large);
      continue;
    }
    filled += describe_parts(bytes, out.subspan(filled));
  }
  return filled;
}

// The slots that the last read has filled.
std::size_t TapDevice::describe_parts(std::size_t bytes, std::span<FrameDesc> out) noexcept {
  const std::size_t parts = parts_for(bytes);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t length = std::min(room(), bytes - i * room());
    out[i] = {.slot = lent_.back(), .length = static_cast<std::uint32_t>(length), .offset = rx_headroom_};
    if (i + 1 < parts) out[i].flags = kContinues;
    lent_.pop_back();
  }
  home_.counters.add(Counter::device_rx_frames);
  return parts;
}

CopyingDevice::Sent TapDevice::send(std::span<const FrameDesc> parts, std::size_t /*bytes*/) noexcept {
  if (!alive_) {
    home_.counters.add(Counter::device_link_down);
    return Sent::failed;
  }
  std::array<iovec, kMaxParts> pieces;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MutableBytes piece = home_.region.bytes_of(parts[i]);
    pieces[i] = {piece.data(), piece.size()};
  }
  const ssize_t put = ::writev(fd_.get(), pieces.data(), static_cast<int>(parts.size()));
  home_.counters.add(Counter::device_tx_kicks);
  if (put >= 0) return Sent::yes;
  switch (errno) {
    case EAGAIN:
      return Sent::busy;
    case EBADFD:
      bury();
      [[fallthrough]];
    case EIO:
      home_.counters.add(Counter::device_link_down);
      return Sent::failed;
    default:
      home_.counters.add(Counter::device_tx_failed);
      return Sent::failed;
  }
}

// The interface was deleted. Its descriptor would report an error for ever to whoever sleeps on it, so a
// silent one takes its number.
void TapDevice::bury() noexcept {
  alive_ = false;
  info_.mode = "tap (deleted)";
  info_.why_not_better = "the TAP interface was deleted; open the device again";
  ::dup3(silence_.get(), fd_.get(), O_CLOEXEC);
}

}  // namespace netchannel::device
