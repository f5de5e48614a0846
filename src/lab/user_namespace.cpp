#include "lab/user_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/unique_fd.hpp"

namespace netchannel::lab {

namespace {

// The number in a file of /proc/sys, or `missing`.
long setting(const char* path, long missing) {
  const UniqueFd file{::open(path, O_RDONLY | O_CLOEXEC)};
  std::array<char, 32> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return missing;
  return std::strtol(text.data(), nullptr, 10);
}

// The system's settings that forbid user namespaces, or are known to spoil them; empty if none of them does.
std::string obstacle() {
  if (setting("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0) {
    return "user namespaces are for root only here; allow them with `sysctl "
           "kernel.unprivileged_userns_clone=1`";
  }
  if (setting("/proc/sys/user/max_user_namespaces", 1) == 0) {
    return "user namespaces are switched off here; allow them with `sysctl user.max_user_namespaces=1000`";
  }
  if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1) {
    return "AppArmor restricts user namespaces here; allow them with "
           "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`";
  }
  return {};
}

tl::unexpected<LabError> explain(const char* step, int error) {
  if (const std::string reason = obstacle(); !reason.empty()) return failure(reason);
  if (error == EINVAL) return failure(std::string(step) + " failed: the process has more than one thread");
  if (error == EPERM || error == EACCES) {
    return failure(std::string(step) +
                   " is not permitted: a container's or sandbox's policy forbids user namespaces; "
                   "use root, or allow them there");
  }
  return failure(std::string(step) + " failed", error);
}

bool write_file(const char* path, const std::string& text) {
  const UniqueFd file{::open(path, O_WRONLY | O_CLOEXEC)};
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

LabResult<void> enter_user_namespace() {
  const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0)
    return explain("making a user namespace", errno);
  // Giving up setgroups is the price of a group map without privileges (user_namespaces(7)).
  if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", "0 " + user + " 1") ||
      !write_file("/proc/self/gid_map", "0 " + group + " 1")) {
    return explain("mapping the user to root", errno);
  }
  if (::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0 ||
      ::mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
    return explain("mounting a /run of its own", errno);
  }
  return {};
}

LabResult<void> can_enter_user_namespace() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("cannot make a pipe", errno);
  const UniqueFd told{ends[0]};
  UniqueFd tell{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) return failure("cannot start a process", errno);
  if (child == 0) {
    const auto entered = enter_user_namespace();
    if (!entered) (void)!::write(tell.get(), entered.error().text.data(), entered.error().text.size());
    ::_exit(entered ? 0 : 1);
  }
  tell.reset();
  std::string text;
  std::array<char, 512> buffer;
  for (ssize_t n = 0; (n = ::read(told.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return failure(text.empty() ? "the attempt to make a user namespace was killed" : text);
}

}  // namespace netchannel::lab
