// Runs the program and keeps what it says.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace netchannel::cli {

struct Ran {
  int status = -1;  // exit status; 128 + n if a signal n ended it
  std::string output;
  std::string errors;
};

struct RunOptions {
  std::vector<std::string> environment = {};  // "NAME=value"
  // Called once, in this process, when the program has been running for that long.
  std::chrono::milliseconds after{0};
  std::function<void(pid_t)> then = {};
  uid_t user = 0;  // 0: as we are
  std::string folder = "/tmp";
};

// A program that hangs is a failed test, not a hanging one.
inline constexpr std::chrono::seconds kPatience{100};

inline Ran run_program(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  std::array<int, 2> out, err;
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    if (::chdir(options.folder.c_str()) != 0) ::_exit(126);
    for (const std::string& setting : options.environment) ::putenv(const_cast<char*>(setting.c_str()));
    if (options.user != 0 && (::setgid(options.user) != 0 || ::setuid(options.user) != 0)) ::_exit(125);
    std::vector<char*> argv = {const_cast<char*>(NETCHANNEL_PROGRAM)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  Ran ran;
  const auto started = std::chrono::steady_clock::now();
  bool called = false;
  std::array fds = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    ::poll(fds.data(), fds.size(), 20);
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 65536> chunk;
      const ssize_t n = ::read(fds[i].fd, chunk.data(), chunk.size());
      if (n > 0) (i == 0 ? ran.output : ran.errors).append(chunk.data(), static_cast<std::size_t>(n));
      if (n == 0) fds[i].fd = -1;
    }
    if (std::chrono::steady_clock::now() - started >= kPatience) ::kill(child, SIGKILL);
    if (options.then && !called && std::chrono::steady_clock::now() - started >= options.after) {
      called = true;
      options.then(child);
    }
  }
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace netchannel::cli
