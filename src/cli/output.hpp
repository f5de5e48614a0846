// Where a measured document goes: to the terminal as a table, to --json FILE, to every format under --out
// DIR.
#pragma once

#include <string>

#include "base/json.hpp"

namespace netchannel::cli {

struct OutputOptions {
  std::string json;       // file; "-": standard output, and no table
  std::string directory;  // empty: none
  bool quiet = false;     // no table
};

// Every format into a folder that is made if it has to be: compare.json, .txt, .md, .csv, .netperf.txt,
// .html, and plots/ with tables and scripts for gnuplot and, where gnuplot is installed, its pictures. False
// as below.
bool write_report(std::string_view command, const Json& document, const std::string& directory);
std::string report_line(const std::string& directory);

// False: something could not be written; standard error has been told, and everything else has been written.
bool put_out(std::string_view command, const Json& document, const OutputOptions& options);

}  // namespace netchannel::cli
