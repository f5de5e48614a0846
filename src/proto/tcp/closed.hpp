// What a segment gets that belongs to no connection (RFC 9293 section 3.10.7.1): a RST that the peer will
// believe, and never one for a RST. The stack limits their rate.
#pragma once

#include <optional>

#include "proto/tcp/segment.hpp"

namespace netchannel::tcp {

constexpr std::optional<SegmentOut> answer_of_closed(const SegmentIn& segment) {
  if (segment.flags.rst()) return std::nullopt;
  SegmentOut reset;
  if (segment.flags.ack()) {
    reset.seq = segment.ack;
    reset.flags = {wire::TcpFlags::kRst};
  } else {
    reset.ack = segment.end();
    reset.flags = {wire::TcpFlags::kRst | wire::TcpFlags::kAck};
  }
  return reset;
}

}  // namespace netchannel::tcp
