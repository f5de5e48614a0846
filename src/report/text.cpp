// For a terminal: what was measured in figures, then who is faster than whom, then what to know about it. 80
// columns.
#include <fmt/format.h>

#include <algorithm>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

constexpr std::size_t kWidth = 80;

std::string coloured(const std::string& text, std::string_view verdict, bool colour) {
  if (!colour) return text;
  if (verdict == "faster") return "\033[32m" + text + "\033[0m";
  if (verdict == "slower") return "\033[31m" + text + "\033[0m";
  return "\033[2m" + text + "\033[0m";
}

std::string head(const Json& document) {
  const Json& config = get_part(document, "config");
  const Json& machine = get_part(document, "machine");
  std::string out;
  const std::uint64_t runs = get_count(config, "runs");
  if (runs > 0) {
    const std::string seconds = fmt::format("{:g} s", get_number(config, "duration_s"));
    out += runs == 1 ? "1 run of " + seconds : fmt::format("{} runs of {} each", runs, seconds);
    if (runs > 1 && !get_part(document, "compare").empty()) out += ", interleaved";
    if (runs > 1) out += fmt::format(", {} % confidence", get_count(config, "confidence"));
    if (get_text(config, "offloads") == "off") out += ", offloads off";
    out += "\n";
  }
  const std::string virtualised = get_text(machine, "virtualised");
  std::string where = fmt::format("{}, {}, {} CPUs", get_text(machine, "kernel"), get_text(machine, "cpu"),
                                  get_count(machine, "cpus"));
  if (virtualised != "no" && !virtualised.empty()) where += ", a virtual machine";
  return out + wrapped(where, kWidth, 2) + "\n";
}

std::string spread_text(double percent) { return percent < 1000 ? fmt::format("{:.1f}%", percent) : ">999%"; }

std::string figures_of_rr(const CellView& cell) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  table.row({"path", "wait", "per second", "+-", "p50 us", "p99 us", "CPU us", "syscalls"});
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s");
    const auto spread = row.spread_percent("rate_per_s");
    table.row({row.path, row.wait, rate ? with_commas(*rate) : "-", spread ? spread_text(*spread) : "-",
               fixed(row.median_of_all("latency_p50_us"), 1), fixed(row.median_of_all("latency_p99_us"), 1),
               significant(row.mean("service_demand_own_us")),
               significant(row.mean("syscalls_per_message"))});
  }
  return table.lines_within(kWidth, 2);
}

std::string figures_of_stream(const CellView& cell) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  table.row({"path", "wait", "per second", "+-", "Mbit/s", "lost", "CPU us", "syscalls"});
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s");
    const auto spread = row.spread_percent(main_metric(cell.workload));
    const auto bps = row.mean("received_bps");
    const auto loss = row.mean("loss_share");
    table.row({row.path, row.wait, rate ? with_commas(*rate) : "-", spread ? spread_text(*spread) : "-",
               bps ? with_commas(*bps / 1e6) : "-", loss ? fmt::format("{:.1f}%", *loss * 100) : "-",
               significant(row.mean("service_demand_own_us")),
               significant(row.mean("syscalls_per_message"))});
  }
  return table.lines_within(kWidth, 2);
}

std::string ratio_text(const Json* entry) {
  const auto ratio = entry != nullptr ? find_number(*entry, "ratio") : std::nullopt;
  return ratio ? ratio_number(*ratio) + "x" : "-";
}

// One table, so that its columns stand under each other; the lines that name a baseline are put between
// afterwards.
std::string ratios(const CellView& cell, bool colour) {
  const bool rr = is_request(cell.workload);
  std::vector<Align> columns = {Align::left, Align::right, Align::left, Align::left, Align::right};
  if (rr) columns.push_back(Align::right);
  Table table(columns);
  struct Line {
    std::string verdict;
    std::string before;  // a baseline's line
  };
  std::vector<Line> lines;
  const auto add_row = [&](std::vector<std::string> row, const std::string& p50, Line line) {
    // How long a message waits in an unpaced stream's queues is not the path's latency.
    if (rr) row.insert(row.end() - 1, p50);
    table.row(std::move(row));
    lines.push_back(std::move(line));
  };
  add_row({"", "rate", "interval", "verdict", "CPU"}, "p50", {});
  for (const std::string& name : baselines_of(cell)) {
    std::string before = "  against " + name + "\n";
    for (const Json* entry : cell.comparisons) {
      if (get_text(*entry, "metric") != main_metric(cell.workload) || baseline_of(*entry) != name) continue;
      add_row({get_text(*entry, "path") + " " + get_text(*entry, "wait"), ratio_text(entry),
               interval_of(*entry, "[{}, {}]"), get_text(*entry, "verdict"),
               ratio_text(same_pair(cell, *entry, "service_demand_own_us"))},
              ratio_text(same_pair(cell, *entry, "latency_p50_us")),
              {get_text(*entry, "verdict"), std::move(before)});
      before.clear();
    }
  }
  if (lines.size() == 1) return "";
  std::string out, text = table.lines(4, 1);
  for (const Line& line : lines) {
    const std::size_t end = text.find('\n');
    std::string row = text.substr(0, end);
    text.erase(0, end + 1);
    const std::size_t at = line.verdict.empty() ? std::string::npos : row.find(line.verdict);
    if (at != std::string::npos)
      row.replace(at, line.verdict.size(), coloured(line.verdict, line.verdict, colour));
    out += line.before + row + "\n";
  }
  return out;
}

std::string modes(const Json& document) {
  std::vector<std::string> seen;
  for (const Json& block : get_part(document, "blocks")) {
    const std::string mode = get_text(block, "path") + ": " + get_text(block, "mode");
    if (!get_text(block, "mode").empty() && std::find(seen.begin(), seen.end(), mode) == seen.end())
      seen.push_back(mode);
  }
  std::sort(seen.begin(), seen.end());
  std::string out;
  for (const std::string& mode : seen) out += (out.empty() ? "" : "; ") + mode;
  return out;
}

std::string legend(bool compared) {
  std::string out =
      "per second: transactions (request and reply; tcp_crr: a connection for each) or messages that the "
      "receiving program got. CPU us: processor time of both ends for each of them, for tcp_stream for each "
      "KB "
      "received. p50, p99: round trip (tcp_crr: from connecting to the reply's end).";
  if (compared)
    out +=
        " rate (tcp_stream: bytes received), p50, CPU against a baseline: that path's figure divided by the "
        "baseline's.";
  return wrapped(out, kWidth, 0) + "\n";
}

}  // namespace

std::string render_text(const Json& document, bool colour) {
  std::string out = head(document);
  for (const CellView& cell : cells_of(document)) {
    out += "\n" + title_of(document, cell) + "\n";
    out += is_request(cell.workload) ? figures_of_rr(cell) : figures_of_stream(cell);
    if (const std::string compared = ratios(cell, colour); !compared.empty()) out += "\n" + compared;
  }
  out += "\n" + legend(!get_part(document, "compare").empty());
  if (const std::string used = modes(document); !used.empty()) out += wrapped(used, kWidth, 2) + "\n";
  if (get_text(document, "status") == "interrupted") out += "interrupted: these are the runs until then\n";
  for (const Json& warning : get_part(document, "warnings")) {
    if (warning.is_string()) out += wrapped("note: " + warning.get<std::string>(), kWidth, 2) + "\n";
  }
  return out;
}

}  // namespace netchannel::report
