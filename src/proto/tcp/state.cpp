#include "proto/tcp/state.hpp"

#include <string_view>

namespace netchannel::tcp {

std::string_view to_string(State state) {
  switch (state) {
    case State::closed:
      return "CLOSED";
    case State::listen:
      return "LISTEN";
    case State::syn_sent:
      return "SYN-SENT";
    case State::syn_received:
      return "SYN-RECEIVED";
    case State::established:
      return "ESTABLISHED";
    case State::fin_wait_1:
      return "FIN-WAIT-1";
    case State::fin_wait_2:
      return "FIN-WAIT-2";
    case State::close_wait:
      return "CLOSE-WAIT";
    case State::closing:
      return "CLOSING";
    case State::last_ack:
      return "LAST-ACK";
    case State::time_wait:
      return "TIME-WAIT";
  }
  return "?";
}

std::string_view to_string(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "none";
    case Failure::refused:
      return "refused";
    case Failure::reset:
      return "reset";
    case Failure::timed_out:
      return "timed out";
    case Failure::unreachable:
      return "unreachable";
    case Failure::aborted:
      return "aborted";
  }
  return "?";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::open:
      return "open";
    case Phase::reducing:
      return "reducing";
    case Phase::recovery:
      return "recovery";
    case Phase::loss:
      return "loss";
  }
  return "?";
}

std::string to_string(const TcpState& s) {
  const auto since = [](Seq from, Seq to) { return std::to_string(to - from); };
  std::string out(to_string(s.state));
  if (s.failure != Failure::none) out.append(" (").append(to_string(s.failure)).append(")");
  out += " snd una+" + since(s.iss, s.snd_una) + " nxt+" + since(s.iss, s.snd_nxt) + " wnd " +
         std::to_string(s.snd_wnd);
  out += " rcv nxt+" + since(s.irs, s.rcv_nxt) + " adv+" + since(s.irs, s.rcv_adv);
  out.append(" ").append(to_string(s.recovery.phase));
  out += " cwnd " + std::to_string(s.congestion.cwnd);
  out += s.congestion.ssthresh == kNoThreshold ? std::string(" ssthresh -")
                                               : " ssthresh " + std::to_string(s.congestion.ssthresh);
  out += " srtt " + std::to_string(s.rtt.srtt.count() / 1000) + "us rto " +
         std::to_string(s.rtt.timeout().count() / 1000) + "us";
  return out;
}

}  // namespace netchannel::tcp
