// The services of `serve` over TCP: echo and mirror send back what each connection says, discard takes it and
// forgets. All connections stand in the host's poller and none is ever waited for. One that does not read its
// echoes is not read from until it does; so each holds no more than its two sockets do.
//
// A client that ends its direction has all its echoes and then our end.
#pragma once

#include <map>
#include <vector>

#include "netchannel/host.hpp"

namespace netchannel::bench {

class TcpServices {
 public:
  enum class Kind : std::uint8_t { echo, discard };
  static constexpr std::uint64_t kFirstToken = std::uint64_t{1} << 32;  // its tokens in the poller begin here
  static constexpr std::size_t kMostConnections = 1024;                 // beyond: closed at once

  explicit TcpServices(Host& host) : host_(host) {}
  // Errors: as Host::listen.
  Result<void> open(Kind kind, const Endpoint& local);
  // What the poller said of one of its tokens; unknown ones (of a connection that has ended) do nothing.
  void handle(const Event& event);
  std::size_t connections() const { return connections_.size(); }

 private:
  struct Listener {
    Kind kind;
    TcpListener socket;
  };
  struct Connection {
    Kind kind;
    TcpSocket socket;
    bool waits_for_room = false;
  };
  void accept(Listener& listener);
  bool serve(std::uint64_t token, Connection& connection);
  void watch(std::uint64_t token, Connection& connection);

  Host& host_;
  std::map<std::uint64_t, Listener> listeners_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_token_ = kFirstToken;  // never used twice
};

}  // namespace netchannel::bench
