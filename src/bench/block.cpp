#include "bench/block.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/histogram.hpp"
#include "bench/histogram_json.hpp"
#include "bench/signals.hpp"

namespace netchannel::bench {
namespace {

constexpr std::array kCounts = {"sent",      "received",  "failed",      "timeouts",  "duplicates",
                                "corrupted", "reordered", "strangers",   "in_flight", "waits",
                                "planned",   "syscalls",  "far_syscalls"};
constexpr std::array kTimes = {"own_s", "far_own_s"};
constexpr std::array kHistograms = {"latency", "service", "send_lag"};

constexpr double kLittleTolerance = 0.05;
constexpr double kSaturated = 0.99;

void merge_histogram(Json& into, const Json& part, const char* key) {
  if (!part.contains(key)) return;
  Histogram sum, more;
  from_json(get_part(into, key), sum);
  from_json(part[key], more);
  sum.merge(more);
  into[key] = part[key].is_null() ? Json(nullptr) : to_json(sum);
}

// Of both ends, on one machine or two.
CpuUse all_cpu(const Json& part, CpuUse cpu) {
  cpu.own = 0;
  add_own(cpu, get_number(part, "own_s"));
  if (get_bool(part, "same_machine")) {
    add_own(cpu, get_number(part, "far_own_s"));
    return cpu;
  }
  const CpuUse far = cpu_from_json(get_part(part, "far_cpu_s"));
  cpu.own += get_number(part, "far_own_s");
  cpu.ksoftirqd += far.ksoftirqd;
  cpu.host += far.host;
  cpu.softirq += far.softirq;
  cpu.steal += far.steal;
  cpu.foreign += far.foreign;
  return cpu;
}

std::optional<double> loss_share(const BlockOptions& options, const Json& part) {
  const double sent = get_number(part, "sent");
  if (sent <= 0) return std::nullopt;
  if (is_tcp(options.workload) && !options.lane.raw) return std::nullopt;  // nothing is lost, only late
  if (is_rr(options.workload)) return get_number(part, "timeouts") / sent;
  const double unique = get_number(part, "received") - get_number(part, "duplicates");
  return std::clamp(1 - unique / sent, 0.0, 1.0);
}

std::vector<std::string> flags_of(const BlockOptions& options, const Json& part, const CpuUse& cpu,
                                  const Histogram& latency) {
  std::vector<std::string> flags = contamination(cpu, online_cpus());
  if (get_bool(part, "wrong")) flags.emplace_back("wrong stream");
  if (interrupted()) flags.emplace_back("interrupted");
  if (get_count(part, "reordered") != 0) flags.emplace_back("reordered");
  const double seconds = get_number(part, "seconds");
  if (options.rate != 0) {
    const bool behind = get_number(part, "sent") < kSaturated * options.rate * seconds;
    const bool piled_up =
        is_rr(options.workload) && get_number(part, "received") < kSaturated * get_number(part, "sent");
    if (behind || piled_up) flags.emplace_back("saturated");
  }
  // Little's law: with N in flight, rate times mean latency is N. If not, rate or latency is measured
  // wrongly.
  if (is_rr(options.workload) && options.rate == 0 && latency.count() >= 1000) {
    const double in_flight = latency.mean() * 1e-9 * static_cast<double>(latency.count()) / seconds;
    const double expected = double{1} * options.in_flight() * options.pairs;
    if (std::abs(in_flight / expected - 1) > kLittleTolerance) flags.emplace_back("little's law");
  }
  return flags;
}

}  // namespace

void merge_part(Json& into, const Json& part) {
  if (into.is_null()) {
    into = part;
    return;
  }
  for (const char* key : kCounts) into[key] = get_count(into, key) + get_count(part, key);
  for (const char* key : kTimes) into[key] = get_number(into, key) + get_number(part, key);
  for (const char* key : kHistograms) merge_histogram(into, part, key);
  into["seconds"] = std::max(get_number(into, "seconds"), get_number(part, "seconds"));
  into["wrong"] = get_bool(into, "wrong") || get_bool(part, "wrong");
}

Json make_block(const BlockOptions& options, const Json& part, CpuUse cpu) {
  cpu = all_cpu(part, cpu);
  Histogram latency;
  from_json(get_part(part, "latency"), latency);
  const double seconds = get_number(part, "seconds");
  const double received = get_number(part, "received");
  const double own = cpu.own + cpu.ksoftirqd;
  const auto per = [](double cost, double units) { return units > 0 ? number(cost / units) : Json(nullptr); };
  const double units = options.workload == Workload::tcp_stream ? received * options.size / 1024 : received;
  const auto rate = [&](double count) { return seconds > 0 ? number(count / seconds) : Json(nullptr); };
  const double calls = get_number(part, "syscalls") + get_number(part, "far_syscalls");
  const bool open_loop = options.rate != 0;

  Json block = {{"workload", to_string(options.workload)},
                {"path", get_text(part, "path", options.lane.name)},
                {"mode", get_text(part, "mode")},
                {"wait", to_string(options.wait)},
                {"size", options.size},
                {"pairs", options.pairs},
                {"batch", options.effective_batch()},
                {"flows", options.flows},
                {"burst", options.burst}};
  block["far_path"] = get_text(part, "far_path");
  block["far_mode"] = get_text(part, "far_mode");
  block["far_wait"] = get_text(part, "far_wait");
  block["same_machine"] = get_bool(part, "same_machine");
  block["seconds"] = number(seconds);
  block["sent"] = get_count(part, "sent");
  block["received"] = get_count(part, "received");
  block["rate_per_s"] = rate(received);
  block["received_bps"] = rate(received * options.size * 8);
  block["loss_share"] = number(loss_share(options, part));
  for (const char* key :
       {"timeouts", "duplicates", "corrupted", "reordered", "strangers", "failed", "waits", "in_flight"}) {
    block[key] = get_count(part, key);
  }
  block["offered_per_s"] = open_loop ? number(options.rate) : Json(nullptr);
  block["achieved_per_s"] = open_loop ? rate(get_number(part, "sent")) : Json(nullptr);
  block["latency_us"] = latency_us(latency);
  for (const char* key : {"service", "send_lag"}) {
    Histogram histogram;
    from_json(get_part(part, key), histogram);
    block[std::string(key) + "_us"] =
        open_loop && histogram.count() != 0 ? latency_us(histogram) : Json(nullptr);
  }
  block["cpu_s"] = {{"own", number(own)},
                    {"host", number(cpu.host)},
                    {"softirq", number(cpu.softirq)},
                    {"steal", number(cpu.steal)},
                    {"foreign", number(cpu.foreign)},
                    {"ksoftirqd", number(cpu.ksoftirqd)},
                    {"near", number(get_number(part, "own_s"))},
                    {"far", number(get_number(part, "far_own_s"))}};
  block["service_demand_us"] = {{"own", per(own * 1e6, units)},
                                {"host", per(cpu.host * 1e6, units)},
                                {"per", unit_of(options.workload)}};
  block["syscalls_per_message"] = per(calls, received);
  block["flags"] = flags_of(options, part, cpu, latency);
  block["histogram"] = get_part(part, "latency");
  block["explain"] = get_part(part, "explain");
  return block;
}

}  // namespace netchannel::bench
