// Every form of a measured document is rendered from its JSON, now or from a file years later; nothing else
// is kept. The document is untrusted as any file is: what is missing shows as "-", and check() says what is
// wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace netchannel::report {

enum class Format : std::uint8_t { text, markdown, csv, html, netperf };
std::optional<Format> parse_format(std::string_view name);  // "text", "md", "csv", "html", "netperf"
inline constexpr std::string_view kFormatNames = "text, md, csv, html, netperf";

struct Style {
  bool colour = false;
};

// text: for a terminal, 80 columns. md: for mail and bug reports, at most 78 columns, with the environment.
// csv: tidy, one row for each block and metric (RFC 4180). netperf: the columns that netperf's readers know.
// html: one page with every picture, which needs no network and no script.
std::string render(const Json& document, Format format, Style style = {});

struct File {
  std::string name;
  std::string text;
};
// For each picture of the page a table and a script for gnuplot 5, NAME.dat and NAME.gp; the script draws
// NAME.svg and NAME.png where it is run.
std::vector<File> plots(const Json& document);

// Entries of bench/against.hpp: the same paths then and now. text, md or csv; another format is text.
std::string render_against(const Json& entries, Format format, Style style = {});

// Why this is not a document of "netchannel.compare/1", in one sentence; nothing if it is one.
std::optional<std::string> check(const Json& document);

}  // namespace netchannel::report
