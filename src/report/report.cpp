#include "report/report.hpp"

#include <fmt/format.h>

#include <array>

#include "report/chart.hpp"
#include "report/view.hpp"

namespace netchannel::report {

std::optional<Format> parse_format(std::string_view name) {
  constexpr std::array kFormats = {
      std::pair{std::string_view("text"), Format::text}, std::pair{std::string_view("md"), Format::markdown},
      std::pair{std::string_view("csv"), Format::csv}, std::pair{std::string_view("html"), Format::html},
      std::pair{std::string_view("netperf"), Format::netperf}};
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string render(const Json& document, Format format, Style style) {
  switch (format) {
    case Format::text:
      return render_text(document, style.colour);
    case Format::markdown:
      return render_markdown(document);
    case Format::csv:
      return render_csv(document);
    case Format::html:
      return render_html(document);
    case Format::netperf:
      return render_netperf(document);
  }
  return "";
}

std::vector<File> plots(const Json& document) {
  std::vector<File> out;
  for (const Chart& chart : charts_of(document)) {
    for (File& file : gnuplot_of(chart)) out.push_back(std::move(file));
  }
  return out;
}

std::optional<std::string> check(const Json& document) {
  if (!document.is_object()) return "it is not a JSON object; give a file that `netchannel compare` wrote";
  const std::string schema = get_text(document, "schema");
  if (schema != "netchannel.compare/1") {
    return fmt::format("its schema is '{}', not 'netchannel.compare/1'; give a file that this version wrote",
                       schema);
  }
  for (const char* key : {"blocks", "summary", "compare", "warnings"}) {
    if (!get_part(document, key).is_array())
      return fmt::format("it has no list '{}'; the file is not whole", key);
  }
  for (const char* key : {"tool", "machine", "config"}) {
    if (!get_part(document, key).is_object())
      return fmt::format("it has no object '{}'; the file is not whole", key);
  }
  return std::nullopt;
}

}  // namespace netchannel::report
