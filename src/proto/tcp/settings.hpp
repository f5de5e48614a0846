// What a socket can choose. Regular values; changing one takes effect with the next segment or timer.
#pragma once

#include <cstdint>

#include "netchannel/time.hpp"
#include "proto/tcp/congestion.hpp"

namespace netchannel::tcp {

enum class EcnMode : std::uint8_t { off, accept, request };  // Linux tcp_ecn 0, 2, 1

struct Settings {
  std::uint32_t receive_buffer = 128 * 1024;           // bytes, to begin with
  std::uint32_t receive_buffer_max = 6 * 1024 * 1024;  // auto-tuning ends here; equal: no auto-tuning
  std::uint32_t send_buffer = 256 * 1024;              // bytes, to begin with
  std::uint32_t send_buffer_max = 4 * 1024 * 1024;     // grows with cwnd up to here

  Duration user_timeout{0};                         // RFC 5482; 0: by `retries`
  Duration keepalive_idle = std::chrono::hours(2);  // RFC 9293 section 3.8.4
  Duration keepalive_interval = std::chrono::seconds(75);
  Duration delayed_ack = std::chrono::milliseconds(40);  // below 500 ms (MUST-40)
  // An acknowledgement that is due because two segments are there may wait so long for up to eight, if the
  // sender does not push: as GRO does it, where segments come one by one. Nor does the last acknowledgement
  // of a handshake leave before, so that the first data can carry it. 0: they do not wait.
  Duration ack_gather{0};
  Duration min_rto = std::chrono::milliseconds(200);  // see rtt.hpp
  Duration time_wait = std::chrono::seconds(60);      // 2 MSL, with Linux's MSL of 30 s
  Duration fin_wait_2 = std::chrono::seconds(60);     // of a connection that nobody reads any more

  std::uint16_t mss_limit = 0;  // TCP_MAXSEG: neither sends nor offers more; 0: the path's
  std::uint8_t keepalive_probes = 9;
  std::uint8_t retries = 15;      // R2 (RFC 9293 section 3.8.3): at least 100 s; 15 is about 15 minutes
  std::uint8_t syn_retries = 7;   // at least 3 minutes (MUST-23)
  std::uint8_t path_retries = 3;  // R1: from here on the path is suspected
  CongestionAlgorithm congestion = CongestionAlgorithm::cubic;
  EcnMode ecn = EcnMode::accept;
  bool timestamps = true;
  bool window_scaling = true;
  bool sack = true;
  bool keepalive = false;  // MUST-25
  bool no_delay = false;   // MUST-17
  bool cork = false;       // partial segments wait for more, 200 ms at most
  bool quick_ack = false;  // never delay an acknowledgement
  bool mtu_black_holes =
      true;  // suspect the segment size when large segments alone are lost (RFC 2923 section 2.1)

  friend bool operator==(const Settings&, const Settings&) = default;
};

}  // namespace netchannel::tcp
