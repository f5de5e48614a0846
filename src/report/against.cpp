// Then and now, one line for each path and metric.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/report.hpp"
#include "report/view.hpp"

namespace netchannel::report {
namespace {

constexpr std::size_t kTerminal = 80, kMail = 78;

std::string metric_name(const std::string& metric) {
  constexpr std::array kNames = {
      std::pair{"rate_per_s", "rate"}, std::pair{"service_demand_own_us", "CPU us"},
      std::pair{"latency_p50_us", "p50 us"}, std::pair{"latency_p99_us", "p99 us"}};
  for (const auto& [known, name] : kNames) {
    if (metric == known) return name;
  }
  return metric;
}

std::string shape_of(const Json& entry) {
  std::string out = get_text(entry, "workload") + ": " + counted(get_count(entry, "size"), "byte") + ", " +
                    counted(get_count(entry, "pairs"), "pair");
  if (const auto burst = get_count(entry, "burst"); burst > 0)
    out += fmt::format(", {} in flight", burst + 1);
  if (const auto rate = find_number(entry, "offered_per_s"))
    out += ", " + with_commas(*rate) + " offered a second";
  return out;
}

std::string difference(const Json& entry) {
  const std::string verdict = get_text(entry, "verdict");
  return verdict == "no difference shown" ? "none shown" : verdict;
}

// With its batch where the same path was measured with several.
std::string name_of(const Json& entry, const std::vector<const Json*>& others) {
  std::string name = get_text(entry, "path") + " " + get_text(entry, "wait");
  for (const Json* other : others) {
    if (get_text(*other, "path") + " " + get_text(*other, "wait") == name &&
        get_count(*other, "batch") != get_count(entry, "batch"))
      return name + fmt::format(", batch {}", get_count(entry, "batch"));
  }
  return name;
}

Table table_of(const std::vector<const Json*>& entries) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.row({"path", "metric", "before", "now", "ratio", "interval", "difference"});
  for (const Json* entry : entries) {
    table.row({name_of(*entry, entries), metric_name(get_text(*entry, "metric")),
               significant(find_number(*entry, "before")), significant(find_number(*entry, "now")),
               ratio_number(get_number(*entry, "ratio")), interval_of(*entry, "{}-{}"), difference(*entry)});
  }
  return table;
}

std::string csv_of(const Json& entries) {
  constexpr std::array kKeys = {"workload",      "size",     "pairs", "batch",  "flows",   "burst",
                                "offered_per_s", "path",     "wait",  "metric", "before",  "now",
                                "ratio",         "n_before", "n_now", "ci_low", "ci_high", "verdict"};
  std::string out;
  for (const char* key : kKeys) out += (out.empty() ? "" : ",") + std::string(key);
  out += "\r\n";
  for (const Json& entry : entries) {
    std::string line;
    for (const char* key : kKeys) line += csv_field(get_part(entry, key)) + ",";
    line.pop_back();
    out += line + "\r\n";
  }
  return out;
}

}  // namespace

std::string render_against(const Json& entries, Format format, Style style) {
  if (format == Format::csv) return csv_of(entries);
  const bool mail = format == Format::markdown;
  const std::size_t width = mail ? kMail : kTerminal;
  std::vector<std::pair<std::string, std::vector<const Json*>>> groups;
  for (const Json& entry : entries) {
    const std::string shape = shape_of(entry);
    auto at =
        std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first == shape; });
    if (at == groups.end()) at = groups.insert(at, {shape, {}});
    at->second.push_back(&entry);
  }
  std::string out;
  for (const auto& [shape, members] : groups) {
    out += wrapped((mail ? "## " : "") + shape, width, 0) + "\n" + (mail ? "\n" : "");
    const Table table = table_of(members);
    out +=
        (mail ? table.markdown(width) : coloured_verdicts(table.lines_within(width, 2), style.colour)) + "\n";
  }
  return out +
         wrapped(
             "ratio: now over before, of geometric means. The runs were not measured side by side: a machine "
             "that had become slower would look like a program that had.",
             width, 0) +
         "\n";
}

}  // namespace netchannel::report
