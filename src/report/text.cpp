// For a terminal: what was measured in figures, then who is faster than whom, then what to know about it. 80
// columns.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

constexpr std::size_t kWidth = 80;

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

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : "-";
}

std::string figures_of(const CellView& cell) {
  const bool latency = has_latency(cell), loss = has_loss(cell);
  std::vector<std::string> heads = {"path", "wait", "per second", "+-"};
  if (latency) heads.insert(heads.end(), {"p50 us", "p99 us"});
  if (!latency) heads.emplace_back("Mbit/s");
  if (loss) heads.emplace_back("lost");
  heads.insert(heads.end(), {"CPU us", "syscalls"});
  std::vector<Align> columns(heads.size(), Align::right);
  columns[0] = columns[1] = Align::left;
  Table table(columns);
  table.row(heads);
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s"), bps = row.mean("received_bps");
    const auto spread = row.spread_percent(main_metric(cell.workload));
    std::vector<std::string> cells = {row.path, row.wait, rate ? with_commas(*rate) : "-",
                                      spread ? spread_text(*spread) : "-"};
    if (latency) {
      cells.push_back(fixed(row.median_of_all("latency_p50_us"), 1));
      cells.push_back(fixed(row.median_of_all("latency_p99_us"), 1));
    }
    if (!latency) cells.push_back(bps ? with_commas(*bps / 1e6) : "-");
    if (loss) cells.push_back(percent(row.mean("loss_share")));
    cells.push_back(significant(row.mean("service_demand_own_us")));
    cells.push_back(significant(row.mean("syscalls_per_message")));
    table.row(std::move(cells));
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
  const bool latency = has_latency(cell);
  std::vector<Align> columns = {Align::left, Align::right, Align::left, Align::left, Align::right};
  if (latency) columns.push_back(Align::right);
  Table table(columns);
  std::vector<std::string> before;  // a baseline's line, above each row
  const auto add_row = [&](std::vector<std::string> row, const std::string& p50, std::string line) {
    if (latency) row.insert(row.end() - 1, p50);
    table.row(std::move(row));
    before.push_back(std::move(line));
  };
  add_row({"", "rate", "interval", "verdict", "CPU"}, "p50", {});
  for (const std::string& name : baselines_of(cell)) {
    std::string against = "  against " + name + "\n";
    for (const Json* entry : cell.comparisons) {
      if (get_text(*entry, "metric") != main_metric(cell.workload) || baseline_of(*entry) != name) continue;
      add_row({get_text(*entry, "path") + " " + get_text(*entry, "wait"), ratio_text(entry),
               interval_of(*entry, "[{}, {}]"), get_text(*entry, "verdict"),
               ratio_text(same_pair(cell, *entry, "service_demand_own_us"))},
              ratio_text(same_pair(cell, *entry, "latency_p50_us")), std::move(against));
      against.clear();
    }
  }
  if (before.size() == 1) return "";
  std::string out, text = table.lines_within(kWidth, 4, 1);
  for (const std::string& line : before) {
    const std::size_t end = text.find('\n');
    out += line + coloured_verdicts(text.substr(0, end), colour) + "\n";
    text.erase(0, end + 1);
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
      "received. p50, p99: round trip (tcp_crr: from connecting to the reply's end; one-way workloads: from "
      "sending, or from when it was due, to receiving).";
  if (compared)
    out +=
        " rate (tcp_stream: bytes received), p50, CPU against a baseline: that path's figure divided by the "
        "baseline's.";
  return wrapped(out, kWidth, 0) + "\n";
}

}  // namespace

std::string coloured_verdicts(std::string text, bool colour) {
  if (!colour) return text;
  constexpr std::array kVerdicts = {std::pair{"faster", 32}, std::pair{"slower", 31},
                                    std::pair{"no difference shown", 2}};
  for (const auto& [verdict, code] : kVerdicts) {
    const std::string painted = fmt::format("\033[{}m{}\033[0m", code, verdict);
    for (std::size_t at = text.find(verdict); at != std::string::npos;
         at = text.find(verdict, at + painted.size()))
      text.replace(at, std::string_view(verdict).size(), painted);
  }
  return text;
}

std::string render_text(const Json& document, bool colour) {
  std::string out = head(document);
  const Contestants contestants(document);
  for (const CellView& cell : cells_of(document)) {
    out += "\n" + wrapped(title_of(document, cell), kWidth, 2) + "\n";
    out += figures_of(cell);
    for (const Table& table : series_tables(cell, contestants)) out += "\n" + table.lines_within(kWidth, 2);
    if (const std::string compared = ratios(cell, colour); !compared.empty()) out += "\n" + compared;
  }
  out += "\n" + legend(!get_part(document, "compare").empty());
  if (const std::string used = modes(document); !used.empty()) out += wrapped(used, kWidth, 2) + "\n";
  if (get_part(document, "blocks").empty()) out += "nothing was measured\n";
  if (get_text(document, "status") == "interrupted") out += "interrupted: these are the runs until then\n";
  for (const Json& warning : get_part(document, "warnings")) {
    if (warning.is_string()) out += wrapped("note: " + warning.get<std::string>(), kWidth, 2) + "\n";
  }
  return out;
}

}  // namespace netchannel::report
