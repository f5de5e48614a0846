// What can fail, and how it is told. The library throws nothing: a call that can fail returns Result<T>, and
// an Error is three words without an allocation, so that it can be returned on any path and kept in any
// structure. On the packet path itself there are no Errors, only DropReasons and counters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace netchannel {

// Grouped by what a caller does about them, not by which call they came from.
enum class ErrorCode : std::uint16_t {
  invalid_argument,       // the caller's fault; a retry cannot help
  not_permitted,          // a capability or a permission is missing
  no_such_device,         // no interface of that name
  device_down,            // the interface exists and is down
  device_busy,            // another program holds it
  address_in_use,         // the port is taken
  address_not_available,  // no such local address
  unreachable,            // no route, or the neighbour does not answer, or ICMP said so
  refused,                // the peer said no (ICMP port unreachable, RST)
  reset,                  // the peer ended the connection
  timed_out,              // a deadline has passed
  would_block,            // nothing to do now; wait and try again
  message_too_long,       // larger than the protocol allows
  no_memory,              // allocation or frames exhausted
  memlock_too_small,      // RLIMIT_MEMLOCK forbids the frame memory
  not_supported,          // this kernel, device or path cannot do it
  closed,                 // used after close
  interrupted,            // a signal came
  system,                 // see sys_errno
};

// `what` is a string with static storage: what failed, why, and what to do. `sys_errno` is 0 or the errno
// value that the kernel gave (or would have given).
struct Error {
  ErrorCode code = ErrorCode::system;
  int sys_errno = 0;
  const char* what = "";
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, const char* what, int sys_errno = 0) {
  return tl::unexpected<Error>(Error{code, sys_errno, what});
}

// The enumerator's name, for logs and JSON.
std::string_view to_string(ErrorCode code);

// One line for a person: "what (errno name: its text)".
std::string describe(const Error& error);

}  // namespace netchannel
