// A saved run (schema netchannel.compare/1) as the renderings read it: the same grouping and the same
// figures, whatever the format. Nothing here throws on JSON that is not as expected: what is missing is not a
// number, and is shown as "-".
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace netchannel::report {

using Json = nlohmann::ordered_json;

struct Figure {
  double median = 0;
  std::optional<double> low, high;  // the interval of the mean
  std::optional<double> mean;
  std::size_t n = 0;
};

// One path in one way of waiting, within a group.
struct Lane {
  std::string path, wait, mode;
  std::optional<Figure> rate, received_bps, p50, p99, demand_own;
  std::optional<double> loss_share, syscalls;  // medians over the lane's blocks
};

struct Ratio {
  std::string path, wait, baseline, baseline_wait, metric, verdict;
  double ratio = 0;
  std::optional<double> low, high;
};

// What can be compared with each other: one workload at one size and number of pairs.
struct Group {
  std::string workload;
  double size = 0, pairs = 1;
  std::string per;  // "transaction", "message"
  std::vector<Lane> lanes;
  std::vector<Ratio> ratios;
};

std::vector<Group> groups_of(const Json& run);
// "udp_rr, 1 byte, 1 pair"
std::string title_of(const Group& group);

std::string text_at(const Json& object, const char* key);
std::optional<double> number_at(const Json& object, const char* key);
const Json& part_at(const Json& object, const char* key);

}  // namespace netchannel::report
