// Tidy: one row for each block and metric, so that any program can group it as it likes. RFC 4180.
#include <array>
#include <string>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

constexpr int kDeepest = 4;

// Every number of the block, the inner ones under the name of what holds them: "cpu_s.own",
// "timeline.rate_per_s[3]". Histograms are for the JSON alone.
void numbers(const Json& value, const std::string& name, int depth, const auto& each) {
  if (value.is_number()) each(name, value);
  if (depth == kDeepest) return;
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      std::string full = name.empty() ? "" : name + ".";
      full += key;
      if (key != "histogram") numbers(inner, full, depth + 1, each);
    }
  }
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      numbers(value[i], name + "[" + std::to_string(i) + "]", depth + 1, each);
  }
}

constexpr std::array kKeys = {"order", "round", "workload", "path",  "mode",
                              "wait",  "size",  "pairs",    "batch", "flows"};

}  // namespace

std::string csv_field(const Json& value) {
  return value.is_string() ? field(value.get<std::string>()) : value.is_number() ? to_text(value) : "";
}

std::string render_csv(const Json& document) {
  std::string out;
  for (const char* key : kKeys) out += std::string(key) + ",";
  out += "flags,metric,value\r\n";
  for (const Json& block : get_part(document, "blocks")) {
    std::string start;
    for (const char* key : kKeys) start += csv_field(get_part(block, key)) + ",";
    start += field(joined(get_part(block, "flags"), "; ")) + ",";
    numbers(block, "", 0, [&](const std::string& name, const Json& value) {
      for (const char* key : kKeys) {
        if (name == key) return;
      }
      out += start + field(name) + "," + to_text(value) + "\r\n";
    });
  }
  return out;
}

}  // namespace netchannel::report
