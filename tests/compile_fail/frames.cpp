// A frame is one reference to a slot. A copy would send the slot home twice; what is given to the device is
// gone here.
#include "netchannel/frame.hpp"

namespace netchannel {

Frame copied(Frame& frame) {
#ifdef MUST_NOT_COMPILE
  return frame;  // error: deleted
#else
  return std::move(frame);
#endif
}

void assigned(Frame& kept, Frame& frame) {
#ifdef MUST_NOT_COMPILE
  kept = frame;  // error: deleted
#else
  kept = std::move(frame);
#endif
}

FrameDesc released_and_kept(Frame& frame) {
#ifdef MUST_NOT_COMPILE
  return frame.release();  // error: discards qualifiers|lvalue|expects an rvalue
#else
  return std::move(frame).release();
#endif
}

std::size_t pool_copied(FramePool& pool) {
#ifdef MUST_NOT_COMPILE
  FramePool other = pool;  // error: deleted
#else
  FramePool& other = pool;
#endif
  return other.free_count();
}

std::uint32_t region_copied(FrameRegion& region) {
#ifdef MUST_NOT_COMPILE
  FrameRegion other = region;  // error: deleted
#else
  FrameRegion& other = region;
#endif
  return other.slot_count();
}

}  // namespace netchannel
