#include "proto/tcp/segment.hpp"

namespace netchannel::tcp {

SegmentIn segment_from(const wire::TcpView& view) {
  SegmentIn out;
  out.seq = {view.sequence()};
  out.ack = {view.acknowledgment()};
  out.flags = view.flags();
  out.window = view.window();
  out.options = wire::parse_options(view).options;
  return out;
}

}  // namespace netchannel::tcp
