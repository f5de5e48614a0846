// The program under test as a child, in the namespace where the calling thread stands.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace netchannel {

class Program {
 public:
  // Standard output and error of `command` are read through output().
  explicit Program(const std::vector<std::string>& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    out_.reset(ends[0]);
    const UniqueFd in(ends[1]);
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(in.get(), 1);
    ::dup2(in.get(), 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  Program(Program&& other) noexcept
      : out_(std::move(other.out_)), pid_(std::exchange(other.pid_, -1)), text_(std::move(other.text_)) {}
  Program(const Program&) = delete;
  ~Program() { kill_now(); }

  pid_t pid() const { return pid_; }
  // Reads what it prints until `sign` stands in it, it ends, or the time is over. True if the sign came.
  bool wait_for(const std::string& sign, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (text_.find(sign) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd ready{out_.get(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) return false;
      char piece[4096];
      const auto n = ::read(out_.get(), piece, sizeof piece);
      if (n <= 0) return false;
      text_.append(piece, static_cast<std::size_t>(n));
    }
    return true;
  }
  const std::string& output() const { return text_; }
  // Waits for its end; its exit status, 128 + a signal's number, or -1 if it goes on.
  int finish(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    wait_for("\x01 never printed", patience);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (pid_ > 0 && std::chrono::steady_clock::now() < end) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      ::usleep(1000);
    }
    return -1;
  }
  void kill_now(int signal = SIGKILL) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // A figure of /proc/PID/status, in KiB.
  long status_kib(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind(name + ":", 0) == 0) return std::stol(line.substr(name.size() + 1));
    }
    return -1;
  }
  // CPU time used so far, in clock ticks (a hundredth of a second).
  long cpu_ticks() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    std::string field;
    long user = 0, system = 0;
    for (int i = 3; fields >> field && i <= 15; ++i) {
      if (i == 14) user = std::stol(field);
      if (i == 15) system = std::stol(field);
    }
    return user + system;
  }

 private:
  UniqueFd out_;
  pid_t pid_ = -1;
  std::string text_;
};

}  // namespace netchannel
