// JSON as this room writes and reads it. Written: numbers are finite or null, rounded to nine significant
// digits. Read (from another process or from the network): no getter throws; what is missing or of another
// kind is the fallback.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "netchannel/error.hpp"

namespace netchannel::bench {

using Json = nlohmann::ordered_json;

Json number(double value);
Json number(const std::optional<double>& value);

double get_number(const Json& object, const char* key, double fallback = 0);
std::uint64_t get_count(const Json& object, const char* key, std::uint64_t fallback = 0);
std::string get_text(const Json& object, const char* key, std::string_view fallback = "");
bool get_bool(const Json& object, const char* key, bool fallback = false);
// A null value if it is missing.
const Json& get_part(const Json& object, const char* key);

// A histogram as it crosses to another process, and its summary as the report shows it: "latency_us", null
// percentiles where there are too few samples.
class Histogram;
Json to_json(const Histogram& histogram);
void from_json(const Json& json, Histogram& histogram);
Json latency_us(const Histogram& histogram);

// Errors: invalid_argument.
Result<Json> parse_json(std::string_view text);

}  // namespace netchannel::bench
