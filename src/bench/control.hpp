// The control connection between the two ends of a measurement: one JSON object a line, over the kernel's
// TCP, silent while anything is measured. What comes in is untrusted: a line is at most 1 MiB, no read waits
// longer than its deadline, and nothing is believed before the far end's hello has named this protocol and
// this version.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel::bench {

inline constexpr std::uint16_t kControlPort = 4170;
inline constexpr const char* kProtocol = "netchannel.control/1";

class Control {
 public:
  explicit Control(UniqueFd connected) : fd_(std::move(connected)) {}
  // Tries until the deadline, since the far end may be starting. Errors: timed_out, refused, unreachable,
  // interrupted.
  static Result<Control> connect(const Endpoint& to, Duration within);

  // Errors: closed.
  Result<void> send(const Json& message);
  // Errors: timed_out, closed, invalid_argument (not JSON or too long), interrupted.
  Result<Json> receive(Duration within);
  // Sends a request and returns its answer; an answer with "error" is told as an error, its text in
  // error_text().
  Result<Json> ask(const Json& request, Duration within);
  const std::string& error_text() const { return error_text_; }
  // From now on an interrupt does not end a wait: what was measured is still to be fetched.
  void ignore_interrupts() { heed_interrupts_ = false; }

  // True if receive() has something to read now: a message, or the end.
  bool readable() const;
  int fd() const { return fd_.get(); }
  Endpoint local() const;

 private:
  UniqueFd fd_;
  std::string buffer_;
  std::string error_text_;
  bool heed_interrupts_ = true;
};

class ControlListener {
 public:
  // Both families, or the family of `at` if it is a specific address. Errors: address_in_use, system.
  static Result<ControlListener> open(const Endpoint& at);
  int fd() const { return fd_.get(); }
  Result<Control> accept();

 private:
  explicit ControlListener(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace netchannel::bench
