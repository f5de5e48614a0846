#include <array>
#include <charconv>
#include <cstdio>

#include "tests/system/stream_pattern.hpp"
#include "tests/system/stream_peer.hpp"

namespace netchannel::stream_peer {
namespace {

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The first line of `text`, which is taken off it.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find("\r\n");
  const auto line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 2);
  return line;
}

void understand(Head& head, std::string_view line) {
  const auto colon = line.find(':');
  if (colon == line.npos) return;
  const auto name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (is_same(name, "content-length")) {
    std::uint64_t length = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (status == std::errc{} && end == value.data() + value.size()) head.content_length = length;
  } else if (is_same(name, "connection")) {
    head.close = is_same(value, "close") || (head.close && !is_same(value, "keep-alive"));
  } else if (is_same(name, "expect")) {
    head.expect_continue = is_same(value, "100-continue");
  }
}

}  // namespace

std::optional<Head> parse_head(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == text.npos) return std::nullopt;
  text = text.substr(0, end + 2);
  Head head;
  auto line = take_line(text);
  head.close = line.find("HTTP/1.0") != line.npos;
  while (!line.empty()) {
    const auto space = line.find(' ');
    head.first_line.emplace_back(line.substr(0, space));
    line.remove_prefix(space == line.npos ? line.size() : space + 1);
  }
  head.first_line.resize(3);
  while (!text.empty()) understand(head, take_line(text));
  return head;
}

Result<bool> PatternSource::write(TcpSocket& socket, std::size_t most) {
  constexpr std::size_t kChunk = 128 << 10;
  while (!done() && most > 0) {
    if (at_ >= made_from_ + chunk_.size()) {
      made_from_ = at_;
      chunk_.resize(std::min<std::uint64_t>(kChunk, size_ - at_));
      fill_pattern(chunk_, at_);
    }
    const Bytes left = Bytes(chunk_).subspan(at_ - made_from_);
    const Bytes now = left.first(std::min(left.size(), most));
    const auto n = socket.write(now, More::no, kNow);
    if (!n) {
      if (n.error().code == ErrorCode::would_block) return false;
      return tl::unexpected(n.error());
    }
    at_ += *n;
    most -= *n;
    if (*n < now.size()) return false;
  }
  return true;
}

void Loop::add(std::unique_ptr<Connection> connection) {
  const std::uint64_t token = next_token_++;
  watch(token, *connection, false);
  connections_.emplace(token, std::move(connection));
}

void Loop::add(TcpListener listener, Accept accept) {
  doors_.push_back(std::make_unique<Door>(Door{std::move(listener), accept}));
  if (auto ok = host_.poller().add(doors_.back()->listener, kFirstDoor + doors_.size() - 1); !ok)
    std::printf("stream_peer: %s\n", describe(ok.error()).c_str());
}

void Loop::stop_on(int descriptor) {
  if (auto ok = host_.poller().add(descriptor, kStop); !ok)
    std::printf("stream_peer: %s\n", describe(ok.error()).c_str());
}

void Loop::watch(std::uint64_t token, Connection& connection, bool again) {
  if (again) (void)host_.poller().remove(connection.socket);
  if (auto ok = host_.poller().add(connection.socket, token, connection.wants); !ok)
    std::printf("stream_peer: %s\n", describe(ok.error()).c_str());
}

void Loop::turn(std::uint64_t token) {
  const auto found = connections_.find(token);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  const auto before = connection.wants;
  if (!connection.turn()) {
    connections_.erase(found);
  } else if (connection.wants != before) {
    watch(token, connection, true);
  }
}

void Loop::accept_all(Door& door) {
  while (auto socket = door.listener.accept(kNow)) add(door.accept(std::move(*socket)));
}

void Loop::run(Instant deadline) {
  std::array<Event, 64> events;
  while (!(doors_.empty() && connections_.empty())) {
    const auto n = host_.poller().wait(events, deadline);
    if (!n) continue;  // a signal came; stop_on()'s descriptor tells
    if (*n == 0) return;
    for (const Event& event : std::span(events).first(*n)) {
      if (event.token == kStop) return;
      if (event.token < kFirstConnection) {
        accept_all(*doors_[event.token - kFirstDoor]);
      } else {
        turn(event.token);
      }
    }
  }
}

}  // namespace netchannel::stream_peer
