// Who was measured in a document and what its workloads count, without a list of paths or workloads: an
// unknown one is shown as what its blocks say it is.
#include <algorithm>
#include <cmath>
#include <map>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

std::size_t index_in(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

bool is_stream(std::string_view workload) { return workload.ends_with("stream"); }

bool saturated(const Json& object) { return get_bool(object, "saturated") || has_flag(object, "saturated"); }

std::optional<Offered> offered_from(const Json& object) {
  const auto offered = find_number(object, "offered_per_s");
  if (!offered || !std::isfinite(*offered) || *offered <= 0) return std::nullopt;
  Offered out{.offered = *offered, .achieved{}, .p50{}, .p99{}, .saturated = saturated(object)};
  out.achieved = find_number(object, "achieved_per_s");
  if (!out.achieved) out.achieved = find_number(object, "rate_per_s");
  const Json& latency = get_part(object, "latency_us");
  if (out.saturated) return out;
  out.p50 = find_number(latency, "p50");
  out.p99 = find_number(latency, "p99");
  return out;
}

}  // namespace

Contestants::Contestants(const Json& document) {
  for (const char* list : {"summary", "blocks"}) {
    for (const Json& entry : get_part(document, list)) {
      if (!entry.is_object() || find(entry) != nullptr) continue;
      Contestant one{.number = get_count(entry, "contestant"),
                     .path = get_text(entry, "path"),
                     .wait = get_text(entry, "wait"),
                     .name{}};
      all_.push_back(std::move(one));
    }
  }
  std::stable_sort(all_.begin(), all_.end(),
                   [](const Contestant& a, const Contestant& b) { return a.number < b.number; });
  std::vector<std::string> paths, waits;
  std::map<std::string, int> times;
  for (Contestant& one : all_) {
    one.path_index = index_in(paths, one.path);
    one.wait_index = index_in(waits, one.wait);
    one.name = one.path + " " + one.wait;
    const int before = times[one.name]++;
    if (before > 0) one.name += " (" + std::to_string(before + 1) + ")";
  }
}

const Contestant* Contestants::find(const Json& entry) const {
  const bool numbered = find_number(entry, "contestant").has_value();
  const std::uint64_t number = get_count(entry, "contestant");
  for (const Contestant& one : all_) {
    if (numbered && one.number != number) continue;
    if (one.path == get_text(entry, "path") && one.wait == get_text(entry, "wait")) return &one;
  }
  return nullptr;
}

bool is_of(const Json& entry, const Contestant& who) {
  return get_count(entry, "contestant") == who.number && get_text(entry, "path") == who.path &&
         get_text(entry, "wait") == who.wait;
}

bool has_flag(const Json& block, std::string_view flag) {
  const Json& flags = get_part(block, "flags");
  return std::any_of(flags.begin(), flags.end(),
                     [&](const Json& one) { return one.is_string() && one == flag; });
}

bool counts(const Json& block) { return !has_flag(block, "superseded") && !has_flag(block, "interrupted"); }

std::string unit_of(const CellView& cell) {
  for (const Json* block : cell.blocks) {
    if (std::string unit = get_text(get_part(*block, "service_demand_us"), "per"); !unit.empty()) return unit;
  }
  if (cell.workload == "tcp_stream") return "KB";
  return is_request(cell.workload) ? "transaction" : "message";
}

std::string rate_unit_of(const CellView& cell) {
  if (main_metric(cell.workload) == "received_bps") return "bytes";
  if (cell.workload == "tcp_crr") return "connections";
  const std::string unit = unit_of(cell);
  return unit == "KB" ? "messages" : unit + "s";
}

bool has_latency(const CellView& cell) {
  const auto paced = [](const Json* block) { return find_number(*block, "offered_per_s").has_value(); };
  if (is_stream(cell.workload) && std::none_of(cell.blocks.begin(), cell.blocks.end(), paced)) return false;
  return std::any_of(cell.rows.begin(), cell.rows.end(),
                     [](const Row& row) { return row.metric("latency_p50_us") != nullptr; });
}

bool has_loss(const CellView& cell) {
  return !is_request(cell.workload) && std::any_of(cell.rows.begin(), cell.rows.end(), [](const Row& row) {
    return row.mean("loss_share").has_value();
  });
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<Offered> offered_of(const Json& block) {
  std::vector<Offered> out;
  for (const Json& point : get_part(block, "curve")) {
    if (auto one = offered_from(point)) out.push_back(*one);
  }
  if (!out.empty()) return out;
  if (auto one = offered_from(block)) out.push_back(*one);
  return out;
}

std::vector<Offered> curve_of(const std::vector<const Json*>& blocks, const Contestant& who) {
  struct Seen {
    std::vector<double> achieved, p50, p99;
    std::size_t times = 0;
    bool saturated = false;
  };
  std::map<double, Seen> rates;
  for (const Json* block : blocks) {
    if (!counts(*block) || !is_of(*block, who)) continue;
    for (const Offered& point : offered_of(*block)) {
      Seen& seen = rates[point.offered];
      ++seen.times;
      seen.saturated = seen.saturated || point.saturated;
      if (point.achieved) seen.achieved.push_back(*point.achieved);
      if (point.p50) seen.p50.push_back(*point.p50);
      if (point.p99) seen.p99.push_back(*point.p99);
    }
  }
  std::vector<Offered> out;
  for (const auto& [rate, seen] : rates) {
    // A percentile that some runs could not tell would be the median of other runs than the rest.
    const auto all = [times = seen.times](const std::vector<double>& values) {
      return values.size() == times ? std::optional(median_of(values)) : std::nullopt;
    };
    out.push_back({rate, all(seen.achieved), all(seen.p50), all(seen.p99), seen.saturated});
  }
  return out;
}

std::vector<Searched> searches_in(const CellView& cell, const Contestants& contestants) {
  std::vector<Searched> out;
  for (const Contestant& who : contestants.all()) {
    std::vector<double> lows, highs;
    for (const Json* block : cell.blocks) {
      if (!counts(*block) || !is_of(*block, who)) continue;
      const Json& ndr = get_part(*block, "ndr");
      if (const auto low = find_number(ndr, "low_per_s")) lows.push_back(*low);
      if (const auto high = find_number(ndr, "high_per_s")) highs.push_back(*high);
    }
    if (lows.empty()) continue;
    Searched found{who.name, median_of(lows), {}};
    if (highs.size() == lows.size()) found.high = median_of(highs);
    out.push_back(std::move(found));
  }
  return out;
}

std::vector<Table> series_tables(const CellView& cell, const Contestants& contestants) {
  std::vector<Table> out;
  Table curves({Align::left, Align::right, Align::right, Align::right, Align::right});
  curves.row({"path", "offered/s", "achieved/s", "p50 us", "p99 us"});
  bool any = false;
  for (const Contestant& who : contestants.all()) {
    const auto curve = curve_of(cell.blocks, who);
    if (curve.size() < 2) continue;
    any = true;
    for (const Offered& point : curve) {
      curves.row({who.name, with_commas(point.offered), point.achieved ? with_commas(*point.achieved) : "-",
                  point.saturated ? "SATURATED" : fixed(point.p50, 1),
                  point.saturated ? "" : fixed(point.p99, 1)});
    }
  }
  if (any) out.push_back(std::move(curves));
  const auto found = searches_in(cell, contestants);
  if (found.empty()) return out;
  Table searches({Align::left, Align::right, Align::right});
  searches.row({"highest rate without loss", "at least", "below"});
  for (const Searched& one : found)
    searches.row({one.name, with_commas(one.low), one.high ? with_commas(*one.high) : "-"});
  out.push_back(std::move(searches));
  return out;
}

}  // namespace netchannel::report
