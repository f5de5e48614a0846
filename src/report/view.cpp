#include "report/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace netchannel::report {
namespace {

constexpr std::array kMore = {"batch", "burst", "offered_per_s"};

std::vector<std::pair<std::string, double>> more_of(const Json& entry) {
  std::vector<std::pair<std::string, double>> out;
  for (const char* key : kMore) {
    if (const auto value = find_number(entry, key)) out.emplace_back(key, *value);
  }
  return out;
}

bool same_shape(const Json& entry, const CellView& cell) {
  return get_text(entry, "workload") == cell.workload && get_count(entry, "size") == cell.size &&
         get_count(entry, "pairs") == cell.pairs;
}

bool of_cell(const Json& entry, const CellView& cell) {
  return same_shape(entry, cell) && more_of(entry) == cell.more;
}

// A block says all of its options, a cell those that set it apart.
bool measured_in(const Json& block, const CellView& cell) {
  return same_shape(block, cell) && std::all_of(cell.more.begin(), cell.more.end(), [&](const auto& one) {
           return find_number(block, one.first.c_str()) == one.second;
         });
}

CellView& cell_for(std::vector<CellView>& cells, const Json& entry) {
  for (CellView& cell : cells) {
    if (of_cell(entry, cell)) return cell;
  }
  cells.push_back({get_text(entry, "workload"),
                   get_count(entry, "size"),
                   get_count(entry, "pairs"),
                   more_of(entry),
                   {},
                   {},
                   {}});
  return cells.back();
}

Row& row_for(CellView& cell, const Json& entry) {
  const std::uint64_t contestant = get_count(entry, "contestant");
  const std::string path = get_text(entry, "path"), wait = get_text(entry, "wait");
  for (Row& row : cell.rows) {
    if (row.contestant == contestant && row.path == path && row.wait == wait) return row;
  }
  cell.rows.push_back({path, wait, contestant, {}});
  return cell.rows.back();
}

}  // namespace

const Json* Row::metric(std::string_view name) const {
  for (const Json* entry : metrics) {
    if (get_text(*entry, "metric") == name) return entry;
  }
  return nullptr;
}

std::optional<double> Row::mean(std::string_view name) const {
  const Json* found = metric(name);
  return found != nullptr ? find_number(*found, "mean") : std::nullopt;
}

std::optional<double> Row::median_of_all(std::string_view name) const {
  const Json* found = metric(name);
  const Json* rate = metric("rate_per_s");
  if (found == nullptr || rate == nullptr || get_count(*found, "n") < get_count(*rate, "n"))
    return std::nullopt;
  return find_number(*found, "median");
}

std::optional<double> Row::spread_percent(std::string_view name) const {
  const Json* found = metric(name);
  if (found == nullptr) return std::nullopt;
  const auto middle = find_number(*found, "mean"), high = find_number(*found, "ci_high");
  if (!middle || !high || *middle == 0) return std::nullopt;
  return (*high - *middle) / std::abs(*middle) * 100;
}

std::vector<CellView> cells_of(const Json& document) {
  std::vector<CellView> cells;
  for (const Json& entry : get_part(document, "summary")) {
    if (entry.is_object()) row_for(cell_for(cells, entry), entry).metrics.push_back(&entry);
  }
  for (CellView& cell : cells) {
    std::sort(cell.rows.begin(), cell.rows.end(),
              [](const Row& a, const Row& b) { return a.contestant < b.contestant; });
    for (const Json& entry : get_part(document, "compare")) {
      if (entry.is_object() && of_cell(entry, cell)) cell.comparisons.push_back(&entry);
    }
    for (const Json& block : get_part(document, "blocks")) {
      if (block.is_object() && measured_in(block, cell)) cell.blocks.push_back(&block);
    }
  }
  return cells;
}

const Json* same_pair(const CellView& cell, const Json& comparison, std::string_view metric) {
  for (const Json* other : cell.comparisons) {
    const auto same = [&](const char* key) { return get_text(*other, key) == get_text(comparison, key); };
    if (get_text(*other, "metric") == metric && same("path") && same("wait") && same("baseline") &&
        same("baseline_wait")) {
      return other;
    }
  }
  return nullptr;
}

bool is_request(std::string_view workload) { return workload.ends_with("rr"); }

std::string_view main_metric(std::string_view workload) {
  return workload == "tcp_stream" ? "received_bps" : "rate_per_s";
}

std::string counted(std::uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string shape_of(const Json& document, const CellView& cell) {
  const Json& config = get_part(document, "config");
  const std::string key = "flows_" + cell.workload;
  const std::uint64_t flows = get_count(config, key.c_str(), get_count(config, "flows", 1));
  std::string out = (cell.workload == "tcp_stream" ? "writes of " : "") + counted(cell.size, "byte");
  if (is_request(cell.workload)) out += " each way";
  out += ", " + counted(cell.pairs, "pair");
  if (flows > 1) out += fmt::format(", {} flows in turn", flows);
  for (const auto& [name, value] : cell.more) {
    if (name == "batch") out += fmt::format(", batches of {:.0f}", value);
    if (name == "burst") out += fmt::format(", {:.0f} in flight", value + 1);
    if (name == "offered_per_s") out += ", " + with_commas(value) + " offered a second";
  }
  return out;
}

std::string title_of(const Json& document, const CellView& cell) {
  return cell.workload + ": " + shape_of(document, cell);
}

std::string baseline_of(const Json& comparison) {
  return get_text(comparison, "baseline") + " " + get_text(comparison, "baseline_wait");
}

std::vector<std::string> baselines_of(const CellView& cell) {
  std::vector<std::string> out;
  for (const Json* entry : cell.comparisons) {
    const std::string name = baseline_of(*entry);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string ratio_number(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

std::string interval_of(const Json& comparison, std::string_view form) {
  // Beyond this an interval says nothing, in many digits.
  constexpr double kUseless = 100;
  const auto low = find_number(comparison, "ci_low"), high = find_number(comparison, "ci_high");
  if (!low || !high) return "-";
  if (*low <= 0 || *high / *low > kUseless) return "too wide";
  return fmt::format(fmt::runtime(form), ratio_number(*low), ratio_number(*high));
}

std::string with_commas(double value) {
  const std::string digits = fmt::format("{:.0f}", std::abs(value));
  std::string out;
  if (value <= -0.5) out.push_back('-');
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string fixed(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string significant(const std::optional<double>& value) {
  if (!value) return "-";
  const double size = std::abs(*value);
  if (size >= 1000) return with_commas(*value);
  return fmt::format("{:.{}f}", *value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 || size == 0 ? 2 : 3);
}

std::string joined(const Json& list, std::string_view separator) {
  std::string out;
  for (const Json& item : list) {
    if (!out.empty()) out += separator;
    out += item.is_string() ? item.get<std::string>() : to_text(item);
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    const bool first = column == 0 || column == indent;
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size() && i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::string Table::lines_within(std::size_t columns, std::size_t indent, std::size_t gap) const {
  std::size_t total = indent;
  for (const std::size_t width : widths()) total += width + gap;
  if (total - gap <= columns || (gap == 1 && columns_.size() < 2)) return lines(indent, gap);
  return gap > 1 ? lines_within(columns, indent, gap - 1) : without_last().lines_within(columns, indent, gap);
}

Table Table::without_last() const {
  Table part({columns_.begin(), columns_.end() - 1});
  for (std::vector<std::string> row : rows_) {
    row.resize(std::min(row.size(), part.columns_.size()));
    part.row(std::move(row));
  }
  return part;
}

std::string Table::lines(std::size_t indent, std::size_t gap) const {
  const auto width = widths();
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += std::string(gap, ' ');
      line += columns_[i] == Align::left ? fmt::format("{:<{}}", row[i], width[i])
                                         : fmt::format("{:>{}}", row[i], width[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Table::markdown(std::size_t columns) const {
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::size_t start = out.size();
    out += "|";
    for (const std::string& cell : rows_[r]) out += " " + cell + " |";
    if (out.size() - start > columns && columns_.size() > 2) return without_last().markdown(columns);
    out += "\n";
    if (r != 0) continue;
    out += "|";
    for (const Align align : columns_) out += align == Align::left ? " --- |" : " ---: |";
    out += "\n";
  }
  return out;
}

}  // namespace netchannel::report
