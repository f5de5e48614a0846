#include "bench/json.hpp"

#include <cmath>

#include "bench/histogram.hpp"

namespace netchannel::bench {
namespace {

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

}  // namespace

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 8 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? rounded : value;
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

double get_number(const Json& object, const char* key, double fallback) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_number() ? found->get<double>() : fallback;
}

std::uint64_t get_count(const Json& object, const char* key, std::uint64_t fallback) {
  const Json* found = find(object, key);
  if (found == nullptr || !found->is_number_integer()) return fallback;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  const auto value = found->get<std::int64_t>();
  return value >= 0 ? static_cast<std::uint64_t>(value) : fallback;
}

std::string get_text(const Json& object, const char* key, std::string_view fallback) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string(fallback);
}

bool get_bool(const Json& object, const char* key, bool fallback) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : fallback;
}

const Json& get_part(const Json& object, const char* key) {
  static const Json kNothing;
  const Json* found = find(object, key);
  return found != nullptr ? *found : kNothing;
}

Json to_json(const Histogram& histogram) {
  Json buckets = Json::array();
  for (const auto& [value, times] : histogram.buckets()) buckets.push_back(Json::array({value, times}));
  const bool some = histogram.count() != 0;
  return {{"min_ns", some ? histogram.min() : 0},
          {"max_ns", some ? histogram.max() : 0},
          {"mean_ns", some ? number(histogram.mean()) : Json(0.0)},
          {"buckets_ns", std::move(buckets)}};
}

void from_json(const Json& json, Histogram& histogram) {
  histogram.clear();
  for (const Json& bucket : get_part(json, "buckets_ns")) {
    if (!bucket.is_array() || bucket.size() != 2 || !bucket[0].is_number_integer() ||
        !bucket[1].is_number_unsigned())
      continue;
    histogram.record(bucket[0].get<std::int64_t>(), bucket[1].get<std::uint64_t>());
  }
  if (histogram.count() == 0) return;
  histogram.restore(static_cast<std::int64_t>(get_count(json, "min_ns")),
                    static_cast<std::int64_t>(get_count(json, "max_ns")), get_number(json, "mean_ns"));
}

Json latency_us(const Histogram& histogram) {
  const auto us = [](double ns) { return number(ns / 1000); };
  const auto percentile = [&](double quantile) {
    const auto value = histogram.percentile(quantile);
    return value ? us(*value) : Json(nullptr);
  };
  const bool some = histogram.count() != 0;
  return {{"n", histogram.count()},
          {"min", some ? us(static_cast<double>(histogram.min())) : Json(nullptr)},
          {"mean", some ? us(histogram.mean()) : Json(nullptr)},
          {"p50", percentile(0.5)},
          {"p90", percentile(0.9)},
          {"p99", percentile(0.99)},
          {"p99_9", percentile(0.999)},
          {"p99_99", percentile(0.9999)},
          {"max", some ? us(static_cast<double>(histogram.max())) : Json(nullptr)}};
}

Result<Json> parse_json(std::string_view text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return fail(ErrorCode::invalid_argument, "this is not JSON; look at where it came from");
  return parsed;
}

}  // namespace netchannel::bench
