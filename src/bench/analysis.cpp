#include "bench/analysis.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "bench/statistics.hpp"

namespace netchannel::bench {
namespace {

struct Metric {
  const char* name;
  const char* group;  // the object in a block that holds it, or null
  const char* key;
  Better better;
  bool compared;
  std::optional<Workload> only{};  // compared in that workload only: in others another metric says the same
};
constexpr std::array kMetrics = {
    Metric{"rate_per_s", nullptr, "rate_per_s", Better::more, true},
    Metric{"received_bps", nullptr, "received_bps", Better::more, true, Workload::tcp_stream},
    Metric{"service_demand_own_us", "service_demand_us", "own", Better::less, true},
    Metric{"service_demand_host_us", "service_demand_us", "host", Better::less, false},
    Metric{"latency_p50_us", "latency_us", "p50", Better::less, true},
    Metric{"latency_p99_us", "latency_us", "p99", Better::less, true},
    Metric{"loss_share", nullptr, "loss_share", Better::less, false},
    Metric{"syscalls_per_message", nullptr, "syscalls_per_message", Better::less, false},
};

std::optional<double> value_of(const Json& block, const Metric& metric) {
  const Json& holder = metric.group != nullptr ? get_part(block, metric.group) : block;
  return find_number(holder, metric.key);
}

bool in_cell(const Json& block, const Cell& cell) {
  return get_text(block, "workload") == to_string(cell.workload) && get_count(block, "size") == cell.size &&
         get_count(block, "pairs") == cell.pairs;
}

Json summarise_metric(const std::vector<const Json*>& blocks, const Metric& metric, double level) {
  std::vector<double> values;
  for (const Json* block : blocks) {
    if (const auto value = value_of(*block, metric)) values.push_back(*value);
  }
  if (values.empty()) return nullptr;
  const Summary summary = summarise(values, level);
  const auto bounds = [](const std::optional<Interval>& interval, bool low) {
    return interval ? number(low ? interval->low : interval->high) : Json(nullptr);
  };
  const Json& first = *blocks.front();
  return {{"workload", get_text(first, "workload")},
          {"path", get_text(first, "path")},
          {"wait", get_text(first, "wait")},
          {"size", get_count(first, "size")},
          {"pairs", get_count(first, "pairs")},
          {"contestant", get_count(first, "contestant")},
          {"metric", metric.name},
          {"n", summary.n},
          {"median", number(summary.median)},
          {"mean", number(summary.mean)},
          {"min", number(summary.min)},
          {"max", number(summary.max)},
          {"ci_low", bounds(summary.interval, true)},
          {"ci_high", bounds(summary.interval, false)},
          {"median_ci_low", bounds(summary.median_interval, true)},
          {"median_ci_high", bounds(summary.median_interval, false)}};
}

// The values of one contestant in one cell, by round.
std::map<std::uint64_t, double> by_round(const std::vector<Json>& blocks, const Cell& cell,
                                         std::size_t contestant, const Metric& metric) {
  std::map<std::uint64_t, double> out;
  for (const Json& block : blocks) {
    if (!counts(block) || !in_cell(block, cell) || get_count(block, "contestant") != contestant) continue;
    if (const auto value = value_of(block, metric)) out[get_count(block, "round")] = *value;
  }
  return out;
}

std::vector<Pair> pairs_of(const std::map<std::uint64_t, double>& path,
                           const std::map<std::uint64_t, double>& baseline) {
  std::vector<Pair> out;
  for (const auto& [round, value] : path) {
    if (const auto found = baseline.find(round); found != baseline.end())
      out.push_back({value, found->second});
  }
  return out;
}

Json ratio_json(const Ratio& ratio) {
  const auto low = [](const std::optional<Interval>& i) { return i ? number(i->low) : Json(nullptr); };
  const auto high = [](const std::optional<Interval>& i) { return i ? number(i->high) : Json(nullptr); };
  return {{"ratio", number(ratio.ratio)},
          {"ci_low", low(ratio.interval)},
          {"ci_high", high(ratio.interval)},
          {"verdict", to_string(ratio.verdict)},
          {"n", ratio.n},
          {"bootstrap_low", low(ratio.bootstrap)},
          {"bootstrap_high", high(ratio.bootstrap)},
          {"smallest_difference", number(ratio.smallest_difference)}};
}

}  // namespace

bool has_flag(const Json& block, std::string_view flag) {
  const Json& flags = get_part(block, "flags");
  return std::any_of(flags.begin(), flags.end(), [&](const Json& f) { return f.is_string() && f == flag; });
}

bool counts(const Json& block) { return !has_flag(block, "superseded") && !has_flag(block, "interrupted"); }

Json summary_json(const std::vector<Json>& blocks, double level) {
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<Key, std::vector<const Json*>> groups;
  for (const Json& block : blocks) {
    if (!counts(block)) continue;
    const Key key{get_text(block, "workload"), get_count(block, "size"), get_count(block, "pairs"),
                  get_count(block, "contestant")};
    auto& group = groups[key];
    group.push_back(&block);
  }
  Json out = Json::array();
  for (const auto& [key, group] : groups) {
    for (const Metric& metric : kMetrics) {
      if (Json entry = summarise_metric(group, metric, level); !entry.is_null())
        out.push_back(std::move(entry));
    }
  }
  return out;
}

Json compare_json(const Plan& plan, const std::vector<Json>& blocks, double level, std::uint64_t seed) {
  Json out = Json::array();
  for (const Cell& cell : plan.cells) {
    for (std::size_t who = 0; who < plan.contestants.size(); ++who) {
      for (std::size_t base = 0; base < plan.contestants.size(); ++base) {
        if (!is_compared(plan, who, base)) continue;
        for (const Metric& metric : kMetrics) {
          if (!metric.compared || (metric.only && *metric.only != cell.workload)) continue;
          const auto pairs =
              pairs_of(by_round(blocks, cell, who, metric), by_round(blocks, cell, base, metric));
          const auto ratio = compare_pairs(pairs, metric.better, level, seed);
          if (!ratio) continue;
          Json entry = {{"workload", to_string(cell.workload)},
                        {"size", cell.size},
                        {"pairs", cell.pairs},
                        {"metric", metric.name},
                        {"path", plan.contestants[who].lane.name},
                        {"wait", to_string(plan.contestants[who].wait)},
                        {"baseline", plan.contestants[base].lane.name},
                        {"baseline_wait", to_string(plan.contestants[base].wait)}};
          entry.update(ratio_json(*ratio));
          out.push_back(std::move(entry));
        }
      }
    }
  }
  return out;
}

}  // namespace netchannel::bench
