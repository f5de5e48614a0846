// What a measurement cost in CPU time, read at the barriers where it starts and ends and nowhere else.
//
//   own        getrusage of the processes that do the work, and ksoftirqd's run time: receive work pushed off
//   to it host       all that was not idle on this machine, whoever did it, without steal softirq    of that,
//   interrupt work (a tick's sample; part of it runs, and is charged, in the senders' context) steal taken
//   from this virtual machine by its host; nobody's work, but everybody's delay foreign    host - own: an
//   upper bound of what others used, since softirq on an otherwise idle CPU is in it
//
// /proc/stat counts ticks of 10 ms, so a block of two seconds is good to 1 %. Without
// CONFIG_IRQ_TIME_ACCOUNTING getrusage includes the softirq work done in the task's context; environment.hpp
// says which kind of kernel this is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace netchannel::bench {

// Sums over all CPUs, seconds.
struct HostTimes {
  double user = 0;  // nice and guest included
  double system = 0;
  double idle = 0;  // iowait included
  double irq = 0;
  double softirq = 0;
  double steal = 0;
};
// From the first line of /proc/stat's text and the ticks in a second; nothing if it is not one.
std::optional<HostTimes> parse_proc_stat(std::string_view text, double ticks_per_second);

// One reading. The wall clock is CLOCK_MONOTONIC.
struct CpuSample {
  std::int64_t at_ns = 0;
  double own = 0;  // this process and its waited-for children
  HostTimes host;
  std::optional<double> ksoftirqd;  // nothing where /proc hides it
};

class CpuMeter {
 public:
  CpuMeter();
  // About 50 us: a barrier's price, not a loop's.
  CpuSample sample() const;

 private:
  std::vector<std::string> ksoftirqd_schedstat_;
};

struct CpuUse {
  double wall = 0;
  double own = 0;        // of the processes alone
  double ksoftirqd = 0;  // of the machine: counted once, however many processes take part
  double host = 0;
  double softirq = 0;
  double steal = 0;
  double foreign = 0;
};
// From two samples of one process.
CpuUse cpu_between(const CpuSample& start, const CpuSample& end, int cpus);
// Another process on the same machine took part: its own time moves from foreign to own.
void add_own(CpuUse& use, double own_seconds);
Json to_json(const CpuUse& use);
CpuUse cpu_from_json(const Json& json);

// Why a block's figures are not to be trusted, as flags of the block: "steal" (above 2 % of the machine),
// "foreign cpu" (above 5 %, softirq not counted). Empty if nothing is wrong.
std::vector<std::string> contamination(const CpuUse& use, int cpus);

int online_cpus();

}  // namespace netchannel::bench
