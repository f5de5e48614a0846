// The kernel takes AF_XDP sockets and links down behind the back of close(): for a while after another
// owner's death, also by kill -9, their queue and hook are EBUSY. Opening waits for that, about a second.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

namespace netchannel::device {

// Calls `call`, which returns 0 or a negative errno, until it is not -EBUSY, for a second at most.
template <class Call>
int retry_while_busy(Call call) {
  constexpr int kTries = 100;
  int result = call();
  for (int i = 1; i < kTries && result == -EBUSY; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    result = call();
  }
  return result;
}

}  // namespace netchannel::device
