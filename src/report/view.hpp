// What the renderers share: the document by cell and contestant, numbers as people read them, aligned tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace netchannel::report {

// One contestant of one cell: its entries of "summary" by metric.
struct Row {
  std::string path;
  std::string wait;
  std::uint64_t contestant = 0;
  std::vector<const Json*> metrics;
  const Json* metric(std::string_view name) const;  // null if there is none
  std::optional<double> mean(std::string_view name) const;
  // Nothing if some runs had too few samples to tell it: the others' median would be another quantity.
  std::optional<double> median_of_all(std::string_view name) const;
  // Half the interval in per cent of the mean.
  std::optional<double> spread_percent(std::string_view name) const;
};

struct CellView {
  std::string workload;
  std::uint64_t size = 0;
  std::uint64_t pairs = 0;
  std::vector<Row> rows;                 // in the order of the contestants
  std::vector<const Json*> comparisons;  // entries of "compare"
};

// In the order of the summary. The document must outlive them.
std::vector<CellView> cells_of(const Json& document);

// The comparison of the same two contestants by another metric; null if there is none.
const Json* same_pair(const CellView& cell, const Json& comparison, std::string_view metric);

// A request and its reply are the unit: latency says something, loss does not.
bool is_request(std::string_view workload);
// The metric that a workload is about: "received_bps" of tcp_stream, "rate_per_s" of all others.
std::string_view main_metric(std::string_view workload);
std::string with_commas(double value);                              // 1234567.8 -> "1,234,568"
std::string fixed(const std::optional<double>& value, int digits);  // "-" if there is none
// Three significant digits, never an exponent.
std::string significant(const std::optional<double>& value);
// A ratio: two decimals from 0.1 on, three below.
std::string ratio_number(double value);
// "[0.98, 1.03]", "-" if there is none, "too wide" if it says nothing.
std::string interval_of(const Json& comparison, std::string_view form);
// Baselines that appear, "kernel block", each once, in order.
std::vector<std::string> baselines_of(const CellView& cell);
std::string baseline_of(const Json& comparison);
std::string title_of(const Json& document, const CellView& cell);
std::string joined(const Json& list, std::string_view separator);
// Breaks at spaces; lines after the first begin with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

enum class Align : std::uint8_t { left, right };
class Table {
 public:
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Columns as wide as their widest cell, `gap` spaces between, no spaces at line ends.
  std::string lines(std::size_t indent, std::size_t gap) const;
  // The same with a gap of two, or of one if that would be too wide.
  std::string lines_within(std::size_t columns, std::size_t indent) const;
  // A Markdown table, its first row the head.
  std::string markdown() const;

 private:
  std::vector<std::size_t> widths() const;
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string render_text(const Json& document, bool colour);
std::string render_markdown(const Json& document);
std::string render_csv(const Json& document);
std::string render_netperf(const Json& document);

}  // namespace netchannel::report
