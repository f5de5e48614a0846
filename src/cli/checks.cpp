// The examination. Between two namespaces (veth, netkit) the xdp path is opened and closed again on the spot,
// which is the surest answer and disturbs nobody; on any other interface, attaching a program can restart the
// queues, so there it is done only when asked for, and judged by what can be read otherwise.
#include "cli/checks.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "control/ethtool.hpp"
#include "control/mirror.hpp"
#include "control/route_to.hpp"
#include "device/af_xdp/probe.hpp"
#include "lab/user_namespace.hpp"
#include "netchannel/host.hpp"

namespace netchannel::cli {
namespace {

constexpr std::uint64_t kWantedMemlock = 64 << 20;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t effective_capabilities() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("CapEff:")) return std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  return 0;
}

struct Capability {
  const char* name;
  int bit;
  const char* use;
};
constexpr Capability kCapabilities[] = {
    {"CAP_NET_ADMIN", 12, "to attach an XDP program, to make a TAP or a lab"},
    {"CAP_NET_RAW", 13, "to open an AF_XDP socket"},
    {"CAP_BPF", 39, "to load an XDP program"},
    {"CAP_NET_BIND_SERVICE", 10, "to serve ports below 1024"},
};
constexpr int kIpcLock = 14;

class Doctor {
 public:
  explicit Doctor(const DoctorOptions& options)
      : options_(options), capabilities_(effective_capabilities()) {}

  Findings all() {
    choose_device();
    kernel_paths();
    xdp_path();
    bulk_path();
    tap_path();
    if (interface_found_) interface(*interface_found_);
    privileges();
    machine();
    return std::move(out_);
  }

 private:
  void add(const char* group, std::string name, State state, std::string text, std::string mend = "") {
    out_.checks.push_back({group, std::move(name), state, std::move(text), std::move(mend)});
  }
  bool may(int bit) const { return (capabilities_ >> bit & 1) != 0; }

  void choose_device() {
    out_.device = options_.device;
    if (!out_.device.empty()) return;
    if (const auto only = control::default_interface()) out_.device = *only;
  }

  void kernel_paths() {
    for (const Path path : {Path::kernel, Path::kernel_batched}) {
      HostOptions wanted;
      wanted.path = path;
      const auto host = Host::open(wanted);
      if (host) {
        add("path", std::string(to_string(path)), State::ok, host->mode());
      } else {
        add("path", std::string(to_string(path)), State::missing, describe(host.error()));
      }
    }
  }

  void xdp_path() {
    if (out_.device.empty()) {
      add("path", "xdp", State::missing,
          "no interface to look at: none is named, and there is no default route or several to choose from",
          "netchannel doctor --device IF (ip -br link lists them)");
      return;
    }
    const auto found = device::xdp_capabilities(out_.device);
    if (!found) {
      add("path", "xdp on " + out_.device, State::missing, describe(found.error()));
      return;
    }
    const bool harmless = found->driver == "veth" || found->driver == "netkit";
    if (harmless || options_.try_hardware) {
      try_xdp(*found);
    } else {
      guess_xdp(*found);
    }
    interface_found_ = *found;
  }

  void try_xdp(const device::XdpCapabilities& found) {
    const std::string name = "xdp on " + found.interface;
    HostOptions wanted;
    wanted.path = Path::xdp;
    wanted.device = found.interface;
    const auto host = Host::open(wanted);
    if (!host) {
      add("path", name, State::missing, describe(host.error()),
          host.error().code == ErrorCode::not_permitted ? "run it as root (sudo)" : "");
      return;
    }
    out_.accelerated = true;
    const auto& reasons = host->explain();
    std::string text = host->mode();
    for (std::size_t i = 1; i < reasons.size(); ++i) text += "; " + reasons[i];
    add("path", name, host->mode() == "generic copy" ? State::slow : State::ok, text);
  }

  void guess_xdp(const device::XdpCapabilities& found) {
    const std::string name = "xdp on " + found.interface;
    const bool permitted = may(12) && may(13) && may(39);
    if (!permitted || !found.up || (found.program && !found.program->ours)) {
      add("path", name, State::missing,
          permitted ? "the interface is not free (see below)" : "not permitted (see below)",
          permitted ? "" : "run it as root (sudo)");
      return;
    }
    out_.accelerated = true;
    add("path", name, State::ok,
        fmt::format("driver {}: permitted and free; native if the driver can, else generic; not opened, "
                    "since that may restart its queues",
                    found.driver),
        fmt::format("netchannel doctor --device {} --try (to open it and see the mode)", found.interface));
  }

  // Opened on any interface: two programs that pass everything, for a moment, and no queue restarts.
  void bulk_path() {
    if (out_.device.empty()) return;
    const std::string name = "bulk on " + out_.device;
    HostOptions wanted;
    wanted.path = Path::bulk;
    wanted.device = out_.device;
    const auto host = Host::open(wanted);
    if (!host) {
      add("path", name, State::missing, describe(host.error()),
          host.error().code == ErrorCode::not_permitted ? "run it as root (sudo)" : "");
      return;
    }
    out_.accelerated = true;
    add("path", name, State::ok, "super-frames through a TAP of our own, for throughput");
  }

  void interface(const device::XdpCapabilities& found) {
    const std::string& name = found.interface;
    add("trap", "MTU",
        found.mtu > found.largest_mtu         ? State::missing
        : found.mtu > found.single_buffer_mtu ? State::slow
                                              : State::ok,
        fmt::format("{} bytes{}", found.mtu,
                    found.mtu > found.single_buffer_mtu
                        ? ": frames in several buffers, which the driver must know"
                        : ""),
        found.mtu > found.single_buffer_mtu
            ? fmt::format("ip link set dev {} mtu {}", name, found.single_buffer_mtu)
            : "");
    add("trap", "queues", State::ok,
        fmt::format("{} to receive, {} to send: a socket is bound to each of the first", found.rx_queues,
                    found.tx_queues));
    for (const std::string& trap : found.traps) {
      const auto colon = trap.rfind(": ");
      const bool has_command = colon != std::string::npos;
      const bool grave = trap.starts_with("the interface is down") || trap.starts_with("another XDP");
      add("trap", "interface", grave ? State::missing : State::note, trap.substr(0, colon),
          has_command ? trap.substr(colon + 2) : "");
    }
  }

  void tap_path() {
    const bool device = ::access("/dev/net/tun", R_OK | W_OK) == 0;
    if (!device) {
      add("path", "tap", State::missing, "/dev/net/tun cannot be opened",
          "modprobe tun; chmod 666 /dev/net/tun");
      return;
    }
    if (may(12)) {
      out_.accelerated = true;
      add("path", "tap", State::ok, "a bare device of our own; it needs no hardware and no driver");
      return;
    }
    const auto inside = lab::can_enter_user_namespace();
    out_.accelerated |= inside.has_value();
    add("path", "tap", inside ? State::ok : State::missing,
        inside ? "in a user namespace, where compare makes its lab"
               : "no CAP_NET_ADMIN, and " + inside.error().text,
        inside ? "" : "run it as root (sudo)");
  }

  void privileges() {
    for (const Capability& capability : kCapabilities) {
      const bool has = may(capability.bit);
      add("privilege", capability.name, has ? State::ok : State::missing, capability.use,
          has ? "" : "run it as root (sudo)");
    }
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    const bool enough = may(kIpcLock) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kWantedMemlock;
    add("privilege", "memlock", enough ? State::ok : State::missing,
        may(kIpcLock) ? "frame memory is not limited (CAP_IPC_LOCK)"
                      : fmt::format("frame memory is limited to {} KiB",
                                    limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur >> 10),
        enough ? "" : "ulimit -l 65536");
  }

  void machine() {
    const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (governor.empty()) {
      add("machine", "governor", State::note, "this system does not control its CPUs' frequency");
    } else {
      add("machine", "governor", governor == "performance" ? State::ok : State::slow, governor,
          governor == "performance" ? "" : "cpupower frequency-set -g performance");
    }
    const auto rmem = std::strtoull(first_line("/proc/sys/net/core/rmem_max").c_str(), nullptr, 10);
    constexpr std::uint64_t kWanted = 1 << 20;
    add("machine", "rmem_max", rmem >= kWanted || may(12) ? State::ok : State::slow,
        fmt::format("kernel sockets may keep {} KiB unread", rmem >> 10),
        rmem >= kWanted || may(12) ? "" : fmt::format("sysctl -w net.core.rmem_max={}", kWanted));
  }

  const DoctorOptions& options_;
  std::uint64_t capabilities_;
  std::optional<device::XdpCapabilities> interface_found_;
  Findings out_;
};

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::ok:
      return "OK";
    case State::slow:
      return "slow";
    case State::missing:
      return "missing";
    case State::note:
      break;
  }
  return "note";
}

Findings examine(const DoctorOptions& options) { return Doctor(options).all(); }

}  // namespace netchannel::cli
