#include "bench/coordinator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/analysis.hpp"
#include "bench/cpu.hpp"
#include "bench/environment.hpp"
#include "bench/signals.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

// Two processes started, a lane opened and closed at both ends.
constexpr double kOverheadSeconds = 0.35;
constexpr double kRerunShare = 0.1;

double seconds_since(Instant start) {
  return static_cast<double>((device::monotonic_now() - start).count()) * 1e-9;
}

double steal_share(const std::vector<Json>& blocks) {
  double steal = 0, capacity = 0;
  for (const Json& block : blocks) {
    steal += get_number(get_part(block, "cpu_s"), "steal");
    capacity += get_number(block, "seconds") * online_cpus();
  }
  return capacity > 0 ? steal / capacity : 0;
}

bool contaminated(const Json& block) { return has_flag(block, "steal") || has_flag(block, "foreign cpu"); }

class Run {
 public:
  Run(const CompareOptions& options, const Plan& plan, const BlockRunner& runner,
      const OnProgress& on_progress)
      : options_(options), plan_(plan), runner_(runner), on_progress_(on_progress) {
    const auto blocks = static_cast<double>(plan.blocks.size());
    reruns_left_ = static_cast<std::size_t>(blocks * kRerunShare) + 1;
  }

  Json all() {
    start_ = device::monotonic_now();
    for (std::size_t i = 0; i < plan_.blocks.size() && !interrupted(); ++i) {
      const PlannedBlock& planned = plan_.blocks[i];
      if (is_left_out(planned)) continue;
      tell_progress(i);
      one(planned);
    }
    return result();
  }

 private:
  BlockOptions options_of(const PlannedBlock& planned) const {
    return block_options(options_, plan_.cells[planned.cell], plan_.contestants[planned.contestant]);
  }

  void tell_progress(std::size_t i) {
    Progress progress{.done = i, .total = plan_.blocks.size(), .next = options_of(plan_.blocks[i])};
    const auto left = static_cast<double>(progress.total - i);
    progress.seconds_left =
        i == 0 ? estimated_seconds(options_, plan_) : seconds_since(start_) / static_cast<double>(i) * left;
    on_progress_(progress);
  }

  void one(const PlannedBlock& planned) {
    auto block = measure(planned);
    if (!block) return;
    if (contaminated(*block) && reruns_left_ > 0 && !interrupted()) {
      --reruns_left_;
      (*block)["flags"].push_back("superseded");
      blocks_.push_back(std::move(*block));
      block = measure(planned);
      if (!block) return;
    }
    blocks_.push_back(std::move(*block));
  }

  std::optional<Json> measure(const PlannedBlock& planned) {
    auto measured = runner_(options_of(planned));
    if (measured) {
      succeeded_.insert(key_of(planned));
      (*measured)["order"] = order_++;
      (*measured)["round"] = planned.round;
      (*measured)["contestant"] = planned.contestant;
      return std::move(*measured);
    }
    if (interrupted()) return std::nullopt;
    const Contestant& who = plan_.contestants[planned.contestant];
    const std::string reason = describe(measured.error());
    if (succeeded_.contains(key_of(planned))) {
      warnings_.push_back(fmt::format("{} ({}) failed in round {}: {}", who.lane.name, to_string(who.wait),
                                      planned.round + 1, reason));
      return std::nullopt;
    }
    leave_out(planned, reason);
    return std::nullopt;
  }

  // A lane is listed twice in a null comparison, and with each way of waiting.
  using Key = std::pair<std::size_t, Workload>;
  Key key_of(const PlannedBlock& planned) const {
    return {planned.contestant, plan_.cells[planned.cell].workload};
  }
  struct LeftOut {
    std::string lane, reason;
    std::vector<Workload> workloads;
  };
  bool is_left_out(const PlannedBlock& planned) const {
    const auto& [contestant, workload] = key_of(planned);
    return !succeeded_.contains(key_of(planned)) &&
           std::any_of(left_out_.begin(), left_out_.end(), [&, workload = workload](const LeftOut& out) {
             return out.lane == plan_.contestants[planned.contestant].lane.name &&
                    std::count(out.workloads.begin(), out.workloads.end(), workload) != 0;
           });
  }
  // What hinders a lane hinders it however it waits, but perhaps not in another workload.
  void leave_out(const PlannedBlock& planned, const std::string& reason) {
    const std::string& lane = plan_.contestants[planned.contestant].lane.name;
    const Workload workload = plan_.cells[planned.cell].workload;
    for (LeftOut& known : left_out_) {
      if (known.lane != lane || known.reason != reason) continue;
      known.workloads.push_back(workload);
      return;
    }
    left_out_.push_back({lane, reason, {workload}});
  }
  std::string sentence_of(const LeftOut& out) const {
    if (out.workloads.size() == options_.workloads.size())
      return fmt::format("{} is left out: {}", out.lane, out.reason);
    std::vector<std::string_view> names;
    for (const Workload workload : out.workloads) names.push_back(to_string(workload));
    return fmt::format("{} is left out of {}: {}", out.lane, fmt::join(names, ", "), out.reason);
  }

  Json result() {
    const double level = options_.confidence / 100.0;
    Json out = document(to_json(options_), std::move(blocks_), options_.confidence);
    const std::vector<Json> blocks(out["blocks"].begin(), out["blocks"].end());
    out["compare"] = compare_json(plan_, blocks, level, options_.seed);
    if (out["blocks"].empty() && out["status"] == "complete") out["status"] = "failed";
    for (const LeftOut& left_out : left_out_) out["warnings"].push_back(sentence_of(left_out));
    for (const std::string& sentence : plan_.left_out) out["warnings"].push_back(sentence);
    for (std::string& warning : warnings_) out["warnings"].push_back(std::move(warning));
    return out;
  }

  const CompareOptions& options_;
  const Plan& plan_;
  const BlockRunner& runner_;
  const OnProgress& on_progress_;
  Instant start_;
  std::size_t reruns_left_ = 0;
  std::size_t order_ = 0;
  std::vector<Json> blocks_;
  std::vector<std::string> warnings_;
  std::set<Key> succeeded_;
  std::vector<LeftOut> left_out_;
};

}  // namespace

double estimated_seconds(const CompareOptions& options, const Plan& plan) {
  return static_cast<double>(plan.blocks.size()) * (options.seconds + options.warmup + kOverheadSeconds);
}

Json run_plan(const CompareOptions& options, const Plan& plan, const BlockRunner& runner,
              const OnProgress& on_progress) {
  return Run(options, plan, runner, on_progress).all();
}

Json document(Json config, std::vector<Json> blocks, int confidence) {
  Json machine = machine_json();
  machine["steal_share"] = number(steal_share(blocks));
  Json warnings = Json::array();
  const auto bad =
      std::count_if(blocks.begin(), blocks.end(), [](const Json& b) { return counts(b) && contaminated(b); });
  if (bad > 0) {
    warnings.push_back(fmt::format(
        "{} of {} blocks are contaminated: others used the CPUs meanwhile; stop them and run again", bad,
        blocks.size()));
  }
  Json summary = summary_json(blocks, confidence / 100.0);
  return {{"schema", "netchannel.compare/1"},
          {"status", interrupted() ? "interrupted" : "complete"},
          {"tool", tool_json()},
          {"machine", std::move(machine)},
          {"config", std::move(config)},
          {"blocks", std::move(blocks)},
          {"summary", std::move(summary)},
          {"compare", Json::array()},
          {"warnings", std::move(warnings)}};
}

bool has_wrong_stream(const Json& document) {
  const Json& blocks = get_part(document, "blocks");
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const Json& block) { return has_flag(block, "wrong stream"); });
}

std::vector<std::string> doubts(const Json& document, double width_percent) {
  std::vector<std::string> out;
  for (const Json& block : get_part(document, "blocks")) {
    if (!counts(block) || !contaminated(block)) continue;
    out.push_back(fmt::format("a block of {} {} is contaminated", get_text(block, "workload"),
                              get_text(block, "path")));
  }
  for (const Json& entry : get_part(document, "summary")) {
    if (get_text(entry, "metric") != "rate_per_s") continue;
    const double mean = get_number(entry, "mean");
    const Json& high = get_part(entry, "ci_high");
    if (high.is_number() && high.get<double>() - mean <= width_percent / 100 * mean) continue;
    out.push_back(fmt::format("{} {} ({}) is not known to within {} %", get_text(entry, "workload"),
                              get_text(entry, "path"), get_text(entry, "wait"), width_percent));
  }
  return out;
}

}  // namespace netchannel::bench
