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
    out += fmt::format("{} {} of {} s each{}, {} % confidence{}\n", runs, runs == 1 ? "run" : "runs",
                       significant(find_number(config, "duration_s")), runs > 1 ? ", interleaved" : "",
                       get_count(config, "confidence"),
                       get_text(config, "offloads") == "off" ? ", offloads off" : "");
  }
  const std::string virtualised = get_text(machine, "virtualised");
  std::string where = fmt::format("{}, {}, {} CPUs", get_text(machine, "kernel"), get_text(machine, "cpu"),
                                  get_count(machine, "cpus"));
  if (virtualised != "no" && !virtualised.empty()) where += ", a virtual machine";
  return out + wrapped(where, kWidth, 2) + "\n";
}

std::string figures_of_rr(const CellView& cell) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  table.row({"path", "wait", "per second", "+-", "p50 us", "p99 us", "CPU us", "syscalls"});
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s");
    const auto spread = row.spread_percent("rate_per_s");
    table.row({row.path, row.wait, rate ? with_commas(*rate) : "-",
               spread ? fmt::format("{:.1f}%", *spread) : "-", fixed(row.mean("latency_p50_us"), 1),
               fixed(row.mean("latency_p99_us"), 1), significant(row.mean("service_demand_own_us")),
               significant(row.mean("syscalls_per_message"))});
  }
  return table.lines(2);
}

std::string figures_of_stream(const CellView& cell) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  table.row({"path", "wait", "per second", "+-", "Mbit/s", "lost", "CPU us", "syscalls"});
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s");
    const auto spread = row.spread_percent("rate_per_s");
    const auto bps = row.mean("received_bps");
    const auto loss = row.mean("loss_share");
    table.row(
        {row.path, row.wait, rate ? with_commas(*rate) : "-", spread ? fmt::format("{:.1f}%", *spread) : "-",
         bps ? with_commas(*bps / 1e6) : "-", loss ? fmt::format("{:.1f}%", *loss * 100) : "-",
         significant(row.mean("service_demand_own_us")), significant(row.mean("syscalls_per_message"))});
  }
  return table.lines(2);
}

std::string verdict_text(const Json& entry) {
  const std::string verdict = get_text(entry, "verdict");
  const auto smallest = find_number(entry, "smallest_difference");
  if (verdict != "no difference shown" || !smallest) return verdict;
  return fmt::format("{} (needs {:.0f}%)", verdict, *smallest * 100);
}

std::string ratio_text(const Json* entry) {
  const auto ratio = entry != nullptr ? find_number(*entry, "ratio") : std::nullopt;
  return ratio ? significant(ratio) + "x" : "-";
}

std::string interval_text(const Json& entry) {
  const auto low = find_number(entry, "ci_low"), high = find_number(entry, "ci_high");
  return low && high ? fmt::format("[{}, {}]", significant(low), significant(high)) : "-";
}

std::string ratios(const CellView& cell, bool colour) {
  std::vector<const Json*> rates;
  for (const Json* entry : cell.comparisons) {
    if (get_text(*entry, "metric") == "rate_per_s") rates.push_back(entry);
  }
  const auto baseline = [](const Json& entry) {
    return get_text(entry, "baseline") + " " + get_text(entry, "baseline_wait");
  };
  std::vector<std::string> baselines;
  for (const Json* entry : rates) {
    if (std::find(baselines.begin(), baselines.end(), baseline(*entry)) == baselines.end())
      baselines.push_back(baseline(*entry));
  }
  Table table({Align::left, Align::right, Align::left, Align::left, Align::right, Align::right});
  std::vector<std::string> verdicts;
  for (const std::string& name : baselines) {
    table.row({"against " + name, "rate", "interval", "verdict", "p50", "CPU"});
    verdicts.emplace_back();
    for (const Json* entry : rates) {
      if (baseline(*entry) != name) continue;
      table.row({"  " + get_text(*entry, "path") + " " + get_text(*entry, "wait"), ratio_text(entry),
                 interval_text(*entry), verdict_text(*entry),
                 ratio_text(same_pair(cell, *entry, "latency_p50_us")),
                 ratio_text(same_pair(cell, *entry, "service_demand_own_us"))});
      verdicts.push_back(get_text(*entry, "verdict"));
    }
  }
  std::string out, lines = table.lines(2);
  for (const std::string& verdict : verdicts) {
    const std::size_t end = lines.find('\n');
    std::string line = lines.substr(0, end);
    lines.erase(0, end + 1);
    if (const std::size_t at = verdict.empty() ? std::string::npos : line.find(verdict);
        at != std::string::npos) {
      line.replace(at, verdict.size(), coloured(verdict, verdict, colour));
    }
    out += line + "\n";
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

}  // namespace

std::string render_text(const Json& document, bool colour) {
  std::string out = head(document);
  for (const CellView& cell : cells_of(document)) {
    out += fmt::format("\n{}: {} {}{}, {} {}{}\n", cell.workload, cell.size,
                       cell.size == 1 ? "byte" : "bytes", cell.workload.ends_with("_rr") ? " each way" : "",
                       cell.pairs, cell.pairs == 1 ? "pair" : "pairs", flows_note(document, cell.workload));
    out += cell.workload.ends_with("_rr") ? figures_of_rr(cell) : figures_of_stream(cell);
    if (const std::string compared = ratios(cell, colour); !compared.empty()) out += "\n" + compared;
  }
  out +=
      "\n" +
      wrapped(
          "per second: transactions (request and reply) or messages that the receiving program got. CPU us: "
          "processor time of both ends for each of them. p50, p99: round trip. rate, p50, CPU against a "
          "baseline: that path's figure divided by the baseline's.",
          kWidth, 0) +
      "\n";
  if (const std::string used = modes(document); !used.empty()) out += wrapped(used, kWidth, 2) + "\n";
  if (get_text(document, "status") == "interrupted") out += "interrupted: these are the runs until then\n";
  for (const Json& warning : get_part(document, "warnings")) {
    if (warning.is_string()) out += wrapped("note: " + warning.get<std::string>(), kWidth, 2) + "\n";
  }
  return out;
}

}  // namespace netchannel::report
