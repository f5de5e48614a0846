// The parts of stream_peer, a program for system tests that speaks over the public interface of the library:
// an HTTP server and client, small but able to talk to programs of others, and an echo service and its
// client. What is served is the pattern of stream_pattern.hpp; what is heard is hashed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "netchannel/host.hpp"

namespace netchannel::stream_peer {

// The head of an HTTP/1.1 message (RFC 9112), as far as it is understood here.
struct Head {
  std::vector<std::string> first_line;  // its words: "GET" "/5" "HTTP/1.1", or "HTTP/1.1" "200" ...
  std::optional<std::uint64_t> content_length;
  bool close = false;            // the connection ends behind this message
  bool expect_continue = false;  // the body follows once 100 has been answered
};
// The head that stands whole at the front of `text`, through its empty line.
std::optional<Head> parse_head(std::string_view text);

// The first bytes of the pattern on their way into a socket.
class PatternSource {
 public:
  explicit PatternSource(std::uint64_t size) : size_(size) {}
  // Writes what goes now, `most` bytes at most, more while there is room. False: no room.
  Result<bool> write(TcpSocket& socket, std::size_t most);
  bool done() const { return at_ == size_; }

 private:
  std::uint64_t size_, at_ = 0;
  std::uint64_t made_from_ = 0;  // the stream offset of chunk_
  std::vector<std::byte> chunk_;
};

// A connection in the loop: turned when its socket is ready for what it waits for.
class Connection {
 public:
  explicit Connection(TcpSocket given) : socket(std::move(given)) {}
  virtual ~Connection() = default;
  // Bounded work. False: it is over.
  virtual bool turn() = 0;

  TcpSocket socket;
  std::uint32_t wants = kReadable;  // Readiness
};

// Connections and listeners of a host, each turned when it can go on.
class Loop {
 public:
  explicit Loop(Host& host) : host_(host) {}
  void add(std::unique_ptr<Connection> connection);
  using Accept = std::unique_ptr<Connection> (*)(TcpSocket);
  // What it accepts is added. Listeners are watched from then on.
  void add(TcpListener listener, Accept accept);
  void stop_on(int descriptor);  // run() ends when it is readable
  // Until the deadline, the stop or, where nothing listens, the last connection's end.
  void run(Instant deadline);
  bool empty() const { return connections_.empty(); }

 private:
  struct Door {
    TcpListener listener;
    Accept accept;
  };
  void watch(std::uint64_t token, Connection& connection, bool again);
  void turn(std::uint64_t token);
  void accept_all(Door& door);

  Host& host_;
  std::vector<std::unique_ptr<Door>> doors_;  // their tokens come first
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_token_ = kFirstConnection;
  static constexpr std::uint64_t kStop = 0, kFirstDoor = 1, kFirstConnection = 1000;
};

struct ServeOptions {
  std::uint16_t http_port = 80, echo_port = 7;
  TcpOptions tcp{};
};
// Until SIGTERM or SIGINT. Exit status.
int serve(Host& host, const ServeOptions& options);

// stream: send so many bytes and the end, hear what comes until the end, without HTTP.
enum class Task : std::uint8_t { get, put, stream };
struct FetchOptions {
  Task task = Task::get;
  Endpoint peer;
  std::string target;      // of the request
  std::uint64_t size = 0;  // sent by put and stream
  std::uint32_t connections = 1;
  std::uint32_t repeat = 1;  // requests on each connection, one behind the other
  Duration time{0};          // get: take what comes in so long, and end; 0: all of it
  Duration warm_up{0};       // before that time
  Duration timeout = std::chrono::seconds(60);
  TcpOptions tcp{};
};
// Prints a line for each kind of outcome: how often it came, and what it was. Exit status: 0 if all went
// well.
int fetch(Host& host, const FetchOptions& options);

}  // namespace netchannel::stream_peer
