// A TCP connection: its state, and the queues that own its frames. Everything the stack and the sockets do
// with one is a free function of this header: open it, hand it segments and the time, ask it for segments,
// write and read.
//
//      stack:   segment_from(view) -> on_segment() ...burst over... poll_tx() -> wire::TcpRepr -> device
//      timers:  next_deadline() -> on_timer() -> poll_tx()
//      socket:  write(), shutdown_write(), close(), abort() -> poll_tx();   receive.spans(), consume() ->
//      poll_tx()
//
// Nothing here reads a clock, draws a random number, allocates on the packet path or calls back: the time is
// a parameter, secrets come in through OpenOptions, what happened comes out as Events. After any call that
// may have given it something to send the caller asks poll_tx(), once a burst: that is where acknowledgements
// are decided and data leaves. One thread's.
#pragma once

#include "netchannel/frame.hpp"
#include "proto/tcp/receive_queue.hpp"
#include "proto/tcp/scoreboard.hpp"
#include "proto/tcp/segment.hpp"
#include "proto/tcp/send_queue.hpp"
#include "proto/tcp/shared.hpp"
#include "proto/tcp/state.hpp"

namespace netchannel::tcp {

struct Connection {
  explicit Connection(Shared& shared_nodes)
      : shared(&shared_nodes), send(shared_nodes.frames), sent(shared_nodes.records), receive(shared_nodes) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  TcpState state;
  Shared* shared;
  SendQueue send;
  Scoreboard sent;
  ReceiveQueue receive;
};

// What the owner should look at after a call; a set of bits.
enum Event : std::uint16_t {
  kConnected = 1 << 0,    // now established
  kReadable = 1 << 1,     // more bytes are ready
  kWritable = 1 << 2,     // room in the send buffer again
  kPeerClosed = 1 << 3,   // the peer's FIN is in its turn: end of stream after what is ready
  kClosed = 1 << 4,       // over: state.failure says why; free it after a last poll_tx() (it may owe a RST)
  kTimeWait = 1 << 5,     // in TIME-WAIT: may be replaced by a TimeWait (time_wait.hpp)
  kSoftError = 1 << 6,    // state.soft_failure is new
  kPathSuspect = 1 << 7,  // R1 is reached: ask for the route and the neighbour again (RFC 9293 section 3.8.3)
  kAllAcked = 1 << 8,     // everything written, and the FIN, has been acknowledged
  kReplaced = 1 << 9,  // in TIME-WAIT, and a new SYN may have its place (RFC 6191): free it, ask the listener
};
using Events = std::uint16_t;

struct OpenOptions {
  Settings settings;
  Seq iss;                          // isn.hpp
  std::uint32_t ts_offset = 0;      // isn.hpp
  std::uint16_t path_mss = 1460;    // MTU of the path less 40 (IPv4) or 60 (IPv6)
  std::uint16_t default_mss = 536;  // 1220 for IPv6 (MUST-15): if the peer offers none
};

// What the handshake of a listener has found out (listen.hpp).
struct Handshake {
  Seq iss, irs;
  std::uint32_t ts_offset = 0;
  std::uint16_t peer_mss = 536;
  std::uint16_t offered_mss = 1460;
  std::uint16_t path_mss = 1460;
  std::uint16_t default_mss = 536;
  std::uint16_t window = 0;  // that the SYN-ACK offered
  std::uint8_t peer_wscale = 0;
  std::uint8_t our_wscale = 0;
  bool window_scaling = false;
  bool timestamps = false;
  bool sack = false;
  bool ecn = false;
  std::uint8_t retransmissions = 0;  // of the SYN-ACK
  std::uint32_t ts_recent = 0;
  Instant syn_ack_at = kForever;  // when the SYN-ACK was sent first; kForever: not known (a cookie)
  friend bool operator==(const Handshake&, const Handshake&) = default;
};

// The shift that a receive buffer of receive_buffer_max bytes needs (RFC 7323 section 2.3).
std::uint8_t window_scale_for(const Settings& settings);

// CLOSED -> SYN-SENT. The connection is new.
void connect(Connection& c, const OpenOptions& options, Instant now);
// A new connection in SYN-RECEIVED whose SYN-ACK has been sent; the segment that ended the handshake is to be
// given to on_segment() next.
void accept(Connection& c, const Handshake& handshake, const Settings& settings, Instant now);

// RFC 9293 section 3.10.7. Takes from segment.payload the frames that it keeps.
Events on_segment(Connection& c, SegmentIn& segment, Instant now);

// Appends to `out` what is to be sent now, up to the limits; true if there is more. What is in the batch
// counts as sent.
bool poll_tx(Connection& c, TxBatch& out, const TxLimits& limits, Instant now);

// When on_timer() wants to be called; kForever if never.
Instant next_deadline(const TcpState& state);
Events on_timer(Connection& c, Instant now);
// Ends with a RST a connection whose data has waited since `before` or longer for a window that the peer
// keeps closed. For a stack that has run out of frames (RFC 6429 section 3); else the application decides how
// long.
Events end_if_stalled(Connection& c, Instant before);

struct WriteFrames {
  std::uint16_t headroom = 128;            // left free in each frame for headers
  std::uint32_t most_frames = 0xffffffff;  // that may be taken from the pool
  bool fill_slots = false;  // what is sent is gathered from several frames anyway: they need not end
                            // where segments do
  bool sparing = false;  // frames are scarce: fill those that are there, at the price of a copy when sending
};
// Copies as much of `data` as the send buffer has room and the pool has frames for; returns how much. 0 in
// states that send nothing.
std::size_t write(Connection& c, Bytes data, FramePool& pool, const WriteFrames& frames);
inline std::size_t write(Connection& c, Bytes data, FramePool& pool, std::uint16_t headroom) {
  return write(c, data, pool, WriteFrames{.headroom = headroom});
}
// Bytes that write() would take now, frames permitting.
std::uint32_t writable(const Connection& c);
// Bytes that are worth holding for sending when frames are scarce: what the windows let be in flight, so
// nothing while the peer's is closed. kWritable tells when a closed window has opened.
std::uint32_t useful_to_hold(const Connection& c);
// More is coming at once (MSG_MORE, TCP_CORK), or not any more.
void set_cork(Connection& c, bool on);
// Switched on it also sends what waits, be it for an acknowledgement or for a cork (tcp(7), TCP_NODELAY).
void set_no_delay(Connection& c, bool on);
// Probes of an idle connection (SO_KEEPALIVE): the first when settings.keepalive_idle has passed from now and
// from the last segment.
void set_keepalive(Connection& c, bool on, Instant now);

// The application is done with the first `bytes` ready bytes (at most receive.readable()).
void consume(Connection& c, std::size_t bytes, Instant now);
// The same with the first ready frame whole, which is the caller's now.
Frame take(Connection& c, Instant now);

// Sends a FIN after what was written. Does nothing if that is so already.
void shutdown_write(Connection& c);
// Nobody reads or writes any more: FIN, or RST if unread data is thrown away (RFC 2525 section 2.17). Goes on
// until kClosed or kTimeWait.
Events close(Connection& c, Instant now);
// RST (MUST-99); closed at once.
Events abort(Connection& c);

// An ICMP error that quotes a segment of this connection (icmp_errors.cpp).
enum class IcmpError : std::uint8_t {
  soft,     // net or host unreachable, time exceeded, parameter problem (MUST-56)
  hard,     // protocol or port unreachable, administratively prohibited (SHLD-26)
  too_big,  // fragmentation needed, packet too big: `mss` is what fits
};
struct IcmpReport {
  IcmpError error = IcmpError::soft;
  Seq quoted;             // sequence number in the quoted header
  std::uint16_t mss = 0;  // of too_big: the reported MTU less the headers, floor applied
};
Events on_icmp(Connection& c, const IcmpReport& report);
// This host itself cannot reach the peer: no route, or the neighbour does not answer. Ends a handshake
// (nobody can have forged it), and is a soft error after that.
Events on_unreachable(Connection& c);
// The peer is no more, and everything that it had sent is here. To whoever has received its FIN, or wants
// nothing more of it, the connection is over; to others it is reset.
Events on_peer_gone(Connection& c);
// The path takes segments of this size now (payload without options), by whatever way that was learnt.
void set_path_mss(Connection& c, std::uint16_t mss);

}  // namespace netchannel::tcp
