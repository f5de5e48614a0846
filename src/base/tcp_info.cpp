#include "netchannel/tcp_info.hpp"

namespace netchannel {

std::string_view to_string(TcpConnectionState state) {
  switch (state) {
    case TcpConnectionState::established:
      return "ESTAB";
    case TcpConnectionState::syn_sent:
      return "SYN-SENT";
    case TcpConnectionState::syn_recv:
      return "SYN-RECV";
    case TcpConnectionState::fin_wait1:
      return "FIN-WAIT-1";
    case TcpConnectionState::fin_wait2:
      return "FIN-WAIT-2";
    case TcpConnectionState::time_wait:
      return "TIME-WAIT";
    case TcpConnectionState::close:
      return "UNCONN";
    case TcpConnectionState::close_wait:
      return "CLOSE-WAIT";
    case TcpConnectionState::last_ack:
      return "LAST-ACK";
    case TcpConnectionState::listen:
      return "LISTEN";
    case TcpConnectionState::closing:
      return "CLOSING";
  }
  return "?";
}

}  // namespace netchannel
