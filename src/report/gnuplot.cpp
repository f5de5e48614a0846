// Charts for gnuplot 5.4: the data as a table that people and spreadsheets can read too, and a script beside
// it that draws an SVG and a PNG. Each series is a block of the data file, two empty lines apart, in the
// script's order; a missing bound is "?", and the last column is gnuplot's number of the mark. Ranges and
// ticks are those of the page, so that both pictures show the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "report/chart.hpp"
#include "report/chart_range.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

// After Okabe and Ito, dark enough for paper.
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#B5628F",
                                 "#A07800", "#3D9BD6", "#6A3D9A", "#666666"};
// Filled; the hollow one is the number before.
constexpr std::array kMarks = {7, 5, 9, 13, 11, 15, 7, 5};
constexpr std::array kDashes = {"1", "\"- \"", "\". \"", "\"-. \""};

// On paper, in pixels.
constexpr int kWidth = 900;
constexpr int kTitle = 36;
constexpr int kLabel = 36;
constexpr int kPanel = 270;
constexpr int kRow = 24;
constexpr int kXAxis = 62;
constexpr int kLegendLine = 20;
constexpr int kLegendColumns = 4;
constexpr int kCharacter = 8;

// In double quotes, where gnuplot knows escapes; its "enhanced" markup is switched off, so nothing else is
// special.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' || c == '\r' || c == '`' ? ' ' : c;
  }
  return out + "\"";
}

// A label of a tick is a format to gnuplot.
std::string tick_label(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return in_quotes(out);
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.9g}", *value) : "?"; }

// A percentile's place on its axis, as the picture in the report has it.
double placed(const Axis& axis, double value) {
  return axis.scale == Scale::percentile ? -std::log10(1 - value / 100) : value;
}

std::vector<std::pair<const Panel*, const Series*>> drawn_series(const Chart& chart) {
  std::vector<std::pair<const Panel*, const Series*>> out;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      const auto some = [&](const Point& point) { return has_place(chart, panel, point); };
      if (std::any_of(series.points.begin(), series.points.end(), some)) out.emplace_back(&panel, &series);
    }
  }
  return out;
}

std::string comment(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return "# " + text + "\n";
}

int mark_of(const Look& look, bool open) { return kMarks[look.colour % kMarks.size()] - (open ? 1 : 0); }

std::string data_of(const Chart& chart) {
  std::string out = comment(chart.title);
  out += comment("x: " + chart.x.label);
  bool first = true;
  for (const auto& [panel, series] : drawn_series(chart)) {
    if (!first) out += "\n\n";
    first = false;
    out += comment(series->name + (panel->y.label.empty() ? "" : "; y: " + panel->y.label));
    out += "# x y low high mark\n";
    for (const Point& point : series->points) {
      if (has_place(chart, *panel, point))
        out += fmt::format("{:.9g} {:.9g} {} {} {}\n", placed(chart.x, point.x), point.y, cell(point.low),
                           cell(point.high), mark_of(series->look, point.open));
    }
  }
  return out;
}

std::string axis_of(const char* name, const Axis& axis, const Mapping& mapping, bool labels) {
  std::string out = fmt::format("unset logscale {}\n", name);
  if (axis.scale == Scale::log2 || axis.scale == Scale::log10)
    out += fmt::format("set logscale {} 10\n", name);
  out += fmt::format("set {}range [{:.9g}:{:.9g}]\nset {}tics (", name, placed(axis, mapping.low()),
                     placed(axis, mapping.high()), name);
  bool first = true;
  double before = -1e300;
  for (const Tick& tick : mapping.ticks(name[0] == 'x' ? 10 : 6)) {
    // A tick close behind another keeps its line and loses its label.
    const bool free = mapping.at(tick.value) - before > 0.06 || name[0] != 'x';
    if (free) before = mapping.at(tick.value);
    out += fmt::format("{}{} {:.9g}", first ? "" : ", ", tick_label(labels && free ? tick.label : ""),
                       placed(axis, tick.value));
    first = false;
  }
  return out + ")\n";
}

std::string style_of(const Look& look, std::string_view with) {
  std::string out =
      fmt::format("with {} lc rgb {} lw 2", with, in_quotes(kColours[look.colour % kColours.size()]));
  if (with.starts_with("lines")) out += fmt::format(" dt {}", kDashes[look.dash % kDashes.size()]);
  if (with == "linespoints") out += fmt::format(" pt {} ps 0.9", mark_of(look, false));
  if (with == "points") out += " pt variable ps 0.9";
  return out;
}

// One "plot" command for the series of a panel; `index` counts the blocks of the data file. The legend's
// entries stand by themselves, each name once, on the panel that is to have them.
std::string plot_of(const Chart& chart, const Panel& panel, std::size_t& index, bool legend) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "plot " : ", \\\n     ") + text; };
  const std::string file = in_quotes(chart.id + ".dat");
  std::set<std::string> named;
  for (const auto& [of, series] : drawn_series(chart)) {
    if (legend && series->in_legend && named.insert(series->name).second) {
      const char* with = !series->line ? "linespoints" : series->marks ? "linespoints" : "lines";
      add(fmt::format("keyentry {} title {}", style_of(series->look, with), in_quotes(series->name)));
    }
    if (of != &panel) continue;
    const std::string from = fmt::format("{} index {} using ", file, index++);
    if (series->line) add(from + "1:2 " + style_of(series->look, "lines") + " notitle");
    const bool intervals = std::any_of(series->points.begin(), series->points.end(),
                                       [](const Point& point) { return point.low && point.high; });
    if (intervals) {
      const char* with = chart.rows.empty() ? "yerrorbars" : "xerrorbars";
      add(from + "1:2:3:4 " + style_of(series->look, with) + (series->marks ? " pt 0" : " pt 1 ps 0.6") +
          " notitle");
    }
    if (series->marks) add(from + "1:2:5 " + style_of(series->look, "points") + " notitle");
  }
  return out.empty() ? "" : out + "\n";
}

// Places are told to gnuplot as shares of the picture, from below.
struct Paper {
  int height = 0;
  double down(int pixels) const { return 1 - static_cast<double>(pixels) / height; }
  static double across(int pixels) { return static_cast<double>(pixels) / kWidth; }
};

int widest_name(const Chart& chart) {
  std::size_t widest = 0;
  for (const ChartRow& row : chart.rows) widest = std::max(widest, row.heading ? 0 : row.name.size());
  return static_cast<int>(std::min<std::size_t>(widest, 40));
}

int legend_lines(const Chart& chart) {
  std::set<std::string> names;
  for (const auto& [panel, series] : drawn_series(chart)) {
    if (series->in_legend) names.insert(series->name);
  }
  return (static_cast<int>(names.size()) + kLegendColumns - 1) / kLegendColumns;
}

std::string label_at(const std::string& place, std::string_view text, std::string_view align) {
  return fmt::format("set label {} at {} {}\n", in_quotes(text), place, align);
}

std::string rows_of(const Chart& chart) {
  std::string out =
      fmt::format("set yrange [{}:-0.5]\nset ytics (", static_cast<double>(chart.rows.size()) - 0.5);
  std::string labels;
  bool first = true;
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const ChartRow& row = chart.rows[i];
    if (row.heading) {
      labels += label_at(fmt::format("screen 0.01, first {}", i), row.name, "left");
      continue;
    }
    out += fmt::format("{}{} {}", first ? "" : ", ", tick_label(row.name), i);
    first = false;
    if (!row.value.empty()) labels += label_at(fmt::format("graph 1.02, first {}", i), row.value, "left");
  }
  out += ")\n" + labels;
  if (chart.reference) {
    out += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph 1 nohead dt \"- \" lc rgb \"#555555\"\n",
        *chart.reference);
  }
  return out;
}

struct Layout {
  Paper paper;
  int left = 100, right = 24;  // margins
  int label = kLabel;
  int panel = kPanel;
};

Layout layout_of(const Chart& chart) {
  Layout out;
  if (!chart.rows.empty()) {
    out.left = 30 + kCharacter * widest_name(chart);
    out.right = 190;
    out.label = 10;
    out.panel = kRow * static_cast<int>(chart.rows.size());
  }
  const int panels = static_cast<int>(chart.panels.size());
  out.paper.height =
      kTitle + panels * (out.label + out.panel) + kXAxis + kLegendLine * legend_lines(chart) + 10;
  return out;
}

std::string panels_of(const Chart& chart, const Layout& layout) {
  const Paper& paper = layout.paper;
  std::string out;
  std::size_t index = 0;
  int top = kTitle;
  for (const Panel& panel : chart.panels) {
    const bool last = &panel == &chart.panels.back();
    top += layout.label;
    out += "unset label\nunset arrow\nunset xlabel\n";
    out += fmt::format("set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n", paper.down(top),
                       paper.down(top + layout.panel));
    top += layout.panel;
    if (&panel == &chart.panels.front())
      out +=
          label_at(fmt::format("screen 0.5, screen {:.5f}", paper.down(kTitle / 2)), chart.title, "center");
    out += axis_of("x", chart.x, Mapping(chart.x, range_of_x(chart), 0, 1), last);
    if (last) out += fmt::format("set xlabel {}\n", in_quotes(chart.x.label));
    if (chart.rows.empty()) {
      out += axis_of("y", panel.y, Mapping(panel.y, range_of_y(chart, panel), 0, 1), true);
      out += label_at(fmt::format("screen {:.5f}, graph 1 offset 0, 0.8", Paper::across(layout.left)),
                      panel.y.label, "left");
    } else {
      out += rows_of(chart);
    }
    if (panel.reference)
      out += fmt::format(
          "set arrow from graph 0, first {0} to graph 1, first {0} nohead dt \"- \" lc rgb \"#555555\"\n",
          *panel.reference);
    const bool legend = last && legend_lines(chart) > 0;
    out += legend
               ? fmt::format(
                     "set key at screen 0.5, screen 0.005 center bottom horizontal Left reverse maxcols {}\n",
                     kLegendColumns)
               : "set key off\n";
    out += plot_of(chart, panel, index, legend);
  }
  return out;
}

std::string script_of(const Chart& chart) {
  const Layout layout = layout_of(chart);
  const std::string body = panels_of(chart, layout);
  std::string out = comment("gnuplot " + chart.id + ".gp draws " + chart.id + ".svg and " + chart.id +
                            ".png beside itself");
  out +=
      "reset\nset datafile missing \"?\"\nset encoding utf8\nset grid xtics ytics lt 1 lw 0.7 lc rgb "
      "\"#c8c8c8\"\nset border "
      "3\n";
  out += fmt::format("set tics nomirror\nset lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n",
                     Paper::across(layout.left), Paper::across(kWidth - layout.right));
  for (const std::string_view form : {"svg", "png"}) {
    out += fmt::format(
        "set terminal {} size {},{} background \"white\" noenhanced font \"sans,12\"\nset output {}\nset "
        "multiplot\n",
        form == "svg" ? "svg" : "pngcairo", kWidth, layout.paper.height,
        in_quotes(chart.id + "." + std::string(form)));
    out += body + "unset multiplot\n";
  }
  return out + "set output\n";
}

}  // namespace

std::vector<File> gnuplot_of(const Chart& chart) {
  if (drawn_series(chart).empty()) return {};
  return {{chart.id + ".dat", data_of(chart)}, {chart.id + ".gp", script_of(chart)}};
}

}  // namespace netchannel::report
