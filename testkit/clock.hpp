// Time in tests: an Instant that only the test moves.
#pragma once

#include "netchannel/time.hpp"

namespace netchannel::testkit {

class VirtualClock {
 public:
  explicit VirtualClock(Instant start = {}) : now_(start) {}
  Instant now() const { return now_; }
  void advance(Duration by) { now_ = now_ + by; }
  // Never backwards: an earlier instant is ignored.
  void advance_to(Instant to) {
    if (to > now_) now_ = to;
  }

 private:
  Instant now_;
};

}  // namespace netchannel::testkit
