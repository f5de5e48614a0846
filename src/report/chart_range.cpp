#include "report/chart_range.hpp"

#include <algorithm>

namespace netchannel::report {
namespace {

void add_intervals(Range& range, Scale scale, const Panel& panel) {
  constexpr double kMost = 3;  // beyond the points, a factor
  const Range points = range;
  for (const Series& series : panel.series) {
    for (const Point& point : series.points) {
      if (point.low && fits(scale, *point.low)) range.add(std::max(*point.low, points.low / kMost));
      if (point.high && fits(scale, *point.high)) range.add(std::min(*point.high, points.high * kMost));
    }
  }
}

}  // namespace

bool has_place(const Chart& chart, const Panel& panel, const Point& point) {
  return fits(chart.x.scale, point.x) && fits(panel.y.scale, point.y);
}

Range range_of_x(const Chart& chart) {
  Range range;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      for (const Point& point : series.points) {
        if (has_place(chart, panel, point)) range.add(point.x);
      }
    }
  }
  if (range.empty) return range;
  if (chart.reference) range.add(*chart.reference);
  if (!chart.rows.empty()) add_intervals(range, chart.x.scale, chart.panels.front());
  return range;
}

Range range_of_y(const Chart& chart, const Panel& panel) {
  Range range;
  for (const Series& series : panel.series) {
    for (const Point& point : series.points) {
      if (has_place(chart, panel, point)) range.add(point.y);
    }
  }
  if (range.empty) return range;
  if (panel.reference) range.add(*panel.reference);
  add_intervals(range, panel.y.scale, panel);
  return range;
}

}  // namespace netchannel::report
