#include "report/run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace netchannel::report {
namespace {

std::optional<double> median_at(const Json& blocks, const Lane& lane, const Group& group, const char* key) {
  std::vector<double> values;
  for (const Json& block : blocks) {
    const bool mine = text_at(block, "workload") == group.workload &&
                      number_at(block, "size") == group.size && number_at(block, "pairs") == group.pairs &&
                      text_at(block, "path") == lane.path && text_at(block, "wait") == lane.wait;
    if (const auto value = number_at(block, key); mine && value) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Group& group_for(std::vector<Group>& groups, const Json& entry) {
  const std::string workload = text_at(entry, "workload");
  const double size = number_at(entry, "size").value_or(0), pairs = number_at(entry, "pairs").value_or(1);
  for (Group& group : groups) {
    if (group.workload == workload && group.size == size && group.pairs == pairs) return group;
  }
  Group& made = groups.emplace_back();
  made.workload = workload;
  made.size = size;
  made.pairs = pairs;
  return made;
}

Lane& lane_for(Group& group, const std::string& path, const std::string& wait) {
  for (Lane& lane : group.lanes) {
    if (lane.path == path && lane.wait == wait) return lane;
  }
  Lane& made = group.lanes.emplace_back();
  made.path = path;
  made.wait = wait;
  return made;
}

void take_summary(Lane& lane, const Json& entry) {
  Figure figure;
  figure.median = number_at(entry, "median").value_or(0);
  figure.mean = number_at(entry, "mean");
  figure.low = number_at(entry, "ci_low");
  figure.high = number_at(entry, "ci_high");
  figure.n = static_cast<std::size_t>(number_at(entry, "n").value_or(0));
  const std::string metric = text_at(entry, "metric");
  if (!number_at(entry, "median")) return;
  if (metric == "rate_per_s") lane.rate = figure;
  if (metric == "received_bps") lane.received_bps = figure;
  if (metric == "latency_p50_us") lane.p50 = figure;
  if (metric == "latency_p99_us") lane.p99 = figure;
  if (metric == "service_demand_own_us") lane.demand_own = figure;
}

Ratio ratio_of(const Json& entry) {
  Ratio out;
  out.path = text_at(entry, "path");
  out.wait = text_at(entry, "wait");
  out.baseline = text_at(entry, "baseline");
  out.baseline_wait = text_at(entry, "baseline_wait");
  out.metric = text_at(entry, "metric");
  out.verdict = text_at(entry, "verdict");
  out.ratio = number_at(entry, "ratio").value_or(0);
  out.low = number_at(entry, "ci_low");
  out.high = number_at(entry, "ci_high");
  return out;
}

}  // namespace

std::string text_at(const Json& object, const char* key) {
  const Json& part = part_at(object, key);
  return part.is_string() ? part.get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& object, const char* key) {
  const Json& part = part_at(object, key);
  if (!part.is_number()) return std::nullopt;
  return part.get<double>();
}

const Json& part_at(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::vector<Group> groups_of(const Json& run) {
  std::vector<Group> groups;
  const Json& blocks = part_at(run, "blocks");
  for (const Json& block : blocks) {
    Group& group = group_for(groups, block);
    Lane& lane = lane_for(group, text_at(block, "path"), text_at(block, "wait"));
    if (lane.mode.empty()) lane.mode = text_at(block, "mode");
    if (group.per.empty()) group.per = text_at(part_at(block, "service_demand_us"), "per");
  }
  for (const Json& entry : part_at(run, "summary")) {
    take_summary(lane_for(group_for(groups, entry), text_at(entry, "path"), text_at(entry, "wait")), entry);
  }
  for (const Json& entry : part_at(run, "compare"))
    group_for(groups, entry).ratios.push_back(ratio_of(entry));
  for (Group& group : groups) {
    for (Lane& lane : group.lanes) {
      lane.loss_share = median_at(blocks, lane, group, "loss_share");
      lane.syscalls = median_at(blocks, lane, group, "syscalls_per_message");
    }
  }
  return groups;
}

std::string title_of(const Group& group) {
  return fmt::format("{}, {:.0f} byte{}, {:.0f} pair{}", group.workload, group.size,
                     group.size == 1 ? "" : "s", group.pairs, group.pairs == 1 ? "" : "s");
}

}  // namespace netchannel::report
