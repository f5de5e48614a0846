#include <signal.h>
#include <sys/signalfd.h>

#include <array>
#include <charconv>
#include <cstdio>

#include "base/unique_fd.hpp"
#include "tests/system/stream_pattern.hpp"
#include "tests/system/stream_peer.hpp"

namespace netchannel::stream_peer {
namespace {

constexpr std::size_t kTurn = 256 << 10;  // bytes of one connection before the others have their turn
constexpr std::size_t kLongestHead = 16 << 10;

void tell_end(const TcpSocket& socket, const Error& error) {
  std::printf("stream_peer: the connection of %s ended: %s\n", socket.peer().to_string().c_str(),
              std::string(to_string(error.code)).c_str());
  std::fflush(stdout);
}

// Serves one client: GET /N answers N bytes of the pattern, PUT the SHA-256 of the body, one request after
// the other.
class HttpConnection final : public Connection {
 public:
  using Connection::Connection;

  bool turn() override {
    Result<bool> went = true;
    for (std::size_t turned = 0; turned < kTurn && went && *went;) {
      went = answering_ ? send_answer(turned) : hear(turned);
    }
    wants = answering_ ? kWritable : kReadable;
    if (went) return *went;
    if (went.error().code == ErrorCode::would_block) return true;
    tell_end(socket, went.error());
    return false;
  }

 private:
  // Both return false at the end of the connection, would_block when they wait.
  Result<bool> hear(std::size_t& turned) {
    std::array<Bytes, 16> views;
    const auto n = socket.receive(views, kNow);
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) return false;
    turned += *n;
    std::size_t used = 0;
    for (Bytes view : views) {
      while (!view.empty() && !answering_) {
        const std::size_t taken = body_left_ > 0 ? hear_body(view) : hear_head(view);
        if (taken == 0) return false;
        view = view.subspan(taken);
        used += taken;
      }
    }
    socket.consume(used);
    return true;
  }

  // Takes `view` as far as the head goes; 0: it is too long.
  std::size_t hear_head(Bytes view) {
    const std::size_t before = text_.size();
    text_.append(reinterpret_cast<const char*>(view.data()), view.size());
    const auto end = text_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end == text_.npos) return text_.size() > kLongestHead ? 0 : view.size();
    text_.resize(end + 4);
    head_ = *parse_head(text_);
    begin();
    return end + 4 - before;
  }

  void begin() {
    text_.clear();
    body_.emplace();
    body_left_ = head_.content_length.value_or(0);
    if (body_left_ == 0) {
      answer();
    } else if (head_.expect_continue) {
      text_ = "HTTP/1.1 100 Continue\r\n\r\n";
      answering_ = true;
    }
  }

  std::size_t hear_body(Bytes view) {
    const Bytes here = view.first(std::min<std::uint64_t>(view.size(), body_left_));
    body_->add(here);
    body_left_ -= here.size();
    if (body_left_ == 0) answer();
    return here.size();
  }

  void answer() {
    const std::string &method = head_.first_line[0], &target = head_.first_line[1];
    std::uint64_t size = 0;
    const char* digits = target.data() + 1;
    const char* past = target.data() + target.size();
    if (method == "PUT") {
      const std::string sum = body_->finish() + "\n";
      start_answer("200 OK", sum.size());
      text_ += sum;
    } else if (method == "GET" && target.size() > 1 && std::from_chars(digits, past, size).ptr == past) {
      start_answer("200 OK", size);
      source_ = PatternSource(size);
    } else {
      start_answer("404 Not Found", 0);
    }
  }
  void start_answer(const char* status, std::uint64_t length) {
    text_ = std::string("HTTP/1.1 ") + status + "\r\nContent-Length: " + std::to_string(length) +
            (head_.close ? "\r\nConnection: close" : "") + "\r\n\r\n";
    source_ = PatternSource(0);
    answering_ = true;
  }

  Result<bool> send_answer(std::size_t& turned) {
    while (!text_.empty()) {
      const auto n =
          socket.write(std::as_bytes(std::span(text_)), source_.done() ? More::no : More::yes, kNow);
      if (!n) return tl::unexpected(n.error());
      text_.erase(0, *n);
    }
    constexpr std::size_t kPiece = 64 << 10;
    turned += kPiece;
    const auto room = source_.write(socket, kPiece);
    if (!room) return tl::unexpected(room.error());
    if (!source_.done()) {
      if (!*room) return fail(ErrorCode::would_block, "no room to write");
      return true;
    }
    answering_ = false;
    return body_left_ > 0 || !head_.close;
  }

  std::string text_;  // the head so far, or of the answer what has not been written
  Head head_;
  bool answering_ = false;
  std::uint64_t body_left_ = 0;
  std::optional<Sha256> body_;
  PatternSource source_{0};
};

// Returns what comes, out of the frames it came in, until the peer ends.
class EchoConnection final : public Connection {
 public:
  using Connection::Connection;
  bool turn() override {
    wants = kReadable;
    std::array<Bytes, 16> views;
    const auto n = socket.receive(views, kNow);
    if (!n) {
      if (n.error().code == ErrorCode::would_block) return true;
      tell_end(socket, n.error());
      return false;
    }
    if (*n == 0) return false;
    const auto put = socket.write(views, More::no, kNow);
    if (put) socket.consume(*put);
    if (put ? *put < *n : put.error().code == ErrorCode::would_block) {
      wants = kWritable;
      return true;
    }
    if (!put) tell_end(socket, put.error());
    return put.has_value();
  }
};

template <class Kind>
std::unique_ptr<Connection> made(TcpSocket socket) {
  return std::make_unique<Kind>(std::move(socket));
}

UniqueFd signals_as_descriptor() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

int serve(Host& host, const ServeOptions& options) {
  const UniqueFd signals = signals_as_descriptor();
  Loop loop(host);
  const std::pair<std::uint16_t, Loop::Accept> doors[] = {{options.http_port, made<HttpConnection>},
                                                          {options.echo_port, made<EchoConnection>}};
  for (const auto& [port, accept] : doors) {
    // A socket for both families, as the kernel makes it of the unspecified IPv6 address.
    auto listener = host.listen({IpAddress::any_v6(), port}, {.tcp = options.tcp});
    if (!listener) {
      std::printf("stream_peer: port %u: %s\n", port, describe(listener.error()).c_str());
      return 1;
    }
    loop.add(std::move(*listener), accept);
  }
  loop.stop_on(signals.get());
  std::printf("stream_peer: serves on %s (%s)\n", std::string(to_string(host.path())).c_str(),
              host.mode().c_str());
  std::fflush(stdout);
  loop.run(kForever);
  return 0;
}

}  // namespace netchannel::stream_peer
