// `netchannel serve` over TCP, for foreign clients as people have them, on the kernel's path and on ours.
#include <gtest/gtest.h>

#include "testkit/veth_pair.hpp"
#include "tests/system/program.hpp"

namespace netchannel {
namespace {

class ServeOverTcp : public testkit::VethPair, public ::testing::WithParamInterface<const char*> {
 protected:
  Program serve() {
    Program program({NETCHANNEL_PROGRAM, "serve", "--path", GetParam(), "--device", "eth0"});
    EXPECT_TRUE(program.wait_for("over UDP and TCP")) << program.output();
    return program;
  }
  void in_b_must(const std::string& text) {
    in_b([&] { must(text); });
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, ServeOverTcp, ::testing::Values("kernel", "xdp", "bulk"),
                         [](const auto& path) { return std::string(path.param); });

TEST_P(ServeOverTcp, SocatGetsItsLineBackOnEchoAndMirror) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  for (const char* to : {"TCP:10.77.0.1:7", "'TCP6:[fd77::1]:7'", "TCP:10.77.0.1:4171"})
    in_b_must("test \"$(echo hello | socat -t5 - " + std::string(to) + ")\" = hello");
}

TEST_P(ServeOverTcp, MegabytesComeBackByteForByteAndThenTheEnd) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  in_b_must(
      "f=$(mktemp) && head -c 5000000 /dev/urandom >$f && "
      "socat -t20 -b 65536 - TCP:10.77.0.1:7 <$f | cmp - $f; s=$?; rm -f $f; exit $s");
}

TEST_P(ServeOverTcp, DiscardTakesEverythingAndSaysNothing) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  in_b_must("test -z \"$(head -c 3000000 /dev/zero | socat -t20 - TCP:10.77.0.1:9)\"");
}

TEST_P(ServeOverTcp, ManyClientsAtOnceAreServedAndOneThatIsKilledIsForgotten) {
  if (IsSkipped()) return;
  build();
  auto program = serve();
  in_b_must("timeout -s KILL 0.3 socat -u /dev/zero TCP:10.77.0.1:7; true");
  in_b_must(
      "for i in $(seq 30); do (test \"$(echo $i | socat -t5 - TCP:10.77.0.1:7)\" = $i || echo bad) & done "
      "| grep -q bad && exit 1; exit 0");
}

}  // namespace
}  // namespace netchannel
