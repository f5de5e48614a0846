// The examples as a reader would run them, each on the kernel's path and on ours, with foreign programs or
// each other at the far end.
#include <gtest/gtest.h>

#include <fstream>

#include "testkit/veth_pair.hpp"
#include "tests/system/program.hpp"

namespace netchannel {
namespace {

using testkit::shell;

class Examples : public testkit::VethPair, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string example(const std::string& name) { return EXAMPLES + name; }
  // On the path under test.
  static Program start(const std::string& name, std::vector<std::string> arguments) {
    std::vector<std::string> command{example(name), GetParam(), "eth0"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Program(command);
  }
  void in_b_must(const std::string& text) {
    in_b([&] { must(text); });
  }
  // Starts it in the peer's namespace, over the kernel.
  Program start_in_b(const std::vector<std::string>& command) {
    std::optional<Program> made;
    in_b([&] { made.emplace(command); });
    return std::move(*made);
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, Examples, ::testing::Values("kernel", "xdp", "bulk"),
                         [](const auto& path) { return std::string(path.param); });

TEST_P(Examples, TheEchoServerAnswersOverUdpAndTcpAndEndsWell) {
  if (IsSkipped()) return;
  build();
  Program server = start("echo_server", {"0.0.0.0:7"});
  ASSERT_TRUE(server.wait_for("serving ")) << server.output();
  in_b_must("test \"$(echo hello | socat -t2 - UDP:10.77.0.1:7)\" = hello");
  in_b_must("test \"$(echo hello | socat -t5 - TCP:10.77.0.1:7)\" = hello");
  in_b_must(
      "f=$(mktemp) && head -c 5000000 /dev/urandom >$f && socat -t20 -b 65536 - TCP:10.77.0.1:7 <$f | cmp - "
      "$f; "
      "s=$?; rm -f $f; exit $s");
  ::kill(server.pid(), SIGTERM);
  EXPECT_EQ(server.finish(), 0) << server.output();
}

TEST_P(Examples, AClientThatDoesNotReadCostsTheEchoServerNoCpu) {
  if (IsSkipped()) return;
  build();
  Program server = start("echo_server", {"0.0.0.0:7"});
  ASSERT_TRUE(server.wait_for("serving ")) << server.output();
  Program client = start_in_b({"python3", "-c",
                               "import socket, time\n"
                               "s = socket.create_connection((\"10.77.0.1\", 7))\n"
                               "s.settimeout(1)\n"
                               "try:\n"
                               "  while True: s.sendall(b\"x\" * 65536)\n"
                               "except TimeoutError: print(\"stuck\", flush=True)\n"
                               "time.sleep(60)"});
  ASSERT_TRUE(client.wait_for("stuck")) << client.output();
  const long before = server.cpu_ticks();
  ::sleep(1);
  EXPECT_LE(server.cpu_ticks() - before, 5) << "hundredths of a second in one second";
  in_b_must("test \"$(echo hello | socat -t5 - TCP:10.77.0.1:7)\" = hello");
}

TEST_P(Examples, TheUdpReceiverCountsWhatComes) {
  if (IsSkipped()) return;
  build();
  Program receiver = start("udp_receiver", {"0.0.0.0:5000", "2"});
  ASSERT_TRUE(receiver.wait_for("receiving at ")) << receiver.output();
  in_b_must("for i in 1 2 3 4 5; do echo -n 12345678 | socat -u - UDP-SENDTO:10.77.0.1:5000; done");
  EXPECT_EQ(receiver.finish(), 0);
  EXPECT_NE(receiver.output().find("bytes"), std::string::npos) << receiver.output();
  std::size_t datagrams = 0, bytes = 0;
  std::istringstream lines(receiver.output());
  for (std::string line; std::getline(lines, line);) {
    std::size_t d = 0, b = 0;
    if (std::sscanf(line.c_str(), "%zu datagrams, %zu bytes", &d, &b) == 2) datagrams += d, bytes += b;
  }
  EXPECT_EQ(datagrams, 5u) << receiver.output();
  EXPECT_EQ(bytes, 40u) << receiver.output();
}

TEST_P(Examples, EverySubscriberGetsThePublishersUpdates) {
  if (IsSkipped()) return;
  build();
  Program publisher = start("market_publisher", {"0.0.0.0:6000", "200", "4"});
  ASSERT_TRUE(publisher.wait_for("publishing at ")) << publisher.output();
  const std::vector<std::string> subscriber{example("market_subscriber"), "kernel", "eth0", "10.77.0.1:6000",
                                            "1"};
  Program first = start_in_b(subscriber), second = start_in_b(subscriber);
  for (Program* each : {&first, &second}) {
    EXPECT_EQ(each->finish(), 0) << each->output();
    EXPECT_NE(each->output().find("updates received, 0 missing"), std::string::npos) << each->output();
  }
  EXPECT_EQ(publisher.finish(), 0);
  EXPECT_NE(publisher.output().find(" to 2 subscribers"), std::string::npos) << publisher.output();
}

TEST_P(Examples, ASubscriberOnThePathCounts) {
  if (IsSkipped()) return;
  build();
  Program publisher = start_in_b({example("market_publisher"), "kernel", "eth0", "0.0.0.0:6000", "200", "3"});
  ASSERT_TRUE(publisher.wait_for("publishing at ")) << publisher.output();
  Program subscriber = start("market_subscriber", {"10.77.0.2:6000", "1"});
  EXPECT_EQ(subscriber.finish(), 0) << subscriber.output();
  EXPECT_NE(subscriber.output().find("updates received, 0 missing"), std::string::npos)
      << subscriber.output();
}

TEST_P(Examples, ARequestIsAnsweredOrEndsAtItsDeadline) {
  if (IsSkipped()) return;
  build();
  Program echo = start_in_b({"socat", "TCP-LISTEN:7,fork,reuseaddr", "EXEC:cat"});
  Program silent = start_in_b({"socat", "-u", "TCP-LISTEN:9,fork,reuseaddr", "CREATE:/dev/null"});
  in_b_must("for i in $(seq 100); do ss -ltn | grep -q ':9 ' && exit 0; sleep 0.05; done; exit 1");
  Program answered = start("tcp_request", {"10.77.0.2:7", "hello you", "5000"});
  EXPECT_EQ(answered.finish(), 0) << answered.output();
  EXPECT_NE(answered.output().find("hello you\n"), std::string::npos) << answered.output();
  Program late = start("tcp_request", {"10.77.0.2:9", "hello", "300"});
  EXPECT_EQ(late.finish(), 1) << late.output();
  EXPECT_NE(late.output().find("waiting for the answer: "), std::string::npos) << late.output();
  Program refused = start("tcp_request", {"10.77.0.2:10", "hello", "5000"});
  EXPECT_EQ(refused.finish(), 1) << refused.output();
  EXPECT_NE(refused.output().find("connecting: "), std::string::npos) << refused.output();
}

TEST_P(Examples, OnePollerHearsSocketTimerAndInput) {
  if (IsSkipped()) return;
  build();
  Program peer = start_in_b({"socat", "UDP-RECVFROM:5001,fork", "EXEC:cat"});
  in_b_must("for i in $(seq 100); do ss -lun | grep -q ':5001 ' && exit 0; sleep 0.05; done; exit 1");
  Program program({"sh", "-c",
                   "(echo one line; sleep 1.5) | " + example("one_poller") + " " + GetParam() +
                       " eth0 0.0.0.0:5001 10.77.0.2:5001"});
  EXPECT_EQ(program.finish(), 0) << program.output();
  EXPECT_NE(program.output().find("one line\n"), std::string::npos) << program.output();
  EXPECT_NE(program.output().find("1 received, 1 sent"), std::string::npos) << program.output();
}

TEST_P(Examples, TheHttpServerSaysHelloToCurl) {
  if (IsSkipped()) return;
  build();
  Program server = start("http_hello", {"0.0.0.0:8080"});
  ASSERT_TRUE(server.wait_for("serving ")) << server.output();
  in_b_must("test \"$(curl -sS --max-time 10 http://10.77.0.1:8080/)\" = 'Hello, world!'");
  // Several on one connection.
  in_b_must("test $(curl -sS --max-time 10 http://10.77.0.1:8080/[1-20] | grep -c 'Hello, world!') = 20");
  in_b_must(
      "test $(printf 'GET / HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n' | socat -t2 - TCP:10.77.0.1:8080 "
      "| "
      "grep -c "
      "'Hello, world!') = 2");
}

TEST_F(Examples, OneProgramRunsOnEveryPath) {
  if (IsSkipped()) return;
  build();
  Program server = start_in_b({example("echo_server"), "kernel", "eth0", "0.0.0.0:7"});
  ASSERT_TRUE(server.wait_for("serving ")) << server.output();
  Program program({example("every_path"), "eth0", "10.77.0.2:7"});
  EXPECT_EQ(program.finish(), 0) << program.output();
  for (const char* path : {"kernel ", "xdp ", "bulk "}) {
    const auto at = program.output().find(path);
    ASSERT_NE(at, std::string::npos) << program.output();
    const std::string line = program.output().substr(at, program.output().find('\n', at) - at);
    EXPECT_NE(line.find(" us "), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace netchannel
