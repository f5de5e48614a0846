#include "lab/namespaces.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <thread>

namespace netchannel::lab {

namespace {

// sysfs shows the network namespace in which it was mounted. Without it the program runs all the same, and
// only tools that look into /sys/class/net see the wrong interfaces.
void mount_own_sysfs() {
  if (::unshare(CLONE_NEWNS) != 0) return;
  if (::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) return;
  ::mount("netchannel", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
}

LabResult<void> enter_namespace(const UniqueFd& network_namespace) {
  if (::setns(network_namespace.get(), CLONE_NEWNET) == 0) return {};
  if (errno == EPERM) {
    return failure(
        "entering a network namespace needs root (CAP_SYS_ADMIN), or a user namespace of one's own");
  }
  return failure("cannot enter the network namespace", errno);
}

// In the child or for good: never returns but with an errno of what failed.
int become(const UniqueFd& network_namespace, const Arguments& command) {
  if (::setns(network_namespace.get(), CLONE_NEWNET) != 0) return errno;
  mount_own_sysfs();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return errno;
}

std::string cannot_run(const Arguments& command, int error) {
  return "cannot run `" + command.front() + "`: " + std::strerror(error);
}

LabResult<int> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failure("lost a child process", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

LabResult<UniqueFd> open_namespace(const std::string& lab, Side side) {
  const std::string path = "/run/netns/" + Plan(lab).namespace_name(side);
  UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd) return fd;
  if (errno == ENOENT) {
    return failure("there is no lab \"" + lab + "\"; make it with `netchannel lab up" +
                   (lab == "default" ? "" : " --name " + lab) + "`");
  }
  return failure("cannot open " + path, errno);
}

LabResult<void> enter(const std::string& lab, Side side) {
  auto network_namespace = open_namespace(lab, side);
  if (!network_namespace) return tl::unexpected(network_namespace.error());
  return enter_namespace(*network_namespace);
}

LabError exec(const std::string& lab, Side side, const Arguments& command) {
  if (command.empty()) return {"no command given"};
  auto network_namespace = open_namespace(lab, side);
  if (!network_namespace) return network_namespace.error();
  if (auto entered = enter_namespace(*network_namespace); !entered) return entered.error();
  return {cannot_run(command, become(*network_namespace, command))};
}

LabResult<pid_t> spawn(const std::string& lab, Side side, const Arguments& command) {
  if (command.empty()) return failure("no command given");
  auto network_namespace = open_namespace(lab, side);
  if (!network_namespace) return tl::unexpected(network_namespace.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("cannot make a pipe", errno);
  const UniqueFd told{ends[0]};
  UniqueFd tell{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) return failure("cannot start a process", errno);
  if (child == 0) {
    // A successful exec closes the pipe without a word.
    const int error = become(*network_namespace, command);
    (void)!::write(tell.get(), &error, sizeof error);
    ::_exit(127);
  }
  tell.reset();
  int error = 0;
  ssize_t n = -1;
  do {
    n = ::read(told.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return child;
  (void)wait_for(child);
  return failure(cannot_run(command, error));
}

LabResult<int> run_in(const std::string& lab, Side side, const std::function<int()>& function) {
  auto network_namespace = open_namespace(lab, side);
  if (!network_namespace) return tl::unexpected(network_namespace.error());
  const pid_t child = ::fork();
  if (child < 0) return failure("cannot start a process", errno);
  if (child == 0) {
    if (auto entered = enter_namespace(*network_namespace); !entered) {
      const std::string line = entered.error().text + "\n";
      (void)!::write(STDERR_FILENO, line.data(), line.size());
      ::_exit(127);
    }
    ::_exit(function());
  }
  return wait_for(child);
}

LabResult<void> call_in(const UniqueFd& network_namespace, const std::function<LabResult<void>()>& function) {
  LabResult<void> result;
  std::thread([&] {
    result = enter_namespace(network_namespace);
    if (result) result = function();
  }).join();
  return result;
}

std::vector<pid_t> processes_in(const UniqueFd& network_namespace) {
  std::vector<pid_t> out;
  struct stat wanted{};
  if (::fstat(network_namespace.get(), &wanted) != 0) return out;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (status != std::errc{} || end != name.data() + name.size()) continue;
    struct stat its{};
    if (::stat((at->path() / "ns/net").c_str(), &its) != 0) continue;
    if (its.st_ino == wanted.st_ino && its.st_dev == wanted.st_dev) out.push_back(pid);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace netchannel::lab
