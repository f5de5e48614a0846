#include "bench/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "bench/cpu.hpp"

#ifndef NETCHANNEL_VERSION
#error "the build defines NETCHANNEL_VERSION, NETCHANNEL_GIT and NETCHANNEL_FLAGS (src/bench/CMakeLists.txt)"
#endif

namespace netchannel::bench {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_field(std::string_view field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with(field) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

// What runs below this system: the hypervisor's name if the firmware tells it, else "yes" or "no".
std::string virtualised() {
  const bool guest = (" " + cpu_field("flags") + " ").find(" hypervisor ") != std::string::npos;
  if (!guest) return "no";
  const std::string vendor = first_line("/sys/class/dmi/id/sys_vendor");
  return vendor.empty() ? "yes" : vendor;
}

// CONFIG_IRQ_TIME_ACCOUNTING: with it getrusage leaves softirq time out. Nothing if the kernel does not tell.
std::optional<bool> irq_time_accounting() {
  utsname name{};
  ::uname(&name);
  for (const std::string& path : {std::string("/boot/config-") + name.release, std::string("/proc/config")}) {
    std::ifstream file(path);
    if (!file) continue;
    for (std::string line; std::getline(file, line);) {
      if (line == "CONFIG_IRQ_TIME_ACCOUNTING=y") return true;
    }
    return false;
  }
  if (::access("/proc/config.gz", R_OK) != 0) return std::nullopt;
  FILE* unpacked = ::popen("gzip -dc /proc/config.gz 2>/dev/null", "r");
  if (unpacked == nullptr) return std::nullopt;
  bool found = false;
  char line[512];
  while (std::fgets(line, sizeof line, unpacked) != nullptr) {
    found = found || std::string_view(line) == "CONFIG_IRQ_TIME_ACCOUNTING=y\n";
  }
  return ::pclose(unpacked) == 0 ? std::optional(found) : std::nullopt;
}

}  // namespace

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id"); }

std::string version() { return NETCHANNEL_VERSION; }

Json machine_json() {
  utsname name{};
  ::uname(&name);
  const auto accounting = irq_time_accounting();
  return {{"kernel", std::string(name.sysname) + " " + name.release + " " + name.machine},
          {"cpu", cpu_field("model name")},
          {"cpus", online_cpus()},
          {"governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
          {"virtualised", virtualised()},
          {"steal_share", nullptr},
          {"irq_time_accounting", accounting ? Json(*accounting) : Json(nullptr)},
          {"load_average", first_line("/proc/loadavg")},
          {"clocksource", first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource")},
          {"rmem_max", first_line("/proc/sys/net/core/rmem_max")}};
}

Json tool_json() {
  return {{"version", NETCHANNEL_VERSION},
          {"git", NETCHANNEL_GIT},
#ifdef __clang__
          {"compiler", "clang " __clang_version__},
#else
          {"compiler", "gcc " __VERSION__},
#endif
          {"flags", NETCHANNEL_FLAGS}};
}

}  // namespace netchannel::bench
