// TCP of ours and of Linux's kernel over a bad path: what is lost, late, doubled, altered or overtaken is
// repaired, whoever sends.
#include "tests/system/tcp_fixture.hpp"

namespace netchannel {
namespace {

using namespace std::chrono_literals;

struct Trouble {
  const char* name;
  std::uint64_t size;  // of a transfer, so that it takes about a second
  device::LinkDirection direction;
};
std::ostream& operator<<(std::ostream& out, const Trouble& trouble) { return out << trouble.name; }

constexpr Trouble kTroubles[] = {
    {"loss_1", 1'000'000, {.delay = 2ms, .loss = 0.01}},
    {"loss_5", 400'000, {.delay = 2ms, .loss = 0.05}},
    {"delay_10ms", 1'000'000, {.delay = 10ms}},
    {"reordering_3", 1'000'000, {.delay = 5ms, .reorder = 0.03, .reorder_by = 2ms}},
    {"duplication_5", 1'000'000, {.delay = 2ms, .duplicate = 0.05}},
    {"corruption_1", 1'000'000, {.delay = 2ms, .corrupt = 0.01}},
    {"bottleneck", 1'000'000, {.delay = 5ms, .rate = 30'000'000, .queue_bytes = 40'000}},
    {"everything",
     400'000,
     {.delay = 3ms,
      .jitter = 1ms,
      .loss = 0.01,
      .duplicate = 0.02,
      .corrupt = 0.005,
      .reorder = 0.02,
      .reorder_by = 2ms}},
};

class TcpOverWan : public TcpPeers, public ::testing::WithParamInterface<std::tuple<Way, Trouble>> {
 protected:
  void bad_path() {
    const auto& [way, trouble] = GetParam();
    path(way, {.a_to_b = trouble.direction, .b_to_a = trouble.direction, .seed = 7});
    size = std::get<1>(GetParam()).size;
    sum = pattern_sha256(size);
  }
  void TearDown() override {
    if (!IsSkipped() && HasFailure()) tell();
    TcpPeers::TearDown();
  }
  void tell() {
    const auto stats = wan().stats();
    for (const auto& s : {stats.to_right, stats.to_left})
      std::printf("one way: %lu sent, %lu lost, %lu dropped, %lu doubled, %lu altered, %lu late\n", s.sent,
                  s.lost, s.queue_drops, s.duplicated, s.corrupted, s.reordered);
    std::printf("too large %lu, missed %lu\n", stats.too_large, stats.missed);
  }
  std::uint64_t size = 0;
  std::string sum;
};

// Two transfers at once, one each way.
TEST_P(TcpOverWan, OurServerSendsAndHearsEveryByte) {
  NEEDS("curl");
  bad_path();
  write_pattern_file(folder / "up", size);
  Program us = serve();
  Program down = start({"curl", "-sS", "--max-time", "60", "-o", folder / "down",
                        "http://" + ours() + "/" + std::to_string(size)});
  Program up = start({"curl", "-sS", "--max-time", "60", "-T", folder / "up", "http://" + ours() + "/"});
  EXPECT_EQ(down.finish(60s), 0) << down.output();
  EXPECT_EQ(up.finish(60s), 0) << up.output();
  EXPECT_EQ(sha256_of_file(folder / "down"), sum);
  EXPECT_EQ(up.output(), sum + "\n");
}

TEST_P(TcpOverWan, OurClientSendsAndHearsEveryByte) {
  NEEDS("python3");
  bad_path();
  Program echo = start(python({"echo", "7"}));
  listens(7);
  const auto said = run_ours({"stream", theirs(true) + ":7", "--size", std::to_string(size)}, 60s);
  EXPECT_EQ(said.find("1 x " + std::to_string(size) + " bytes " + sum), 0u) << said;
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Way, Trouble>>& made) {
  return std::string(std::get<0>(made.param).name) + "_" + std::get<1>(made.param).name;
}
INSTANTIATE_TEST_SUITE_P(Interface, TcpOverWan,
                         ::testing::Combine(::testing::Values(kXdp, kBulk), ::testing::ValuesIn(kTroubles)),
                         name_of);
// Above the device a TAP is as xdp.
INSTANTIATE_TEST_SUITE_P(Tap, TcpOverWan,
                         ::testing::Combine(::testing::Values(kTap), ::testing::Values(kTroubles[7])),
                         name_of);

}  // namespace
}  // namespace netchannel
