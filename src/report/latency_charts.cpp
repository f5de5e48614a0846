// Pictures of latency and of time: percentiles, latency against the offered rate, the search for the highest
// rate without loss, and rate and processor time as a run goes on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "report/charts.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

// A percentile is told if this many samples lie beyond it.
constexpr double kSamplesBeyond = 10;

// Values in ns and how often each was seen, over several blocks.
class Pooled {
 public:
  void add(const Json& histogram) {
    for (const Json& bucket : get_part(histogram, "buckets_ns")) {
      if (!bucket.is_array() || bucket.size() != 2 || !bucket[0].is_number() || !bucket[1].is_number())
        continue;
      const double value = bucket[0].get<double>(), times = bucket[1].get<double>();
      if (!(value > 0) || !(times > 0) || !std::isfinite(value) || !std::isfinite(times)) continue;
      seen_[value] += times;
      count_ += times;
    }
  }
  double count() const { return count_; }
  // Of each share in turn, ascending.
  std::vector<double> values_at(const std::vector<double>& shares) const {
    std::vector<double> out;
    auto at = seen_.begin();
    double below = at == seen_.end() ? 0 : at->second;
    for (const double share : shares) {
      while (at != seen_.end() && std::next(at) != seen_.end() && below < share * count_) {
        ++at;
        below += at->second;
      }
      if (at != seen_.end()) out.push_back(at->first);
    }
    return out;
  }

 private:
  std::map<double, double> seen_;
  double count_ = 0;
};

// Evenly over the axis, as far as there are samples enough.
std::vector<double> shares_up_to(double count) {
  constexpr int kSteps = 20;  // a nine
  std::vector<double> out;
  for (int step = 0; step < 7 * kSteps; ++step) {
    const double share = 1 - std::pow(10.0, -static_cast<double>(step) / kSteps);
    if (count * (1 - share) < kSamplesBeyond) break;
    out.push_back(share);
  }
  return out;
}

Series percentiles_of(const CellView& cell, const Contestant& who) {
  Pooled pooled;
  for (const Json* block : cell.blocks) {
    if (counts(*block) && is_of(*block, who)) pooled.add(get_part(*block, "histogram"));
  }
  Series series{.name = who.name, .look = look_of(who), .line = true, .marks = false};
  const auto shares = shares_up_to(pooled.count());
  const auto values = pooled.values_at(shares);
  for (std::size_t i = 0; i < values.size(); ++i)
    series.points.push_back({shares[i] * 100, values[i] / 1000});
  return series;
}

bool is_curve(const CellView& cell, const Source& source) {
  return std::any_of(source.contestants.all().begin(), source.contestants.all().end(),
                     [&](const Contestant& who) { return curve_of(cell.blocks, who).size() > 1; });
}

std::string offered_note(const Contestant& who, const Offered& point) {
  std::string out = fmt::format("{}: offered {} a second", who.name, short_number(point.offered));
  if (point.achieved) out += ", achieved " + short_number(*point.achieved);
  if (point.p50) out += fmt::format(", p50 {} \u00b5s", significant(point.p50));
  if (point.p99) out += fmt::format(", p99 {} \u00b5s", significant(point.p99));
  return point.saturated ? out + ", SATURATED" : out;
}

void add_rate_chart(const Source& source, const Family& family, std::vector<Chart>& charts) {
  Chart chart;
  chart.id = chart_id({family.first->workload, "by-rate", family.shape});
  chart.section = Section::rates;
  chart.title = fmt::format("{}: latency against the offered rate, {}", family.first->workload, family.shape);
  chart.caption =
      "By a plan, whatever comes back (open loop): latency counts from when a message was due. A line ends "
      "before "
      "the rate that its path could not keep up with; below, a hollow mark is such a rate (SATURATED).";
  chart.x = {"offered, " + rate_unit_of(*family.first) + " a second", Scale::linear, true};
  Panel p50{{"median latency, \u00b5s", Scale::log10}, {}},
      p99{{"99th percentile of latency, \u00b5s", Scale::log10}, {}};
  Panel achieved{{"achieved, of what was offered, %", Scale::linear, true}, {}};
  std::size_t most = 0;
  for (const Contestant& who : source.contestants.all()) {
    Series series{.name = who.name, .look = look_of(who)};
    Series median = series, tail = series, kept = series;
    const auto curve = curve_of(family.blocks, who);
    most = std::max(most, curve.size());
    for (const Offered& point : curve) {
      const std::string note = offered_note(who, point);
      if (point.p50) median.points.push_back({point.offered, *point.p50, {}, {}, false, note});
      if (point.p99) tail.points.push_back({point.offered, *point.p99, {}, {}, false, note});
      if (point.achieved)
        kept.points.push_back(
            {point.offered, *point.achieved / point.offered * 100, {}, {}, point.saturated, note});
    }
    const std::array parts = {std::pair{&p50, &median}, std::pair{&p99, &tail}, std::pair{&achieved, &kept}};
    for (const auto& [panel, one] : parts) {
      if (!one->points.empty()) panel->series.push_back(std::move(*one));
    }
  }
  if (most < 2) return;
  for (Panel* panel : {&p50, &p99, &achieved}) {
    if (!panel->series.empty()) chart.panels.push_back(std::move(*panel));
  }
  if (!chart.panels.empty()) charts.push_back(std::move(chart));
}

// A list of numbers that a block holds by time; what is not a number is a gap.
Series over_time(const Json& block, const char* key, double factor, const Contestant& who) {
  const Json& timeline = get_part(block, "timeline");
  const double interval = get_number(timeline, "interval_s");
  Series series{.name = who.name, .look = look_of(who), .line = true, .marks = false};
  if (!(interval > 0)) return series;
  double end = 0;
  for (const Json& value : get_part(timeline, key)) {
    end += interval;
    if (value.is_number()) series.points.push_back({end, value.get<double>() * factor});
  }
  return series;
}

// Processor time by who used it. Of the whole machine, so that all of both ends is in it.
void add_timeline_chart(const Source& source, const CellView& cell, std::vector<Chart>& charts) {
  const bool bytes = main_metric(cell.workload) == "received_bps" ||
                     std::any_of(cell.blocks.begin(), cell.blocks.end(), [](const Json* block) {
                       return get_part(get_part(*block, "timeline"), "received_bps").is_array();
                     });
  Panel rate{{bytes ? "received, bit/s" : rate_unit_of(cell) + " a second", Scale::linear, true}, {}};
  Panel own{{"processor time of both ends, % of the machine", Scale::linear, true}, {}};
  Panel host{{"processor time of the whole machine, %", Scale::linear, true}, {}};
  for (const Contestant& who : source.contestants.all()) {
    for (const Json* block : cell.blocks) {
      if (!is_of(*block, who) || has_flag(*block, "superseded")) continue;
      const std::array parts = {std::tuple{&rate, bytes ? "received_bps" : "rate_per_s", 1.0},
                                std::tuple{&own, "cpu_own_share", 100.0},
                                std::tuple{&host, "cpu_host_share", 100.0}};
      for (const auto& [panel, key, factor] : parts) {
        Series series = over_time(*block, key, factor, who);
        if (!series.points.empty()) panel->series.push_back(std::move(series));
      }
    }
  }
  Chart chart;
  chart.id = chart_id({cell.workload, "over-time", shape_of(source.document, cell)});
  chart.section = Section::timeline;
  chart.title = fmt::format("{}: speed and processor time as the run goes on, {}", cell.workload,
                            shape_of(source.document, cell));
  chart.caption = "A line for each run.";
  chart.x = {"seconds", Scale::linear, true};
  for (Panel* panel : {&rate, &own, &host}) {
    if (!panel->series.empty()) chart.panels.push_back(std::move(*panel));
  }
  if (!chart.panels.empty()) charts.push_back(std::move(chart));
}

}  // namespace

void add_percentile_charts(const Source& source, std::vector<Chart>& charts) {
  for (const CellView& cell : source.cells) {
    // One line over several offered rates would be of no rate at all.
    if (!has_latency(cell) || is_curve(cell, source)) continue;
    Chart chart;
    chart.id = chart_id({cell.workload, "latency", shape_of(source.document, cell)});
    chart.section = Section::latency;
    chart.title = fmt::format("{}: latency percentiles, {}", cell.workload, shape_of(source.document, cell));
    chart.caption = "All runs together; each line ends where ten samples lie beyond it.";
    chart.x = {"share of the samples that are no slower", Scale::percentile};
    chart.panels.push_back({{"latency, \u00b5s", Scale::log10}, {}});
    for (const Contestant& who : source.contestants.all()) {
      Series series = percentiles_of(cell, who);
      if (!series.points.empty()) chart.panels[0].series.push_back(std::move(series));
    }
    if (!chart.panels[0].series.empty()) charts.push_back(std::move(chart));
  }
}

void add_rate_charts(const Source& source, std::vector<Chart>& charts) {
  for (const Family& family : families_of(source)) add_rate_chart(source, family, charts);
}

void add_search_charts(const Source& source, std::vector<Chart>& charts) {
  for (const CellView& cell : source.cells) {
    Chart chart;
    chart.id = chart_id({cell.workload, "ndr", shape_of(source.document, cell)});
    chart.section = Section::rates;
    chart.title =
        fmt::format("{}: highest rate without loss, {}", cell.workload, shape_of(source.document, cell));
    chart.caption =
        "A bar for each run, from a rate that lost nothing to the next that was tried and lost something.";
    chart.x = {rate_unit_of(cell) + " a second", Scale::linear, true};
    chart.panels.resize(1);
    for (const Contestant& who : source.contestants.all()) {
      Series series{.name = who.name, .look = look_of(who), .line = false};
      series.in_legend = series.marks = false;
      Range all;
      for (const Json* block : cell.blocks) {
        const Json& ndr = get_part(*block, "ndr");
        const auto low = find_number(ndr, "low_per_s"), high = find_number(ndr, "high_per_s");
        if (!low || !is_of(*block, who) || has_flag(*block, "superseded")) continue;
        const double row = static_cast<double>(chart.rows.size()) +
                           0.16 * static_cast<double>(series.points.size() % 5) - 0.32;
        series.points.push_back(
            {*low, row, low, high.value_or(*low), !counts(*block),
             fmt::format("{}: {} to {}", who.name, short_number(*low), high ? short_number(*high) : "more")});
        all.add(*low);
        all.add(high.value_or(*low));
      }
      if (series.points.empty()) continue;
      chart.rows.push_back({who.name, short_number(all.low) + " to " + short_number(all.high), false});
      chart.panels[0].series.push_back(std::move(series));
    }
    if (!chart.rows.empty()) charts.push_back(std::move(chart));
  }
}

void add_timeline_charts(const Source& source, std::vector<Chart>& charts) {
  for (const CellView& cell : source.cells) add_timeline_chart(source, cell, charts);
}

}  // namespace netchannel::report
