// Protocol code is told the time; there is nothing to ask. Spans have units.
#include "netchannel/time.hpp"

namespace netchannel {

Instant asked([[maybe_unused]] Instant told) {
#ifdef MUST_NOT_COMPILE
  return Instant::now();  // error: now
#else
  return told;
#endif
}

Instant sum_of_instants(Instant now, Duration timeout) {
#ifdef MUST_NOT_COMPILE
  return now + Instant{timeout.count()};  // error: no match|invalid operands
#else
  return now + timeout;
#endif
}

Instant without_a_unit(Instant now) {
#ifdef MUST_NOT_COMPILE
  return now + 200;  // error: no match|invalid operands
#else
  return now + std::chrono::milliseconds(200);
#endif
}

}  // namespace netchannel
