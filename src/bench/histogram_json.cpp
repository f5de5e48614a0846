#include "bench/histogram_json.hpp"

#include "bench/histogram.hpp"

namespace netchannel::bench {

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

}  // namespace netchannel::bench
