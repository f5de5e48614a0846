// What a TCP connection looks like from outside, under the names of Linux's struct tcp_info (tcp(7),
// TCP_INFO) without their prefix and in its units: times in microseconds or, where the name says last_, in
// milliseconds ago; windows in segments. The same on every path; what a path does not know is 0.
#pragma once

#include <cstdint>
#include <string_view>

namespace netchannel {

// Names and numbers of include/net/tcp_states.h.
enum class TcpConnectionState : std::uint8_t {
  established = 1,
  syn_sent,
  syn_recv,
  fin_wait1,
  fin_wait2,
  time_wait,
  close,
  close_wait,
  last_ack,
  listen,
  closing,
};
// "ESTAB", "SYN-SENT", ... as ss(8) prints them.
std::string_view to_string(TcpConnectionState state);

struct TcpInfo {
  TcpConnectionState state = TcpConnectionState::close;
  std::uint8_t ca_state = 0;     // 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss
  std::uint8_t retransmits = 0;  // timeouts of the segment that is waited for
  std::uint8_t probes = 0;       // unanswered window or keepalive probes
  std::uint8_t backoff = 0;
  bool timestamps = false, sack = false, window_scaling = false, ecn = false;  // options
  std::uint8_t snd_wscale = 0, rcv_wscale = 0;
  std::uint32_t rto = 0, ato = 0;
  std::uint32_t snd_mss = 0, rcv_mss = 0, advmss = 0;
  std::uint32_t pmtu_mss = 0;                       // of the path, without options
  std::uint32_t unacked = 0, sacked = 0, lost = 0;  // segments
  std::uint32_t last_data_sent = 0, last_data_recv = 0, last_ack_recv = 0;
  std::uint32_t rtt = 0, rttvar = 0, min_rtt = 0;
  std::uint32_t snd_ssthresh = 0, snd_cwnd = 0;  // segments; a threshold of 0x7fffffff: none
  std::uint32_t snd_wnd = 0, rcv_space = 0;      // bytes
  std::uint32_t total_retrans = 0, segs_in = 0, segs_out = 0;
  std::uint64_t bytes_acked = 0, bytes_received = 0, bytes_retrans = 0;
  std::uint32_t notsent_bytes = 0;
};

}  // namespace netchannel
