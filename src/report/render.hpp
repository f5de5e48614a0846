// A saved run in the form that somebody wants to read: every format is made from the one JSON, now or later.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/run.hpp"

namespace netchannel::report {

enum class Format { text, markdown, csv, netperf };

// As `--format` takes it: text, md, csv, netperf.
std::optional<Format> parse_format(std::string_view name);
inline constexpr std::string_view kFormatNames = "text, md, csv, netperf";

// Text: at most 80 columns. Markdown: at most 78, for lists and bug reports. CSV (RFC 4180): one row for each
// figure of each block. netperf: the columns that readers of kernel lists know. `colour`: verdicts in colour
// (text only).
std::string render(const Json& run, Format format, bool colour = false);

}  // namespace netchannel::report
