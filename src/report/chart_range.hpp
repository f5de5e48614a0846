// Which values of a chart have a place, and the ranges that its axes have to hold: the same for every way of
// drawing it.
#pragma once

#include "report/chart.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {

bool has_place(const Chart& chart, const Panel& panel, const Point& point);
// With the reference and, in a chart with rows, the intervals.
Range range_of_x(const Chart& chart);
// With the intervals, unless they are so wide that the points would shrink to one.
Range range_of_y(const Chart& chart, const Panel& panel);

}  // namespace netchannel::report
