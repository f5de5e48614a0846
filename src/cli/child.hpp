// A program on one side of a lab, started by us and ended with us: in a process group of its own, so that a
// Ctrl-C reaches us first; killed by the kernel if we die; its standard output and standard error in pipes
// that we read.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/outcome.hpp"
#include "lab/plan.hpp"
#include "netchannel/time.hpp"

namespace netchannel::cli {

class Child {
 public:
  // An empty `lab`: where we are.
  static bench::Outcome<Child> start(const std::string& lab, lab::Side side,
                                     const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // stop()

  int output_fd() const { return output_.get(); }
  int errors_fd() const { return errors_.get(); }
  // Reads what is there. False: the end of that stream.
  bool read_output() { return read_into(output_, out_); }
  bool read_errors() { return read_into(errors_, err_); }
  const std::string& output() const { return out_; }
  // The last line on standard error, without "netchannel COMMAND: " before it.
  std::string complaint() const;

  // SIGTERM, and SIGKILL after `patience`. Reaps it.
  void stop(Duration patience = std::chrono::seconds(2));
  // Waits for its end and tells its exit status; 128 + n if a signal ended it.
  int wait();

 private:
  Child(pid_t pid, UniqueFd output, UniqueFd errors)
      : pid_(pid), output_(std::move(output)), errors_(std::move(errors)) {}
  static bool read_into(UniqueFd& fd, std::string& text);
  bool reaped(int flags);

  pid_t pid_ = -1;
  int status_ = 0;
  UniqueFd output_, errors_;
  std::string out_, err_;
};

}  // namespace netchannel::cli
