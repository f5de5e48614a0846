// One page that needs nothing else: no network, no script, no font; light or dark as its reader's system is,
// and printable. In the order in which people read: what was found, in words; pictures; figures; where and
// how it was measured; the JSON itself. It is well-formed XML too, so that any parser can check it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/chart.hpp"
#include "report/html_style.hpp"
#include "report/markup.hpp"
#include "report/view.hpp"

namespace netchannel::report {
namespace {

constexpr std::size_t kShownCharts = 8;  // of a section; the rest can be unfolded
constexpr std::size_t kShownRows = 45;   // of a chart
constexpr std::size_t kShownTables = 8;
constexpr std::size_t kMostEmbedded = 4 << 20;  // bytes of JSON inside the page

std::string element(std::string_view name, const std::string& text, std::string_view attributes = "") {
  return fmt::format("<{}{}{}>{}</{}>\n", name, attributes.empty() ? "" : " ", attributes, text, name);
}

std::string folded(const std::string& title, const std::string& content) {
  return "<details><summary>" + escaped(title) + "</summary>\n" + content + "</details>\n";
}

std::string section(std::string_view id, std::string_view title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escaped(title), content);
}

// A table that becomes a list of cards where the screen is narrow.
class HtmlTable {
 public:
  HtmlTable(std::vector<std::string> heads, std::size_t words) : heads_(std::move(heads)), words_(words) {}
  void row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view name = i == 0 ? "th" : "td";
      rows_ +=
          fmt::format("<{}{}{} data-name=\"{}\">{}</{}>", name, i == 0 ? " scope=\"row\"" : "",
                      i < words_ ? "" : " class=\"number\"", escaped(heads_[i]), escaped(cells[i]), name);
    }
    rows_ += "</tr>\n";
    empty_ = false;
  }
  bool empty() const { return empty_; }
  std::string text(const std::string& caption) const {
    std::string heads;
    for (std::size_t i = 0; i < heads_.size(); ++i)
      heads += fmt::format("<th scope=\"col\"{}>{}</th>", i < words_ ? "" : " class=\"number\"",
                           escaped(heads_[i]));
    return "<div class=\"wide\"><table><caption>" + escaped(caption) + "</caption>\n<thead><tr>" + heads +
           "</tr></thead>\n<tbody>\n" + rows_ + "</tbody></table></div>\n";
  }

 private:
  std::vector<std::string> heads_;
  std::size_t words_;  // the first columns hold words, the rest numbers
  std::string rows_;
  bool empty_ = true;
};

std::string verdict_mark(const std::string& verdict) {
  if (verdict.empty()) return "";
  const std::string_view kind = verdict == "faster" ? "good" : verdict == "slower" ? "bad" : "even";
  return fmt::format("<span class=\"verdict {}\">{}</span> ", kind, escaped(verdict));
}

std::string summary(const Json& document) {
  std::string out, workload, list;
  for (const std::string& remark : remarks_of(document)) out += element("p", escaped(remark));
  const auto close = [&] {
    if (!list.empty())
      out += "<h3>" + escaped(workload) + "</h3>\n<ul class=\"findings\">\n" + list + "</ul>\n";
    list.clear();
  };
  for (const Finding& finding : findings_of(document)) {
    if (finding.workload != workload) close();
    workload = finding.workload;
    list += "<li>" + verdict_mark(finding.verdict) + "<b>" + escaped(finding.subject) +
            "</b>: " + escaped(finding.text) + "</li>\n";
  }
  close();
  std::string warnings;
  for (const Json& warning : get_part(document, "warnings")) {
    if (warning.is_string()) warnings += element("li", escaped(warning.get<std::string>()));
  }
  if (!warnings.empty()) out += "<h3>To know</h3>\n<ul class=\"warnings\">\n" + warnings + "</ul>\n";
  return out;
}

std::string figure(const Chart& chart) {
  std::string caption = "<b>" + escaped(chart.title) + "</b>";
  if (!chart.caption.empty()) caption += " " + escaped(chart.caption);
  return fmt::format("<figure id=\"{}\">\n<figcaption>{}</figcaption>\n{}\n</figure>\n", escaped(chart.id),
                     caption, svg_of(chart));
}

// What all pictures of a section have in common, said once.
std::string introduction(Section section) {
  if (section == Section::runs)
    return element(
        "p",
        "A mark for each run, hollow if it carries a flag; below it the mean over the runs that count, "
        "with its interval.");
  if (section == Section::ratios)
    return element(
        "p",
        "A path over its baseline, with the interval of the ratio; hollow: it holds 1, so no difference "
        "is shown.");
  return "";
}

std::string figures(const std::vector<Chart>& charts, Section wanted) {
  std::string shown, hidden;
  std::size_t count = 0, folded_away = 0;
  for (const Chart& chart : charts) {
    if (chart.section != wanted) continue;
    const bool small = chart.rows.size() <= kShownRows;
    const bool show = small && count < kShownCharts;
    (show ? count : folded_away) += 1;
    (show ? shown : hidden) += figure(chart);
  }
  if (count + folded_away == 0) return "";
  std::string out = introduction(wanted);
  if (count > 0) out += "<div class=\"figures\">\n" + shown + "</div>\n";
  if (folded_away > 0)
    out += folded(fmt::format("{} more", folded_away), "<div class=\"figures\">\n" + hidden + "</div>\n");
  return out;
}

std::string per_second(const CellView& cell, const Row& row) {
  const auto rate = row.mean("rate_per_s");
  std::string out = rate ? with_commas(*rate) : "-";
  if (main_metric(cell.workload) != "rate_per_s") return out;
  if (const auto spread = row.spread_percent("rate_per_s")) out += fmt::format(" \u00b1{:.2g} %", *spread);
  return out;
}

std::string megabits(const CellView& cell, const Row& row) {
  const auto bps = row.mean("received_bps");
  std::string out = bps ? significant(*bps / 1e6) : "-";
  if (main_metric(cell.workload) != "received_bps") return out;
  if (const auto spread = row.spread_percent("received_bps")) out += fmt::format(" \u00b1{:.2g} %", *spread);
  return out;
}

std::string cell_table(const Json& document, const CellView& cell) {
  const bool latency = has_latency(cell), loss = has_loss(cell);
  std::vector<std::string> heads = {
      "path", rate_unit_of(cell) == "bytes" ? "writes a second" : rate_unit_of(cell) + " a second", "Mbit/s"};
  if (latency) heads.insert(heads.end(), {"p50, \u00b5s", "p99, \u00b5s"});
  if (loss) heads.emplace_back("lost, %");
  const std::string unit = unit_of(cell);
  heads.insert(heads.end(), {"CPU of both ends, \u00b5s a " + unit, "CPU of the machine, \u00b5s a " + unit,
                             "syscalls a message"});
  HtmlTable table(heads, 1);
  for (const Row& row : cell.rows) {
    std::vector<std::string> cells = {row.path + " " + row.wait, per_second(cell, row), megabits(cell, row)};
    if (latency) {
      cells.push_back(significant(row.median_of_all("latency_p50_us")));
      cells.push_back(significant(row.median_of_all("latency_p99_us")));
    }
    const auto lost = row.mean("loss_share");
    if (loss) cells.push_back(lost ? fixed(*lost * 100, 2) : "-");
    cells.push_back(significant(row.mean("service_demand_own_us")));
    cells.push_back(significant(row.mean("service_demand_host_us")));
    cells.push_back(significant(row.mean("syscalls_per_message")));
    table.row(cells);
  }
  return table.text(title_of(document, cell));
}

std::string curve_table(const Json& document, const Contestants& contestants, const CellView& cell) {
  HtmlTable table({"path", "offered a second", "achieved a second", "p50, \u00b5s", "p99, \u00b5s"}, 1);
  for (const Contestant& who : contestants.all()) {
    const auto curve = curve_of(cell.blocks, who);
    if (curve.size() < 2) continue;
    for (const Offered& point : curve) {
      table.row({who.name, with_commas(point.offered), point.achieved ? with_commas(*point.achieved) : "-",
                 point.saturated ? "SATURATED" : significant(point.p50),
                 point.saturated ? "SATURATED" : significant(point.p99)});
    }
  }
  return table.empty() ? "" : table.text(title_of(document, cell) + ": latency against the offered rate");
}

std::string exact(const Json& entry, const char* key) {
  const auto value = find_number(entry, key);
  return value ? fmt::format("{:.6g}", *value) : "-";
}

// Every number of "summary" and "compare" as it stands there.
std::string all_numbers(const Json& document) {
  HtmlTable figures(
      {"path", "wait", "workload", "metric", "size", "pairs", "runs", "median", "mean", "low", "high"}, 4);
  for (const Json& entry : get_part(document, "summary")) {
    figures.row({get_text(entry, "path"), get_text(entry, "wait"), get_text(entry, "workload"),
                 get_text(entry, "metric"), exact(entry, "size"), exact(entry, "pairs"), exact(entry, "n"),
                 exact(entry, "median"), exact(entry, "mean"), exact(entry, "ci_low"),
                 exact(entry, "ci_high")});
  }
  HtmlTable ratios(
      {"path", "against", "workload", "metric", "verdict", "size", "pairs", "ratio", "low", "high"}, 5);
  for (const Json& entry : get_part(document, "compare")) {
    ratios.row({get_text(entry, "path") + " " + get_text(entry, "wait"), baseline_of(entry),
                get_text(entry, "workload"), get_text(entry, "metric"), get_text(entry, "verdict"),
                exact(entry, "size"), exact(entry, "pairs"), exact(entry, "ratio"), exact(entry, "ci_low"),
                exact(entry, "ci_high")});
  }
  std::string out;
  if (!figures.empty()) out += folded("Every figure, with its interval", figures.text("summary"));
  if (!ratios.empty()) out += folded("Every ratio, with its interval", ratios.text("compare"));
  return out;
}

std::string tables(const Json& document) {
  const auto cells = cells_of(document);
  const Contestants contestants(document);
  std::string shown, hidden;
  std::size_t count = 0;
  for (const CellView& cell : cells) {
    (count++ < kShownTables ? shown : hidden) +=
        cell_table(document, cell) + curve_table(document, contestants, cell);
  }
  if (!hidden.empty()) hidden = folded(fmt::format("{} more", count - kShownTables), hidden);
  return shown + hidden + all_numbers(document);
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return joined(value, ", ");
  return to_text(value);
}

std::string list_of(const Json& object) {
  std::string out;
  for (const auto& [key, value] : object.items()) {
    const std::string text = value_text(value);
    if (!text.empty()) out += "<div><dt>" + escaped(key) + "</dt><dd>" + escaped(text) + "</dd></div>\n";
  }
  return out.empty() ? "" : "<dl>\n" + out + "</dl>\n";
}

std::string environment(const Json& document) {
  std::string out;
  constexpr std::array kParts = {std::pair{"machine", "Machine"}, std::pair{"tool", "Program"},
                                 std::pair{"config", "Options"}};
  for (const auto& [key, title] : kParts) {
    const std::string list = list_of(get_part(document, key));
    if (!list.empty()) out += element("h3", title) + list;
  }
  Json seen = Json::object();
  for (const Json& block : get_part(document, "blocks")) {
    const std::string path = get_text(block, "path"), mode = get_text(block, "mode");
    if (!path.empty() && !mode.empty()) seen[path] = mode;
  }
  if (const std::string list = list_of(seen); !list.empty())
    out += element("h3", "How each path worked") + list;
  return out;
}

// As a link, so that it can be saved without a script.
std::string saved_json(const Json& document) {
  std::string text = to_lines(document);
  std::string what = "the measurement as JSON";
  if (text.size() > kMostEmbedded) {
    Json smaller = document;
    if (smaller.contains("blocks") && smaller["blocks"].is_array()) {
      for (Json& block : smaller["blocks"]) {
        if (block.is_object()) block["histogram"] = nullptr;
      }
    }
    text = to_lines(smaller);
    what += ", without the histograms of latency, which would make this page too large";
  }
  if (text.size() > kMostEmbedded) return "";
  return "<p><a download=\"compare.json\" href=\"data:application/json;base64," + base64(text) +
         "\">compare.json</a>: " + what +
         ". <code>netchannel report</code> renders it again in any format.</p>\n";
}

std::string contents(const std::string& page) {
  constexpr std::array kNames = {std::pair{"summary", "Summary"},        std::pair{"ratios", "Ratios"},
                                 std::pair{"sizes", "By size"},          std::pair{"latency", "Latency"},
                                 std::pair{"rates", "By rate"},          std::pair{"timeline", "Over time"},
                                 std::pair{"runs", "Every run"},         std::pair{"figures", "Figures"},
                                 std::pair{"environment", "Environment"}};
  std::string out;
  for (const auto& [id, name] : kNames) {
    if (page.find(fmt::format("<section id=\"{}\">", id)) != std::string::npos)
      out += fmt::format("<a href=\"#{}\">{}</a>\n", id, name);
  }
  return "<nav>\n" + out + "</nav>\n";
}

std::string heading(const Json& document) {
  const Json& machine = get_part(document, "machine");
  std::string where = get_text(machine, "cpu");
  if (const std::uint64_t cpus = get_count(machine, "cpus"); cpus > 0)
    where += fmt::format(", {}", counted(cpus, "CPU"));
  if (const std::string kernel = get_text(machine, "kernel"); !kernel.empty()) where += ", " + kernel;
  const std::string virtualised = get_text(machine, "virtualised");
  if (!virtualised.empty() && virtualised != "no") where += ", a virtual machine";
  return "<header>\n<h1>netchannel compare</h1>\n" + element("p", escaped(where)) + "</header>\n";
}

}  // namespace

std::string render_html(const Json& document) {
  const std::vector<Chart> charts = charts_of(document);
  const auto pictures = [&](std::string_view id, std::string_view title, Section which) {
    return section(id, title, figures(charts, which));
  };
  std::string page = section("summary", "Summary", summary(document));
  page += pictures("ratios", "Ratios, with intervals", Section::ratios);
  page += pictures("sizes", "Rate and processor time by size", Section::sizes);
  page += pictures("latency", "Latency", Section::latency);
  page += pictures("rates", "By the offered rate", Section::rates);
  page += pictures("timeline", "Over time", Section::timeline);
  page += pictures("runs", "Every run as a point", Section::runs);
  page += section("figures", "Figures", tables(document));
  page += section("environment", "Environment", environment(document) + saved_json(document));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
      "charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>netchannel compare</title>\n"
      "<link rel=\"icon\" "
      "href=\"data:,\"/>\n<style>{}{}</style>\n</head>\n<body>\n{}{}<main>\n{}</main>\n</body>\n</html>\n",
      html_style(), style_sheet(), heading(document), contents(page), page);
}

}  // namespace netchannel::report
