#include "rig.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace netchannel::kernel {

namespace {

std::string& reason() {
  static std::string why = "the namespace has not been made";
  return why;
}

bool write_file(const char* path, const std::string& text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string enter() {
  const uid_t uid = ::getuid();
  const gid_t gid = ::getgid();
  if (uid == 0 && ::unshare(CLONE_NEWNET) == 0)
    return shell("ip link set lo up") ? "" : "ip(8) does not work";
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return std::string("no network namespace for us: ") + std::strerror(errno);
  }
  write_file("/proc/self/setgroups", "deny");
  if (!write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") ||
      !write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) {
    return "no user namespace for us";
  }
  return shell("ip link set lo up") ? "" : "ip(8) does not work";
}

struct OwnNamespace : ::testing::Environment {
  void SetUp() override { reason() = enter(); }
};
const auto* const kOwnNamespace = ::testing::AddGlobalTestEnvironment(new OwnNamespace);

}  // namespace

const std::string& why_no_namespace() {
  static_cast<void>(kOwnNamespace);
  return reason();
}

bool shell(const std::string& command) { return std::system(command.c_str()) == 0; }

}  // namespace netchannel::kernel
