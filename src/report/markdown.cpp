// For mailing lists and bug reports: at most 78 columns, and all that a reader needs to judge or repeat it.
#include <fmt/format.h>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

constexpr std::size_t kWidth = 78;

std::string environment(const Json& document) {
  const Json& machine = get_part(document, "machine");
  const Json& tool = get_part(document, "tool");
  const Json& irq = get_part(machine, "irq_time_accounting");
  std::string out;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += wrapped(fmt::format("- {}: {}", name, value), kWidth, 2) + "\n";
  };
  line("kernel", get_text(machine, "kernel"));
  line("processor", fmt::format("{} x {}", get_count(machine, "cpus"), get_text(machine, "cpu")));
  line("virtual machine", get_text(machine, "virtualised"));
  line("time stolen by the host", fmt::format("{} %", fixed(get_number(machine, "steal_share") * 100, 2)));
  line("IRQ time accounting",
       irq.is_boolean() ? (irq.get<bool>() ? "yes" : "no: softirq work counts as its process's") : "");
  line("netchannel", fmt::format("{} ({}), {} {}", get_text(tool, "version"), get_text(tool, "git"),
                                 get_text(tool, "compiler"), get_text(tool, "flags")));
  return out;
}

std::string options(const Json& document) {
  std::string out;
  for (const auto& [key, value] : get_part(document, "config").items()) {
    if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) continue;
    if (!out.empty()) out += ", ";
    out += key + " " +
           (value.is_array()    ? joined(value, " ")
            : value.is_string() ? value.get<std::string>()
                                : to_text(value));
  }
  return wrapped(out, kWidth, 0) + "\n";
}

std::string figures(const CellView& cell) {
  const bool latency = has_latency(cell), loss = has_loss(cell);
  std::vector<std::string> heads = {"path", "wait", "per s", "+- %"};
  if (latency) heads.insert(heads.end(), {"p50 us", "p99 us"});
  if (loss) heads.emplace_back("lost %");
  if (!latency) heads.emplace_back("Mbit/s");
  heads.emplace_back("CPU us");
  std::vector<Align> columns(heads.size(), Align::right);
  columns[0] = columns[1] = Align::left;
  Table table(columns);
  table.row(heads);
  for (const Row& row : cell.rows) {
    const auto rate = row.mean("rate_per_s"), lost = row.mean("loss_share"), bps = row.mean("received_bps");
    std::vector<std::string> cells = {row.path, row.wait, rate ? with_commas(*rate) : "-",
                                      fixed(row.spread_percent(main_metric(cell.workload)), 1)};
    if (latency) {
      cells.push_back(fixed(row.median_of_all("latency_p50_us"), 1));
      cells.push_back(fixed(row.median_of_all("latency_p99_us"), 1));
    }
    if (loss) cells.push_back(lost ? fixed(*lost * 100, 1) : "-");
    if (!latency) cells.push_back(bps ? with_commas(*bps / 1e6) : "-");
    cells.push_back(significant(row.mean("service_demand_own_us")));
    table.row(std::move(cells));
  }
  return table.markdown(kWidth);
}

// The page's summary, as a list.
std::string findings(const Json& document) {
  std::string out;
  for (const std::string& remark : remarks_of(document)) out += wrapped(remark, kWidth, 0) + "\n";
  const auto all = findings_of(document);
  if (!all.empty()) out += "\n";
  for (const Finding& finding : all)
    out += wrapped(fmt::format("- {}, {}: {}", finding.workload, finding.subject, finding.text), kWidth, 2) +
           "\n";
  return out;
}

// The smallest difference that this run's scatter would have let it see.
std::string visible_from(const Json& comparison) {
  const auto smallest = find_number(comparison, "smallest_difference");
  return smallest && *smallest < 10 ? fmt::format("{:.1f}%", *smallest * 100) : "-";
}

std::string comparisons(const CellView& cell) {
  std::string out;
  for (const std::string& name : baselines_of(cell)) {
    Table table({Align::left, Align::right, Align::right, Align::left, Align::right});
    table.row({"against " + name, "rate", "interval", "verdict", "visible from"});
    bool any = false;
    for (const Json* entry : cell.comparisons) {
      if (get_text(*entry, "metric") != main_metric(cell.workload) || baseline_of(*entry) != name) continue;
      any = true;
      table.row({get_text(*entry, "path") + " " + get_text(*entry, "wait"),
                 ratio_number(get_number(*entry, "ratio")), interval_of(*entry, "{}-{}"),
                 get_text(*entry, "verdict"), visible_from(*entry)});
    }
    if (any) out += "\n" + table.markdown(kWidth);
  }
  return out;
}

}  // namespace

std::string render_markdown(const Json& document) {
  std::string out = "# netchannel compare\n\n" + findings(document) + "\n" + environment(document) + "\n";
  const Contestants contestants(document);
  for (const CellView& cell : cells_of(document)) {
    out += wrapped("## " + title_of(document, cell), kWidth, 0) + "\n\n";
    out += figures(cell);
    for (const Table& table : series_tables(cell, contestants)) out += "\n" + table.markdown(kWidth);
    out += comparisons(cell) + "\n";
  }
  out +=
      wrapped(
          "Rates are of transactions or of messages received by the program, means over runs with half the "
          "width of their interval; tcp_stream's main figure, and its interval, are of the bytes received. "
          "CPU "
          "us is the processor time of both ends for each, for tcp_stream for each KB. Ratios are geometric "
          "means over pairs of runs measured side by side; from how large a difference on this run could "
          "have "
          "seen one stands beside them.",
          kWidth, 0) +
      "\n\n";
  out += options(document);
  if (get_text(document, "status") != "complete") out += "\nStatus: " + get_text(document, "status") + "\n";
  bool first = true;
  for (const Json& warning : get_part(document, "warnings")) {
    if (!warning.is_string()) continue;
    out += (first ? "\n" : "") + wrapped("- " + warning.get<std::string>(), kWidth, 2) + "\n";
    first = false;
  }
  return out;
}

}  // namespace netchannel::report
