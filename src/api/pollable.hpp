// What a Poller watches, on every path.
#pragma once

#include <cstdint>

namespace netchannel {

struct HostImpl;
struct PollerEntry;

class Pollable {
 public:
  virtual ~Pollable() = default;
  // Readiness bits as known without a system call, and the descriptor to watch for the rest (-1: none).
  virtual std::uint32_t readiness() noexcept = 0;
  virtual int fd() const noexcept = 0;
  virtual HostImpl& host() noexcept = 0;

  PollerEntry* watched = nullptr;  // the poller's: its entry for this, if it has one
};

}  // namespace netchannel
