// The receiving half: whether a segment belongs here (RFC 9293 section 3.10.7.4, RFC 7323 section 5, RFC
// 5961), its data, and when and with what window to acknowledge. Internal to proto/tcp: called by
// on_segment.cpp and poll_tx.cpp.
#pragma once

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {

// What the common checks of the synchronized states (and SYN-RECEIVED) say of a segment.
enum class Verdict : std::uint8_t {
  drop,   // done with it; an answer may be due
  take,   // its ACK, data and FIN are to be looked at
  reset,  // it ends the connection
};
// PAWS, sequence, RST, SYN and the ACK bit, in the RFC's order.
Verdict check_segment(Connection& c, const SegmentIn& segment, Instant now);
// RFC 5961 section 5.2: an acknowledgement of something never sent or long past is answered and dropped.
bool ack_in_range(Connection& c, const SegmentIn& segment, Instant now);
// RFC 7323 section 4.3.
void update_ts_recent(TcpState& s, const SegmentIn& segment, Instant now);

// The data of the segment and its FIN, which is only noted: fin_reached() says when it is in its turn.
Events receive_text(Connection& c, SegmentIn& segment, Instant now);
bool fin_reached(Connection& c);

// An acknowledgement that an attacker could provoke: at most a few a second (RFC 5961 section 7).
void challenge(Connection& c, Instant now);
void acknowledge_now(TcpState& s);
// The window field to send, scaled; moves rcv_adv. A SYN carries syn_window() instead.
std::uint16_t select_window(Connection& c);
std::uint16_t syn_window(const TcpState& s);
// Whether the application has made enough room to tell (RFC 9293 section 3.8.6.2.2).
bool window_update_due(const Connection& c);
// Fits the buffer to what the application takes; call it when `bytes` were taken.
void tune_receive_buffer(Connection& c, std::uint32_t bytes, Instant now);

}  // namespace netchannel::tcp
