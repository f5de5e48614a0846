// Documents for the tests: small ones by hand, and one with every kind of block.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/json.hpp"

namespace netchannel::report {

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Columns, not bytes.
inline std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    widest = std::max(widest, columns);
  }
  return widest;
}

struct Checked {
  int status = 0;
  std::string output;
};

// Runs tests/report/SCRIPT on the text, with the arguments before the text's file.
inline Checked check_with(const std::string& script, const std::string& arguments, const std::string& text) {
  static int count = 0;
  const std::string path = ::testing::TempDir() + "netchannel_report_" + std::to_string(::getpid()) + "_" +
                           std::to_string(count++);
  std::ofstream(path) << text;
  const std::string command =
      "python3 " NETCHANNEL_SOURCE_DIR "/tests/report/" + script + " " + arguments + " " + path + " 2>&1";
  Checked out;
  FILE* program = ::popen(command.c_str(), "r");
  char line[512];
  while (std::fgets(line, sizeof line, program) != nullptr) out.output += line;
  const int status = ::pclose(program);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  ::unlink(path.c_str());
  return out;
}

inline Json histogram_around(double us) {
  Json buckets = Json::array();
  for (int i = 0; i < 40; ++i) {
    const double ns = us * 1000 * std::pow(1.12, i - 8);
    buckets.push_back({static_cast<std::int64_t>(ns),
                       static_cast<std::uint64_t>(20000 * std::exp(-std::abs(i - 8) / 2.5)) + 1});
  }
  return {{"min_ns", us * 400}, {"max_ns", us * 60000}, {"mean_ns", us * 1000}, {"buckets_ns", buckets}};
}

// A block as compare writes it, with figures that follow from a rate.
inline Json block_of(const char* workload, const char* path, const char* wait, double rate) {
  const bool request = std::string_view(workload).ends_with("rr");
  const double us = 1e6 / rate;
  return {{"workload", workload},
          {"path", path},
          {"mode", "native copy"},
          {"wait", wait},
          {"size", 100},
          {"pairs", 1},
          {"batch", 32},
          {"flows", 1},
          {"burst", 0},
          {"order", 0},
          {"round", 0},
          {"contestant", 0},
          {"seconds", 1.0},
          {"sent", static_cast<std::uint64_t>(rate)},
          {"received", static_cast<std::uint64_t>(rate)},
          {"rate_per_s", rate},
          {"received_bps", rate * 800},
          {"loss_share", request ? Json(nullptr) : Json(0.0125)},
          {"offered_per_s", nullptr},
          {"achieved_per_s", nullptr},
          {"latency_us",
           {{"n", 10000},
            {"min", us / 2},
            {"p50", us},
            {"p90", us * 2},
            {"p99", us * 3},
            {"p99_9", us * 9},
            {"max", us * 40}}},
          {"cpu_s", {{"own", 1.5}, {"host", 1.6}, {"softirq", 0.2}, {"steal", 0.0}, {"foreign", 0.01}}},
          {"service_demand_us",
           {{"own", 1.5e6 / rate},
            {"host", 1.6e6 / rate},
            {"per", std::string_view(workload) == "tcp_stream" ? "KB"
                    : request                                  ? "transaction"
                                                               : "message"}}},
          {"syscalls_per_message", 2.0},
          {"flags", Json::array()},
          {"histogram", histogram_around(us)}};
}

inline Json empty_document() {
  return {{"schema", "netchannel.compare/1"},
          {"status", "complete"},
          {"tool", {{"version", "0.1.0"}, {"git", "abc"}, {"compiler", "gcc"}, {"flags", "-O2"}}},
          {"machine",
           {{"kernel", "Linux 6.18"},
            {"cpu", "AMD EPYC"},
            {"cpus", 2},
            {"governor", ""},
            {"virtualised", "yes"},
            {"steal_share", 0.001},
            {"irq_time_accounting", false}}},
          {"config", {{"runs", 3}, {"duration_s", 0.5}, {"confidence", 95}, {"flows_udp_rr", 1}}},
          {"blocks", Json::array()},
          {"summary", Json::array()},
          {"compare", Json::array()},
          {"warnings", Json::array()}};
}

// Entries of the summary for blocks of one contestant and shape, without statistics worth the name.
inline void summarise_into(Json& document, const Json& block, double mean_rate) {
  const auto add = [&](const char* metric, double mean) {
    Json entry = {{"workload", block["workload"]},
                  {"path", block["path"]},
                  {"wait", block["wait"]},
                  {"size", block["size"]},
                  {"pairs", block["pairs"]}};
    entry.update({{"contestant", block["contestant"]},
                  {"metric", metric},
                  {"n", 3},
                  {"median", mean},
                  {"mean", mean},
                  {"ci_low", mean * 0.93},
                  {"ci_high", mean * 1.07}});
    document["summary"].push_back(entry);
  };
  add("rate_per_s", mean_rate);
  add("received_bps", mean_rate * 8 * block["size"].get<double>());
  add("service_demand_own_us", 1.5e6 / mean_rate);
  add("service_demand_host_us", 1.6e6 / mean_rate);
  add("latency_p50_us", 1e6 / mean_rate);
  add("latency_p99_us", 3e6 / mean_rate);
  if (block["loss_share"].is_number()) add("loss_share", 0.0125);
  add("syscalls_per_message", 2.0);
}

inline void compare_into(Json& document, const Json& block, const char* metric, double ratio,
                         const char* verdict) {
  document["compare"].push_back({{"workload", block["workload"]},
                                 {"size", block["size"]},
                                 {"pairs", block["pairs"]},
                                 {"metric", metric},
                                 {"path", block["path"]},
                                 {"wait", block["wait"]},
                                 {"baseline", "kernel-batched"},
                                 {"baseline_wait", "spin"},
                                 {"ratio", ratio},
                                 {"ci_low", ratio * 0.9},
                                 {"ci_high", ratio * 1.1},
                                 {"verdict", verdict},
                                 {"n", 3},
                                 {"smallest_difference", 0.1}});
}

struct Measured {
  const char* path;
  const char* wait;
  double speed;
};
inline constexpr Measured kMeasured[] = {
    {"kernel", "block", 0.4}, {"kernel", "spin", 1.0}, {"kernel-batched", "spin", 1.1},
    {"xdp", "adaptive", 1.9}, {"xdp", "spin", 2.0},    {"wormhole", "spin", 3.0}};

// Three runs of each contestant at one size; `more` is put into every block.
inline void measure_into(Json& document, const char* workload, std::uint32_t size, double base,
                         const Json& more = Json::object()) {
  std::uint64_t contestant = 0;
  for (const auto& [path, wait, speed] : kMeasured) {
    Json block;
    for (std::uint32_t round = 0; round < 3; ++round) {
      block = block_of(workload, path, wait, base * speed * (1 + 0.04 * round));
      block["size"] = size;
      block["contestant"] = contestant;
      block["round"] = round;
      block["order"] = document["blocks"].size();
      block["received_bps"] = block["rate_per_s"].get<double>() * size * 8;
      if (round == 2 && contestant == 1) block["flags"].push_back("foreign cpu");
      block.update(more);
      document["blocks"].push_back(block);
    }
    summarise_into(document, block, base * speed * 1.04);
    if (contestant > 2) {
      compare_into(document, block, "rate_per_s", speed / 1.1, "faster");
      compare_into(document, block, "received_bps", speed / 1.1, "faster");
      compare_into(document, block, "service_demand_own_us", 1.1 / speed, "no difference shown");
      compare_into(document, block, "latency_p50_us", 1.1 / speed, "faster");
    }
    ++contestant;
  }
}

// Every kind of block and of workload that reports know, and one that they do not.
inline Json everything() {
  Json document = empty_document();
  measure_into(document, "udp_rr", 1, 60000);
  for (const std::uint32_t size : {1u, 64u, 128u, 1024u, 4096u, 65536u})
    measure_into(document, "tcp_stream", size, 2e6 / (1 + size / 800.0));
  measure_into(document, "teleport", 100, 400000);
  Json timeline = {{"interval_s", 0.1},
                   {"rate_per_s", Json::array()},
                   {"cpu_own_share", Json::array()},
                   {"cpu_host_share", Json::array()}};
  for (int i = 0; i < 130; ++i) {
    timeline["rate_per_s"].push_back(90000 + 4000 * std::sin(i / 9.0));
    timeline["cpu_own_share"].push_back(0.5 + 0.1 * std::cos(i / 7.0));
    timeline["cpu_host_share"].push_back(i == 50 ? Json(nullptr) : Json(0.6 + 0.1 * std::cos(i / 7.0)));
  }
  measure_into(document, "timeline", 1448, 90000, {{"timeline", timeline}});
  Json curve = Json::array();
  for (const int step : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
    Json latency = block_of("x", "x", "spin", 1e6 / (10.0 + 60.0 / (11 - step)))["latency_us"];
    curve.push_back({{"offered_per_s", step * 20000.0},
                     {"achieved_per_s", step == 10 ? 171000.0 : step * 20000.0},
                     {"latency_us", latency},
                     {"saturated", step == 10}});
  }
  measure_into(document, "curve", 100, 200000, {{"curve", curve}});
  measure_into(document, "ndr", 100, 300000, {{"ndr", {{"low_per_s", 310000.0}, {"high_per_s", 322000.0}}}});
  document["warnings"].push_back(
      "3 of 100 blocks are contaminated: others used the CPUs meanwhile; stop them & run again");
  return document;
}

}  // namespace netchannel::report
