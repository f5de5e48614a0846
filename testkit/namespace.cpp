#include "testkit/namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace netchannel::testkit {
namespace {

constexpr int kNotPossible = 125;

bool write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return done;
}

// 0, or the errno of what failed.
int enter() {
  const uid_t uid = ::getuid();
  const gid_t gid = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return errno;
  write_file("/proc/self/setgroups", "deny");
  if (!write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") ||
      !write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) {
    return errno;
  }
  return 0;
}

}  // namespace

NamespaceRun in_network_namespace(const std::function<int()>& body) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return {false, "no pipe", 0};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return {false, "no fork", 0};
  if (child == 0) {
    const int error = enter();
    if (::write(report[1], &error, sizeof error) != sizeof error || error != 0) ::_exit(kNotPossible);
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(report[1]);
  int error = EIO;
  const bool reported = ::read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!reported || error != 0) {
    const char* why =
        error == EINVAL ? "the process has another thread (a sanitizer's)" : std::strerror(error);
    return {false, std::string("no user and network namespace for us: ") + why, 0};
  }
  return {true, "", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)};
}

}  // namespace netchannel::testkit
