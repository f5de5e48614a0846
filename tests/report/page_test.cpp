// The page and its pictures, as a browser's reader meets them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "report/chart.hpp"
#include "report/markup.hpp"
#include "report/report.hpp"
#include "report/svg_scale.hpp"
#include "report/view.hpp"
#include "tests/report/sample.hpp"

namespace netchannel::report {
namespace {

std::string page_of(const Json& document) { return render(document, Format::html); }

void expect_sound(const Json& document) {
  const std::string page = page_of(document);
  const Checked checked = check_with("check_page.py", "", page);
  EXPECT_EQ(checked.status, 0) << checked.output;
}

std::vector<std::string> ids_of(const Json& document) {
  std::vector<std::string> out;
  for (const Chart& chart : charts_of(document)) out.push_back(chart.id);
  return out;
}

bool some_starts_with(const std::vector<std::string>& all, std::string_view start) {
  return std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one.starts_with(start); });
}

TEST(Page, IsWellFormedNeedsNothingFromElsewhereAndNoTextsTouch) { expect_sound(everything()); }

TEST(Page, ReadsWellInABrowserNarrowAndWideLightAndDark) {
  const Checked checked = check_with("check_browser.py", "", page_of(everything()));
  if (checked.status == 77) GTEST_SKIP() << checked.output;
  EXPECT_EQ(checked.status, 0) << checked.output;
}

TEST(Page, IsSoundWhateverWasMeasured) {
  Json one_block = empty_document();
  one_block["blocks"].push_back(block_of("udp_rr", "xdp", "spin", 100000));
  summarise_into(one_block, one_block["blocks"][0], 100000);
  Json interrupted = everything();
  interrupted["status"] = "interrupted";
  interrupted["compare"] = Json::array();
  Json nulls = everything();
  for (Json& block : nulls["blocks"]) {
    for (const char* key :
         {"rate_per_s", "received_bps", "latency_us", "service_demand_us", "histogram", "timeline"})
      block[key] = nullptr;
  }
  for (Json& entry : nulls["summary"]) entry["ci_low"] = entry["ci_high"] = nullptr;
  for (Json& entry : nulls["compare"]) entry["ci_low"] = entry["ci_high"] = nullptr;
  for (const Json& document : {empty_document(), one_block, interrupted, nulls}) expect_sound(document);
}

TEST(Page, SaysThatNothingWasMeasured) {
  EXPECT_TRUE(holds(page_of(empty_document()), "Nothing was measured."));
}

TEST(Page, SaysThatItWasInterrupted) {
  Json document = everything();
  document["status"] = "interrupted";
  EXPECT_TRUE(holds(page_of(document), "It was interrupted"));
}

TEST(Page, HoldsEveryNumberOfTheSummaryAndOfTheComparisons) {
  const Json document = everything();
  const std::string page = page_of(document);
  for (const char* list : {"summary", "compare"}) {
    for (const Json& entry : document[list]) {
      for (const char* key : {"median", "mean", "ratio", "ci_low", "ci_high"}) {
        if (const auto value = find_number(entry, key)) {
          EXPECT_TRUE(holds(page, ">" + fmt::format("{:.6g}", *value) + "<"))
              << list << " " << key << " " << *value;
        }
      }
    }
  }
}

TEST(Page, BeginsWithWhatWasFoundInWords) {
  const std::string page = page_of(everything());
  const auto words =
      page.find("<b>xdp spin</b>: 1.82 times the transactions a second of kernel-batched spin");
  ASSERT_NE(words, std::string::npos);
  EXPECT_LT(words, page.find("<svg"));
  EXPECT_LT(words, page.find("<table"));
  EXPECT_TRUE(holds(page, "95 % interval 1.64 to 2.00"));
}

TEST(Page, MakesTextFromTheDocumentHarmless) {
  Json document = everything();
  document["machine"]["cpu"] = "<script>alert(1)</script>\x01\xff";
  document["blocks"][0]["path"] = document["summary"][0]["path"] = "\"><img src=x onerror=y>";
  document["warnings"].push_back("</ul><script>");
  const std::string page = page_of(document);
  EXPECT_FALSE(holds(page, "<script"));
  EXPECT_FALSE(holds(page, "<img"));
  expect_sound(document);
}

TEST(Page, TakesUnknownPathsAndWorkloadsAsTheyCome) {
  const std::string page = page_of(everything());
  EXPECT_TRUE(holds(page, "<b>wormhole spin</b>"));
  EXPECT_TRUE(holds(page, "teleport: rate of every run"));
}

TEST(Page, SurvivesDocumentsOfAnyShape) {
  const Json broken[] = {Json(), Json::array(), Json(7),
                         Json{{"blocks", {7, nullptr, {{"flags", 3}, {"curve", 5}, {"timeline", {1}}}}}},
                         Json{{"summary", {{{"workload", 3}, {"mean", "x"}}}}, {"config", {1, 2}}}};
  for (const Json& document : broken) expect_sound(document);
}

TEST(Page, OffersTheMeasurementItself) {
  const Json document = everything();
  EXPECT_TRUE(
      holds(page_of(document), "data:application/json;base64," + base64(to_lines(document)).substr(0, 2000)));
}

TEST(Charts, ShowEachKindOfMeasurementAndOnlyWhatIsThere) {
  const auto ids = ids_of(everything());
  for (const char* id : {"udp_rr-ratios-rate_per_s", "tcp_stream-ratios-received_bps",
                         "tcp_stream-ratios-by-size", "tcp_stream-by-size", "udp_rr-latency", "curve-by-rate",
                         "ndr-ndr", "timeline-over-time", "teleport-runs-rate_per_s"})
    EXPECT_TRUE(some_starts_with(ids, id)) << id;
  Json one = empty_document();
  measure_into(one, "udp_rr", 1, 1000);
  for (const char* id : {"udp_rr-by-", "udp_rr-over-time", "udp_rr-ndr"})
    EXPECT_FALSE(some_starts_with(ids_of(one), id)) << id;
  EXPECT_TRUE(charts_of(empty_document()).empty());
}

TEST(Charts, HaveNamesOfTheirOwn) {
  auto ids = ids_of(everything());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

const Chart* chart_named(const std::vector<Chart>& charts, std::string_view start) {
  for (const Chart& chart : charts) {
    if (chart.id.starts_with(start)) return &chart;
  }
  return nullptr;
}

TEST(Charts, PutEveryBlockThereAsAPointAndMarkTheDoubtful) {
  const auto charts = charts_of(everything());
  const Chart* chart = chart_named(charts, "udp_rr-runs-rate_per_s");
  ASSERT_NE(chart, nullptr);
  std::size_t points = 0, open = 0;
  for (const Series& series : chart->panels[0].series) {
    if (!series.marks) continue;
    points += series.points.size();
    for (const Point& point : series.points) open += point.open ? 1 : 0;
  }
  EXPECT_EQ(points, 18u);
  EXPECT_EQ(open, 1u);
  EXPECT_EQ(chart->rows.size(), 6u);
}

TEST(Charts, EndACurveBeforeTheRateThatSaturated) {
  const auto charts = charts_of(everything());
  const Chart* chart = chart_named(charts, "curve-by-rate");
  ASSERT_NE(chart, nullptr);
  ASSERT_EQ(chart->panels.size(), 3u);
  EXPECT_EQ(chart->panels[0].series[0].points.size(), 9u);
  const auto& kept = chart->panels[2].series[0].points;
  ASSERT_EQ(kept.size(), 10u);
  EXPECT_TRUE(kept.back().open);
  EXPECT_NEAR(kept.back().y, 85.5, 1e-9);
}

TEST(Charts, DrawACurveThroughBlocksOfOneRateEach) {
  Json document = empty_document();
  for (const double rate : {1000.0, 2000.0}) {
    Json block = block_of("udp_rr", "xdp", "spin", 100000);
    block["offered_per_s"] = rate;
    block["achieved_per_s"] = rate;
    document["blocks"].push_back(block);
  }
  summarise_into(document, document["blocks"][0], 100000);
  EXPECT_TRUE(some_starts_with(ids_of(document), "udp_rr-by-rate"));
}

TEST(Charts, TellAPercentileOnlyWithTenSamplesBeyondIt) {
  Json document = empty_document();
  Json block = block_of("udp_rr", "xdp", "spin", 1000);
  block["histogram"] = {{"buckets_ns", {{1000, 900}, {2000, 90}, {3000, 10}}}};
  document["blocks"].push_back(block);
  summarise_into(document, block, 1000);
  const auto charts = charts_of(document);
  const Chart* chart = chart_named(charts, "udp_rr-latency");
  ASSERT_NE(chart, nullptr);
  const auto& points = chart->panels[0].series[0].points;
  EXPECT_LE(points.back().x, 99.0 + 1e-9);
  EXPECT_GT(points.back().x, 98.0);
  EXPECT_DOUBLE_EQ(points.front().y, 1.0);
}

TEST(Charts, LeaveOutPlacesThatNoPaperHas) {
  Chart chart;
  chart.id = "x";
  chart.x = {"x", Scale::log2};
  chart.panels.push_back({{"y", Scale::log10}, {Series{.name = "a", .look = {}}}});
  const double nothing = std::nan(""), endless = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, nothing, endless, 4.0})
    chart.panels[0].series[0].points.push_back({value, value, nothing, endless});
  const std::string svg = svg_of(chart);
  for (const char* word : {"nan", "inf"}) EXPECT_FALSE(holds(svg, word)) << svg;
  EXPECT_TRUE(holds(svg, "class=\"m\""));
}

TEST(Axes, HaveRoundTicks) {
  const auto labels = [](const Axis& axis, double low, double high) {
    std::string out;
    for (const Tick& tick : Mapping(axis, {false, low, high}, 0, 100).ticks(6)) out += tick.label + " ";
    return out;
  };
  EXPECT_EQ(labels({"", Scale::linear, true}, 20000, 190000), "0 50k 100k 150k ");
  EXPECT_EQ(labels({"", Scale::linear, true}, 0.1, 0.95), "0 0.2 0.4 0.6 0.8 ");
  EXPECT_EQ(labels({"", Scale::log10}, 3, 4000), "10 100 1k ");
  EXPECT_EQ(labels({"", Scale::log10}, 0.5, 6), "0.5 1 2 5 ");
  EXPECT_EQ(labels({"", Scale::log2, false, {1, 1024, 65536}}, 1, 65536), "1 1024 64Ki ");
  EXPECT_EQ(labels({"", Scale::percentile}, 0, 99.95), "0 % 50 % 90 % 99 % 99.9 % ");
}

TEST(Axes, PutEndsWhereTheyBelong) {
  const Mapping map({"", Scale::percentile}, {false, 0, 99}, 0, 200);
  EXPECT_NEAR(map.at(90), 100, 1e-9);
  EXPECT_NEAR(map.at(99), 200, 1e-9);
  EXPECT_NEAR(map.at(0), 0, 1e-9);
}

TEST(Numbers, AreShortOnAxes) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(999.96e3), "1M");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(1.25e6), "1.25M");
  EXPECT_EQ(short_number(0.05), "0.05");
}

TEST(Markup, IsWhatXmlAllows) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escaped("\x01"), "\xEF\xBF\xBD");
  EXPECT_EQ(escaped("\xED\xA0\x80").substr(0, 3), "\xEF\xBF\xBD");
  EXPECT_EQ(escaped("\u00b5s"), "\u00b5s");
  EXPECT_EQ(escaped("\xC3"), "\xEF\xBF\xBD");
}

TEST(Base64, IsRfc4648s) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Plots, HaveATableAndAScriptForEachChart) {
  const Json document = everything();
  const auto files = plots(document);
  EXPECT_EQ(files.size(), 2 * charts_of(document).size());
  for (const File& file : files) {
    EXPECT_EQ(
        file.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."),
        std::string::npos)
        << file.name;
    if (!file.name.ends_with(".gp")) continue;
    for (const char* part : {"set terminal svg", "set terminal pngcairo", "\nplot "})
      EXPECT_TRUE(holds(file.text, part)) << file.name;
  }
}

TEST(Plots, LetNoTextOutOfItsQuotes) {
  Json document = everything();
  document["blocks"][0]["path"] = document["summary"][0]["path"] = "\"; system(\"x\") `y`\n";
  for (const File& file : plots(document)) {
    if (file.name.ends_with(".gp")) {
      EXPECT_FALSE(holds(file.text, "\"; system(\"")) << file.name;
      EXPECT_FALSE(holds(file.text, "`")) << file.name;
      continue;
    }
    std::istringstream lines(file.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#")) continue;
      EXPECT_EQ(line.find_first_not_of("0123456789+-.e? "), std::string::npos) << file.name << ": " << line;
    }
  }
}

TEST(Document, WithEverythingIsOfTheSchema) {
  const Checked checked = check_with("check_schema.py", NETCHANNEL_SOURCE_DIR "/docs/compare.schema.json",
                                     to_lines(everything()));
  if (checked.status == 77) GTEST_SKIP() << checked.output;
  EXPECT_EQ(checked.status, 0) << checked.output;
}

}  // namespace
}  // namespace netchannel::report
