// Labs within a mount namespace whose /run is this test program's own: named network namespaces live there
// only, so nothing is left behind however a test ends.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/reservation.hpp"
#include "lab/lab.hpp"
#include "lab/namespaces.hpp"
#include "lab/user_namespace.hpp"

namespace netchannel::lab {

inline int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Exit status of a child that runs the function; 128 + n if a signal ended it. Inside it, expect() and _exit
// codes stand for gtest's macros.
inline int in_child(const std::function<int()>& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline bool become_nobody() {
  // What changed its user is not dumpable, and then its files in /proc are root's.
  return ::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

// A UDP socket in a side of a lab.
inline std::optional<control::Reservation> socket_in(const std::string& lab, Side side,
                                                     const IpAddress& address) {
  std::optional<control::Reservation> out;
  auto network_namespace = open_namespace(lab, side);
  if (!network_namespace) return out;
  (void)call_in(*network_namespace, [&]() -> LabResult<void> {
    auto made = control::Reservation::open(Protocol::udp, {address, 0});
    if (made) out.emplace(std::move(*made));
    return {};
  });
  return out;
}

// One datagram from one to the other.
inline bool reaches(control::Reservation& from, control::Reservation& to, std::size_t size = 100) {
  const std::vector<std::byte> payload(size, std::byte{7});
  if (!from.send_to(payload, to.local())) return false;
  pollfd ready{to.fd(), POLLIN, 0};
  if (::poll(&ready, 1, 5000) != 1) return false;
  const auto got = to.receive();
  return got && *got && (*got)->payload.size() == size && (*got)->peer == from.local();
}

inline bool sides_reach_each_other(const std::string& lab, const IpAddress& of_a, const IpAddress& of_b) {
  auto a = socket_in(lab, Side::a, of_a);
  auto b = socket_in(lab, Side::b, of_b);
  return a && b && reaches(*a, *b) && reaches(*b, *a);
}

class LabFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool apart = ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount("", "/", nullptr, MS_PRIVATE | MS_REC, nullptr) == 0 &&
                              ::mount("tmpfs", "/run", "tmpfs", 0, "mode=0755") == 0;
    apart_ = apart;
  }
  void SetUp() override {
    if (!apart_) GTEST_SKIP() << "SKIPPED: needs root, to make network namespaces";
  }
  void TearDown() override {
    if (!apart_) return;
    for (const std::string& name : made_) (void)down(name);
    const bool empty = !std::filesystem::exists("/run/netns") || std::filesystem::is_empty("/run/netns");
    EXPECT_TRUE(empty) << "something was left in /run/netns";
  }
  std::string lab(const LabOptions& options = {}) {
    made_.push_back(options.name);
    const auto plan = up(options);
    EXPECT_TRUE(plan.has_value()) << plan.error().text;
    return options.name;
  }
  static LabStatus look(const std::string& name = "default") { return status(name).value(); }
  void also_remove(const std::string& name) { made_.push_back(name); }

 private:
  static inline bool apart_ = false;
  std::vector<std::string> made_;
};

// Sleeps in a side until it is destroyed.
class Sleeper {
 public:
  Sleeper(const std::string& lab, Side side) : pid_(spawn(lab, side, {"sleep", "60"}).value()) {}
  ~Sleeper() { end(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }
  bool alive() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

}  // namespace netchannel::lab
