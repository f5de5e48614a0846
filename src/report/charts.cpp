// What a document shows in pictures: ratios, sweeps, and every run as a point. Those of latency and time are
// in latency_charts.cpp.
#include "report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

// "1.29 [1.01, 1.64]"
std::string ratio_value(const Json& entry) {
  return ratio_number(get_number(entry, "ratio")) + " " + interval_of(entry, "[{}, {}]");
}

void add_ratio_rows(const Source& source, const CellView& cell, const char* metric, Chart& chart) {
  const auto name_of = [&](const Json& entry) {
    return get_text(entry, "path") + " " + get_text(entry, "wait");
  };
  for (const std::string& baseline : baselines_of(cell)) {
    bool headed = false;
    for (const Json* entry : cell.comparisons) {
      const auto ratio = find_number(*entry, "ratio");
      if (get_text(*entry, "metric") != metric || baseline_of(*entry) != baseline || !ratio) continue;
      if (!headed)
        chart.rows.push_back({shape_of(source.document, cell) + ", against " + baseline, "", true});
      headed = true;
      const Contestant* who = source.contestants.find(*entry);
      Series series{.name = name_of(*entry), .look = who != nullptr ? look_of(*who) : Look{}, .line = false};
      series.in_legend = false;
      series.points.push_back({*ratio, static_cast<double>(chart.rows.size()), find_number(*entry, "ci_low"),
                               find_number(*entry, "ci_high"),
                               get_text(*entry, "verdict") == "no difference shown",
                               fmt::format("{} against {}: {}, {}", series.name, baseline,
                                           ratio_value(*entry), get_text(*entry, "verdict"))});
      chart.rows.push_back({series.name, ratio_value(*entry), false});
      chart.panels.front().series.push_back(std::move(series));
    }
  }
}

std::vector<std::string> workloads_of(const Source& source) {
  std::vector<std::string> out;
  for (const CellView& cell : source.cells) {
    if (std::find(out.begin(), out.end(), cell.workload) == out.end()) out.push_back(cell.workload);
  }
  return out;
}

struct Watched {
  std::string metric;
  std::string what;   // of a title
  std::string label;  // of an axis
};

std::array<Watched, 3> watched_of(const CellView& cell) {
  return {Watched{std::string(main_metric(cell.workload)), "rate",
                  "times the " + rate_unit_of(cell) + " a second of the baseline"},
          Watched{"service_demand_own_us", "processor time", "times the processor time of the baseline"},
          Watched{"latency_p50_us", "median latency", "times the median latency of the baseline"}};
}

// A value in a block by its metric's name.
std::optional<double> value_in(const Json& block, std::string_view metric) {
  if (metric == "service_demand_own_us") return find_number(get_part(block, "service_demand_us"), "own");
  if (metric == "latency_p50_us") return find_number(get_part(block, "latency_us"), "p50");
  return find_number(block, std::string(metric).c_str());
}

std::string note_of(const Json& block, double value) {
  std::string out = fmt::format("run {}: {}", get_count(block, "round") + 1, short_number(value));
  if (const std::string flags = joined(get_part(block, "flags"), ", "); !flags.empty())
    out += " (" + flags + ")";
  return out;
}

void add_runs_of(const Source& source, const CellView& cell, const Watched& watched,
                 std::vector<Chart>& charts) {
  Chart chart;
  chart.id = chart_id({cell.workload, "runs", watched.metric, rest_of(cell, "")});
  chart.section = Section::runs;
  chart.title =
      fmt::format("{}: {} of every run, {}", cell.workload, watched.what, shape_of(source.document, cell));
  chart.x = {watched.label, Scale::linear, true};
  chart.panels.resize(1);
  for (const Contestant& who : source.contestants.all()) {
    const auto row = static_cast<double>(chart.rows.size());
    Series runs{.name = who.name, .look = look_of(who), .line = false};
    runs.in_legend = false;
    for (const Json* block : cell.blocks) {
      const auto value = value_in(*block, watched.metric);
      if (!value || !is_of(*block, who)) continue;
      // In the upper half of the row, each a little aside, so that equal ones can be told apart.
      const double aside = 0.1 * static_cast<double>(runs.points.size() % 3) - 0.28;
      const bool open = !get_part(*block, "flags").empty();
      runs.points.push_back({*value, row + aside, {}, {}, open, note_of(*block, *value)});
    }
    if (runs.points.empty()) continue;
    Series mean = runs;
    mean.marks = false;
    mean.points.clear();
    std::string text;
    for (const Row& one : cell.rows) {
      const Json* entry = one.metric(watched.metric);
      const auto value = one.mean(watched.metric);
      if (one.contestant != who.number || one.path != who.path || entry == nullptr || !value) continue;
      mean.points.push_back(
          {*value, row + 0.28, find_number(*entry, "ci_low"), find_number(*entry, "ci_high"), false, ""});
      text = short_number(*value);
      if (const auto spread = one.spread_percent(watched.metric))
        text += fmt::format(" \u00b1{:.2g} %", *spread);
    }
    chart.rows.push_back({who.name, text, false});
    chart.panels[0].series.push_back(std::move(runs));
    if (!mean.points.empty()) chart.panels[0].series.push_back(std::move(mean));
  }
  if (!chart.rows.empty()) charts.push_back(std::move(chart));
}

void add_ratio_chart(const Source& source, const std::string& workload, std::size_t which,
                     std::vector<Chart>& charts) {
  const auto is_it = [&](const CellView& cell) { return cell.workload == workload; };
  const CellView& first = *std::find_if(source.cells.begin(), source.cells.end(), is_it);
  const Watched watched = watched_of(first)[which];
  if (watched.metric == "latency_p50_us" && !has_latency(first)) return;
  Chart chart;
  chart.id = chart_id({workload, "ratios", watched.metric});
  chart.section = Section::ratios;
  chart.title = fmt::format("{}: {} against the baselines", workload, watched.what);
  chart.caption = which == 0 ? "Right of 1 is better." : "Left of 1 is better.";
  chart.x = {watched.label, Scale::log10};
  chart.reference = 1;
  chart.panels.resize(1);
  for (const CellView& cell : source.cells) {
    if (is_it(cell)) add_ratio_rows(source, cell, watched.metric.c_str(), chart);
  }
  if (!chart.rows.empty()) charts.push_back(std::move(chart));
}

}  // namespace

std::string chart_id(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) {
    if (!out.empty() && !part.empty()) out += '-';
    for (const char c : part) {
      const bool plain =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      if (plain) {
        out += c;
      } else if (!out.empty() && out.back() != '-') {
        out += '-';
      }
    }
  }
  return out.substr(0, 120);
}

std::string rate_label(const CellView& cell) {
  return main_metric(cell.workload) == "received_bps" ? "received, bit/s" : rate_unit_of(cell) + " a second";
}

std::string demand_label(const CellView& cell) {
  return "processor time of both ends, \u00b5s a " + unit_of(cell);
}

void add_ratio_charts(const Source& source, std::vector<Chart>& charts) {
  // All rates first: they are what most readers look for.
  for (std::size_t which = 0; which < 3; ++which) {
    for (const std::string& workload : workloads_of(source)) add_ratio_chart(source, workload, which, charts);
  }
}

void add_run_charts(const Source& source, std::vector<Chart>& charts) {
  for (const CellView& cell : source.cells) {
    const std::array watched = {Watched{std::string(main_metric(cell.workload)), "rate", rate_label(cell)},
                                Watched{"service_demand_own_us", "processor time", demand_label(cell)}};
    for (const Watched& one : watched) add_runs_of(source, cell, one, charts);
  }
}

std::vector<Chart> charts_of(const Json& document) {
  const Source source{document, cells_of(document), Contestants(document)};
  std::vector<Chart> charts;
  add_ratio_charts(source, charts);
  add_size_charts(source, charts);
  add_percentile_charts(source, charts);
  add_rate_charts(source, charts);
  add_search_charts(source, charts);
  add_timeline_charts(source, charts);
  add_run_charts(source, charts);
  // Files are named by them: two of one name would be one file.
  std::map<std::string, int> times;
  for (Chart& chart : charts) {
    if (const int before = times[chart.id]++; before > 0) chart.id += "_" + std::to_string(before + 1);
  }
  return charts;
}

}  // namespace netchannel::report
