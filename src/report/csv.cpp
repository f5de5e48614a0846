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

// Every number of the block, the inner objects' under their own name first: "cpu_s.own".
void numbers(const Json& object, const std::string& prefix, const auto& each) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_number()) each(prefix + key, value);
    if (value.is_object() && prefix.empty() && key != "histogram") numbers(value, key + ".", each);
  }
}

constexpr std::array kKeys = {"order", "round", "workload", "path",  "mode",
                              "wait",  "size",  "pairs",    "batch", "flows"};

}  // namespace

std::string render_csv(const Json& document) {
  std::string out;
  for (const char* key : kKeys) out += std::string(key) + ",";
  out += "flags,metric,value\r\n";
  for (const Json& block : get_part(document, "blocks")) {
    std::string start;
    for (const char* key : kKeys) {
      const Json& value = get_part(block, key);
      start += (value.is_string()   ? field(value.get<std::string>())
                : value.is_number() ? to_text(value)
                                    : "") +
               ",";
    }
    start += field(joined(get_part(block, "flags"), "; ")) + ",";
    numbers(block, "", [&](const std::string& name, const Json& value) {
      for (const char* key : kKeys) {
        if (name == key) return;
      }
      out += start + name + "," + to_text(value) + "\r\n";
    });
  }
  return out;
}

}  // namespace netchannel::report
