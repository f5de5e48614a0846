#include "report/report.hpp"

#include <gtest/gtest.h>

#include "report/view.hpp"
#include "tests/report/sample.hpp"

namespace netchannel::report {
namespace {

Json entry(const char* metric, const char* path, const char* wait, int contestant, double mean) {
  return {
      {"workload", "udp_rr"},     {"path", path},          {"wait", wait}, {"size", 1},      {"pairs", 1},
      {"contestant", contestant}, {"metric", metric},      {"n", 5},       {"median", mean}, {"mean", mean},
      {"ci_low", mean * 0.99},    {"ci_high", mean * 1.01}};
}

Json comparison(const char* metric, double ratio, double low, double high, const char* verdict) {
  return {{"workload", "udp_rr"},
          {"size", 1},
          {"pairs", 1},
          {"metric", metric},
          {"path", "xdp"},
          {"wait", "spin"},
          {"baseline", "kernel"},
          {"baseline_wait", "spin"},
          {"ratio", ratio},
          {"ci_low", low},
          {"ci_high", high},
          {"verdict", verdict},
          {"smallest_difference", 0.05}};
}

Json sample() {
  Json block = {{"order", 0},
                {"round", 0},
                {"workload", "udp_rr"},
                {"path", "xdp"},
                {"mode", "native, copy"},
                {"wait", "spin"},
                {"size", 1},
                {"pairs", 1},
                {"batch", 32},
                {"flows", 1},
                {"rate_per_s", 150000.5},
                {"latency_us", {{"n", 10}, {"p99_9", nullptr}}},
                {"flags", {"steal", "say \"x\""}}};
  return {{"schema", "netchannel.compare/1"},
          {"status", "complete"},
          {"tool", {{"version", "0.1.0"}, {"git", "abc"}, {"compiler", "gcc"}, {"flags", "-O2"}}},
          {"machine",
           {{"kernel", "Linux 6.18"},
            {"cpu", "AMD EPYC"},
            {"cpus", 2},
            {"virtualised", "yes"},
            {"steal_share", 0.001},
            {"irq_time_accounting", false}}},
          {"config", {{"runs", 5}, {"duration_s", 0.5}, {"confidence", 95}, {"flows_udp_rr", 1}}},
          {"blocks", Json::array({block})},
          {"summary", Json::array({entry("rate_per_s", "xdp", "spin", 1, 150000),
                                   entry("latency_p50_us", "xdp", "spin", 1, 6.6),
                                   entry("rate_per_s", "kernel", "spin", 0, 75000),
                                   entry("service_demand_own_us", "kernel", "spin", 0, 26.5)})},
          {"compare", Json::array({comparison("rate_per_s", 2.0, 1.9, 2.1, "faster"),
                                   comparison("service_demand_own_us", 0.5, 0.4, 0.6, "faster")})},
          {"warnings",
           {"a warning that is long enough to need more than one line of eighty columns, surely and truly"}}};
}

TEST(TextReport, NamesFiguresRatiosAndVerdict) {
  const std::string text = render(sample(), Format::text);
  EXPECT_TRUE(holds(text, "udp_rr: 1 byte each way, 1 pair"));
  EXPECT_TRUE(holds(text, "150,000")) << text;
  EXPECT_TRUE(holds(text, "against kernel spin"));
  EXPECT_TRUE(holds(text, "2.00x [1.90, 2.10] faster")) << text;
  EXPECT_TRUE(holds(text, "0.50x"));
  EXPECT_TRUE(holds(text, "note: a warning"));
}

// A byte stream measured as fast in messages as in bytes, so that the wrong metric would show.
Json byte_stream() {
  Json document = sample();
  document["summary"] = {entry("rate_per_s", "xdp", "spin", 1, 2'000'000),
                         entry("received_bps", "xdp", "spin", 1, 2.048e9),
                         entry("service_demand_own_us", "xdp", "spin", 1, 5.5)};
  document["compare"] = {comparison("rate_per_s", 7.77, 7.7, 7.8, "faster"),
                         comparison("received_bps", 5.0, 4.9, 5.1, "faster")};
  for (const char* list : {"summary", "compare"}) {
    for (Json& one : document[list]) {
      one["workload"] = "tcp_stream";
      one["size"] = 128;
    }
  }
  return document;
}

TEST(TextReport, ComparesAByteStreamByItsBytes) {
  for (const Format format : {Format::text, Format::markdown}) {
    const std::string text = render(byte_stream(), format);
    EXPECT_TRUE(holds(text, "tcp_stream: writes of 128 bytes")) << text;
    EXPECT_TRUE(holds(text, "5.00")) << text;
    EXPECT_TRUE(holds(text, "2,048")) << text;
    EXPECT_FALSE(holds(text, "7.77")) << text;
  }
}

TEST(TextReport, ShowsRoundTripsOfEveryWorkloadThatAsks) {
  for (const char* workload : {"udp_rr", "tcp_rr", "tcp_crr"}) {
    Json document = sample();
    for (const char* list : {"summary", "compare"}) {
      for (Json& one : document[list]) one["workload"] = workload;
    }
    const std::string text = render(document, Format::text);
    EXPECT_TRUE(holds(text, std::string(workload) + ": 1 byte each way")) << text;
    EXPECT_TRUE(holds(text, "p50 us")) << text;
  }
}

TEST(TextReport, PutsContestantsInTheirOrder) {
  const std::string text = render(sample(), Format::text);
  EXPECT_LT(text.find("  kernel"), text.find("  xdp"));
}

TEST(TextReport, FitsEightyColumns) {
  Json document = sample();
  for (const char* path : {"kernel-batched", "raw:xdp"}) {
    document["summary"].push_back(entry("rate_per_s", path, "adaptive", 7, 4'000'000'000.0));
    document["summary"].push_back(entry("latency_p50_us", path, "adaptive", 7, 123456.7));
    document["summary"].push_back(entry("service_demand_own_us", path, "adaptive", 7, 98765.4));
    Json wide = comparison("rate_per_s", 12345.6, 1234.5, 98765.4, "no difference shown");
    wide["path"] = path;
    wide["wait"] = "adaptive";
    wide["baseline"] = "kernel-batched";
    wide["baseline_wait"] = "adaptive";
    document["compare"].push_back(wide);
  }
  EXPECT_LE(widest_line(render(document, Format::text)), 80u) << render(document, Format::text);
}

TEST(TextReport, IsColouredOnlyWhenAsked) {
  EXPECT_FALSE(holds(render(sample(), Format::text), "\033"));
  EXPECT_TRUE(holds(render(sample(), Format::text, {.colour = true}), "\033[32mfaster\033[0m"));
}

TEST(TextReport, CallsAnIntervalThatSaysNothingTooWide) {
  Json document = sample();
  document["compare"][0] = comparison("rate_per_s", 1.5, 1e-9, 1e12, "no difference shown");
  EXPECT_TRUE(holds(render(document, Format::text), "too wide"));
}

TEST(TextReport, LeavesOutALatencyThatSomeRunsCouldNotTell) {
  Json document = sample();
  document["summary"][1]["n"] = 3;
  EXPECT_FALSE(holds(render(document, Format::text), "6.6"));
}

TEST(TextReport, SaysThatItWasInterrupted) {
  Json document = sample();
  document["status"] = "interrupted";
  EXPECT_TRUE(holds(render(document, Format::text), "interrupted"));
}

TEST(TextReport, FitsEightyColumnsWhateverItIsGiven) {
  for (const Format format : {Format::text, Format::markdown}) {
    Json document = everything();
    for (const char* list : {"summary", "compare", "blocks"}) {
      for (Json& entry : document[list]) {
        if (entry["path"] == "wormhole") entry["path"] = "wormhole-through-the-other-side:native";
      }
    }
    const std::string text = render(document, format);
    EXPECT_LE(widest_line(text), format == Format::text ? 80u : 78u) << text;
    EXPECT_TRUE(holds(text, "wormhole-through-the-other-side:native"));
  }
}

TEST(TextReport, SaysSaturatedInsteadOfALatency) {
  for (const Format format : {Format::text, Format::markdown}) {
    const std::string text = render(everything(), format);
    EXPECT_TRUE(holds(text, "SATURATED")) << text;
    EXPECT_TRUE(holds(text, "171,000")) << text;
  }
}

TEST(TextReport, TellsTheHighestRateWithoutLossAsAnInterval) {
  for (const Format format : {Format::text, Format::markdown}) {
    const std::string text = render(everything(), format);
    EXPECT_TRUE(holds(text, "310,000")) << text;
    EXPECT_TRUE(holds(text, "322,000")) << text;
  }
}

TEST(TextReport, SaysThatNothingWasMeasured) {
  EXPECT_TRUE(holds(render(empty_document(), Format::text), "nothing was measured"));
}

TEST(MarkdownReport, BeginsWithWhatWasFoundInWords) {
  const std::string text = render(everything(), Format::markdown);
  const auto words = text.find("- udp_rr, xdp spin: 1.82 times the transactions a second of");
  ASSERT_NE(words, std::string::npos) << text;
  EXPECT_LT(words, text.find("| path |"));
}

TEST(Findings, SayThatNoDifferenceWasShownWhereTheIntervalHoldsOne) {
  Json document = empty_document();
  Json block = block_of("udp_rr", "xdp", "spin", 1000);
  summarise_into(document, block, 1000);
  compare_into(document, block, "rate_per_s", 1.02, "no difference shown");
  const auto findings = findings_of(document);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(
      findings[0].text,
      "no difference from kernel-batched spin shown in transactions a second: 1.02 times (95 % interval 0.92 "
      "to 1.12); a difference of 10 % would have shown.");
}

TEST(Findings, CountTheCasesOfManySizes) {
  std::string all;
  for (const Finding& finding : findings_of(everything())) {
    if (finding.workload == "tcp_stream" && finding.subject == "xdp spin") all += finding.text;
  }
  EXPECT_TRUE(holds(all, "against kernel-batched spin: faster in 6 of 6 cases")) << all;
}

TEST(Findings, CallTheBareDeviceALimitNotARival) {
  Json document = empty_document();
  Json block = block_of("udp_rr", "xdp", "spin", 1000);
  summarise_into(document, block, 1000);
  compare_into(document, block, "rate_per_s", 0.65, "slower");
  document["compare"][0]["baseline"] = "raw:xdp";
  const auto findings = findings_of(document);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(holds(findings[0].text,
                    "reaches 0.65 times the transactions a second of raw:xdp spin, the bare device"));
  EXPECT_EQ(findings[0].verdict, "");
}

TEST(Findings, TellFiguresWhereNothingWasCompared) {
  Json document = empty_document();
  summarise_into(document, block_of("udp_rr", "xdp", "spin", 1000), 1000);
  const auto findings = findings_of(document);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(holds(findings[0].text, "1,000 transactions a second")) << findings[0].text;
}

TEST(MarkdownReport, FitsSeventyEightColumns) {
  const std::string text = render(sample(), Format::markdown);
  EXPECT_LE(widest_line(text), 78u) << text;
  EXPECT_TRUE(holds(text, "| xdp spin | 2.00 | 1.90-2.10 | faster | 5.0% |")) << text;
  EXPECT_TRUE(holds(text, "- kernel: Linux 6.18"));
}

TEST(CsvReport, HasOneRowForEachBlockAndMetric) {
  const std::string text = render(sample(), Format::csv);
  EXPECT_EQ(text.substr(0, text.find("\r\n")),
            "order,round,workload,path,mode,wait,size,pairs,batch,flows,flags,metric,value");
  EXPECT_TRUE(holds(text, "rate_per_s,150000.5\r\n")) << text;
  EXPECT_TRUE(holds(text, "latency_us.n,10\r\n"));
  EXPECT_FALSE(holds(text, "p99_9"));
}

TEST(CsvReport, HoldsSeriesToo) {
  const std::string text = render(everything(), Format::csv);
  EXPECT_TRUE(holds(text, ",timeline.rate_per_s[0],90000"));
  EXPECT_TRUE(holds(text, ",curve[9].achieved_per_s,171000"));
  EXPECT_FALSE(holds(text, "histogram"));
}

TEST(CsvReport, QuotesAsRfc4180Says) {
  const std::string text = render(sample(), Format::csv);
  EXPECT_TRUE(holds(text, "\"native, copy\""));
  EXPECT_TRUE(holds(text, "\"steal; say \"\"x\"\"\""));
}

TEST(NetperfReport, HasNetperfsColumns) {
  const std::string text = render(sample(), Format::netperf);
  EXPECT_TRUE(holds(text, "UDP REQUEST/RESPONSE TEST over xdp (spin)"));
  EXPECT_TRUE(holds(text, "150000.00"));
}

TEST(NetperfReport, TakesAByteStreamsDemandAsItIsSinceItIsPerKbAlready) {
  const std::string text = render(byte_stream(), Format::netperf);
  EXPECT_TRUE(holds(text, "TCP STREAM TEST over xdp (spin)")) << text;
  EXPECT_TRUE(holds(text, "5.500")) << text;
}

TEST(Report, SurvivesDocumentsOfAnyShape) {
  const Json broken[] = {Json(),
                         Json::array(),
                         Json(7),
                         Json{{"summary", 3}},
                         Json{{"summary", {1, nullptr, "x"}}},
                         Json{{"summary", {{{"workload", 3}, {"mean", "x"}}}},
                              {"compare", {{{"ratio", {}}}}},
                              {"blocks", {7, {{"flags", 3}}}}},
                         Json{{"config", {{"runs", -1}, {"x", {1, 2}}}}, {"warnings", {3}}}};
  for (const Json& document : broken) {
    for (const Format format : {Format::text, Format::markdown, Format::csv, Format::html, Format::netperf}) {
      EXPECT_NO_THROW((void)render(document, format)) << to_text(document);
    }
    EXPECT_NO_THROW((void)plots(document)) << to_text(document);
  }
}

TEST(Against, TellsThenAndNowInEveryWidth) {
  Json entry = {{"workload", "udp_rr"},
                {"size", 1},
                {"pairs", 1},
                {"batch", 1},
                {"path", "kernel-batched"},
                {"wait", "adaptive"},
                {"metric", "service_demand_own_us"},
                {"before", 1234567.8},
                {"now", 2345678.9},
                {"ratio", 1.9},
                {"ci_low", 1.85},
                {"ci_high", 1.95},
                {"verdict", "slower"},
                {"n_before", 5},
                {"n_now", 5}};
  Json other = entry;
  other["verdict"] = "no difference shown";
  other["ci_low"] = other["ci_high"] = nullptr;
  const Json entries = {entry, other};
  const std::string text = render_against(entries, Format::text),
                    mail = render_against(entries, Format::markdown);
  EXPECT_LE(widest_line(text), 80u) << text;
  EXPECT_LE(widest_line(mail), 78u) << mail;
  EXPECT_TRUE(holds(text, "slower")) << text;
  EXPECT_TRUE(holds(text, "none shown")) << text;
  EXPECT_TRUE(
      holds(render_against(entries, Format::csv), ",1234567.8,2345678.9,1.9,5,5,1.85,1.95,slower\r\n"));
  for (const Json& broken : {Json(), Json(3), Json{1, "x"}})
    EXPECT_NO_THROW((void)render_against(broken, Format::text));
}

TEST(Check, TellsADocumentFromSomethingElse) {
  EXPECT_FALSE(check(sample()).has_value());
  EXPECT_TRUE(check(Json::array()).has_value());
  EXPECT_TRUE(check(Json::object()).has_value());
  Json other = sample();
  other["schema"] = "netchannel.compare/2";
  EXPECT_TRUE(check(other).has_value());
  Json cut = sample();
  cut.erase("blocks");
  EXPECT_TRUE(check(cut).has_value());
}

TEST(Format, IsKnownByItsName) {
  EXPECT_EQ(parse_format("md"), Format::markdown);
  EXPECT_FALSE(parse_format("pdf").has_value());
}

TEST(Numbers, AreWrittenAsPeopleReadThem) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999.4), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567.8), "1,234,568");
  EXPECT_EQ(significant(0.1234), "0.123");
  EXPECT_EQ(significant(12.34), "12.3");
  EXPECT_EQ(significant(std::nullopt), "-");
  EXPECT_EQ(ratio_number(6.704), "6.70");
  EXPECT_EQ(ratio_number(0.0513), "0.051");
}

TEST(Wrapping, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("averyveryverylongword x", 8, 0), "averyveryverylongword\nx");
  EXPECT_EQ(wrapped("", 8, 0), "");
}

}  // namespace
}  // namespace netchannel::report
