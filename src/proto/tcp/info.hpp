// What a connection looks like from outside, under the names of Linux's struct tcp_info, in its units: times
// in microseconds or, where the name says last_, in milliseconds ago; windows in segments.
#pragma once

#include "proto/tcp/connection.hpp"

namespace netchannel::tcp {

struct TcpInfo {
  State state = State::closed;
  std::uint8_t ca_state = 0;     // 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss
  std::uint8_t retransmits = 0;  // timeouts of the segment that is waited for
  std::uint8_t probes = 0;       // unanswered window or keepalive probes
  std::uint8_t backoff = 0;
  bool timestamps = false, sack = false, window_scaling = false, ecn = false;
  std::uint8_t snd_wscale = 0, rcv_wscale = 0;
  std::uint32_t rto = 0, ato = 0;
  std::uint32_t snd_mss = 0, rcv_mss = 0, advmss = 0, pmtu_mss = 0;
  std::uint32_t unacked = 0, sacked = 0, lost = 0;  // segments
  std::uint32_t last_data_sent = 0, last_data_recv = 0, last_ack_recv = 0;
  std::uint32_t rtt = 0, rttvar = 0, min_rtt = 0;
  std::uint32_t snd_ssthresh = 0, snd_cwnd = 0;  // segments; a threshold of 0x7fffffff: none
  std::uint32_t snd_wnd = 0, rcv_space = 0;      // bytes
  std::uint32_t total_retrans = 0, segs_in = 0, segs_out = 0;
  std::uint64_t bytes_acked = 0, bytes_received = 0, bytes_retrans = 0;
  std::uint32_t notsent_bytes = 0;
};

TcpInfo info(const Connection& c, Instant now);

}  // namespace netchannel::tcp
