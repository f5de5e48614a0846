// JSON as this project writes and reads it. Written: numbers are finite or null, rounded to nine significant
// digits. Read (from a file, another process or the network, so never trusted): no getter throws; what is
// missing or of another kind is the fallback. Header only: rooms that use it link nlohmann_json themselves.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "netchannel/error.hpp"

namespace netchannel {

using Json = nlohmann::ordered_json;

namespace json_detail {
inline const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}
}  // namespace json_detail

inline Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 8 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? rounded : value;
}
inline Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

inline double get_number(const Json& object, const char* key, double fallback = 0) {
  const Json* found = json_detail::find(object, key);
  return found != nullptr && found->is_number() ? found->get<double>() : fallback;
}

inline std::optional<double> find_number(const Json& object, const char* key) {
  const Json* found = json_detail::find(object, key);
  return found != nullptr && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// Whole numbers from 0 on.
inline std::uint64_t get_count(const Json& object, const char* key, std::uint64_t fallback = 0) {
  const Json* found = json_detail::find(object, key);
  if (found == nullptr || !found->is_number_integer()) return fallback;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  const auto value = found->get<std::int64_t>();
  return value >= 0 ? static_cast<std::uint64_t>(value) : fallback;
}

inline std::string get_text(const Json& object, const char* key, std::string_view fallback = "") {
  const Json* found = json_detail::find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string(fallback);
}

inline bool get_bool(const Json& object, const char* key, bool fallback = false) {
  const Json* found = json_detail::find(object, key);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : fallback;
}

// A null value if it is missing.
inline const Json& get_part(const Json& object, const char* key) {
  static const Json kNothing;
  const Json* found = json_detail::find(object, key);
  return found != nullptr ? *found : kNothing;
}

// Errors: invalid_argument.
inline Result<Json> parse_json(std::string_view text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return fail(ErrorCode::invalid_argument, "this is not JSON; look at where it came from");
  return parsed;
}

// One line, or indented. Text that is not UTF-8 (from another program, say) is replaced, not thrown about.
inline std::string to_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// For a file: one line for each member, and for each element of a member that is a list.
inline std::string to_lines(const Json& object) {
  std::string out = "{";
  bool first = true;
  for (const auto& [key, value] : object.items()) {
    out += (first ? "\n" : ",\n") + to_text(Json(key)) + ": ";
    first = false;
    if (!value.is_array() || value.empty()) {
      out += to_text(value);
      continue;
    }
    out += "[";
    for (std::size_t i = 0; i < value.size(); ++i) out += (i == 0 ? "\n " : ",\n ") + to_text(value[i]);
    out += "]";
  }
  return out + "\n}\n";
}

}  // namespace netchannel
