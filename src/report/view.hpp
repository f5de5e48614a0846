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
  // What else sets it apart from others, where the summary says it: "batch", "burst", "offered_per_s".
  std::vector<std::pair<std::string, double>> more;
  std::vector<Row> rows;                 // in the order of the contestants
  std::vector<const Json*> comparisons;  // entries of "compare"
  std::vector<const Json*> blocks;       // all of them, those that do not count too
};

// In the order of the summary. The document must outlive them.
std::vector<CellView> cells_of(const Json& document);

// Who was measured: a path and its way of waiting, once more for each time that it is listed.
struct Contestant {
  std::uint64_t number = 0;
  std::string path, wait;
  std::string name;                            // "xdp spin"; "kernel spin (2)" for the second of one name
  std::size_t path_index = 0, wait_index = 0;  // the same for the same path, whatever it is called
};
class Contestants {
 public:
  explicit Contestants(const Json& document);
  // Of a block, of an entry of "summary", or of one of "compare"; null if it is none.
  const Contestant* find(const Json& entry) const;
  const std::vector<Contestant>& all() const { return all_; }

 private:
  std::vector<Contestant> all_;
};

bool is_of(const Json& entry, const Contestant& who);
bool has_flag(const Json& block, std::string_view flag);
// Whether it is part of the summary: neither superseded nor interrupted.
bool counts(const Json& block);

// "transaction", "message", "KB": what the service demand is for.
std::string unit_of(const CellView& cell);
// What its rate counts, in the plural: "transactions".
std::string rate_unit_of(const CellView& cell);
// Whether its latencies say something: those of an unpaced stream tell how full its queues were.
bool has_latency(const CellView& cell);
bool has_loss(const CellView& cell);

// What a curve is drawn through: an offered rate and what came of it. Each block is one, or holds a list of
// them ("curve").
struct Offered {
  double offered = 0;
  std::optional<double> achieved;
  std::optional<double> p50, p99;  // none of a saturated one
  bool saturated = false;
};
std::vector<Offered> offered_of(const Json& block);
// One for each offered rate, ascending: medians over those of the contestant's blocks that count, saturated
// if one was.
std::vector<Offered> curve_of(const std::vector<const Json*>& blocks, const Contestant& who);

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
// A search for the highest rate without loss: the median of the runs' bounds.
struct Searched {
  std::string name;
  double low = 0;
  std::optional<double> high;
};
std::vector<Searched> searches_in(const CellView& cell, const Contestants& contestants);

std::string title_of(const Json& document, const CellView& cell);
// The same without the workload.
std::string shape_of(const Json& document, const CellView& cell);
std::string counted(std::uint64_t n, std::string_view what);  // "1 pair", "4 pairs"
double median_of(std::vector<double> values);                 // not of none
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
  // The same with that gap, or a smaller one if it would be too wide; then without its last columns.
  std::string lines_within(std::size_t columns, std::size_t indent, std::size_t gap = 2) const;
  // A Markdown table, its first row the head; without its last columns if its lines would be too wide.
  std::string markdown(std::size_t columns) const;

 private:
  std::vector<std::size_t> widths() const;
  Table without_last() const;
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Latency against the offered rate, and the highest rate without loss, as far as the cell has them.
std::vector<Table> series_tables(const CellView& cell, const Contestants& contestants);

// What was found, in sentences: each about one contestant.
struct Finding {
  std::string workload;
  std::string subject;  // the contestant's name, the sentence's first words
  std::string text;     // the rest, with its full stop
  std::string verdict;  // as in "compare"; empty if there is none
};
std::vector<Finding> findings_of(const Json& document);
// What to know of the whole run, a sentence each: how it was measured, whether it is whole.
std::vector<std::string> remarks_of(const Json& document);

// With RFC 4180's quotes where they are needed; nothing for null.
std::string csv_field(const Json& value);
// Every "faster" and "slower" of a text in its colour.
std::string coloured_verdicts(std::string text, bool colour);

std::string render_text(const Json& document, bool colour);
std::string render_markdown(const Json& document);
std::string render_csv(const Json& document);
std::string render_netperf(const Json& document);
std::string render_html(const Json& document);

}  // namespace netchannel::report
