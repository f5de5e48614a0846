#include "bench/cpu.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr double kStealLimit = 0.02;
constexpr double kForeignLimit = 0.05;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double rusage_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::optional<HostTimes> parse_proc_stat(std::string_view text, double ticks_per_second) {
  std::istringstream line{std::string(text.substr(0, text.find('\n')))};
  std::string label;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal; guest is in user already
  line >> label;
  for (double& value : ticks) line >> value;
  if (label != "cpu" || !line) return std::nullopt;
  for (double& value : ticks) value /= ticks_per_second;
  return HostTimes{.user = ticks[0] + ticks[1],
                   .system = ticks[2],
                   .idle = ticks[3] + ticks[4],
                   .irq = ticks[5],
                   .softirq = ticks[6],
                   .steal = ticks[7]};
}

CpuMeter::CpuMeter() {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = ::readdir(proc)) {
    const std::string folder = std::string("/proc/") + entry->d_name;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (first_line(folder + "/comm").starts_with("ksoftirqd/"))
      ksoftirqd_schedstat_.push_back(folder + "/schedstat");
  }
  ::closedir(proc);
}

CpuSample CpuMeter::sample() const {
  CpuSample out;
  out.at_ns = device::monotonic_now().ns;
  out.own = rusage_seconds(RUSAGE_SELF) + rusage_seconds(RUSAGE_CHILDREN);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  out.host = parse_proc_stat(first_line("/proc/stat"), ticks).value_or(HostTimes{});
  for (const std::string& path : ksoftirqd_schedstat_) {
    const std::string line = first_line(path);
    std::uint64_t ns = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), ns).ec != std::errc{}) continue;
    out.ksoftirqd = out.ksoftirqd.value_or(0) + static_cast<double>(ns) * 1e-9;
  }
  return out;
}

CpuUse cpu_between(const CpuSample& start, const CpuSample& end, int cpus) {
  CpuUse out;
  out.wall = static_cast<double>(end.at_ns - start.at_ns) * 1e-9;
  out.steal = std::max(0.0, end.host.steal - start.host.steal);
  out.softirq = std::max(0.0, end.host.softirq - start.host.softirq);
  const double idle = end.host.idle - start.host.idle;
  out.host = std::clamp(cpus * out.wall - idle - out.steal, 0.0, cpus * out.wall);
  out.own = end.own - start.own;
  if (start.ksoftirqd && end.ksoftirqd) out.ksoftirqd = *end.ksoftirqd - *start.ksoftirqd;
  add_own(out, 0);
  return out;
}

void add_own(CpuUse& use, double own_seconds) {
  use.own += own_seconds;
  use.foreign = std::max(0.0, use.host - use.own - use.ksoftirqd);
}

Json to_json(const CpuUse& use) {
  return {{"wall", number(use.wall)},           {"own", number(use.own)},
          {"ksoftirqd", number(use.ksoftirqd)}, {"host", number(use.host)},
          {"softirq", number(use.softirq)},     {"steal", number(use.steal)},
          {"foreign", number(use.foreign)}};
}

CpuUse cpu_from_json(const Json& json) {
  return {.wall = get_number(json, "wall"),
          .own = get_number(json, "own"),
          .ksoftirqd = get_number(json, "ksoftirqd"),
          .host = get_number(json, "host"),
          .softirq = get_number(json, "softirq"),
          .steal = get_number(json, "steal"),
          .foreign = get_number(json, "foreign")};
}

std::vector<std::string> contamination(const CpuUse& use, int cpus) {
  std::vector<std::string> flags;
  const double capacity = cpus * use.wall;
  if (use.steal > kStealLimit * capacity) flags.emplace_back("steal");
  // Softirq work on a CPU that is idle otherwise is ours and nobody's in getrusage: it must not look foreign.
  if (use.foreign - use.softirq > kForeignLimit * capacity) flags.emplace_back("foreign cpu");
  return flags;
}

int online_cpus() { return std::max(1, ::get_nprocs()); }

}  // namespace netchannel::bench
