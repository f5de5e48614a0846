#include "cli/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "device/clock.hpp"
#include "lab/namespaces.hpp"

namespace netchannel::cli {
namespace {

constexpr std::size_t kMostKept = 64 << 20;

[[noreturn]] void become(const std::string& lab, lab::Side side, const std::vector<std::string>& command,
                         int out, int err, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (lab.empty()) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  const std::string line = lab::exec(lab, side, command).text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(127);
}

bool make_pipe(UniqueFd& reader, UniqueFd& writer) {
  std::array<int, 2> fds;
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return false;
  reader.reset(fds[0]);
  writer.reset(fds[1]);
  return ::fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

bench::Outcome<Child> Child::start(const std::string& lab, lab::Side side,
                                   const std::vector<std::string>& command) {
  UniqueFd out_reader, out_writer, err_reader, err_writer;
  if (!make_pipe(out_reader, out_writer) || !make_pipe(err_reader, err_writer)) {
    return bench::fail_with({ErrorCode::system, errno, "cannot make a pipe; raise the limit of open files"},
                            "");
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return bench::fail_with({ErrorCode::system, errno, "cannot start a process"}, "");
  if (pid == 0) become(lab, side, command, out_writer.get(), err_writer.get(), parent);
  return Child(pid, std::move(out_reader), std::move(err_reader));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

Child::~Child() { stop(); }

bool Child::read_into(UniqueFd& fd, std::string& text) {
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n > 0) {
      if (text.size() < kMostKept) text.append(chunk.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && errno == EAGAIN;
  }
}

std::string Child::complaint() const {
  std::string_view text = err_;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (const auto line = text.rfind('\n'); line != std::string_view::npos) text.remove_prefix(line + 1);
  if (text.starts_with("netchannel ")) {
    if (const auto colon = text.find(": "); colon != std::string_view::npos) text.remove_prefix(colon + 2);
  }
  return std::string(text);
}

bool Child::reaped(int flags) {
  if (pid_ < 0) return true;
  if (::waitpid(pid_, &status_, flags) != pid_) return false;
  pid_ = -1;
  return true;
}

void Child::stop(Duration patience) {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  const Instant deadline = device::monotonic_now() + patience;
  while (!reaped(WNOHANG)) {
    if (device::monotonic_now() >= deadline) {
      ::kill(pid_, SIGKILL);
      while (!reaped(0)) {
      }
      return;
    }
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

int Child::wait() {
  while (!reaped(0)) {
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

}  // namespace netchannel::cli
