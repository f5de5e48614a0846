#include "bench/against.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "bench/analysis.hpp"
#include "bench/statistics.hpp"

namespace netchannel::bench {
namespace {

struct Metric {
  const char* name;
  const char* group;  // the object in a block that holds it, or null
  const char* key;
  Better better;
};
constexpr std::array kMetrics = {Metric{"rate_per_s", nullptr, "rate_per_s", Better::more},
                                 Metric{"service_demand_own_us", "service_demand_us", "own", Better::less},
                                 Metric{"latency_p50_us", "latency_us", "p50", Better::less},
                                 Metric{"latency_p99_us", "latency_us", "p99", Better::less}};

// What tells one kind of block from another.
constexpr std::array kIdentity = {"workload", "size", "pairs", "batch",        "flows",
                                  "burst",    "path", "wait",  "offered_per_s"};

Json identity_of(const Json& block) {
  Json out = Json::object();
  for (const char* key : kIdentity) {
    if (const Json& value = get_part(block, key); !value.is_null()) out[key] = value;
  }
  return out;
}

struct Group {
  Json identity;
  std::uint64_t contestant = 0;
  std::array<std::vector<double>, kMetrics.size()> logs;
};

std::vector<Group> groups_of(const Json& document) {
  std::vector<Group> out;
  std::map<std::string, std::size_t> known;
  for (const Json& block : get_part(document, "blocks")) {
    if (!block.is_object() || !counts(block)) continue;
    Json identity = identity_of(block);
    const auto [at, fresh] = known.try_emplace(to_text(identity), out.size());
    if (fresh) out.push_back({std::move(identity), get_count(block, "contestant"), {}});
    for (std::size_t i = 0; i < kMetrics.size(); ++i) {
      const Metric& metric = kMetrics[i];
      const auto value =
          find_number(metric.group != nullptr ? get_part(block, metric.group) : block, metric.key);
      if (value && std::isfinite(*value) && *value > 0) out[at->second].logs[i].push_back(std::log(*value));
    }
  }
  // Blocks come in the order in which they were measured, which is drawn by lot.
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return a.contestant < b.contestant; });
  return out;
}

double variance_of(const std::vector<double>& values) {
  const double deviation = standard_deviation_of(values);
  return deviation * deviation;
}

// Welch's interval of the difference of two means; nothing for a single run on either side.
std::optional<Interval> welch(const std::vector<double>& before, const std::vector<double>& now,
                              double level) {
  if (before.size() < 2 || now.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(before.size()), m = static_cast<double>(now.size());
  const double a = variance_of(before) / n, b = variance_of(now) / m;
  const double difference = mean_of(now) - mean_of(before);
  if (a + b <= 0) return Interval{difference, difference};
  const double degrees = (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1));
  const double half = t_quantile(level, std::max(1, static_cast<int>(degrees))) * std::sqrt(a + b);
  return Interval{difference - half, difference + half};
}

Verdict verdict_of(const std::optional<Interval>& logs, Better better) {
  if (!logs || (logs->low <= 0 && logs->high >= 0)) return Verdict::no_difference_shown;
  return (logs->low > 0) == (better == Better::more) ? Verdict::faster : Verdict::slower;
}

// How each path worked, all that was seen of it: "native copy".
std::map<std::string, std::set<std::string>> modes_of(const Json& document) {
  std::map<std::string, std::set<std::string>> out;
  for (const Json& block : get_part(document, "blocks"))
    out[get_text(block, "path")].insert(get_text(block, "mode"));
  return out;
}

std::string list_of(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " and ") + name;
  return out;
}

Json entry_of(const Group& before, const Group& now, std::size_t metric, double level) {
  const auto& old_logs = before.logs[metric];
  const auto& new_logs = now.logs[metric];
  const auto interval = welch(old_logs, new_logs, level);
  Json out = now.identity;
  out["metric"] = kMetrics[metric].name;
  out["before"] = number(std::exp(mean_of(old_logs)));
  out["now"] = number(std::exp(mean_of(new_logs)));
  out["n_before"] = old_logs.size();
  out["n_now"] = new_logs.size();
  out["ratio"] = number(std::exp(mean_of(new_logs) - mean_of(old_logs)));
  out["ci_low"] = interval ? number(std::exp(interval->low)) : Json(nullptr);
  out["ci_high"] = interval ? number(std::exp(interval->high)) : Json(nullptr);
  out["verdict"] = to_string(verdict_of(interval, kMetrics[metric].better));
  return out;
}

}  // namespace

std::vector<std::string> unlike(const Json& before, const Json& now) {
  struct Condition {
    const char* part;
    const char* key;
  };
  constexpr std::array kConditions = {Condition{"machine", "kernel"},
                                      Condition{"machine", "cpu"},
                                      Condition{"machine", "cpus"},
                                      Condition{"machine", "governor"},
                                      Condition{"machine", "virtualised"},
                                      Condition{"machine", "clocksource"},
                                      Condition{"machine", "irq_time_accounting"},
                                      Condition{"machine", "rmem_max"},
                                      Condition{"tool", "compiler"},
                                      Condition{"tool", "flags"},
                                      Condition{"config", "duration_s"},
                                      Condition{"config", "warmup_s"},
                                      Condition{"config", "mtu"},
                                      Condition{"config", "offloads"}};
  const auto shown = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : to_text(value);
  };
  std::vector<std::string> out;
  for (const auto& [part, key] : kConditions) {
    const Json& a = get_part(get_part(before, part), key);
    const Json& b = get_part(get_part(now, part), key);
    if (a != b) out.push_back(std::string(key) + ": " + shown(a) + ", " + shown(b));
  }
  const auto then = modes_of(before);
  for (const auto& [path, modes] : modes_of(now)) {
    const auto at = then.find(path);
    if (at != then.end() && at->second != modes)
      out.push_back("mode of " + path + ": " + list_of(at->second) + ", " + list_of(modes));
  }
  return out;
}

Json against(const Json& before, const Json& now, double level) {
  const auto old_groups = groups_of(before);
  Json out = Json::array();
  for (const Group& group : groups_of(now)) {
    for (const Group& old : old_groups) {
      if (old.identity != group.identity) continue;
      for (std::size_t i = 0; i < kMetrics.size(); ++i) {
        if (!old.logs[i].empty() && !group.logs[i].empty()) out.push_back(entry_of(old, group, i, level));
      }
    }
  }
  return out;
}

}  // namespace netchannel::bench
