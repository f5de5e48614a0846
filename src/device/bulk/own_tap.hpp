// The TAP of the bulk lane: made by us, for us alone, and gone with its descriptor. Nothing lives on it: the
// kernel neither gives it addresses nor speaks on it. What is written to it and what comes out of it begins
// with a virtio-net header, and it takes and gives super-frames of TCP and UDP over IPv4 and IPv6.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.hpp"
#include "netchannel/error.hpp"

namespace netchannel::device {

struct OwnTap {
  UniqueFd fd;       // does not block
  std::string name;  // that nobody else has in this network namespace
  std::uint32_t index = 0;

  // `send_buffer`: bytes that we have sent and that have not left the machine, at most about; then write()
  // says EAGAIN. Errors: not_permitted, not_supported, system.
  static Result<OwnTap> make(std::uint32_t send_buffer);
};

}  // namespace netchannel::device
