#include "report/report.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace netchannel::report {
namespace {

// A run of one workload over two lanes, as compare writes it.
Json sample() {
  return Json::parse(R"({
    "schema": "netchannel.compare/1", "status": "complete",
    "tool": {"version": "0.1.0", "git": "abc", "compiler": "g++", "flags": ""},
    "machine": {"kernel": "6.1", "cpu": "Some CPU", "cpus": 2},
    "config": {"confidence": 95},
    "blocks": [
      {"workload": "udp_rr", "path": "kernel", "mode": "one call a message", "wait": "spin", "size": 1, "pairs": 1,
       "batch": 1, "order": 0, "rate_per_s": 100000.0, "loss_share": 0.0, "syscalls_per_message": 2.0,
       "latency_us": {"n": 10, "p50": 9.5, "p99_9": null}, "service_demand_us": {"own": 9.9, "per": "transaction"}},
      {"workload": "udp_rr", "path": "xdp", "mode": "native copy", "wait": "adaptive", "size": 1, "pairs": 1,
       "batch": 1, "order": 1, "rate_per_s": 1234567.0, "loss_share": 0.25,
       "service_demand_us": {"own": 4.0, "per": "transaction"}}],
    "summary": [
      {"workload": "udp_rr", "path": "kernel", "wait": "spin", "size": 1, "pairs": 1, "metric": "rate_per_s", "n": 5,
       "median": 100000.0, "mean": 100000.0, "ci_low": 99000.0, "ci_high": 101000.0},
      {"workload": "udp_rr", "path": "xdp", "wait": "adaptive", "size": 1, "pairs": 1, "metric": "rate_per_s", "n": 5,
       "median": 1234567.0, "mean": 1234567.0, "ci_low": null, "ci_high": null},
      {"workload": "udp_rr", "path": "xdp", "wait": "adaptive", "size": 1, "pairs": 1, "metric": "latency_p50_us",
       "n": 5, "median": 3.5, "mean": 3.5, "ci_low": 3.4, "ci_high": 3.6}],
    "compare": [
      {"workload": "udp_rr", "size": 1, "pairs": 1, "metric": "rate_per_s", "path": "xdp", "wait": "adaptive",
       "baseline": "kernel", "baseline_wait": "spin", "ratio": 12.35, "ci_low": 12.1, "ci_high": 12.6,
       "verdict": "faster"}],
    "warnings": ["the machine was busy with something else, so that this warning is long enough to be wrapped twice"]
  })");
}

std::size_t columns(const std::string& line) {
  std::size_t n = 0;
  for (const char c : line) n += (c & 0xc0) != 0x80;
  return n;
}

void expect_narrow(const std::string& text, std::size_t most) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), most) << line;
}

TEST(Render, TextShowsEachLaneAndRatioWithin80Columns) {
  const std::string text = render(sample(), Format::text);
  expect_narrow(text, 80);
  EXPECT_NE(text.find("udp_rr: 1 byte each way, 1 pair"), std::string::npos) << text;
  EXPECT_NE(text.find("1,234,567"), std::string::npos) << text;
  EXPECT_NE(text.find("100,000  1.0%"), std::string::npos) << text;
  EXPECT_NE(text.find("against kernel spin"), std::string::npos) << text;
  EXPECT_NE(text.find("12.3x [12.1, 12.6]"), std::string::npos) << text;
}

TEST(Render, TextIsColouredOnlyOnRequest) {
  EXPECT_EQ(render(sample(), Format::text).find('\x1b'), std::string::npos);
  EXPECT_NE(render(sample(), Format::text, {.colour = true}).find("\x1b[32mfaster"), std::string::npos);
}

TEST(Render, TextSaysThatARunIsNotComplete) {
  Json run = sample();
  run["status"] = "interrupted";
  EXPECT_NE(render(run, Format::text).find("interrupted"), std::string::npos);
}

TEST(Render, MarkdownFitsAMail) { expect_narrow(render(sample(), Format::markdown), 78); }

TEST(Render, CsvHasARowForEachFigureOfEachBlockAndNoneForNull) {
  const std::string csv = render(sample(), Format::csv);
  EXPECT_NE(csv.find("0,,udp_rr,kernel,one call a message,spin,1,1,1,,,rate_per_s,100000.0\r\n"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find("0,,udp_rr,kernel,one call a message,spin,1,1,1,,,latency_us.p50,9.5\r\n"),
            std::string::npos)
      << csv;
  EXPECT_EQ(csv.find("p99_9"), std::string::npos) << csv;
}

TEST(Render, CsvQuotesWhatNeedsIt) {
  Json run = sample();
  run["blocks"][0]["mode"] = "a \"mode\", odd";
  EXPECT_NE(render(run, Format::csv).find("\"a \"\"mode\"\", odd\""), std::string::npos);
}

TEST(Render, NetperfHasItsColumns) {
  const std::string text = render(sample(), Format::netperf);
  EXPECT_NE(text.find("Trans."), std::string::npos);
  EXPECT_NE(text.find("100000.00"), std::string::npos) << text;
}

TEST(Render, AFigureThatIsMissingIsADashNotAZero) {
  Json run = sample();
  run["summary"][0]["median"] = nullptr;
  const std::string text = render(run, Format::text);
  EXPECT_NE(text.find("  -"), std::string::npos) << text;
}

TEST(Render, JsonOfAnotherKindIsRenderedEmptyNotCrashed) {
  for (const char* odd :
       {"null", "[]", "3", "{\"blocks\": 7}", "{\"summary\": [1, null, {}]}", "{\"compare\": [[]]}"}) {
    for (const auto format : {Format::text, Format::markdown, Format::csv, Format::netperf}) {
      (void)render(Json::parse(odd), format);
    }
  }
}

TEST(Render, FormatNamesAreThoseOfTheCommandLine) {
  EXPECT_EQ(parse_format("text"), Format::text);
  EXPECT_EQ(parse_format("md"), Format::markdown);
  EXPECT_EQ(parse_format("csv"), Format::csv);
  EXPECT_EQ(parse_format("netperf"), Format::netperf);
  EXPECT_FALSE(parse_format("Text"));
}

}  // namespace
}  // namespace netchannel::report
