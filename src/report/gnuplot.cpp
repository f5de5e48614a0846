// Charts for gnuplot 5: the data as a table that people and spreadsheets can read too, and a script beside it
// that draws an SVG and a PNG. Each series is a block of the data file, two empty lines apart, in the
// script's order; a missing interval is "?".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "report/chart.hpp"
#include "report/svg_scale.hpp"

namespace netchannel::report {
namespace {

// After Okabe and Ito, dark enough for paper.
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#B8860B", "#56B4E9", "#7F3C8D", "#555555"};
constexpr std::array kMarks = {7, 5, 9, 13, 11, 15, 1, 2};
constexpr std::array kDashes = {"solid", "\"- \"", "\". \"", "\"-. \""};

// In double quotes, where gnuplot knows escapes; "enhanced" is switched off, so nothing else is special.
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

bool is_drawn(const Chart& chart, const Panel& panel, const Point& point) {
  return fits(chart.x.scale, point.x) && fits(panel.y.scale, point.y);
}

std::vector<std::pair<const Panel*, const Series*>> drawn_series(const Chart& chart) {
  std::vector<std::pair<const Panel*, const Series*>> out;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      const auto some = [&](const Point& point) { return is_drawn(chart, panel, point); };
      if (std::any_of(series.points.begin(), series.points.end(), some)) out.emplace_back(&panel, &series);
    }
  }
  return out;
}

std::string comment(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return "# " + text + "\n";
}

std::string data_of(const Chart& chart) {
  std::string out = comment(chart.title);
  out += comment("x: " + chart.x.label);
  bool first = true;
  for (const auto& [panel, series] : drawn_series(chart)) {
    if (!first) out += "\n\n";
    first = false;
    out += comment(series->name + (panel->y.label.empty() ? "" : "; y: " + panel->y.label));
    out += "# x y low high\n";
    for (const Point& point : series->points) {
      if (is_drawn(chart, *panel, point))
        out += fmt::format("{:.9g} {:.9g} {} {}\n", placed(chart.x, point.x), point.y, cell(point.low),
                           cell(point.high));
    }
  }
  return out;
}

std::string tics(const char* axis, const std::vector<double>& values) {
  std::string out = fmt::format("set {}tics (", axis);
  for (std::size_t i = 0; i < values.size(); ++i)
    out += fmt::format("{}{} {:.9g}", i > 0 ? ", " : "", tick_label(count_label(values[i])), values[i]);
  return out + ")\n";
}

std::string axis_of(const char* name, const Axis& axis) {
  std::string out = fmt::format("set {}label {}\n", name, in_quotes(axis.label));
  out += fmt::format("unset logscale {}\nset {}tics auto\n", name, name);
  if (axis.scale == Scale::log2) out += fmt::format("set logscale {} 2\n", name);
  if (axis.scale == Scale::log10) out += fmt::format("set logscale {} 10\n", name);
  if (axis.scale == Scale::percentile)
    out +=
        "set xtics (\"0 %%\" 0, \"50 %%\" 0.30103, \"90 %%\" 1, \"99 %%\" 2, \"99.9 %%\" 3, \"99.99 %%\" 4, "
        "\"99.999 %%\" 5)\n";
  if (!axis.at.empty() && axis.at.size() <= 20) out += tics(name, axis.at);
  out += fmt::format("set {}range [{}:*]\n", name, axis.from_zero ? "0" : "*");
  if (axis.scale == Scale::linear || axis.scale == Scale::log10)
    out += fmt::format("set format {} \"%.3s%c\"\n", name);
  return out;
}

// "with lines", its colour, dashes and marks.
std::string style_of(const Look& look, std::string_view with) {
  std::string out =
      fmt::format("with {} lc rgb {} lw 2", with, in_quotes(kColours[look.colour % kColours.size()]));
  if (with.starts_with("lines")) out += fmt::format(" dt {}", kDashes[look.dash % kDashes.size()]);
  if (with != "lines") out += fmt::format(" pt {} ps 0.8", kMarks[look.colour % kMarks.size()]);
  return out;
}

// One "plot" command for the series of a panel; `index` counts the blocks of the data file.
std::string plot_of(const Chart& chart, const Panel& panel, std::size_t& index,
                    std::set<std::string>& named) {
  std::string out;
  const bool rows = !chart.rows.empty();
  const auto add = [&](const std::string& text) { out += (out.empty() ? "plot " : ", \\\n     ") + text; };
  const std::string file = in_quotes(chart.id + ".dat");
  for (const auto& [of, series] : drawn_series(chart)) {
    if (of != &panel) continue;
    const bool title = series->in_legend && named.insert(series->name).second;
    const std::string key = title ? "title " + in_quotes(series->name) : "notitle";
    const char* with = series->line && series->marks ? "linespoints" : series->line ? "lines" : "points";
    if (series->line || series->marks)
      add(fmt::format("{} index {} using 1:2 {} {}", file, index, style_of(series->look, with), key));
    const bool intervals = std::any_of(series->points.begin(), series->points.end(),
                                       [](const Point& point) { return point.low && point.high; });
    if (intervals)
      add(fmt::format("{} index {} using 1:2:3:4 {} notitle", file, index,
                      style_of(series->look, rows ? "xerrorbars" : "yerrorbars")));
    ++index;
  }
  return out.empty() ? "" : out + "\n";
}

std::string rows_of(const Chart& chart) {
  std::string out = fmt::format("set yrange [{}:-0.6]\nset ytics (", chart.rows.size());
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    out += fmt::format("{}{} {}", i > 0 ? ", " : "", tick_label(chart.rows[i].name), i);
  }
  out += ")\nunset ylabel\nset key off\n";
  if (chart.reference) {
    out += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph 1 nohead dt \"- \" lc rgb \"#555555\"\n",
        *chart.reference);
  }
  return out;
}

std::string script_of(const Chart& chart) {
  const std::size_t rows = chart.rows.size();
  const std::size_t height = rows > 0 ? 130 + 26 * rows : 60 + 330 * chart.panels.size();
  std::string body = axis_of("x", chart.x);
  std::size_t index = 0;
  const bool many = chart.panels.size() > 1;
  body +=
      many ? fmt::format("set multiplot layout {},1 title {}\n", chart.panels.size(), in_quotes(chart.title))
           : fmt::format("set title {}\n", in_quotes(chart.title));
  for (const Panel& panel : chart.panels) {
    std::set<std::string> named;
    body += axis_of("y", panel.y);
    if (rows > 0) body += rows_of(chart);
    body += plot_of(chart, panel, index, named);
  }
  if (many) body += "unset multiplot\n";
  std::string out =
      comment("gnuplot " + chart.id + ".gp draws " + chart.id + ".svg and " + chart.id + ".png");
  out += "reset\n";
  out +=
      "set datafile missing \"?\"\nset encoding utf8\nset grid\nset key outside below\nset border 3\nset "
      "tics nomirror\n";
  for (const char* form : {"svg", "png"}) {
    const bool svg = std::string_view(form) == "svg";
    out += fmt::format("set terminal {} size {},{} {} noenhanced font \"sans,{}\"\nset output {}\n",
                       svg ? "svg" : "pngcairo", 900, height, "background \"white\"", 13,
                       in_quotes(chart.id + "." + form));
    out += body;
  }
  return out + "set output\n";
}

}  // namespace

std::vector<File> gnuplot_of(const Chart& chart) {
  if (drawn_series(chart).empty()) return {};
  return {{chart.id + ".dat", data_of(chart)}, {chart.id + ".gp", script_of(chart)}};
}

}  // namespace netchannel::report
