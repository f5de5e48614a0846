// The sending half's ears: what an acknowledgement says of the window, the round trip and the data in flight.
// Internal to proto/tcp: called by on_segment.cpp once check_segment() has let the segment pass.
#pragma once

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {

// RFC 9293 section 3.10.7.4, fifth step, for an acknowledgement that ack_in_range() accepts.
Events process_ack(Connection& c, const SegmentIn& segment, Instant now);

// Options of a SYN or SYN-ACK: what both sides can do (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2, RFC
// 3168 section 6.1.1).
void negotiate(TcpState& s, const SegmentIn& segment, Instant now);
// The handshake is done: congestion control and timers begin. `retransmissions` of our SYN or SYN-ACK.
void establish(Connection& c, std::uint8_t retransmissions, Instant now);
// A round trip measured without ambiguity.
void take_rtt_sample(TcpState& s, Duration rtt, Instant now);
// The end: timers off, unsent data dropped. What was received stays readable.
Events finish(Connection& c, Failure failure);
void enter_time_wait(Connection& c, Instant now);

}  // namespace netchannel::tcp
