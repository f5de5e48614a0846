// Pictures along a dimension of the measurement: rate, processor time and ratios by size, pairs, batch or
// burst.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "report/charts.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

// What a sweep can go along.
struct Dimension {
  const char* key;
  const char* label;
};
constexpr std::array kDimensions = {
    Dimension{"size", "bytes of a message"}, Dimension{"pairs", "pairs in parallel"},
    Dimension{"batch", "messages a call (batch)"}, Dimension{"burst", "requests in flight beyond one"}};

std::optional<double> value_along(const CellView& cell, std::string_view key) {
  if (key == "size") return static_cast<double>(cell.size);
  if (key == "pairs") return static_cast<double>(cell.pairs);
  for (const auto& [name, value] : cell.more) {
    if (name == key) return value;
  }
  return std::nullopt;
}

Series series_of(const std::vector<const CellView*>& cells, const Contestant& who, const char* metric,
                 std::string_view along) {
  Series series{.name = who.name, .look = look_of(who)};
  for (const CellView* cell : cells) {
    for (const Row& row : cell->rows) {
      if (row.contestant != who.number || row.path != who.path || row.wait != who.wait) continue;
      const Json* entry = row.metric(metric);
      const auto mean = row.mean(metric);
      const auto x = value_along(*cell, along);
      if (entry == nullptr || !mean || !x) continue;
      series.points.push_back({*x, *mean, find_number(*entry, "ci_low"), find_number(*entry, "ci_high"),
                               false,
                               fmt::format("{}: {} at {}", who.name, short_number(*mean), count_label(*x))});
    }
  }
  std::sort(series.points.begin(), series.points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x; });
  return series;
}

// Logarithmic where the largest is many times the smallest, so that neither end is a flat line.
Axis axis_for(std::string label, const std::vector<Series>& series) {
  constexpr double kWide = 15;
  Range range;
  for (const Series& one : series) {
    for (const Point& point : one.points) range.add(point.y);
  }
  if (!range.empty && range.low > 0 && range.high / range.low > kWide)
    return {std::move(label), Scale::log10};
  return {std::move(label), Scale::linear, true};
}

Panel sweep_panel(const Source& source, const std::vector<const CellView*>& cells, const char* metric,
                  std::string_view along) {
  Panel panel;
  for (const Contestant& who : source.contestants.all()) {
    Series series = series_of(cells, who, metric, along);
    if (!series.points.empty()) panel.series.push_back(std::move(series));
  }
  return panel;
}

Axis axis_along(const std::vector<const CellView*>& cells, const Dimension& dimension) {
  std::set<double> at;
  for (const CellView* cell : cells) at.insert(*value_along(*cell, dimension.key));
  const bool positive = *at.begin() > 0;
  return {dimension.label, positive ? Scale::log2 : Scale::linear, false, {at.begin(), at.end()}};
}

void add_sweep(const Source& source, const std::vector<const CellView*>& cells, const Dimension& dimension,
               std::vector<Chart>& charts) {
  const CellView& first = *cells.front();
  const std::string rest = rest_of(first, dimension.key);
  Chart chart;
  chart.id = chart_id({first.workload, "by", dimension.key, rest});
  chart.section = Section::sizes;
  chart.title = fmt::format("{}: rate and processor time by {}, {}", first.workload, dimension.label, rest);
  chart.caption = "Means over the runs with their intervals.";
  chart.x = axis_along(cells, dimension);
  const std::string main(main_metric(first.workload));
  Panel rates = sweep_panel(source, cells, main.c_str(), dimension.key);
  Panel demands = sweep_panel(source, cells, "service_demand_own_us", dimension.key);
  rates.y = axis_for(rate_label(first), rates.series);
  demands.y = axis_for(demand_label(first), demands.series);
  if (!rates.series.empty()) chart.panels.push_back(std::move(rates));
  if (!demands.series.empty()) chart.panels.push_back(std::move(demands));
  if (!chart.panels.empty()) charts.push_back(std::move(chart));
}

Series ratio_series(const std::vector<const CellView*>& cells, const Contestant& who,
                    const std::string& baseline, std::string_view along) {
  Series series{.name = who.name, .look = look_of(who)};
  for (const CellView* cell : cells) {
    for (const Json* entry : cell->comparisons) {
      const auto ratio = find_number(*entry, "ratio");
      if (get_text(*entry, "metric") != main_metric(cell->workload) || baseline_of(*entry) != baseline ||
          !ratio || get_text(*entry, "path") != who.path || get_text(*entry, "wait") != who.wait)
        continue;
      const double x = *value_along(*cell, along);
      series.points.push_back({x, *ratio, find_number(*entry, "ci_low"), find_number(*entry, "ci_high"),
                               get_text(*entry, "verdict") == "no difference shown",
                               fmt::format("{}: {} at {}", who.name, ratio_number(*ratio), count_label(x))});
    }
  }
  std::sort(series.points.begin(), series.points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x; });
  return series;
}

// A panel for each baseline. Few cells are told by the rows of the ratios' own chart.
void add_ratio_sweep(const Source& source, const std::vector<const CellView*>& cells,
                     const Dimension& dimension, std::vector<Chart>& charts) {
  constexpr std::size_t kFewest = 3;
  if (cells.size() < kFewest) return;
  const CellView& first = *cells.front();
  Chart chart;
  chart.id = chart_id({first.workload, "ratios-by", dimension.key, rest_of(first, dimension.key)});
  chart.section = Section::ratios;
  chart.title = fmt::format("{}: rate against the baselines by {}, {}", first.workload, dimension.label,
                            rest_of(first, dimension.key));
  chart.caption = "Above 1 is better.";
  chart.x = axis_along(cells, dimension);
  std::set<std::string> baselines;
  for (const CellView* cell : cells) {
    for (const std::string& name : baselines_of(*cell)) baselines.insert(name);
  }
  for (const std::string& baseline : baselines) {
    Panel panel{{"times the " + rate_unit_of(first) + " a second of " + baseline, Scale::log10}, {}, 1};
    for (const Contestant& who : source.contestants.all()) {
      Series series = ratio_series(cells, who, baseline, dimension.key);
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) chart.panels.push_back(std::move(panel));
  }
  if (!chart.panels.empty()) charts.push_back(std::move(chart));
}

}  // namespace

std::string rest_of(const CellView& cell, std::string_view without) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (without != "size") add(counted(cell.size, "byte"));
  if (without != "pairs") add(counted(cell.pairs, "pair"));
  for (const auto& [key, value] : cell.more) {
    if (key != without) add(fmt::format("{} {:g}", key == "offered_per_s" ? "offered a second" : key, value));
  }
  return out;
}

std::vector<Family> families_of(const Source& source) {
  std::map<std::string, std::size_t> known;
  std::vector<Family> out;
  for (const CellView& cell : source.cells) {
    const std::string rest = rest_of(cell, "offered_per_s");
    const auto [at, fresh] = known.try_emplace(cell.workload + " " + rest, out.size());
    if (fresh) out.push_back({&cell, rest, {}});
    auto& blocks = out[at->second].blocks;
    for (const Json* block : cell.blocks) {
      if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) blocks.push_back(block);
    }
  }
  return out;
}

void add_size_charts(const Source& source, std::vector<Chart>& charts) {
  for (const Dimension& dimension : kDimensions) {
    std::map<std::string, std::vector<const CellView*>> groups;
    std::vector<std::string> order;
    for (const CellView& cell : source.cells) {
      if (!value_along(cell, dimension.key)) continue;
      const std::string key = cell.workload + " " + rest_of(cell, dimension.key);
      if (!groups.contains(key)) order.push_back(key);
      groups[key].push_back(&cell);
    }
    for (const std::string& key : order) {
      if (groups[key].size() < 2) continue;
      add_ratio_sweep(source, groups[key], dimension, charts);
      add_sweep(source, groups[key], dimension, charts);
    }
  }
}

}  // namespace netchannel::report
