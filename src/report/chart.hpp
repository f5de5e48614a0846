// A picture as data: what charts_of() makes of a document, and what svg_of() and gnuplot_of() draw. A chart
// is one of two kinds: with axes (panels above each other over one x axis), or with rows (names down the left
// side, values along x, y counts rows from 0 at the top). No coordinate is on paper here, and no drawing
// knows the document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "report/report.hpp"

namespace netchannel::report {

enum class Scale : std::uint8_t {
  linear,
  log2,        // sizes, counts: ticks at the values themselves
  log10,       // rates, times, ratios
  percentile,  // 0 to below 100, each "nine" as wide as the one before
};

struct Axis {
  std::string label;  // with its unit
  Scale scale = Scale::linear;
  bool from_zero = false;    // linear only
  std::vector<double> at{};  // ticks; chosen from the range if empty
};

struct Point {
  double x = 0;
  double y = 0;
  // An interval: of y, in a chart with rows of x.
  std::optional<double> low{}, high{};
  bool open = false;   // drawn hollow: it does not count like the others
  std::string note{};  // shown under a pointer
};

// Which of the palette's colours and marks, and which of the dashes.
struct Look {
  std::size_t colour = 0;
  std::size_t dash = 0;
};

struct Series {
  std::string name;
  Look look;
  bool line = true;
  bool marks = true;
  bool in_legend = true;  // of several of one name only the first is
  std::vector<Point> points{};
};

struct Panel {
  Axis y;
  std::vector<Series> series;
  std::optional<double> reference{};  // a line at this y
};

struct ChartRow {
  std::string name;
  std::string value;     // text at the right side
  bool heading = false;  // of the rows below; it has no points
};

// Where a chart belongs in a report, in the order of the report.
enum class Section : std::uint8_t { ratios, sizes, latency, rates, timeline, runs };

struct Chart {
  std::string id;  // letters, digits, '-' and '_': the name of a file
  Section section = Section::runs;
  std::string title;
  std::string caption;  // what its marks mean, in a sentence or two; may be empty
  Axis x;
  std::vector<Panel> panels;  // one if there are rows
  std::vector<ChartRow> rows{};
  std::optional<double> reference{};  // a line at this x
};

// In the order of the report. A chart that would be empty is not there.
std::vector<Chart> charts_of(const Json& document);

// One <svg> element. Colours and strokes are classes that style_sheet() defines.
std::string svg_of(const Chart& chart);
std::string_view style_sheet();

// "ID.dat" and "ID.gp" for a chart. The script draws ID.svg and ID.png beside itself.
std::vector<File> gnuplot_of(const Chart& chart);

}  // namespace netchannel::report
