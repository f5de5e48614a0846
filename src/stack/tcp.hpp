// TCP as a stack offers it to its owner: listeners, connections and what is ready. The protocol itself is
// proto/tcp; around it stand here the table that finds a segment's connection, the timers, the accept queues
// and the way of segments into frames.
//
//   segment --> table --> connection: on_segment() ---.
//                 |-----> TIME-WAIT entry              |--> touched; after the burst each is asked once:
//                 '-----> listener --> accept queue    |    poll_tx() -> frames -> channel
//   write(), consume(), close(), timers --------------'
//
// Nothing here blocks or allocates once the stack is open (a connection's few words come from memory that was
// reserved then). Calls take effect on the wire with flush() or the stack's next poll. One thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "netchannel/address.hpp"
#include "netchannel/error.hpp"
#include "netchannel/frame.hpp"
#include "proto/tcp/connection.hpp"
#include "proto/tcp/info.hpp"

namespace netchannel::stack {

// Names a connection of one stack. Never reused within 2^32 closings of the same place.
struct TcpHandle {
  std::uint32_t place = 0;  // 0: none
  std::uint32_t generation = 0;
  explicit operator bool() const { return place != 0; }
  friend auto operator<=>(const TcpHandle&, const TcpHandle&) = default;
};

struct TcpListenerHandle {
  std::uint32_t value = 0;  // 0: none
  explicit operator bool() const { return value != 0; }
  friend auto operator<=>(const TcpListenerHandle&, const TcpListenerHandle&) = default;
};

// Something that the owner keeps for as long as a listener or any connection that came of it lives (a port's
// reservation): the stack counts, the owner asks (uses()).
using LeaseId = std::uint32_t;

struct TcpListen {
  Endpoint local;               // 0.0.0.0 or ::, or one of ours; a port
  bool v6_only = false;         // for "::": IPv4 does not arrive here
  std::uint32_t backlog = 128;  // connections that may wait to be accepted
  std::uint32_t syn_queue = 1024;
  bool cookies = true;  // when the SYN queue is full
  std::uint8_t ttl = 64, tos = 0;
  LeaseId lease = 0;
  tcp::Settings settings{};  // of the connections to come
};

struct TcpConnect {
  Endpoint local{};  // unspecified address: chosen by the route; port 0: an ephemeral one is chosen
  Endpoint peer;
  std::uint8_t ttl = 64, tos = 0;
  LeaseId lease = 0;
  tcp::Settings settings{};
};

struct TcpReady {
  TcpHandle connection;        // or
  TcpListenerHandle listener;  // which has a connection to be accepted
  tcp::Events events = 0;      // of the connection, since it was named here last
};

struct TcpLimits {
  std::uint32_t connections = 65536;  // cost memory only while they live
  std::uint32_t time_waits = 16384;   // beyond: a connection ends without one (counted)
  std::uint32_t listeners = 1024;
  std::uint32_t resets_per_second = 1000;  // for segments of no connection
};

struct World;

class Tcp {
 public:
  explicit Tcp(World& world);
  ~Tcp();
  Tcp(const Tcp&) = delete;
  Tcp& operator=(const Tcp&) = delete;

  // Errors: address_not_available, address_in_use, invalid_argument (no port), no_memory.
  Result<TcpListenerHandle> listen(const TcpListen& options);
  // Handshakes end, what was not accepted is reset.
  void close(TcpListenerHandle listener);
  // No value: nobody waits.
  std::optional<TcpHandle> accept(TcpListenerHandle listener);
  std::uint32_t waiting(TcpListenerHandle listener) const;

  // The SYN leaves with the next flush(). Errors: address_not_available (not ours; no port free),
  // address_in_use (the pair is taken), unreachable (no route on this device), invalid_argument, no_memory.
  Result<TcpHandle> connect(const TcpConnect& options);
  // The address that a connection to `peer` goes out from: `local`, unless that is unspecified. Errors: as
  // connect().
  Result<IpAddress> source_for(const Endpoint& peer, const IpAddress& local) const;
  // Whether a connection has that pair, or a TIME-WAIT that a new connection must wait for.
  bool taken(const Endpoint& local, const Endpoint& peer) const;

  // Null after close() and abort().
  const tcp::Connection* find(TcpHandle connection) const;
  Endpoint local(TcpHandle connection) const;
  Endpoint peer(TcpHandle connection) const;
  tcp::TcpInfo info(TcpHandle connection) const;

  // Copies what there is room for; returns how much.
  std::size_t write(TcpHandle connection, Bytes data);
  std::uint32_t writable(TcpHandle connection) const;
  // Whether writable() is not 0; if it is, kWritable will be among the events when that has changed.
  bool may_write(TcpHandle connection);
  // Views of the bytes that are ready, until consume() or take(). Returns how many were filled.
  std::size_t spans(TcpHandle connection, std::span<Bytes> out) const;
  void consume(TcpHandle connection, std::size_t bytes);
  // The first ready frame with all its bytes, the caller's now.
  Frame take(TcpHandle connection);

  void shutdown_write(TcpHandle connection);
  // Nobody reads or writes any more; goes on by itself until all is sent and acknowledged.
  void close(TcpHandle connection);
  void abort(TcpHandle connection);
  // Changes take effect with the next segment or timer. Null after close().
  tcp::Settings* settings(TcpHandle connection);
  void set_cork(TcpHandle connection, bool on);
  void set_no_delay(TcpHandle connection, bool on);
  // By the settings' idle time, from now on.
  void set_keepalive(TcpHandle connection, bool on);
  void set_tos(TcpHandle connection, std::uint8_t tos);

  // Connections and listeners that something happened to since they were last named here, each once.
  std::size_t take_ready(std::span<TcpReady> out);

  // How many listeners, connections and TIME-WAITs stand on that lease.
  std::uint32_t uses(LeaseId lease) const;
  // Whether a peer of a connection that stood on that lease may not be ready yet for another from the same
  // pair of ports, though none of ours has it any more.
  bool rests(LeaseId lease) const;
  std::size_t connections() const;  // alive, those nobody owns any more included; without TIME-WAITs
  std::size_t time_waits() const;

  // Sends what is due of all that was touched.
  void flush();

  // For the stack's other files.
  struct Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace netchannel::stack
