// The asking side of tcp_crr, as a program asks that knows no persistent connections: connect, one request,
// its whole reply and the end of the stream behind it, close. That is one transaction, and its time is one
// sample. The server ends first, so the TIME-WAIT and its port are the server's, and a client's ports last.
//
// One pair waits in each call, as a plain program does; several on one host (a channel path) go forward each
// as far as it can, in turn.
#pragma once

#include <optional>
#include <vector>

#include "bench/rr_client.hpp"

namespace netchannel::bench {

class CrrClient {
 public:
  CrrClient(Host& host, const BlockOptions& options, const Far& far);
  // Runs for that long, or until an interrupt, and ends what it has begun. Can be called again.
  RrResult run(double seconds);

 private:
  enum class State : std::uint8_t { idle, connecting, asking, waiting };
  struct Flow {
    Endpoint peer{};
    std::optional<TcpSocket> socket{};
    State state = State::idle;
    Instant started{};
    std::size_t done = 0;  // bytes of the request, then of the reply
    std::vector<std::byte> request{}, reply{};
  };
  bool step(Flow& flow, Instant deadline);
  void begin(Flow& flow, Instant deadline);
  void ask(Flow& flow, Instant deadline);
  void read(Flow& flow, Instant deadline);
  void end(Flow& flow);
  bool went_on(const Error& error);

  Host& host_;
  BlockOptions options_;
  bool patient_;
  std::vector<Flow> flows_;
  std::uint32_t next_number_ = 0;
  bool beginning_ = true;  // new transactions
  RrResult result_;
};

}  // namespace netchannel::bench
