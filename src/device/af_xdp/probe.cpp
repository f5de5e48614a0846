#include "device/af_xdp/probe.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.hpp"

namespace netchannel::device {
namespace {

// The ioctls of one interface. Each returns false if the kernel or driver does not answer.
class InterfaceIoctl {
 public:
  explicit InterfaceIoctl(const std::string& name) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    name.copy(request_.ifr_name, IFNAMSIZ - 1);
  }
  bool ask(unsigned long what) { return ::ioctl(fd_.get(), what, &request_) == 0; }
  template <class Answer>
  bool ethtool(Answer& answer) {
    request_.ifr_data = reinterpret_cast<char*>(&answer);
    return ask(SIOCETHTOOL);
  }
  bool flag(std::uint32_t command) {
    ethtool_value value{};
    value.cmd = command;
    return ethtool(value) && value.data != 0;
  }
  const ifreq& answer() const { return request_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  ifreq request_{};
};

// Between these and their peers a checksum may be left partial, since no wire is crossed.
bool is_virtual(const std::string& driver) {
  constexpr std::array kVirtual = {"veth",   "netkit",     "tun",   "bridge", "macvlan",
                                   "ipvlan", "virtio_net", "dummy", "vif"};
  return std::ranges::find(kVirtual, driver) != kVirtual.end();
}

std::string name_of_program(std::uint32_t id) {
  const UniqueFd program(bpf_prog_get_fd_by_id(id));
  if (!program) return {};
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(program.get(), &info, &size) != 0) return {};
  return {info.name, ::strnlen(info.name, sizeof(info.name))};
}

std::optional<AttachedProgram> attached_program(unsigned index) {
  bpf_xdp_query_opts query{};
  query.sz = sizeof(query);
  if (bpf_xdp_query(static_cast<int>(index), 0, &query) != 0) return std::nullopt;
  AttachedProgram program;
  if (query.drv_prog_id != 0) {
    program.id = query.drv_prog_id, program.mode = "native";
  } else if (query.skb_prog_id != 0) {
    program.id = query.skb_prog_id, program.mode = "generic";
  } else if (query.hw_prog_id != 0) {
    program.id = query.hw_prog_id, program.mode = "hardware";
  } else {
    return std::nullopt;
  }
  program.name = name_of_program(program.id);
  program.ours = program.name == kProgramName;
  return program;
}

void read_channels(InterfaceIoctl& interface, XdpCapabilities& out) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (!interface.ethtool(channels)) return;
  out.rx_queues = std::max(channels.rx_count + channels.combined_count, 1U);
  out.tx_queues = std::max(channels.tx_count + channels.combined_count, 1U);
  out.max_rx_queues = std::max(channels.max_rx + channels.max_combined, out.rx_queues);
}

void read_features(InterfaceIoctl& interface, XdpCapabilities& out) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (interface.ethtool(driver))
    out.driver.assign(driver.driver, ::strnlen(driver.driver, sizeof(driver.driver)));
  out.virtual_driver = is_virtual(out.driver);
  out.gro = interface.flag(ETHTOOL_GGRO);
  ethtool_value flags{};
  flags.cmd = ETHTOOL_GFLAGS;
  if (!interface.ethtool(flags)) return;
  out.lro = (flags.data & ETH_FLAG_LRO) != 0;
  out.rx_vlan_offload = (flags.data & ETH_FLAG_RXVLAN) != 0;
}

void find_traps(XdpCapabilities& out) {
  const std::string& name = out.interface;
  const auto trap = [&out](std::string text) { out.traps.push_back(std::move(text)); };
  if (!out.up) trap("the interface is down: ip link set dev " + name + " up");
  if (out.program && !out.program->ours) {
    trap("another XDP program (" + (out.program->name.empty() ? std::string("unnamed") : out.program->name) +
         ", " + out.program->mode + ") is attached: end its owner, or ip link set dev " + name + " xdp off");
  }
  if (out.lro) trap("large receive offload makes frames larger than a slot: ethtool -K " + name + " lro off");
  if (out.gro) {
    trap("in generic mode GRO makes frames larger than a slot, which are dropped: ethtool -K " + name +
         " gro off");
  }
  if (out.rx_vlan_offload) {
    trap("a VLAN tag may be stripped before XDP sees the frame, which then looks like ours: ethtool -K " +
         name + " rxvlan off" + (out.driver == "veth" ? ", and txvlan off on the peer" : ""));
  }
  if (out.driver == "veth") {
    trap(
        "a veth peer leaves checksums partial, which are accepted here; in generic mode it also sends "
        "super-frames: "
        "ethtool -K <peer> tx off tso off gso off");
  }
}

}  // namespace

Result<XdpCapabilities> xdp_capabilities(const std::string& interface) {
  constexpr std::uint32_t kBeforeAndAround = 256 + 14;  // the kernel's headroom and the Ethernet header
  constexpr std::uint32_t kPage = 4096;
  XdpCapabilities out;
  out.interface = interface;
  out.single_buffer_mtu = kPage - kBeforeAndAround;
  out.largest_mtu = 65535;
  InterfaceIoctl ioctl(interface);
  if (ioctl.fd() < 0) return fail(ErrorCode::system, "no socket to ask about interfaces with", errno);
  if (interface.empty() || interface.size() >= IFNAMSIZ || !ioctl.ask(SIOCGIFINDEX)) {
    return fail(ErrorCode::no_such_device, "there is no interface of that name here: see ip link", ENODEV);
  }
  out.index = static_cast<unsigned>(ioctl.answer().ifr_ifindex);
  if (ioctl.ask(SIOCGIFMTU)) out.mtu = static_cast<std::uint32_t>(ioctl.answer().ifr_mtu);
  if (ioctl.ask(SIOCGIFFLAGS)) out.up = (ioctl.answer().ifr_flags & IFF_UP) != 0;
  if (ioctl.ask(SIOCGIFHWADDR)) std::memcpy(out.mac.bytes.data(), ioctl.answer().ifr_hwaddr.sa_data, 6);
  read_channels(ioctl, out);
  read_features(ioctl, out);
  out.program = attached_program(out.index);
  find_traps(out);
  return out;
}

}  // namespace netchannel::device
