// Charts as SVG: no font, script or style from elsewhere, colours by class so that one page can be light,
// dark or printed. A chart is 420 units wide, which on a telephone is shown a little smaller and beside
// another on a desk a little larger, with text that can be read on both. Labels that would touch each other
// are left out, by a guess of their width that is rather too large.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/chart.hpp"
#include "report/chart_range.hpp"
#include "report/markup.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

constexpr double kWidth = 420;
constexpr double kLine = 17;         // of text
constexpr double kPlotHeight = 190;  // of a panel
constexpr double kRowHeight = 20;
constexpr double kEdge = 6;
constexpr double kTickRoom = 42;  // along x, for a tick and its label
constexpr double kMark = 3.4;
constexpr std::size_t kColours = 8;
constexpr std::size_t kDashes = 4;

// Places with a tenth of a unit, without a needless zero.
std::string place(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

// Around (x, y), one for each colour, so that a copy without colours can be read too.
std::string mark_path(std::size_t kind, double x, double y) {
  const double r = kMark;
  const auto at = [&](double dx, double dy) { return place(x + dx * r) + " " + place(y + dy * r); };
  switch (kind % kColours) {
    case 1:
      return "M" + at(-0.9, -0.9) + "L" + at(0.9, -0.9) + "L" + at(0.9, 0.9) + "L" + at(-0.9, 0.9) + "Z";
    case 2:
      return "M" + at(0, -1.2) + "L" + at(1.15, 0.9) + "L" + at(-1.15, 0.9) + "Z";
    case 3:
      return "M" + at(0, -1.3) + "L" + at(1.3, 0) + "L" + at(0, 1.3) + "L" + at(-1.3, 0) + "Z";
    case 4:
      return "M" + at(0, 1.2) + "L" + at(1.15, -0.9) + "L" + at(-1.15, -0.9) + "Z";
    case 5:
      return "M" + at(-0.4, -1.2) + "L" + at(0.4, -1.2) + "L" + at(0.4, 1.2) + "L" + at(-0.4, 1.2) + "Z";
    case 6:
      return "M" + at(-1.2, -0.4) + "L" + at(1.2, -0.4) + "L" + at(1.2, 0.4) + "L" + at(-1.2, 0.4) + "Z";
    case 7:
      return "M" + at(-1.2, 0) + "L" + at(0, -0.5) + "L" + at(1.2, 0) + "L" + at(0, 0.5) + "Z";
    default:
      return fmt::format("M{0}a{1} {1} 0 1 0 {2} 0a{1} {1} 0 1 0 -{2} 0Z", at(-1, 0), place(r), place(2 * r));
  }
}

class Drawing {
 public:
  void text(double x, double y, std::string_view text, std::string_view classes = "") {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>", place(x), place(y), class_of(classes),
                        escaped(text));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view classes) {
    out_ += fmt::format("<path{} d=\"M{} {}L{} {}\"/>", class_of(classes), place(x1), place(y1), place(x2),
                        place(y2));
  }
  void open_series(const Look& look) {
    out_ += fmt::format("<g class=\"c{} d{}\">", look.colour % kColours, look.dash % kDashes);
  }
  void path(std::string_view classes, const std::string& d) {
    out_ += fmt::format("<path{} d=\"{}\"/>", class_of(classes), d);
  }
  void mark(const Look& look, double x, double y, const Point& point) {
    out_ +=
        fmt::format("<path class=\"{}\" d=\"{}\"", point.open ? "m o" : "m", mark_path(look.colour, x, y));
    out_ += point.note.empty() ? "/>" : "><title>" + escaped(point.note) + "</title></path>";
  }
  void close() { out_ += "</g>"; }
  void raw(std::string_view text) { out_ += text; }
  const std::string& text() const { return out_; }

 private:
  static std::string class_of(std::string_view classes) {
    return classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
  }
  std::string out_;
};

std::vector<const Series*> legend_of(const Chart& chart) {
  std::vector<const Series*> out;
  std::set<std::string> seen;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      if (series.in_legend && !series.points.empty() && seen.insert(series.name).second)
        out.push_back(&series);
    }
  }
  return out;
}

// Returns where the next thing below it may begin.
double draw_legend(Drawing& drawing, const Chart& chart, double y) {
  constexpr double kSample = 26, kGap = 14;
  const auto entries = legend_of(chart);
  if (entries.empty()) return y;
  double x = kEdge;
  y += kLine - 5;
  for (const Series* series : entries) {
    const std::string name = shortened(series->name, kWidth - 2 * kEdge - kSample);
    const double width = kSample + text_width(name);
    if (x > kEdge && x + width > kWidth - kEdge) {
      x = kEdge;
      y += kLine;
    }
    drawing.open_series(series->look);
    if (series->line) drawing.line(x, y - 4, x + kSample - 6, y - 4, "l");
    if (series->marks) drawing.mark(series->look, x + (kSample - 6) / 2, y - 4, {});
    drawing.close();
    drawing.text(x + kSample, y, name);
    x += width + kGap;
  }
  return y + 9;
}

struct Frame {
  double left, top, right, bottom;
};

void draw_x_axis(Drawing& drawing, const Mapping& x, const Axis& axis, const Frame& frame, bool labels) {
  const double top = frame.top, bottom = frame.bottom;
  const int most = static_cast<int>((frame.right - frame.left) / kTickRoom);
  double free_from = 0;  // where the label before ended
  for (const Tick& tick : x.ticks(most)) {
    const double at = x.at(tick.value);
    drawing.line(at, top, at, bottom, "g");
    const double half = text_width(tick.label) / 2;
    const double middle = std::clamp(at, half, kWidth - half);
    if (!labels || middle - half < free_from + 5) continue;
    drawing.text(middle, bottom + 15, tick.label, "n");
    free_from = middle + half;
  }
  if (labels) drawing.text(kWidth - kEdge, bottom + 31, shortened(axis.label, kWidth - 2 * kEdge), "e");
}

void draw_series(Drawing& drawing, const Chart& chart, const Panel& panel, const Series& series,
                 const Mapping& x, const Mapping& y) {
  drawing.open_series(series.look);
  std::string line;
  for (const Point& point : series.points) {
    if (!has_place(chart, panel, point)) continue;
    line += (line.empty() ? "M" : "L") + place(x.at(point.x)) + " " + place(y.clamped(point.y));
  }
  if (series.line && !line.empty()) drawing.path("l", line);
  for (const Point& point : series.points) {
    if (!has_place(chart, panel, point)) continue;
    const double px = x.at(point.x), py = y.clamped(point.y);
    if (point.low && point.high) {
      const auto end = [&](double value) {
        return fits(panel.y.scale, value) ? y.clamped(value) : y.clamped(0);
      };
      drawing.line(px, end(*point.low), px, end(*point.high), "i");
    }
    if (series.marks) drawing.mark(series.look, px, py, point);
  }
  drawing.close();
}

double draw_panel(Drawing& drawing, const Chart& chart, const Panel& panel, double top, double left,
                  bool last) {
  top += kLine - 4;
  drawing.text(kEdge, top, shortened(panel.y.label, kWidth - 2 * kEdge), "y");
  top += 7;
  const Frame frame{left, top, kWidth - kEdge - 6, top + kPlotHeight};
  const Mapping x(chart.x, range_of_x(chart), frame.left, frame.right);
  const Mapping y(panel.y, range_of_y(chart, panel), frame.bottom, frame.top);
  for (const Tick& tick : y.ticks(6)) {
    const double at = y.at(tick.value);
    drawing.line(frame.left, at, frame.right, at, "g");
    drawing.text(frame.left - 5, at + 4, tick.label, "e");
  }
  draw_x_axis(drawing, x, chart.x, frame, last);
  drawing.line(frame.left, frame.bottom, frame.right, frame.bottom, "a");
  drawing.line(frame.left, frame.top, frame.left, frame.bottom, "a");
  if (panel.reference)
    drawing.line(frame.left, y.clamped(*panel.reference), frame.right, y.clamped(*panel.reference), "r");
  for (const Series& series : panel.series) draw_series(drawing, chart, panel, series, x, y);
  return frame.bottom + (last ? 36 : 10);
}

// As wide as the widest label of any panel, so that the panels stand under each other.
double left_edge(const Chart& chart) {
  double widest = 0;
  for (const Panel& panel : chart.panels) {
    const Mapping y(panel.y, range_of_y(chart, panel), 1, 0);
    for (const Tick& tick : y.ticks(6)) widest = std::max(widest, text_width(tick.label));
  }
  return kEdge + widest + 6;
}

// One row's points and intervals, in the chart with rows.
void draw_row_series(Drawing& drawing, const Chart& chart, const Series& series, const Mapping& x,
                     double top) {
  drawing.open_series(series.look);
  for (const Point& point : series.points) {
    if (!fits(chart.x.scale, point.x)) continue;
    const double px = x.at(point.x), py = top + (point.y + 0.5) * kRowHeight;
    if (point.low && point.high) {
      const auto end = [&](double value, double beyond) {
        return fits(chart.x.scale, value) ? x.clamped(value) : beyond;
      };
      drawing.line(end(*point.low, x.at(point.x)), py, end(*point.high, x.at(point.x)), py, "i");
    }
    if (series.marks) drawing.mark(series.look, px, py, point);
    if (!series.marks) drawing.line(px, py - 3.5, px, py + 3.5, "i");
  }
  drawing.close();
}

double draw_rows(Drawing& drawing, const Chart& chart, double top) {
  constexpr double kMostName = 165, kMostValue = 120;
  double names = 0, values = 0;
  for (const ChartRow& row : chart.rows) {
    if (!row.heading) names = std::max(names, text_width(row.name));
    values = std::max(values, text_width(row.value));
  }
  names = std::min(names, kMostName);
  values = std::min(values, kMostValue);
  const Panel& panel = chart.panels.front();
  const Range range = range_of_x(chart);
  const double left = kEdge + names + 12;
  const double right = kWidth - kEdge - (values > 0 ? values + 10 : 8);
  const Mapping x(chart.x, range, left, right);
  const double bottom = top + static_cast<double>(chart.rows.size()) * kRowHeight;
  draw_x_axis(drawing, x, chart.x, {left, top, right, bottom}, true);
  if (chart.reference)
    drawing.line(x.clamped(*chart.reference), top, x.clamped(*chart.reference), bottom, "r");
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const ChartRow& row = chart.rows[i];
    const double y = top + (static_cast<double>(i) + 0.5) * kRowHeight + 4;
    if (row.heading) {
      const std::string name = shortened(row.name, kWidth - 2 * kEdge);
      drawing.raw(fmt::format("<rect class=\"b\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                              place(y - 13.5), place(kWidth), place(kRowHeight - 1)));
      drawing.text(kEdge, y, name, "h");
      continue;
    }
    drawing.text(kEdge, y, shortened(row.name, kMostName));
    if (!row.value.empty()) drawing.text(kWidth - kEdge, y, shortened(row.value, kMostValue), "e");
  }
  drawing.line(left, bottom, right, bottom, "a");
  for (const Series& series : panel.series) draw_row_series(drawing, chart, series, x, top);
  return bottom + 36;
}

}  // namespace

std::string svg_of(const Chart& chart) {
  Drawing drawing;
  double y = draw_legend(drawing, chart, 2);
  if (!chart.rows.empty()) {
    y = draw_rows(drawing, chart, y + 2);
  } else {
    const double left = left_edge(chart);
    for (std::size_t i = 0; i < chart.panels.size(); ++i)
      y = draw_panel(drawing, chart, chart.panels[i], y, left, i + 1 == chart.panels.size());
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">{}</svg>",
      place(kWidth), place(y), escaped(chart.title), drawing.text());
}

// Colours after Okabe and Ito, which most kinds of colour blindness can tell apart, lighter on a dark page.
std::string_view style_sheet() {
  return R"(
.chart{display:block;width:100%;height:auto;font:12px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.chart text{fill:var(--ink)}
.chart .n{text-anchor:middle;fill:var(--soft)}.chart .e{text-anchor:end;fill:var(--soft)}
.chart .y{font-weight:600}.chart .h{font-weight:600}
.chart .b{fill:var(--band)}
.chart .g{stroke:var(--grid);stroke-width:1;fill:none}
.chart .a{stroke:var(--soft);stroke-width:1;fill:none}
.chart .r{stroke:var(--ink);stroke-width:1;stroke-dasharray:4 3;fill:none}
.chart .l{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round}
.chart .i{stroke:var(--c);stroke-width:2;fill:none;stroke-opacity:.65}
.chart .m{fill:var(--c);stroke:var(--c);stroke-width:1}.chart .o{fill:var(--page)}
.chart .d1 .l{stroke-dasharray:7 3}.chart .d2 .l{stroke-dasharray:2 3}.chart .d3 .l{stroke-dasharray:8 3 2 3}
.chart .c0{--c:var(--c0)}.chart .c1{--c:var(--c1)}.chart .c2{--c:var(--c2)}.chart .c3{--c:var(--c3)}
.chart .c4{--c:var(--c4)}.chart .c5{--c:var(--c5)}.chart .c6{--c:var(--c6)}.chart .c7{--c:var(--c7)}
)";
}

}  // namespace netchannel::report
