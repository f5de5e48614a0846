// The transport over the API's TCP connections, on every path: messages of one size, one behind the other,
// found again in the stream by counting bytes. For tcp_rr a server answers whole requests with whole
// replies, as a server does that must have read a request to know its answer; for tcp_stream the receiver is
// given the bytes as they come, since nothing waits for a message's end.
//
//   views of one receive():  | ..rest of 4 | 5 | 6 | 7.. |
//                              put together    \   /   `-- kept until the rest is here
//                              with what was    in place
//                              kept of 4
//
// A server listens once, on a port that all pairs share, and takes the connections that its client announced
// before it receives anything. A client writes without waiting where it has to receive as well, so that two
// ends with full buffers cannot wait for each other; what did not fit goes before what comes next.
#pragma once

#include <optional>

#include "bench/ready_ports.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

// Writes all of it, going on after signals; false if the connection does not take it in time.
bool write_all(TcpSocket& socket, std::span<const Bytes> from, Instant deadline) noexcept;
// The call has nothing to say: the deadline passed, or a signal came.
bool is_pause(const Error& error);

class TcpTransport final : public HostTransport {
 public:
  static std::unique_ptr<TcpTransport> client(Host& host, const BlockOptions& options);
  // Listens on `near`. Errors: as Host::listen.
  static Result<std::unique_ptr<TcpTransport>> server(Host& host, const BlockOptions& options,
                                                      const IpAddress& near);

  // Errors: as Host::connect.
  Result<void> connect_to(const Far& far, std::uint32_t flows) override;
  // Errors: as TcpSocket::write but would_block, timed_out and interrupted.
  Result<Sent> send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept override;
  // A client's connection that ends is an error (closed); a server's is its client's right.
  Result<std::span<const Arrived>> receive(std::size_t port, std::size_t most,
                                           Instant deadline) noexcept override;
  std::size_t send_back() noexcept override;
  void finish_sending(Instant deadline) noexcept override;
  bool reliable() const override { return true; }
  std::vector<std::uint16_t> ports() const override;
  bool gathers_ports() const override { return false; }

 private:
  struct Connection {
    TcpSocket socket;
    std::vector<std::byte> unsent{};  // of a message that the connection took in part
    std::vector<std::byte> kept{};    // of a message whose rest is not here yet
    bool ended = false;
  };
  TcpTransport(Host& host, const BlockOptions& options);
  Result<void> add(TcpSocket socket);
  Result<void> accept_some(Instant deadline) noexcept;
  Result<std::span<const Arrived>> receive_from(std::size_t port, std::size_t most,
                                                Instant deadline) noexcept;
  Result<std::span<const Arrived>> end_of(std::size_t port) noexcept;
  void cut(Connection& from, std::size_t port, std::span<const Bytes> views, std::size_t most);
  Bytes put_together(Connection& from, Bytes& view);
  bool send_unsent(Connection& connection) noexcept;
  void send_all_unsent() noexcept;
  bool all_acknowledged() const;
  void release() noexcept;

  BlockOptions options_;
  bool patient_;
  bool whole_messages_;
  std::optional<TcpListener> listener_;  // a server's
  std::size_t expected_ = 0;             // connections that a server waits for
  std::vector<Connection> connections_;
  std::size_t unsent_ = 0;  // of them, those that took a message in part
  ReadyPorts ready_;
  std::vector<Arrived> arrived_;
  std::vector<std::vector<std::byte>> whole_;  // messages of the last receive() that were put together
  std::size_t whole_count_ = 0;
  std::vector<Bytes> replies_;
  std::size_t shown_port_ = 0;
  std::size_t shown_ = 0;  // bytes of it that the last receive() handed out, not consumed yet
};

}  // namespace netchannel::bench
