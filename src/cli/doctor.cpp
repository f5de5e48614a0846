#include "cli/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "control/route_to.hpp"
#include "device/af_xdp/probe.hpp"
#include "lab/user_namespace.hpp"
#include "netchannel/host.hpp"

namespace netchannel::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr rlim_t kFrameMemory = 16 << 20;  // what a host pins at its defaults

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Effective capabilities of this process, as a bit mask (proc_pid_status(5)).
std::uint64_t capabilities() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("CapEff:", 0) == 0) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

bool has(std::uint64_t mask, int capability) { return (mask >> capability & 1) != 0; }

void look_at_privileges(Diagnosis& out) {
  struct Wanted {
    int number;
    const char* name;
    const char* why;
  };
  constexpr std::array kWanted = {
      Wanted{CAP_NET_RAW, "CAP_NET_RAW", "to make AF_XDP sockets"},
      Wanted{CAP_NET_ADMIN, "CAP_NET_ADMIN", "to attach the XDP program and to have neighbours resolved"},
      Wanted{CAP_BPF, "CAP_BPF", "to load the XDP program"},
  };
  const std::uint64_t held = capabilities();
  for (const Wanted& wanted : kWanted) {
    const bool held_here = has(held, wanted.number) || (wanted.number == CAP_BPF && has(held, CAP_SYS_ADMIN));
    Finding finding{"privilege", wanted.name, held_here ? Verdict::ok : Verdict::missing, wanted.why, ""};
    if (!held_here) {
      finding.mend = "run as root, or: setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep <program>";
    }
    out.findings.push_back(finding);
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool free_to_lock =
      has(held, CAP_IPC_LOCK) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kFrameMemory;
  out.findings.push_back(
      {"privilege", "memlock", free_to_lock ? Verdict::ok : Verdict::missing,
       fmt::format("a host pins {} MiB of frames at its defaults", kFrameMemory >> 20),
       free_to_lock ? "" : "ulimit -l 65536, or grant CAP_IPC_LOCK, or open with fewer frames"});
}

void look_at_kernel_path(Diagnosis& out) {
  out.findings.push_back({"path", "kernel", Verdict::ok, "plain sockets work everywhere", ""});
  const std::string most = read_line("/proc/sys/net/core/rmem_max");
  const bool small = !most.empty() && std::stoull(most) < 1'000'000;
  out.findings.push_back({"path", "kernel-batched", small ? Verdict::slow : Verdict::ok,
                          fmt::format("recvmmsg, sendmmsg, GSO and GRO; socket buffers up to {} bytes", most),
                          small ? "sysctl -w net.core.rmem_max=4194304" : ""});
}

void look_at_xdp(Diagnosis& out) {
  if (out.device.empty()) {
    out.findings.push_back({"path", "xdp", Verdict::missing, "there is no Ethernet interface that is up",
                            "name one with --device, or make a lab: netchannel lab up"});
    return;
  }
  HostOptions options;
  options.path = Path::xdp;
  options.device = out.device;
  const auto host = Host::open(options);
  if (!host) {
    out.findings.push_back({"path", "xdp", Verdict::missing, host.error().what, ""});
    return;
  }
  const std::string& mode = host->mode();
  const bool best = mode.find("native") != std::string::npos && mode.find("zero") != std::string::npos;
  Finding finding{"path", "xdp", best ? Verdict::ok : Verdict::slow, "works in mode " + mode, ""};
  const auto& words = host->explain();
  for (std::size_t i = 1; i < words.size(); ++i) finding.detail += "; " + words[i];
  // Native copy is the best that a virtual interface has: nothing is to be mended.
  if (mode.find("native") != std::string::npos) finding.verdict = Verdict::ok;
  out.findings.push_back(finding);
}

void look_at_tap(Diagnosis& out) {
  Finding finding{"path", "tap", Verdict::ok, "a TAP device of our own can be made", ""};
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) {
    finding = {"path", "tap", Verdict::missing, "/dev/net/tun is not there or not ours to open",
               "modprobe tun"};
  } else if (!has(capabilities(), CAP_NET_ADMIN)) {
    const auto possible = lab::can_enter_user_namespace();
    finding.detail = possible ? "in a user namespace, as netchannel compare does" : possible.error().text;
    finding.verdict = possible ? Verdict::ok : Verdict::missing;
  }
  out.findings.push_back(finding);
}

void look_at_traps(Diagnosis& out) {
  if (!out.device.empty()) {
    const auto interface = device::xdp_capabilities(out.device);
    for (const std::string& trap : interface ? interface->traps : std::vector<std::string>{}) {
      // "what goes wrong: what mends it"
      const auto colon = trap.find(": ");
      const bool both = colon != std::string::npos;
      out.findings.push_back(
          {"trap", "interface", Verdict::slow, trap.substr(0, colon), both ? trap.substr(colon + 2) : ""});
    }
  }
  const std::string governor = read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty() && governor != "performance") {
    out.findings.push_back({"trap", "governor", Verdict::slow,
                            "the CPU governor is " + governor + ": latency varies",
                            "cpupower frequency-set -g performance"});
  }
  if (read_line("/proc/sys/net/core/bpf_jit_enable") == "0") {
    out.findings.push_back({"trap", "bpf_jit", Verdict::slow, "the XDP program is interpreted",
                            "sysctl -w net.core.bpf_jit_enable=1"});
  }
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "OK";
    case Verdict::slow:
      return "slow";
    case Verdict::missing:
      return "missing";
  }
  return "";
}

// `text` in lines that fit behind the indent.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  std::istringstream words(text);
  for (std::string next; words >> next;) {
    if (column > indent && column + 1 + next.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += next;
    column += next.size();
  }
  return out;
}

}  // namespace

bool Diagnosis::accelerated() const {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.area == "path" && finding.name == "xdp" && finding.verdict != Verdict::missing;
  });
}

Diagnosis diagnose(const std::string& device) {
  Diagnosis out;
  out.device = device.empty() ? control::default_interface().value_or("") : device;
  look_at_xdp(out);
  look_at_tap(out);
  look_at_kernel_path(out);
  look_at_privileges(out);
  look_at_traps(out);
  return out;
}

std::string to_text(const Diagnosis& diagnosis) {
  const auto xdp = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                [](const Finding& finding) { return finding.name == "xdp"; });
  const std::string where = diagnosis.device.empty() ? "this machine" : diagnosis.device;
  std::string out = diagnosis.accelerated()
                        ? wrapped(fmt::format("netchannel can accelerate {}: xdp {}.", where, xdp->detail), 0)
                        : wrapped(fmt::format("netchannel cannot accelerate {}: {}.", where, xdp->detail), 0);
  out += "\n";
  std::string area;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.area != area) out += fmt::format("\n{}s\n", area = finding.area);
    out +=
        fmt::format("  {:<8} {:<15} {}\n", word(finding.verdict), finding.name, wrapped(finding.detail, 27));
    if (!finding.mend.empty()) out += fmt::format("{:27}mend: {}\n", "", wrapped(finding.mend, 33));
  }
  return out;
}

std::string to_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json out;
  out["schema"] = "netchannel.doctor/1";
  out["device"] = diagnosis.device;
  out["accelerated"] = diagnosis.accelerated();
  out["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : diagnosis.findings) {
    out["findings"].push_back({{"area", finding.area},
                               {"name", finding.name},
                               {"verdict", word(finding.verdict)},
                               {"detail", finding.detail},
                               {"mend", finding.mend}});
  }
  return out.dump(2) + "\n";
}

}  // namespace netchannel::cli
