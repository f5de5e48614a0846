#include "netchannel/error.hpp"

#include <array>
#include <cstring>

namespace netchannel {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_permitted:
      return "not_permitted";
    case ErrorCode::no_such_device:
      return "no_such_device";
    case ErrorCode::device_down:
      return "device_down";
    case ErrorCode::device_busy:
      return "device_busy";
    case ErrorCode::address_in_use:
      return "address_in_use";
    case ErrorCode::address_not_available:
      return "address_not_available";
    case ErrorCode::unreachable:
      return "unreachable";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::reset:
      return "reset";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::would_block:
      return "would_block";
    case ErrorCode::message_too_long:
      return "message_too_long";
    case ErrorCode::no_memory:
      return "no_memory";
    case ErrorCode::memlock_too_small:
      return "memlock_too_small";
    case ErrorCode::not_supported:
      return "not_supported";
    case ErrorCode::closed:
      return "closed";
    case ErrorCode::interrupted:
      return "interrupted";
    case ErrorCode::system:
      return "system";
  }
  return "unknown";
}

std::string describe(const Error& error) {
  std::string line = error.what;
  if (error.sys_errno == 0) return line;
  const char* name = strerrorname_np(error.sys_errno);
  line += " (";
  line += name != nullptr ? name : "errno";
  line += ": ";
  line += strerrordesc_np(error.sys_errno) != nullptr ? strerrordesc_np(error.sys_errno) : "unknown";
  line += ")";
  return line;
}

}  // namespace netchannel
