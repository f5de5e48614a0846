#include "proto/tcp/info.hpp"

#include <algorithm>

namespace netchannel::tcp {
namespace {

template <class Unit>
std::uint32_t in(Duration d) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(std::chrono::duration_cast<Unit>(d).count(), 0, 0xffffffff));
}

std::uint8_t ca_state(const Connection& c) {
  switch (c.state.recovery.phase) {
    case Phase::open:
      return c.sent.sacked() != 0 || c.state.recovery.dup_acks != 0 ? 1 : 0;
    case Phase::reducing:
      return 2;
    case Phase::recovery:
      return 3;
    case Phase::loss:
      return 4;
  }
  return 0;
}

}  // namespace

TcpInfo info(const Connection& c, Instant now) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  const TcpState& s = c.state;
  const std::uint32_t mss = std::max(s.congestion.mss, 1U);
  const auto segments = [mss](std::uint32_t bytes) { return (bytes + mss - 1) / mss; };
  TcpInfo out;
  out.state = s.state;
  out.ca_state = ca_state(c);
  const bool probing = s.timers.persist != kForever;
  out.retransmits = probing ? std::uint8_t{0} : s.attempts;
  out.probes = probing ? s.attempts : s.keepalives;
  out.backoff = s.rtt.backoff;
  out.timestamps = s.timestamps;
  out.sack = s.sack;
  out.window_scaling = s.window_scaling;
  out.ecn = s.ecn;
  out.snd_wscale = s.snd_wscale;
  out.rcv_wscale = s.rcv_wscale;
  out.rto = in<microseconds>(s.rtt.timeout());
  out.ato = in<microseconds>(s.settings.delayed_ack);
  out.snd_mss = effective_mss(s);
  out.rcv_mss = s.receiver.mss;
  out.advmss = s.offered_mss;
  out.pmtu_mss = s.path_mss;
  out.unacked = segments(distance(s.snd_una, s.snd_nxt));
  out.sacked = segments(c.sent.sacked());
  out.lost = segments(c.sent.lost());
  out.last_data_sent = in<milliseconds>(now - s.sent_at);
  out.last_data_recv = in<milliseconds>(now - s.receiver.data_at);
  out.last_ack_recv = in<milliseconds>(now - s.received_at);
  out.rtt = in<microseconds>(s.rtt.srtt);
  out.rttvar = in<microseconds>(s.rtt.rttvar);
  out.min_rtt = s.rtt.min() == RttEstimator::kNone ? 0xffffffff : in<microseconds>(s.rtt.min());
  out.snd_ssthresh = s.congestion.ssthresh == kNoThreshold ? 0x7fffffff : s.congestion.ssthresh / mss;
  out.snd_cwnd = s.congestion.cwnd / mss;
  out.snd_wnd = s.snd_wnd;
  out.rcv_space = s.receiver.buffer;
  out.total_retrans = s.segments_retransmitted;
  out.segs_in = s.segments_in;
  out.segs_out = s.segments_out;
  out.bytes_acked = s.bytes_acked;
  out.bytes_received = s.bytes_received;
  out.bytes_retrans = s.bytes_retransmitted;
  out.notsent_bytes = s.snd_nxt < c.send.end() ? distance(s.snd_nxt, c.send.end()) : 0;
  return out;
}

}  // namespace netchannel::tcp
