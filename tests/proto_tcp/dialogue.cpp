#include "dialogue.hpp"

#include <array>
#include <cstdio>
#include <sstream>
#include <vector>

namespace netchannel::tcp {
namespace {

using wire::TcpFlags;

std::byte stream_byte(std::uint64_t at) { return static_cast<std::byte>(at * 131 + 7); }

struct Line {
  std::string flags;
  std::int64_t begin = 0, end = 0;
  std::uint32_t length = 0;
  bool has_ack = false, has_window = false, has_options = false;
  std::int64_t ack = 0;
  std::uint32_t window = 65535;
  wire::TcpOptions options;    // SACK blocks relative
  bool any_timestamp = false;  // "TS" without numbers
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  std::stringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, at);) out.push_back(part);
  return out;
}

void parse_option(const std::string& text, Line& line) {
  std::stringstream words(text);
  std::string name;
  words >> name;
  if (name == "mss") {
    unsigned value = 0;
    words >> value;
    line.options.mss = static_cast<std::uint16_t>(value);
  } else if (name == "wscale") {
    unsigned value = 0;
    words >> value;
    line.options.window_scale = static_cast<std::uint8_t>(value);
  } else if (name == "sackOK") {
    line.options.sack_permitted = true;
  } else if (name == "TS") {
    wire::TcpTimestamps stamps;
    line.any_timestamp = !(words >> stamps.value >> stamps.echo);
    line.options.timestamps = stamps;
  } else if (name == "sack") {
    for (std::string block; words >> block;) {
      std::int64_t left = 0, right = 0;
      EXPECT_EQ(std::sscanf(block.c_str(), "%ld:%ld", &left, &right), 2) << block;
      line.options.sack.push_back({static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)});
    }
  } else {
    ADD_FAILURE() << "unknown option " << text;
  }
}

Line parse(std::string_view text) {
  Line line;
  std::string head(text);
  if (const auto open = text.find('<'); open != std::string_view::npos) {
    line.has_options = true;
    for (const std::string& option : split(text.substr(open + 1, text.find('>') - open - 1), ',')) {
      parse_option(option, line);
    }
    head = std::string(text.substr(0, open));
  }
  std::stringstream words(head);
  std::string range;
  words >> line.flags >> range;
  EXPECT_EQ(std::sscanf(range.c_str(), "%ld:%ld(%u)", &line.begin, &line.end, &line.length), 3) << text;
  EXPECT_EQ(line.end - line.begin, static_cast<std::int64_t>(line.length)) << text;
  for (std::string word; words >> word;) {
    if (word == "ack") {
      words >> line.ack;
      line.has_ack = true;
    } else if (word == "win") {
      words >> line.window;
      line.has_window = true;
    } else {
      ADD_FAILURE() << "unknown word " << word << " in " << text;
    }
  }
  return line;
}

std::uint8_t flag_bits(const std::string& flags) {
  static constexpr std::string_view kNames = "FSRP.UEW";
  std::uint8_t bits = 0;
  for (const char c : flags) {
    if (c == '-') continue;
    const auto at = kNames.find(c);
    EXPECT_NE(at, std::string_view::npos) << flags;
    bits = static_cast<std::uint8_t>(bits | (1 << at));
  }
  return bits;
}

std::string flag_text(TcpFlags flags) {
  std::string out;
  static constexpr std::string_view kOrder = "SFRPUEW.";
  static constexpr std::string_view kNames = "FSRP.UEW";
  for (const char c : kOrder) {
    if ((flags.bits >> kNames.find(c) & 1) != 0) out += c;
  }
  return out.empty() ? "-" : out;
}

std::string option_text(const wire::TcpOptions& options, bool numbers) {
  std::vector<std::string> parts;
  if (options.mss) parts.push_back("mss " + std::to_string(*options.mss));
  if (options.sack_permitted) parts.emplace_back("sackOK");
  if (options.timestamps) {
    parts.push_back(numbers ? "TS " + std::to_string(options.timestamps->value) + " " +
                                  std::to_string(options.timestamps->echo)
                            : "TS");
  }
  if (options.window_scale) parts.push_back("wscale " + std::to_string(*options.window_scale));
  if (!options.sack.empty()) {
    std::string sack = "sack";
    for (const auto& block : options.sack)
      sack += " " + std::to_string(block.left) + ":" + std::to_string(block.right);
    parts.push_back(sack);
  }
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ",") + part;
  return "<" + out + ">";
}

}  // namespace

Settings plain_settings() {
  Settings s;
  s.receive_buffer = s.receive_buffer_max = 65535;
  s.send_buffer = s.send_buffer_max = 1 << 20;
  s.timestamps = s.window_scaling = s.sack = false;
  return s;
}

Settings sack_settings() {
  Settings s = plain_settings();
  s.sack = true;
  return s;
}

void Dialogue::set_up(const DialogueOptions& options) {
  options_ = options;
  c_.reset();
  shared_.reset();
  tx_.reset();
  rx_.reset();
  region_ = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * options.frames});
  counters_ = std::make_unique<CounterPage>();
  tx_ = std::make_unique<FramePool>(*region_, 0, options.frames, FramePool::Start::all_free);
  rx_ = std::make_unique<FramePool>(*region_, options.frames, options.frames, FramePool::Start::all_free);
  shared_ = std::make_unique<Shared>(SharedOptions{}, *counters_);
  c_ = std::make_unique<Connection>(*shared_);
  outbox.clear();
  events_ = 0;
  written_ = read_ = 0;
}

void Dialogue::TearDown() {
  if (HasFailure())
    std::fprintf(stderr, "transcript:\n%s%s\n", transcript_.text().c_str(), to_string(c_->state).c_str());
  // Nothing may be left behind (frames are the connection's to give back).
  c_.reset();
  EXPECT_EQ(tx_->free_count(), options_.frames);
  EXPECT_EQ(rx_->free_count(), options_.frames);
  EXPECT_EQ(shared_->frames.used(), 0U);
  EXPECT_EQ(shared_->records.used(), 0U);
  EXPECT_EQ(shared_->islands.used(), 0U);
}

void Dialogue::open() {
  connect(*c_, {.settings = options_.settings, .iss = {options_.iss}, .path_mss = options_.path_mss}, now);
  flush();
}

void Dialogue::establish(std::string_view peer_options, std::uint32_t window) {
  open();
  outbox.clear();
  peer("S. 0:0(0) ack 1 win " + std::to_string(window) + " " + std::string(peer_options));
  ours(". 1:1(0) ack 1");
  EXPECT_EQ(state().state, State::established);
  silence();
}

void Dialogue::establish_passive() {
  const Settings& s = options_.settings;
  Handshake h;
  h.iss = {options_.iss};
  h.irs = {options_.irs};
  h.peer_mss = h.offered_mss = h.path_mss = options_.path_mss;
  h.window = static_cast<std::uint16_t>(std::min<std::uint32_t>(s.receive_buffer, 65535));
  h.window_scaling = s.window_scaling;
  h.our_wscale = window_scale_for(s);
  h.timestamps = s.timestamps;
  h.sack = s.sack;
  h.syn_ack_at = now;
  accept(*c_, h, s, now);
}

void Dialogue::inject(std::string_view text) {
  const Line line = parse(text);
  transcript_.note(now, "peer", text);
  const Seq irs{options_.irs}, iss{options_.iss};
  SegmentIn in;
  in.flags = {flag_bits(line.flags)};
  in.seq = irs + static_cast<std::uint32_t>(line.begin);
  in.ack = line.has_ack ? iss + static_cast<std::uint32_t>(line.ack) : Seq{};
  in.window = static_cast<std::uint16_t>(line.window);
  in.options = line.options;
  in.ecn = ecn;
  in.segments = segments;
  in.length = line.length;
  for (std::size_t i = 0; i < in.options.sack.size(); ++i) {
    in.options.sack[i].left += iss.value;
    in.options.sack[i].right += iss.value;
  }
  std::vector<Frame> frames;
  for (std::uint32_t at = 0; at < line.length;) {
    auto frame = rx_->allocate(64);
    ASSERT_TRUE(frame.has_value());
    const std::uint32_t part = std::min(line.length - at, 1460U);
    const MutableBytes bytes = frame->append(part);
    for (std::uint32_t i = 0; i < part; ++i) {
      bytes[i] =
          fill != std::byte{0} ? fill : stream_byte(static_cast<std::uint64_t>(line.begin - 1 + at + i));
    }
    frames.push_back(std::move(*frame));
    at += part;
  }
  in.payload = frames;
  events_ |= on_segment(*c_, in, now);
}

void Dialogue::peer(std::string_view line) {
  inject(line);
  flush();
}

void Dialogue::peer_in_burst(std::string_view line) { inject(line); }

std::string Dialogue::describe(const SegmentOut& segment) const {
  const bool unsynchronized = segment.flags.rst() && !segment.flags.ack();
  const std::int64_t begin = static_cast<std::int32_t>(segment.seq.value - options_.iss);
  std::string out = flag_text(segment.flags) + " " + std::to_string(begin) + ":" +
                    std::to_string(begin + segment.length) + "(" + std::to_string(segment.length) + ")";
  if (segment.flags.ack())
    out += " ack " + std::to_string(static_cast<std::int32_t>(segment.ack.value - options_.irs));
  if (!unsynchronized) out += " win " + std::to_string(segment.window);
  wire::TcpOptions options = segment.options;
  for (std::size_t i = 0; i < options.sack.size(); ++i) {
    options.sack[i].left -= options_.irs;
    options.sack[i].right -= options_.irs;
  }
  out += " " + option_text(options, true);
  if (segment.segment_size != 0) out += " segments of " + std::to_string(segment.segment_size);
  return out;
}

void Dialogue::flush() {
  for (bool more = true; more;) {
    TxBatch batch;
    more = poll_tx(*c_, batch, {.super_frame = options_.super_frame}, now);
    for (const SegmentOut& segment : batch) {
      outbox.push_back({now, segment, describe(segment)});
      transcript_.note(now, "  we", outbox.back().text);
      // What is sent must be what was written.
      std::array<SendQueue::Slice, 64> slices;
      std::uint64_t at = segment.seq.value - options_.iss - 1;
      if (segment.length == 0) continue;
      for (const auto& slice :
           std::span(slices).first(c_->send.slices(segment.seq, segment.length, slices))) {
        for (const std::byte byte : slice.bytes) {
          if (byte != stream_byte(at++)) ADD_FAILURE() << "wrong byte at " << at - 1;
        }
      }
    }
  }
}

void Dialogue::ours(std::string_view text) {
  const Line line = parse(text);
  if (outbox.empty()) {
    transcript_.note(now, "want", text);
    ADD_FAILURE() << "nothing was sent, expected: " << text;
    return;
  }
  const Sent sent = outbox.front();
  outbox.pop_front();
  const SegmentOut& segment = sent.segment;
  std::string actual = flag_text(segment.flags);
  std::string expected = flag_text({flag_bits(line.flags)});
  const auto range = [](std::int64_t begin, std::uint32_t length) {
    return " " + std::to_string(begin) + ":" + std::to_string(begin + length) + "(" + std::to_string(length) +
           ")";
  };
  actual += range(static_cast<std::int32_t>(segment.seq.value - options_.iss), segment.length);
  expected += range(line.begin, line.length);
  if (line.has_ack) {
    actual += " ack " + std::to_string(static_cast<std::int32_t>(segment.ack.value - options_.irs));
    expected += " ack " + std::to_string(line.ack);
  }
  if (line.has_window) {
    actual += " win " + std::to_string(segment.window);
    expected += " win " + std::to_string(line.window);
  }
  if (line.has_options) {
    wire::TcpOptions options = segment.options;
    for (std::size_t i = 0; i < options.sack.size(); ++i) {
      options.sack[i].left -= options_.irs;
      options.sack[i].right -= options_.irs;
    }
    actual += " " + option_text(options, !line.any_timestamp);
    expected += " " + option_text(line.options, !line.any_timestamp);
  }
  if (actual != expected) transcript_.note(now, "want", expected);
  EXPECT_EQ(actual, expected) << "sent: " << sent.text;
}

void Dialogue::silence() {
  EXPECT_TRUE(outbox.empty()) << "sent: " << outbox.front().text;
  outbox.clear();
}

void Dialogue::wait(Duration by) {
  const Instant end = now + by;
  int turns = 0;
  while (next_deadline(state()) <= end) {
    now = std::max(now, next_deadline(state()));
    events_ |= on_timer(*c_, now);
    flush();
    ASSERT_LT(++turns, 100000) << "a timer does not move on";
  }
  now = end;
}

std::size_t Dialogue::write(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = stream_byte(written_ + i);
  const std::size_t took = tcp::write(*c_, data, *tx_, 128);
  written_ += took;
  transcript_.note(now, " app", "write " + std::to_string(took));
  flush();
  return took;
}

std::size_t Dialogue::read(std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes && c_->receive.readable() != 0) {
    std::array<Bytes, 1> span;
    c_->receive.spans(span);
    const std::size_t part = std::min(span[0].size(), bytes - done);
    for (std::size_t i = 0; i < part; ++i) {
      if (span[0][i] != stream_byte(read_ + i)) ADD_FAILURE() << "wrong byte at " << read_ + i;
    }
    consume(*c_, part, now);
    read_ += part;
    done += part;
  }
  transcript_.note(now, " app", "read " + std::to_string(done));
  flush();
  return done;
}

void Dialogue::shut() {
  transcript_.note(now, " app", "shutdown");
  shutdown_write(*c_);
  flush();
}

Events Dialogue::close() {
  transcript_.note(now, " app", "close");
  const Events events = tcp::close(*c_, now);
  events_ |= events;
  flush();
  return events;
}

Events Dialogue::abort() {
  transcript_.note(now, " app", "abort");
  const Events events = tcp::abort(*c_);
  events_ |= events;
  flush();
  return events;
}

}  // namespace netchannel::tcp
