// Errors that arrived for a socket by ICMP and wait to be told, each once, in the order in which they came.
//
// The kernel keeps one such error a socket (sk_err): a second one overwrites the first, and recvmmsg, when it
// meets one after its first datagram, puts it back there to be overwritten in turn. So connected sockets ask
// for IP_RECVERR, with which the kernel also queues each error, and sk_err is only the sign that the queue is
// not empty. Whenever a call fails, the queue is emptied into this list; errors of one kind that came
// together are told as one, as sk_err would. The queue must be emptied to its end: while it holds anything,
// poll(2) says POLLERR at once and nobody would sleep.
//
// Unconnected sockets never see ICMP errors, on any path. Errors that the kernel made itself for a send
// (SO_EE_ORIGIN_LOCAL) are left out, since that send has returned them.
#pragma once

#include <array>
#include <cstdint>

#include "netchannel/error.hpp"

namespace netchannel::kernel {

// How a failed system call is told to whoever receives.
Error receive_error(int sys_errno);

class PendingErrors {
 public:
  bool empty() const { return count_ == 0; }
  void push(const Error& error);
  Error pop();                         // the oldest; only if not empty()
  void put_back(const Error& oldest);  // what pop() gave
  // Forgets one error of that code; false if there is none.
  bool take(ErrorCode code);
  struct Drained {
    std::uint64_t syscalls = 0;
    std::uint64_t icmp_errors = 0;
  };
  // Empties the kernel's queue of this socket into the list.
  Drained drain(int fd);

 private:
  static constexpr std::size_t kKinds = 4;  // refused, unreachable, message_too_long, and one for the rest
  std::array<Error, kKinds> errors_{};
  std::size_t count_ = 0;
};

}  // namespace netchannel::kernel
