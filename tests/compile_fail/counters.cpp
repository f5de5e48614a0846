// A packet is dropped for a reason with a name.
#include "netchannel/stats.hpp"

namespace netchannel {

void number_as_reason(CounterPage& page) {
#ifdef MUST_NOT_COMPILE
  page.drop(3);  // error: convert|conversion|no matching|cannot initialize
#else
  page.drop(DropReason::eth_truncated);
#endif
}

void counter_as_reason(CounterPage& page) {
#ifdef MUST_NOT_COMPILE
  page.drop(Counter::udp_sent);  // error: convert|conversion|no matching|cannot initialize
#else
  page.add(Counter::udp_sent);
#endif
}

}  // namespace netchannel
