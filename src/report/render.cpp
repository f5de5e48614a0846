#include "report/render.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <sstream>
#include <utility>

namespace netchannel::report {
namespace {

// 1234567 as "1,234,567"; below 100 with two decimals.
std::string readable(double value) {
  if (std::abs(value) < 100) return fmt::format("{:.2f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3 + (value < 0 ? 1u : 0u);) digits.insert(at -= 3, ",");
  return digits;
}

std::string readable(const std::optional<Figure>& figure) { return figure ? readable(figure->median) : "-"; }

// Half the interval's width, in per cent of its middle.
std::string spread(const std::optional<Figure>& figure) {
  if (!figure || !figure->low || !figure->high || *figure->low + *figure->high == 0) return "";
  return fmt::format("±{:.1f}%", 100 * (*figure->high - *figure->low) / (*figure->high + *figure->low));
}

std::string interval(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high ? fmt::format("[{:.2f}, {:.2f}]", *low, *high) : std::string("[-, -]");
}

std::string name_of(const std::string& path, const std::string& wait) {
  return wait.empty() ? path : path + " " + wait;
}

std::string painted(const std::string& verdict, bool colour) {
  if (!colour) return verdict;
  const char* code = verdict == "faster" ? "32" : verdict == "slower" ? "31" : "33";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, verdict);
}

const char* metric_in_words(const std::string& metric) {
  static constexpr std::array kWords = {
      std::pair{"rate_per_s", "rate"},           std::pair{"received_bps", "throughput"},
      std::pair{"latency_p50_us", "p50"},        std::pair{"latency_p99_us", "p99"},
      std::pair{"service_demand_own_us", "CPU"},
  };
  for (const auto& [key, word] : kWords) {
    if (metric == key) return word;
  }
  return "";
}

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column != 0 && column + 1 + word.size() > columns) {
      out += '\n';
      column = 0;
    } else if (column != 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string machine_of(const Json& run) {
  const Json& machine = part_at(run, "machine");
  const Json& tool = part_at(run, "tool");
  return fmt::format("netchannel {} ({}), Linux {}, {}, {:.0f} CPUs", text_at(tool, "version"),
                     text_at(tool, "git"), text_at(machine, "kernel"), text_at(machine, "cpu"),
                     number_at(machine, "cpus").value_or(0));
}

std::string confidence_of(const Json& run) {
  return fmt::format("{:.0f}", number_at(part_at(run, "config"), "confidence").value_or(95));
}

// The lines under the table: what is not as it should be.
std::string remarks_of(const Json& run, std::size_t columns) {
  std::string out;
  if (const std::string status = text_at(run, "status"); status != "complete") {
    out += wrapped("This run is not complete: " + status + ".", columns);
  }
  for (const Json& warning : part_at(run, "warnings")) {
    if (warning.is_string()) out += wrapped("warning: " + warning.get<std::string>(), columns);
  }
  return out;
}

std::string to_text(const Json& run, bool colour) {
  std::string out;
  const std::string level = confidence_of(run);
  for (const Group& group : groups_of(run)) {
    const std::string per = group.per.empty() ? "message" : group.per;
    out += fmt::format("{}: {}s a second, median (± {}% interval)\n", title_of(group), per, level);
    out += fmt::format("  {:<14} {:<8} {:>11} {:>7} {:>7} {:>7} {:>7} {:>9}\n", "path", "wait", "per second",
                       "", "p50 us", "p99 us", "loss %", "CPU us");
    for (const Lane& lane : group.lanes) {
      // fmt counts the sign of "±" as one column.
      out += fmt::format("  {:<14} {:<8} {:>11} {:>7} {:>7} {:>7} {:>7} {:>9}\n", lane.path, lane.wait,
                         readable(lane.rate), spread(lane.rate), readable(lane.p50), readable(lane.p99),
                         lane.loss_share ? fmt::format("{:.2f}", 100 * *lane.loss_share) : "-",
                         readable(lane.demand_own));
    }
    for (const Ratio& ratio : group.ratios) {
      if (ratio.metric != "rate_per_s" && ratio.metric != "received_bps") continue;
      const std::string pair =
          name_of(ratio.path, ratio.wait) + " / " + name_of(ratio.baseline, ratio.baseline_wait);
      out += fmt::format("  {:<40} {:>6.2f}x {:<16} {}\n", pair, ratio.ratio, interval(ratio.low, ratio.high),
                         painted(ratio.verdict, colour));
    }
    out += '\n';
  }
  out += remarks_of(run, 80);
  out += wrapped(machine_of(run), 80);
  return out;
}

std::string to_markdown(const Json& run) {
  std::string out = wrapped(machine_of(run), 78);
  for (const Group& group : groups_of(run)) {
    out += fmt::format("\n**{}**\n\n", title_of(group));
    out += "| path | wait | per second | ± | p50 us | p99 us | CPU us |\n";
    out += "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
    for (const Lane& lane : group.lanes) {
      out +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", lane.path, lane.wait, readable(lane.rate),
                      spread(lane.rate), readable(lane.p50), readable(lane.p99), readable(lane.demand_own));
    }
    if (group.ratios.empty()) continue;
    out += "\n| of | over | figure | ratio | interval | verdict |\n";
    out += "| --- | --- | --- | ---: | --- | --- |\n";
    for (const Ratio& ratio : group.ratios) {
      out += fmt::format("| {} | {} | {} | {:.2f} | {} | {} |\n", name_of(ratio.path, ratio.wait),
                         name_of(ratio.baseline, ratio.baseline_wait), metric_in_words(ratio.metric),
                         ratio.ratio, interval(ratio.low, ratio.high), ratio.verdict);
    }
  }
  const std::string remarks = remarks_of(run, 78);
  return remarks.empty() ? out : out + "\n" + remarks;
}

// RFC 4180: quoted where it must be, lines end in CR LF.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    out += c;
    if (c == '"') out += '"';
  }
  return out + "\"";
}

void csv_figures(const Json& part, const std::string& prefix, const std::string& row, std::string& out) {
  for (const auto& [key, value] : part.items()) {
    if (value.is_object()) csv_figures(value, prefix + key + ".", row, out);
    if (value.is_number()) out += row + csv_field(prefix + key) + "," + value.dump() + "\r\n";
  }
}

std::string to_csv(const Json& run) {
  static constexpr std::array kNames = {"workload", "path", "mode", "wait"};
  static constexpr std::array kNumbers = {"size", "pairs", "batch", "order"};
  std::string out = "workload,path,mode,wait,size,pairs,batch,order,figure,value\r\n";
  for (const Json& block : part_at(run, "blocks")) {
    if (!block.is_object()) continue;
    std::string row;
    for (const char* name : kNames) row += csv_field(text_at(block, name)) + ",";
    for (const char* name : kNumbers) row += fmt::format("{:g},", number_at(block, name).value_or(0));
    Json figures = block;
    for (const char* name : kNumbers) figures.erase(name);
    csv_figures(figures, "", row, out);
  }
  return out;
}

// netperf's classic columns: request-response as its TCP_RR, streams as its UDP_STREAM's receiving side.
std::string to_netperf(const Json& run) {
  std::string out;
  for (const Group& group : groups_of(run)) {
    const bool transactions = group.workload.find("rr") != std::string::npos;
    out += fmt::format("{} : {}\n", group.workload, title_of(group));
    out += transactions ? "Path                    Request  Resp.   Trans.       S.dem\n"
                          "                        Size     Size    Rate         own\n"
                          "                        bytes    bytes   per sec      us/Tr\n\n"
                        : "Path                    Message  Throughput   Messages     S.dem\n"
                          "                        Size                               own\n"
                          "                        bytes    10^6bits/sec per sec      us/KB\n\n";
    for (const Lane& lane : group.lanes) {
      const double rate = lane.rate ? lane.rate->median : 0;
      const double demand = lane.demand_own ? lane.demand_own->median : 0;
      const std::string name = name_of(lane.path, lane.wait);
      out += transactions ? fmt::format("{:<23} {:<8.0f} {:<7.0f} {:<12.2f} {:.3f}\n", name, group.size,
                                        group.size, rate, demand)
                          : fmt::format("{:<23} {:<8.0f} {:<12.2f} {:<12.2f} {:.3f}\n", name, group.size,
                                        rate * group.size * 8 / 1e6, rate,
                                        group.size > 0 ? demand * 1024 / group.size : 0.0);
    }
    out += '\n';
  }
  return out + remarks_of(run, 80);
}

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  static constexpr std::array kNames = {
      std::pair{std::string_view("text"), Format::text},
      std::pair{std::string_view("md"), Format::markdown},
      std::pair{std::string_view("csv"), Format::csv},
      std::pair{std::string_view("netperf"), Format::netperf},
  };
  for (const auto& [text, format] : kNames) {
    if (name == text) return format;
  }
  return std::nullopt;
}

std::string render(const Json& run, Format format, bool colour) {
  switch (format) {
    case Format::text:
      return to_text(run, colour);
    case Format::markdown:
      return to_markdown(run);
    case Format::csv:
      return to_csv(run);
    case Format::netperf:
      return to_netperf(run);
  }
  return {};
}

}  // namespace netchannel::report
