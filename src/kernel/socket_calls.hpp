// Calls that every kernel socket of ours makes, whatever its protocol, and how their failures are told.
#pragma once

#include <cstdint>

#include "netchannel/address.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel::kernel {

bool set_option(int fd, int level, int name, int value);
int get_option(int fd, int level, int name);  // -1 if there is no such option

// Where a socket is bound, or who its peer is.
Result<Endpoint> local_name(int fd);
Result<Endpoint> peer_name(int fd);

// Why socket(2) or bind(2) failed.
Error open_error(int sys_errno);
Error bind_error(int sys_errno);

// What poll(2) said of a descriptor before the deadline (CLOCK_MONOTONIC); 0: the deadline has passed, and
// if that was so from the start, nobody was asked. Adds the calls made to `syscalls`. Errors: interrupted.
Result<short> wait_for(int fd, short events, Instant deadline, std::uint64_t& syscalls) noexcept;

}  // namespace netchannel::kernel
