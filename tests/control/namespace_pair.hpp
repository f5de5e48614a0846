// Two nameless network namespaces with a veth pair, eth0 in each: 10.9.0.1 and .2, fd09::1 and ::2. They live
// as long as the descriptors here, so nothing is left behind however a test ends. The test's thread stands in
// side a.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/unique_fd.hpp"
#include "control/mirror.hpp"

namespace netchannel::control {

inline UniqueFd current_namespace() { return UniqueFd{::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)}; }

// Exit status of a shell command in the thread's namespace.
inline int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class NamespacePair : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = current_namespace();
    if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) {
      GTEST_SKIP() << "SKIPPED: needs root, to make network namespaces";
    }
    made_ = true;
    b_ = current_namespace();
    prepare();
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    a_ = current_namespace();
    prepare();
    must("ip link add eth0 numrxqueues 1 numtxqueues 1 type veth peer name eth0 netns " + path_of_b());
    must(
        "ip addr add 10.9.0.1/24 brd + dev eth0 && ip addr add fd09::1/64 dev eth0 nodad && ip link set eth0 "
        "up");
    // Short waits for neighbours, so that failure is told within the second.
    must(
        "cd /proc/sys/net && echo 100 > ipv4/neigh/eth0/retrans_time_ms && "
        "echo 100 > ipv6/neigh/eth0/retrans_time_ms");
    in_b([] {
      must(
          "ip addr add 10.9.0.2/24 brd + dev eth0 && ip addr add fd09::2/64 dev eth0 nodad && ip link set "
          "eth0 up");
    });
  }
  void TearDown() override {
    if (!made_) return;
    ASSERT_EQ(::setns(home_.get(), CLONE_NEWNET), 0);
  }

  static void must(const std::string& command) { ASSERT_EQ(shell(command), 0) << command; }

  void in_b(const std::function<void()>& what) {
    ASSERT_EQ(::setns(b_.get(), CLONE_NEWNET), 0);
    what();
    ASSERT_EQ(::setns(a_.get(), CLONE_NEWNET), 0);
  }

  // A new veth drops what is sent until the kernel's link watch has seen its carrier, up to a second later.
  void wait_for_carrier() {
    const std::string wait =
        "for i in $(seq 50); do ip -o link show dev eth0 | grep -q 'state UP' && exit 0; sleep 0.1; done; "
        "exit 1";
    must(wait);
    in_b([&] { must(wait); });
  }

  // For ip(8).
  std::string path_of_b() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(b_.get());
  }

  // Follows the mirror until `done` holds; false if that takes longer than any healthy kernel needs.
  static bool follow(Mirror& mirror, const std::function<bool(const Changes&)>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      if (done(mirror.refresh())) return true;
      pollfd ready{mirror.fd(), POLLIN, 0};
      ::poll(&ready, 1, 100);
    }
    return false;
  }
  // As above, for states that the snapshot shows.
  static bool settles(Mirror& mirror, const std::function<bool(const Snapshot&)>& done) {
    return follow(mirror, [&](const Changes&) { return done(mirror.snapshot()); });
  }

 private:
  // No duplicate detection.
  static void prepare() {
    must(
        "ip link set lo up && cd /proc/sys/net/ipv6/conf && echo 0 > default/accept_dad && echo 0 > "
        "all/accept_dad");
  }
  UniqueFd home_;
  UniqueFd a_;
  UniqueFd b_;
  bool made_ = false;
};

inline IpAddress ip(const char* text) { return *IpAddress::parse(text); }

}  // namespace netchannel::control
