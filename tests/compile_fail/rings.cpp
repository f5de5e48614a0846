// The two ends of a ring are different types and each exists once; only what is worth nothing but its bytes
// may cross.
#include "channel/channel.hpp"
#include "netchannel/frame.hpp"
#include "ring/spsc.hpp"

namespace netchannel::ring {

Producer<int> producer_copied(Producer<int>& end) {
#ifdef MUST_NOT_COMPILE
  return end;  // error: deleted
#else
  return std::move(end);
#endif
}

Consumer<int> consumer_copied(Consumer<int>& end) {
#ifdef MUST_NOT_COMPILE
  return end;  // error: deleted
#else
  return std::move(end);
#endif
}

ConsumerEnd channel_end_copied(ConsumerEnd& end) {
#ifdef MUST_NOT_COMPILE
  return end;  // error: deleted
#else
  return std::move(end);
#endif
}

int read_from_a_producer(Producer<int>& producer, Consumer<int>& consumer) {
  (void)producer, (void)consumer;
#ifdef MUST_NOT_COMPILE
  return producer.read(0);  // error: no member named
#else
  return consumer.read(0);
#endif
}

bool push_to_a_consumer(Producer<int>& producer, Consumer<int>& consumer) {
  (void)producer, (void)consumer;
#ifdef MUST_NOT_COMPILE
  return consumer.push(1);  // error: no member named
#else
  return producer.push(1);
#endif
}

Producer<int> consumer_as_producer(Producer<int>& producer, Consumer<int>& consumer) {
  (void)producer, (void)consumer;
#ifdef MUST_NOT_COMPILE
  return std::move(consumer);  // error: could not convert|no viable
#else
  return std::move(producer);
#endif
}

void frame_through_a_ring() {
#ifdef MUST_NOT_COMPILE
  Producer<Frame> end;  // error: static assertion|static_assert
#else
  Producer<FrameDesc> end;
#endif
  (void)end;
}

}  // namespace netchannel::ring
