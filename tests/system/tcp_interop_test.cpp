// TCP of ours and of Linux's kernel, on a clean wire: programs that many people run, in both roles, on every
// path, IPv4 and IPv6, transfers of all sizes checked by SHA-256.
#include "tests/system/tcp_fixture.hpp"

namespace netchannel {
namespace {

// Around a segment of MTU 1500 with timestamps, and around 64 KiB.
constexpr std::uint64_t kSizes[] = {0, 1, 1447, 1448, 1449, 65535, 65536, 65537, 10'000'000};

class TcpInterop : public TcpPeers, public ::testing::WithParamInterface<Way> {
 protected:
  static std::string got(std::uint64_t size) {
    return "200 " + std::to_string(size) + " bytes " + pattern_sha256(size) + "\n";
  }
  static std::string heard(std::uint64_t size) {
    return "1 x " + std::to_string(size) + " bytes " + pattern_sha256(size) + "\n";
  }
  static std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
  }
};

TEST_P(TcpInterop, CurlGetsEverySizeFromUs) {
  NEEDS("curl");
  wire(GetParam());
  Program us = serve();
  for (const bool v6 : {false, true}) {
    Command command{"curl", "-sSg"};
    for (const auto size : kSizes) {
      const std::string name = std::to_string(size);
      command.insert(command.end(), {"-o", folder / name, "http://" + ours(v6) + "/" + name});
    }
    run(command);
    for (const auto size : kSizes)
      EXPECT_EQ(sha256_of_file(folder / std::to_string(size)), pattern_sha256(size)) << size;
  }
}

TEST_P(TcpInterop, CurlPutsEverySizeToUs) {
  NEEDS("curl");
  wire(GetParam());
  Program us = serve();
  for (const auto size : kSizes) write_pattern_file(folder / std::to_string(size), size);
  for (const bool v6 : {false, true}) {
    Command command{"curl", "-sSg"};
    std::string sums;
    for (const auto size : kSizes) {
      command.insert(command.end(), {"-T", folder / std::to_string(size), "http://" + ours(v6) + "/"});
      sums += pattern_sha256(size) + "\n";
    }
    EXPECT_EQ(run(command), sums);
  }
}

TEST_P(TcpInterop, WeGetEverySizeFromNginx) {
  NEEDS("nginx");
  wire(GetParam());
  Program server = nginx();
  Command command{"get", "--repeat", "2"};
  for (const auto size : kSizes) {
    write_pattern_file(folder / std::to_string(size), size);
    for (const bool v6 : {false, true})
      command.push_back("http://" + theirs(v6) + ":8000/" + std::to_string(size));
  }
  const auto said = run_ours(command);
  std::puts(said.c_str());
  for (const auto size : kSizes) EXPECT_EQ(count(said, "2 x " + got(size)), 2u) << said;
}

TEST_P(TcpInterop, WePutEverySizeToNginx) {
  NEEDS("nginx");
  wire(GetParam());
  Program server = nginx();
  Command command{"put"};
  const auto name = [](std::uint64_t size, bool v6) {
    return "in/" + std::to_string(size) + (v6 ? "-6" : "-4");
  };
  for (const auto size : kSizes) {
    for (const bool v6 : {false, true})
      command.insert(command.end(),
                     {"http://" + theirs(v6) + ":8000/" + name(size, v6), "--size", std::to_string(size)});
  }
  run_ours(command);
  for (const auto size : kSizes) {
    for (const bool v6 : {false, true})
      EXPECT_EQ(sha256_of_file(folder / name(size, v6)), pattern_sha256(size)) << size;
  }
}

TEST_P(TcpInterop, NginxAsAProxyIsOurClientForManyOfItsOwn) {
  NEEDS("nginx");
  NEEDS("curl");
  wire(GetParam());
  Program us = serve();
  Program proxy = nginx();
  write_pattern_file(folder / "up", 3'000'000);
  const auto sums = run({"curl", "-sSg", "-T", folder / "up", "http://127.0.0.1:8000/ours/x", "-T",
                         folder / "up", "http://127.0.0.1:8000/ours/y"});
  EXPECT_EQ(sums, pattern_sha256(3'000'000) + "\n" + pattern_sha256(3'000'000) + "\n");
  run({"curl", "-sS", "--parallel", "--parallel-max", "40", "-o", folder / "#1",
       "http://127.0.0.1:8000/ours/[100000-100039]"});
  for (std::uint64_t size = 100'000; size < 100'040; ++size)
    ASSERT_EQ(sha256_of_file(folder / std::to_string(size)), pattern_sha256(size)) << size;
}

TEST_P(TcpInterop, SocatIsOurClient) {
  NEEDS("socat");
  wire(GetParam());
  Program us = serve();
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{40'000}}) {
    write_pattern_file(folder / "in", size);
    for (const bool v6 : {false, true}) {
      run({"sh", "-c", "socat -t10 - TCP:" + ours(v6) + ":7 < " + folder / "in" + " > " + folder / "out"});
      EXPECT_EQ(sha256_of_file(folder / "out"), pattern_sha256(size)) << size;
    }
  }
}

TEST_P(TcpInterop, SocatIsOurServerBothWaysAndEach) {
  NEEDS("socat");
  wire(GetParam());
  constexpr std::uint64_t kSmall = 40'000, kLarge = 3'000'000;
  write_pattern_file(folder / "large", kLarge);
  Program echo = start({"socat", "TCP6-LISTEN:7,fork,reuseaddr,ipv6only=0", "EXEC:cat"});
  Program source =
      start({"socat", "-t10", "TCP6-LISTEN:8,fork,reuseaddr,ipv6only=0", "EXEC:cat " + folder / "large"});
  Program sink =
      start({"socat", "-u", "TCP6-LISTEN:9,fork,reuseaddr,ipv6only=0", "CREATE:" + folder / "sunk"});
  for (const int port : {7, 8, 9}) listens(port);
  for (const bool v6 : {false, true}) {
    const auto said =
        run_ours({"stream", theirs(v6) + ":7", "--size", std::to_string(kSmall), theirs(v6) + ":8", "--size",
                  "0", theirs(v6) + ":9", "--size", std::to_string(kLarge)});
    EXPECT_EQ(count(said, heard(kSmall)), 1u) << said;
    EXPECT_EQ(count(said, heard(kLarge)), 1u) << said;
    EXPECT_EQ(sha256_of_file(folder / "sunk"), pattern_sha256(kLarge));
    std::filesystem::remove(folder / "sunk");
  }
}

TEST_P(TcpInterop, PythonTalksToUsInWritesOfEveryKind) {
  NEEDS("python3");
  wire(GetParam());
  Program us = serve();
  for (const char* address :
       {GetParam().tap() ? "10.88.0.1" : "10.77.0.1", GetParam().tap() ? "fd88::1" : "fd77::1"})
    EXPECT_EQ(run(python({"talk", address, "7"})), "all came back\n");
}

TEST_P(TcpInterop, PythonsSmallWindowClosesAndOpens) {
  NEEDS("python3");
  wire(GetParam());
  Program us = serve();
  EXPECT_EQ(run(python({"slow", ours(), "80", "/300000"})), pattern_sha256(300'000) + "\n");
}

TEST_P(TcpInterop, PythonServesUs) {
  NEEDS("python3");
  wire(GetParam());
  write_pattern_file(folder / "file", 2'000'000);
  Program server = start(python({"serve", "8001", folder.path()}));
  Program echo = start(python({"echo", "8002"}));
  for (const int port : {8001, 8002}) listens(port);
  const std::string file = ":8001/file", echo_port = ":8002";
  auto said =
      run_ours({"get", "http://" + theirs() + file, "http://" + theirs(true) + file, "--connections", "4"});
  EXPECT_EQ(count(said, "4 x " + got(2'000'000)), 2u) << said;
  said = run_ours({"put", "http://" + theirs() + file, "http://" + theirs(true) + file, "--size", "2000000",
                   "--repeat", "2"});
  EXPECT_EQ(count(said, "2 x 200 " + pattern_sha256(2'000'000)), 2u) << said;
  said = run_ours({"stream", theirs() + echo_port, theirs(true) + echo_port, "--size", "2000000"});
  EXPECT_EQ(count(said, heard(2'000'000)), 2u) << said;
}

TEST_P(TcpInterop, ThreeHundredCurlsAtOnceAreServed) {
  NEEDS("curl");
  wire(GetParam());
  Program us = serve();
  run({"curl", "-sS", "--parallel", "--parallel-immediate", "--parallel-max", "300", "-o", folder / "#1",
       "http://" + ours() + "/[20000-20299]"});
  for (std::uint64_t size = 20'000; size < 20'300; ++size)
    ASSERT_EQ(sha256_of_file(folder / std::to_string(size)), pattern_sha256(size)) << size;
}

TEST_P(TcpInterop, WeAreThreeHundredClientsAtOnce) {
  NEEDS("nginx");
  wire(GetParam());
  Program server = nginx();
  write_pattern_file(folder / "file", 50'000);
  const auto said =
      run_ours({"get", "http://" + theirs(true) + ":8000/file", "--connections", "300", "--repeat", "2"});
  EXPECT_NE(said.find("600 x " + got(50'000)), said.npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpInterop, ::testing::Values(kXdp, kXdp9000, kBulk, kTap), name_of_way);

class TcpGibibyte : public TcpPeers {};

TEST_F(TcpGibibyte, AGibibyteComesWhole) {
  NEEDS("curl");
  NEEDS("python3");
  wire(kXdp);
  Program us = serve();
  const auto said = run({"sh", "-c",
                         "curl -sS http://10.77.0.1/1073741824 | python3 " NETCHANNEL_SOURCE_DIR
                         "/tests/system/tcp_peer.py digest"});
  // `stream_peer pattern --size 1073741824 | sha256sum`; it would take as long as the transfer here.
  EXPECT_EQ(said, "614fca74fb317f993d2a562fb5425e0658a182dd123ba7f7c6eb34c14405d510\n");
}

}  // namespace
}  // namespace netchannel
