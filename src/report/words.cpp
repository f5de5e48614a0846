// What a document says, in sentences, for those who read no further. Each sentence stands on entries of
// "compare" and says no more than they do: where the interval holds 1, that no difference was shown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

// The comparisons of one contestant with one baseline over all cells of a workload.
struct Case {
  const CellView* cell;
  const Json* entry;
};
struct Contest {
  std::string subject, baseline;
  std::vector<Case> cases;
};

std::vector<Contest> contests_of(const std::vector<CellView>& cells, const std::string& workload) {
  std::vector<Contest> out;
  for (const CellView& cell : cells) {
    if (cell.workload != workload) continue;
    for (const Json* entry : cell.comparisons) {
      if (get_text(*entry, "metric") != main_metric(workload) || !find_number(*entry, "ratio")) continue;
      const std::string subject = get_text(*entry, "path") + " " + get_text(*entry, "wait");
      const std::string baseline = baseline_of(*entry);
      auto at = std::find_if(out.begin(), out.end(), [&](const Contest& known) {
        return known.subject == subject && known.baseline == baseline;
      });
      if (at == out.end()) at = out.insert(out.end(), Contest{subject, baseline, {}});
      at->cases.push_back({&cell, entry});
    }
  }
  return out;
}

// The bare device is a limit to come near to, not a rival.
bool is_limit(const std::string& baseline) { return baseline.starts_with("raw"); }

std::string interval_words(const Json& entry, std::uint64_t confidence) {
  if (!find_number(entry, "ci_low")) return "one run, so no interval";
  const std::string interval = interval_of(entry, "{} to {}");
  return interval == "too wide" ? "its interval is too wide to say anything"
                                : fmt::format("{} % interval {}", confidence, interval);
}

// "0.78 times the processor time for each", or nothing.
std::string price_words(const CellView& cell, const Json& entry) {
  const Json* cost = same_pair(cell, entry, "service_demand_own_us");
  const auto ratio = cost != nullptr ? find_number(*cost, "ratio") : std::nullopt;
  if (!ratio) return "";
  return fmt::format("{} times the processor time for each{}", ratio_number(*ratio),
                     unit_of(cell) == "KB" ? " KB" : "");
}

std::string sentence_of_one(const Contest& contest, std::uint64_t confidence) {
  const auto& [cell, entry] = contest.cases.front();
  const std::string ratio = ratio_number(get_number(*entry, "ratio"));
  const std::string what = rate_unit_of(*cell), interval = interval_words(*entry, confidence);
  const std::string price = price_words(*cell, *entry);
  if (is_limit(contest.baseline))
    return fmt::format("reaches {} times the {} a second of {}, the bare device ({}).", ratio, what,
                       contest.baseline, interval);
  if (get_text(*entry, "verdict") == "no difference shown") {
    std::string out = fmt::format("no difference from {} shown in {} a second: {} times ({})",
                                  contest.baseline, what, ratio, interval);
    if (!price.empty()) out += " and " + price;
    const auto smallest = find_number(*entry, "smallest_difference");
    if (smallest && *smallest < 10)
      out += fmt::format("; a difference of {:.2g} % would have shown", *smallest * 100);
    return out + ".";
  }
  return fmt::format("{} times the {} a second of {} ({}){}{}.", ratio, what, contest.baseline, interval,
                     price.empty() ? "" : ", with ", price);
}

std::string sentence_of_many(const Contest& contest, const Json& document) {
  const auto less = [](const Case& a, const Case& b) {
    return get_number(*a.entry, "ratio") < get_number(*b.entry, "ratio");
  };
  const auto [least, most] = std::minmax_element(contest.cases.begin(), contest.cases.end(), less);
  const std::string range = fmt::format(
      "from {} times the {} a second ({}) to {} times ({})", ratio_number(get_number(*least->entry, "ratio")),
      rate_unit_of(*least->cell), shape_of(document, *least->cell),
      ratio_number(get_number(*most->entry, "ratio")), shape_of(document, *most->cell));
  if (is_limit(contest.baseline)) return "against " + contest.baseline + ", the bare device: " + range + ".";
  std::string verdicts;
  for (const std::string_view verdict : {"faster", "slower", "no difference shown"}) {
    const auto times = std::count_if(contest.cases.begin(), contest.cases.end(), [&](const Case& one) {
      return get_text(*one.entry, "verdict") == verdict;
    });
    if (times > 0) verdicts += fmt::format("{}{} in {}", verdicts.empty() ? "" : ", ", verdict, times);
  }
  return fmt::format("against {}: {} of {} cases; {}.", contest.baseline, verdicts, contest.cases.size(),
                     range);
}

std::string verdict_of(const Contest& contest) {
  if (is_limit(contest.baseline)) return "";
  const std::string first = get_text(*contest.cases.front().entry, "verdict");
  const bool all = std::all_of(contest.cases.begin(), contest.cases.end(),
                               [&](const Case& one) { return get_text(*one.entry, "verdict") == first; });
  return all ? first : "";
}

// Of a run without anything to compare it with.
Finding figure_of(const CellView& cell, const Row& row) {
  const std::string metric(main_metric(cell.workload));
  const auto rate = row.mean(metric);
  std::string text =
      fmt::format("{} {} a second", rate ? with_commas(metric == "received_bps" ? *rate / 8 : *rate) : "-",
                  rate_unit_of(cell));
  if (const auto spread = row.spread_percent(metric)) text += fmt::format(" (\u00b1{:.2g} %)", *spread);
  if (const auto p50 = row.median_of_all("latency_p50_us"); p50 && has_latency(cell))
    text += fmt::format(", median latency {} \u00b5s", significant(p50));
  if (const auto demand = row.mean("service_demand_own_us"))
    text += fmt::format(", {} \u00b5s of processor time a {}", significant(demand), unit_of(cell));
  return {cell.workload, row.path + " " + row.wait, text + ".", ""};
}

}  // namespace

std::vector<Finding> findings_of(const Json& document) {
  const auto cells = cells_of(document);
  const std::uint64_t confidence = get_count(get_part(document, "config"), "confidence", 95);
  std::vector<std::string> workloads;
  for (const CellView& cell : cells) {
    if (std::find(workloads.begin(), workloads.end(), cell.workload) == workloads.end())
      workloads.push_back(cell.workload);
  }
  std::vector<Finding> out;
  for (const std::string& workload : workloads) {
    const auto contests = contests_of(cells, workload);
    for (const Contest& contest : contests) {
      out.push_back({workload, contest.subject,
                     contest.cases.size() == 1 ? sentence_of_one(contest, confidence)
                                               : sentence_of_many(contest, document),
                     verdict_of(contest)});
    }
    if (!contests.empty()) continue;
    for (const CellView& cell : cells) {
      if (cell.workload != workload) continue;
      for (const Row& row : cell.rows) out.push_back(figure_of(cell, row));
    }
  }
  return out;
}

std::vector<std::string> remarks_of(const Json& document) {
  const Json& config = get_part(document, "config");
  const Json& blocks = get_part(document, "blocks");
  std::vector<std::string> out;
  const std::uint64_t runs = get_count(config, "runs");
  if (runs > 0) {
    const std::string seconds = fmt::format("{:g} s", get_number(config, "duration_s"));
    std::string text =
        runs == 1 ? "One run of " + seconds + " each" : fmt::format("{} runs of {} each", runs, seconds);
    if (runs > 1 && !get_part(document, "compare").empty()) text += ", interleaved";
    if (runs > 1) text += fmt::format("; intervals of {} % confidence", get_count(config, "confidence", 95));
    out.push_back(text + ".");
  }
  const std::string status = get_text(document, "status");
  if (status == "interrupted") out.emplace_back("It was interrupted: these are the runs until then.");
  if (status == "failed") out.emplace_back("It failed before its end.");
  if (blocks.empty()) out.emplace_back("Nothing was measured.");
  const auto some = [&](std::string_view flag) {
    return std::count_if(blocks.begin(), blocks.end(),
                         [&](const Json& block) { return has_flag(block, flag); });
  };
  if (const auto wrong = some("wrong stream"); wrong > 0)
    out.push_back(
        fmt::format("In {} of {} runs what arrived was not what had been sent.", wrong, blocks.size()));
  if (const auto full = some("saturated"); full > 0)
    out.push_back(fmt::format("{} of {} runs did not keep up with the rate that was offered (SATURATED).",
                              full, blocks.size()));
  return out;
}

}  // namespace netchannel::report
