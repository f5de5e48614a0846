// Help, versions, wrong options, exit statuses: what a newcomer meets first.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "tests/cli/run_program.hpp"

namespace netchannel::cli {
namespace {

const std::vector<std::vector<std::string>> kCommands = {
    {},        {"doctor"},    {"compare"},     {"serve"},         {"bench"},
    {"lab"},   {"lab", "up"}, {"lab", "down"}, {"lab", "status"}, {"lab", "exec"},
    {"report"}};

std::vector<std::string> with(std::vector<std::string> command, const std::string& option) {
  command.push_back(option);
  return command;
}

std::string name_of(const std::vector<std::string>& command) {
  std::string out = "netchannel";
  for (const std::string& word : command) out += " " + word;
  return out;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Help, HasAnExampleForEveryCommandWithin80Columns) {
  for (const auto& command : kCommands) {
    const Ran ran = run_program(with(command, "--help"));
    EXPECT_EQ(ran.status, 0) << name_of(command);
    EXPECT_TRUE(ran.errors.empty()) << ran.errors;
    EXPECT_NE(ran.output.find("Example"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("usage: " + name_of(command)), std::string::npos) << ran.output;
    std::istringstream lines(ran.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Help, ListsOnlyCommandsThatAreThere) {
  const std::string text = run_program({"--help"}).output;
  for (const char* later : {"\n  run ", "\n  stat ", "\n  dump "})
    EXPECT_EQ(text.find(later), std::string::npos);
}

TEST(Version, IsPrintedByEveryCommand) {
  for (const auto& command : kCommands) {
    const Ran ran = run_program(with(command, "--version"));
    EXPECT_EQ(ran.status, 0) << name_of(command);
    EXPECT_EQ(ran.output.find("netchannel "), 0u) << name_of(command);
    EXPECT_EQ(lines_of(ran.output), 1u);
  }
}

TEST(Usage, IsWrongInOneLineThatSaysWhatAndWhereToLook) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"frobnicate"},
      {"--nothing"},
      {"doctor", "--nothing"},
      {"compare", "tcp_nothing"},
      {"compare", "--preset", "instant"},
      {"compare", "--paths", "kernel,warp"},
      {"compare", "--paths", "auto"},
      {"compare", "--runs", "many"},
      {"compare", "--runs", "0"},
      {"compare", "--size", "65508"},
      {"compare", "--size", "-1"},
      {"compare", "--pairs", "0"},
      {"compare", "--duration", "0"},
      {"compare", "--wait", "politely"},
      {"compare", "--offloads", "some"},
      {"compare", "--confidence", "90"},
      {"compare", "--mtu", "100"},
      {"compare", "udp_rr", "--burst", "500"},
      {"bench"},
      {"bench", "udp_rr"},
      {"bench", "udp_rr", "--to", "nowhere"},
      {"bench", "udp_rr", "--to", "127.0.0.1:99999"},
      {"bench", "udp_rr", "--to", "127.0.0.1", "--path", "warp"},
      {"bench", "udp_rr", "--to", "127.0.0.1", "--path", "raw", "--size", "2000"},
      {"serve", "--path", "warp"},
      {"serve", "--bind", "localhost"},
      {"serve", "--port", "70000"},
      {"serve", "--services", "some"},
      {"serve", "--xdp-mode", "fast"},
      {"serve", "--tap-seat", "nowhere"},
      {"lab"},
      {"lab", "sideways"},
      {"lab", "up", "--delay", "soon"},
      {"lab", "exec"},
      {"lab", "exec", "a"},
      {"lab", "exec", "c", "--", "true"},
      {"report"},
      {"report", "x.json", "--format", "pdf"},
  };
  for (const auto& arguments : wrong) {
    const Ran ran = run_program(arguments);
    EXPECT_EQ(ran.status, 2) << name_of(arguments) << "\n" << ran.errors;
    EXPECT_EQ(lines_of(ran.errors), 1u) << name_of(arguments) << "\n" << ran.errors;
    EXPECT_EQ(ran.errors.find("netchannel"), 0u) << ran.errors;
    EXPECT_TRUE(ran.output.empty()) << ran.output;
  }
}

TEST(Bench, SaysInOneLineThatNobodyServes) {
  const Ran ran = run_program({"bench", "udp_rr", "--to", "127.0.0.1:1", "--path", "kernel"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(lines_of(ran.errors), 1u) << ran.errors;
  EXPECT_NE(ran.errors.find("netchannel serve"), std::string::npos) << ran.errors;
}

TEST(Serve, SaysInOneLineWhatItCannotOpen) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"serve", "--path", "xdp", "--device", "nosuchdevice"},
        {"serve", "--path", "kernel", "--bind", "192.0.2.77"}}) {
    const Ran ran = run_program(arguments);
    EXPECT_EQ(ran.status, 1) << ran.output;
    EXPECT_EQ(lines_of(ran.errors), 1u) << ran.errors;
    EXPECT_EQ(ran.errors.find("netchannel serve: "), 0u) << ran.errors;
  }
}

TEST(Report, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(run_program({"report", "/nonexistent.json"}).status, 1);
  const std::string path = ::testing::TempDir() + "netchannel_broken.json";
  for (const char* text : {"", "not json", "{}", "[]", "{\"schema\": \"netchannel.compare/2\"}",
                           "{\"schema\": \"netchannel.compare/1\"}"}) {
    std::ofstream(path) << text;
    const Ran ran = run_program({"report", path});
    EXPECT_EQ(ran.status, 1) << text;
    EXPECT_EQ(lines_of(ran.errors), 1u) << ran.errors;
  }
  ::unlink(path.c_str());
}

TEST(Doctor, TellsAsJsonWhatItTellsAsText) {
  const Ran text = run_program({"doctor"});
  const Ran json = run_program({"doctor", "--json"});
  EXPECT_EQ(text.status, json.status);
  const auto document = parse_json(json.output);
  ASSERT_TRUE(document.has_value()) << json.output;
  EXPECT_EQ(get_text(*document, "schema"), "netchannel.doctor/1");
  EXPECT_EQ(get_bool(*document, "accelerated"), json.status == 0);
  ASSERT_GT(get_part(*document, "checks").size(), 5u);
  for (const Json& check : (*document)["checks"]) {
    EXPECT_NE(text.output.find(get_text(check, "name")), std::string::npos) << check;
  }
  EXPECT_EQ(text.output.find('\033'), std::string::npos);
}

TEST(Doctor, SaysThatThereIsNoSuchInterface) {
  const Ran ran = run_program({"doctor", "--device", "nosuchdevice"});
  EXPECT_NE(ran.output.find("missing  xdp on nosuchdevice"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace netchannel::cli
