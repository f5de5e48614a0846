#include "lab/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace netchannel::lab {

namespace {

std::string joined(const Arguments& command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}

// What a program wrote, on one line.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Reads both until both are closed, so that neither can fill up and stop the writer.
void read_both(std::array<pollfd, 2> from, const std::array<std::string*, 2>& into) {
  std::size_t open = from.size();
  while (open != 0) {
    if (::poll(from.data(), from.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].fd < 0 || from[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t n = ::read(from[i].fd, buffer.data(), buffer.size());
      if (n > 0) into[i]->append(buffer.data(), static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) {
        from[i].fd = -1;
        --open;
      }
    }
  }
}

LabResult<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("cannot make a pipe", errno);
  return std::pair(UniqueFd{ends[0]}, UniqueFd{ends[1]});
}

}  // namespace

tl::unexpected<LabError> failure(const std::string& what, int error) {
  return failure(what + ": " + std::strerror(error));
}

LabResult<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::string directories = "/usr/sbin:/sbin:/usr/bin:/bin";
  if (const char* path = std::getenv("PATH"); path != nullptr) directories += std::string(":") + path;
  for (std::string_view rest = directories; !rest.empty();) {
    const auto colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  return failure("the program `" + name + "` is not installed; on Debian: apt install iproute2");
}

LabResult<Finished> run(const Arguments& command) {
  auto program = find_program(command.front());
  if (!program) return tl::unexpected(program.error());
  auto output = make_pipe();
  if (!output) return tl::unexpected(output.error());
  auto errors = make_pipe();
  if (!errors) return tl::unexpected(errors.error());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output->second.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors->second.get(), STDERR_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, program->c_str(), &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failure("cannot run `" + joined(command) + "`", error);

  output->second.reset();
  errors->second.reset();
  Finished finished;
  read_both({pollfd{output->first.get(), POLLIN, 0}, pollfd{errors->first.get(), POLLIN, 0}},
            {&finished.output, &finished.errors});
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failure("lost `" + joined(command) + "`", errno);
  }
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

LabResult<void> run_or_fail(const Arguments& command) {
  auto finished = run(command);
  if (!finished) return tl::unexpected(finished.error());
  if (finished->status == 0) return {};
  const std::string& said = finished->errors.empty() ? finished->output : finished->errors;
  return failure("`" + joined(command) + "` failed: " + one_line(said));
}

}  // namespace netchannel::lab
