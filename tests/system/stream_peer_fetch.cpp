#include <array>
#include <cstdio>
#include <map>

#include "tests/system/stream_pattern.hpp"
#include "tests/system/stream_peer.hpp"

namespace netchannel::stream_peer {
namespace {

constexpr std::size_t kTurn = 256 << 10;

// What became of the requests, each kind with how often.
using Outcomes = std::map<std::string, std::uint32_t>;
constexpr const char* kFailed = "failed: ";

struct Plan {
  const FetchOptions& options;
  Outcomes& outcomes;
  std::uint64_t bytes = 0;  // of bodies, heard so far
};

// One connection of the client: connects, sends a request and hears the answer, as often as it is told to.
// For stream there is no head on either way, and the end of the stream ends the answer.
class Client final : public Connection {
 public:
  Client(TcpSocket given, Plan& plan) : Connection(std::move(given)), plan_(plan) {
    wants = kWritable;
    begin_request();
  }
  ~Client() override {
    if (!over_) plan_.outcomes[std::string(kFailed) + "not over in time, after " + std::to_string(heard_)]++;
  }

  bool turn() override {
    const auto went = go_on();
    if (went) return *went;
    if (went.error().code == ErrorCode::would_block) return true;
    return end(kFailed + std::string(to_string(went.error().code)));
  }

 private:
  void begin_request() {
    const FetchOptions& o = plan_.options;
    const bool last = ++requests_ == o.repeat;
    const std::uint64_t size = o.task == Task::get ? 0 : o.size;
    source_ = PatternSource(size);
    text_.clear();
    if (o.task != Task::stream) {
      text_ = (o.task == Task::get ? "GET " : "PUT ") + o.target +
              " HTTP/1.1\r\nHost: " + o.peer.to_string() + "\r\n" +
              (o.task == Task::put ? "Content-Length: " + std::to_string(size) + "\r\n" : "") +
              (last ? "Connection: close\r\n" : "") + "\r\n";
    }
    answer_.clear();
    head_.reset();
    sum_ = Sha256();
    heard_ = 0;
    sent_all_ = false;
  }

  // False at the end; would_block when it waits.
  Result<bool> go_on() {
    if (connecting_) {
      if (auto done = socket.finish_connect(kNow); !done) return tl::unexpected(done.error());
      connecting_ = false;
    }
    const auto went = exchange();
    wants = sent_all_ ? kReadable : kReadable | kWritable;
    return went;
  }

  Result<bool> exchange() {
    for (std::size_t turned = 0; turned < kTurn;) {
      const auto sent = send_request(turned);
      if (!sent) return sent;
      const auto heard = hear(turned);
      if (heard && !*heard) return false;
      if (heard || (*sent && !sent_all_)) continue;
      return heard;
    }
    return true;
  }

  // False: no room now.
  Result<bool> send_request(std::size_t& turned) {
    if (sent_all_) return true;
    while (!text_.empty()) {
      const auto n =
          socket.write(std::as_bytes(std::span(text_)), source_.done() ? More::no : More::yes, kNow);
      if (!n)
        return n.error().code == ErrorCode::would_block ? Result<bool>(false) : tl::unexpected(n.error());
      text_.erase(0, *n);
    }
    constexpr std::size_t kPiece = 64 << 10;
    turned += kPiece;
    const auto room = source_.write(socket, kPiece);
    if (!room || !source_.done()) return room;
    sent_all_ = true;
    if (plan_.options.task == Task::stream) {
      if (auto shut = socket.shutdown_write(); !shut) return tl::unexpected(shut.error());
    }
    return true;
  }

  Result<bool> hear(std::size_t& turned) {
    std::array<Bytes, 16> views;
    const auto n = socket.receive(views, kNow);
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) return end_of_stream();
    turned += *n;
    for (const Bytes view : views) hear(view);
    socket.consume(*n);
    if (!head_ || !head_->content_length || heard_ < *head_->content_length) return true;
    return answered();
  }

  void hear(Bytes view) {
    if (plan_.options.task != Task::stream && !head_) {
      const std::size_t before = answer_.size();
      answer_.append(reinterpret_cast<const char*>(view.data()), view.size());
      head_ = parse_head(answer_);
      if (!head_) return;
      view = view.subspan(answer_.find("\r\n\r\n") + 4 - before);
      answer_.clear();
    }
    if (plan_.options.task == Task::put && answer_.size() + view.size() < 200)
      answer_.append(reinterpret_cast<const char*>(view.data()), view.size());
    sum_.add(view);
    heard_ += view.size();
    plan_.bytes += view.size();
  }

  bool end_of_stream() {
    if (plan_.options.task == Task::stream) {
      return end(std::to_string(heard_) + " bytes " + sum_.finish());
    }
    if (!head_) return end(kFailed + std::string("ended before an answer"));
    if (head_->content_length) {
      return end(kFailed + std::string("ended after ") + std::to_string(heard_) + " bytes of " +
                 std::to_string(*head_->content_length));
    }
    return answered();
  }

  bool answered() {
    const std::string status = head_->first_line[1];
    std::string outcome = status + " " + std::to_string(heard_) + " bytes " + sum_.finish();
    if (plan_.options.task == Task::put && status[0] == '2') {
      outcome = status + " " + answer_.substr(0, answer_.find_last_not_of("\r\n") + 1);
    } else if (status[0] != '2') {
      outcome = kFailed + status;
    }
    if (requests_ == plan_.options.repeat) return end(outcome);
    plan_.outcomes[outcome]++;
    begin_request();
    return true;
  }
  bool end(const std::string& outcome) {
    plan_.outcomes[outcome]++;
    over_ = true;
    return false;
  }

  Plan& plan_;
  bool connecting_ = true, sent_all_ = false, over_ = false;
  std::uint32_t requests_ = 0;
  std::string text_;    // of the request, what has not been written
  std::string answer_;  // its head so far; for put the body, if it is short
  PatternSource source_{0};
  std::optional<Head> head_;
  Sha256 sum_;
  std::uint64_t heard_ = 0;
};

}  // namespace

int fetch(Host& host, const FetchOptions& options) {
  Outcomes outcomes;
  Plan plan{options, outcomes};
  Instant start = host.now();
  {
    Loop loop(host);
    for (std::uint32_t i = 0; i < options.connections; ++i) {
      auto socket = host.connect(options.peer, {.deadline = kNow, .tcp = options.tcp});
      if (!socket) {
        outcomes[kFailed + describe(socket.error())]++;
      } else {
        loop.add(std::make_unique<Client>(std::move(*socket), plan));
      }
    }
    if (options.warm_up.count() != 0) {
      loop.run(start + options.warm_up);
      start = host.now();
      plan.bytes = 0;
    }
    loop.run(start + (options.time.count() != 0 ? options.time : options.timeout));
  }
  const double seconds = static_cast<double>((host.now() - start).count()) * 1e-9;
  bool good = true;
  for (const auto& [outcome, times] : outcomes) {
    std::printf("%u x %s\n", times, outcome.c_str());
    good = good && outcome.find(kFailed) != 0;
  }
  std::printf("%llu bytes in %.3f s, %.3f Mbit/s\n", static_cast<unsigned long long>(plan.bytes), seconds,
              static_cast<double>(plan.bytes) * 8e-6 / seconds);
  return good || options.time.count() != 0 ? 0 : 1;
}

}  // namespace netchannel::stream_peer
