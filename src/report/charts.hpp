// The builders behind charts_of(): one for each kind of picture. Each appends what it can draw of a document
// and nothing if there is nothing to draw.
#pragma once

#include <string>
#include <vector>

#include "report/chart.hpp"
#include "report/view.hpp"

namespace netchannel::report {

struct Source {
  const Json& document;
  std::vector<CellView> cells;
  Contestants contestants;
};

// Cells that differ in the offered rate only, or in nothing.
struct Family {
  const CellView* first = nullptr;
  std::string shape;  // without the rate
  std::vector<const Json*> blocks;
};
std::vector<Family> families_of(const Source& source);

void add_ratio_charts(const Source& source, std::vector<Chart>& charts);
void add_size_charts(const Source& source, std::vector<Chart>& charts);
void add_percentile_charts(const Source& source, std::vector<Chart>& charts);
void add_rate_charts(const Source& source, std::vector<Chart>& charts);
void add_search_charts(const Source& source, std::vector<Chart>& charts);
void add_timeline_charts(const Source& source, std::vector<Chart>& charts);
void add_run_charts(const Source& source, std::vector<Chart>& charts);

inline Look look_of(const Contestant& who) { return {who.path_index, who.wait_index}; }
// All that sets a cell apart but one dimension, as text.
std::string rest_of(const CellView& cell, std::string_view without);
// Letters, digits, '-' and '_' of the parts, joined by '-'.
std::string chart_id(std::initializer_list<std::string_view> parts);
// "transactions a second", "received, bit/s": the label of the main metric's axis.
std::string rate_label(const CellView& cell);
std::string demand_label(const CellView& cell);

}  // namespace netchannel::report
