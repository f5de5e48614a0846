#include "testkit/packet_script_run.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>

#include "testkit/packet_script_calls.hpp"
#include "testkit/packet_script_cursor.hpp"
#include "testkit/packet_script_segment.hpp"

namespace netchannel::testkit::script {
namespace {

constexpr std::uint32_t kRemoteIsn = 0xffffff00;
constexpr Duration kAnyTime = std::chrono::seconds(10);       // how long "*" waits
constexpr Duration kPollStep = std::chrono::milliseconds(1);  // how often a waiting call is tried

// What is known of one peer port's connection.
struct Peer {
  bool isn_known = false;
  std::uint32_t isn = 0;                          // the target's
  bool learn = true;                              // from its next SYN
  std::optional<std::uint32_t> syn;               // the last that came from here
  std::optional<std::uint16_t> port;              // of the target
  std::map<std::uint32_t, std::uint32_t> stamps;  // the script's TSval to the one on the wire
  struct Stamp {
    std::uint32_t label, live;
    Instant when;
  };
  std::optional<Stamp> first_stamp;
};

struct Waiting {
  const Event* event = nullptr;
  Calls::Progress progress;
  Instant until;
};

std::string seconds_text(Duration d) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(d.count()) / 1e9);
  return text;
}

class Run {
 public:
  Run(const Script& script, const Net& net, Target& target, RunOptions options)
      : script_(script), net_(net), target_(target), options_(options), calls_(target, net) {}

  Outcome all() {
    start_ = last_ = target_.now();
    for (const Event& event : script_.events) {
      if (event.whose != Whose::both && event.whose != target_.whose()) continue;
      event_ = &event;
      step(event);
      if (failed()) return outcome();
    }
    finish();
    return outcome();
  }

 private:
  bool failed() const { return !failure_.empty() || !skip_.empty(); }
  void fail(const std::string& reason) {
    if (!failed()) failure_ = event_->file + ":" + std::to_string(event_->line) + ": " + reason;
  }
  void note(Instant when, const std::string& text) {
    transcript_ += "  " + seconds_text(when - start_) + "  " + text + "\n";
  }
  Outcome outcome() const {
    if (!skip_.empty()) return {Outcome::Kind::skipped, skip_};
    if (failure_.empty()) return {};
    return {Outcome::Kind::failed, failure_ + "\nwhat happened:\n" + transcript_};
  }

  Duration tolerance(Duration waited) const { return script_.tolerance.value_or(target_.tolerance(waited)); }
  Instant at(const EventTime& time, Duration offset) const {
    switch (time.kind) {
      case EventTime::Kind::relative:
        return last_ + offset;
      case EventTime::Kind::absolute:
        return start_ + offset;
      case EventTime::Kind::any:
        break;
    }
    return target_.now();
  }

  void step(const Event& event) {
    if (const auto* packet = std::get_if<PacketEvent>(&event.what);
        packet != nullptr && packet->sent && !packet->nothing)
      return expect(event, *packet);
    const Instant due = at(event.time, event.time.at);
    wait_until(due);
    const bool silence =
        std::holds_alternative<PacketEvent>(event.what) && std::get<PacketEvent>(event.what).nothing;
    refuse_unexpected(silence ? due : due - slack());
    if (failed()) return;
    last_ = std::max(due, target_.now());
    note(last_, event.text);
    if (silence) return;
    if (const auto* packet = std::get_if<PacketEvent>(&event.what)) arrive(*packet);
    if (const auto* call = std::get_if<CallEvent>(&event.what)) begin(event, *call);
    if (const auto* command = std::get_if<CommandEvent>(&event.what)) run_command(*command);
    if (const auto* assertion = std::get_if<AssertEvent>(&event.what)) check(*assertion);
  }

  // Packets sent before a real-time target's clock could have been read are not unexpected yet.
  Duration slack() const { return target_.whose() == Whose::kernel ? tolerance(Duration{0}) : Duration{0}; }

  void refuse_unexpected(Instant before) {
    if (!options_.strict || sent_.empty() || sent_.front().when >= before) return;
    fail("sent, but not in the script: " + describe(sent_.front().bytes) + " at " +
         seconds_text(sent_.front().when - start_));
  }

  void finish() {
    if (waiting_) {
      event_ = waiting_->event;
      wait_until(waiting_->until + tolerance(*waiting_->event->time.ends));
      if (waiting_) fail("the call has not returned");
    }
    collect(target_.now());
    if (!failed()) refuse_unexpected(kForever);
  }

  // --- time ---

  void collect(Instant until) {
    while (auto packet = target_.next_sent(until)) remember(std::move(*packet));
  }
  void remember(SentPacket packet) {
    note(packet.when, "sent: " + describe(packet.bytes));
    sent_.push_back(std::move(packet));
  }

  void wait_until(Instant until) {
    while (!failed()) {
      const Instant stop = waiting_ ? std::min(until, target_.now() + kPollStep) : until;
      collect(stop);
      go_on_waiting();
      if (stop >= until) return;
    }
  }
  std::optional<SentPacket> next_sent(Instant until) {
    while (!failed()) {
      if (!sent_.empty()) {
        SentPacket packet = std::move(sent_.front());
        sent_.pop_front();
        return packet;
      }
      const Instant stop = waiting_ ? std::min(until, target_.now() + kPollStep) : until;
      if (auto packet = target_.next_sent(stop)) remember(std::move(*packet));
      go_on_waiting();
      if (sent_.empty() && stop >= until) return std::nullopt;
    }
    return std::nullopt;
  }

  // --- calls ---

  void begin(const Event& event, const CallEvent& call) {
    if (event.time.ends && waiting_) return fail("a call waits already");
    Waiting waiting{.event = &event, .progress = {}, .until = {}};
    if (call.name == "connect") peer(1).learn = true;
    const Calls::Answer answer = calls_.attempt(call, waiting.progress);
    if (answer.waits && event.time.ends) {
      waiting.until = at(event.time, *event.time.ends);
      if (event.time.kind == EventTime::Kind::relative)
        waiting.until = last_ + (*event.time.ends - event.time.at);
      waiting_ = waiting;
      return;
    }
    if (event.time.ends && *event.time.ends > event.time.at) return fail("the call did not wait");
    const std::string why = calls_.compare(call, answer);
    if (!why.empty()) fail(why);
  }

  void go_on_waiting() {
    if (!waiting_ || failed()) return;
    const CallEvent& call = std::get<CallEvent>(waiting_->event->what);
    const Calls::Answer answer = calls_.attempt(call, waiting_->progress);
    const Duration late = target_.now() - waiting_->until;
    const Duration allowed = tolerance(*waiting_->event->time.ends) + kPollStep;
    event_ = answer.waits && late <= allowed ? event_ : waiting_->event;
    if (answer.waits) {
      if (late > allowed) fail("the call still waits");
      return;
    }
    note(target_.now(), "returns: " + waiting_->event->text);
    if (late < -allowed || late > allowed)
      fail("the call returned at " + seconds_text(target_.now() - start_));
    const std::string why = calls_.compare(call, answer);
    if (!why.empty()) fail(why);
    waiting_.reset();
  }

  // "sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_sack=0", one or more lines.
  void run_command(const CommandEvent& command) {
    Cursor in(command.text);
    while (!in.at_end()) {
      if (in.take(";")) continue;
      const std::string word = in.token(";");
      if (word == "sysctl" || word == "-q" || word == "-w") continue;
      const auto equals = word.find('=');
      constexpr std::string_view kPrefix = "net.ipv4.";
      if (equals == std::string::npos || !word.starts_with(kPrefix))
        return fail("only \"sysctl net.ipv4.NAME=VALUE\" is understood");
      std::string value = word.substr(equals + 1);
      if (value.starts_with('"')) value = value.substr(1) + in.until("\"");
      const std::string name = word.substr(kPrefix.size(), equals - kPrefix.size());
      if (const auto why = target_.sysctl(name, value)) skip_ = name + ": " + *why;
    }
    if (in.failed()) fail(in.reason());
  }

  void check(const AssertEvent& assertion) {
    const auto left = calls_.evaluate(assertion.left), right = calls_.evaluate(assertion.right);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    const std::string& op = assertion.op;
    const bool holds = op == "=="   ? *left == *right
                       : op == "!=" ? *left != *right
                       : op == "<"  ? *left < *right
                       : op == ">"  ? *left > *right
                       : op == "<=" ? *left <= *right
                                    : *left >= *right;
    if (!holds) fail(assertion.left + " is " + std::to_string(*left));
  }

  // --- packets that arrive ---

  Peer& peer(std::uint16_t number) { return peers_[number]; }

  Segment from_peer(const PacketEvent& packet) {
    Peer& p = peer(packet.peer);
    Segment out;
    out.from = {packet.from.value_or(net_.remote),
                static_cast<std::uint16_t>(net_.first_port + packet.peer - 1)};
    out.to = {packet.to.value_or(net_.local), packet.local_port.value_or(p.port.value_or(net_.port))};
    out.ttl = packet.ttl.value_or(64);
    out.tos = packet.ecn.value_or(0);
    out.seq = kRemoteIsn + packet.seq.first;
    out.ack = packet.ack ? *packet.ack + (p.isn_known ? p.isn : 0) : 0;
    out.flags = packet.flags;
    out.reserved = packet.reserved;
    out.window = static_cast<std::uint16_t>(packet.window ? packet.window->first : 0);
    out.urgent = packet.urgent;
    out.options = packet.options;
    for (Option& option : out.options) {
      for (auto& [left, right] : option.blocks) left += p.isn, right += p.isn;
      if (option.kind == Option::Kind::timestamps) option.echo = live_stamp(p, option.echo);
    }
    const std::uint64_t place = std::uint64_t{packet.seq.first} - ((packet.flags & Flags::kSyn) != 0 ? 0 : 1);
    for (std::uint32_t i = 0; i < packet.seq.length; ++i)
      out.payload.push_back(stream_byte(place + i, false));
    return out;
  }

  static std::uint32_t live_stamp(const Peer& p, std::uint32_t label) {
    if (const auto found = p.stamps.find(label); found != p.stamps.end()) return found->second;
    if (label == 0 || !p.first_stamp) return label;
    return p.first_stamp->live + (label - p.first_stamp->label);
  }

  void arrive(const PacketEvent& packet) {
    if (packet.icmp) return arrive_icmp(packet);
    if ((packet.flags & (Flags::kSyn | Flags::kAck)) == Flags::kSyn) {
      Peer& p = peer(packet.peer);
      if (p.syn && *p.syn != packet.seq.first) p.learn = true;
      p.syn = packet.seq.first;
    }
    target_.arrive(
        packet_of(from_peer(packet), {.checksum = packet.bad_checksum, .length = packet.bad_length}));
  }

  void arrive_icmp(const PacketEvent& packet) {
    const Peer& p = peer(packet.peer);
    Segment quoted;
    quoted.from = {net_.local, p.port.value_or(net_.port)};
    quoted.to = {net_.remote, static_cast<std::uint16_t>(net_.first_port + packet.peer - 1)};
    quoted.seq = packet.icmp->quoted.first + p.isn;
    quoted.flags = Flags::kAck;
    quoted.payload.resize(packet.icmp->quoted.length);
    IcmpPart icmp = *packet.icmp;
    if (net_.local.is_v6() && icmp.mtu != 0) icmp.mtu += 20;
    const auto bytes = icmp_error(icmp, packet.from.value_or(net_.router), packet_of(quoted));
    if (bytes) target_.arrive(*bytes);
  }

  // --- packets that are sent ---

  // In the script's words.
  std::string describe(Bytes bytes) {
    const auto segment = read_segment(bytes);
    if (!segment) return "a packet with " + segment.error();
    return describe(*segment);
  }
  std::uint32_t base(const Segment& segment, const Peer& p) const {
    const bool learns = (segment.flags & Flags::kSyn) != 0 && p.learn;
    return learns ? segment.seq : p.isn;
  }
  std::string describe(const Segment& s) {
    const std::uint16_t number = static_cast<std::uint16_t>(s.to.port - net_.first_port + 1);
    const Peer& p = peer(number);
    const std::uint32_t from = s.seq - base(s, p);
    const auto length = static_cast<std::uint32_t>(s.payload.size());
    std::string out = "> " + std::string(number == 1 ? "" : "[peer " + std::to_string(number) + "] ");
    constexpr const char* kEcn[] = {"", "[ect1] ", "[ect0] ", "[ce] "};
    out += kEcn[s.tos & 3];
    out += flag_letters(s.flags) + " " + std::to_string(from) + ":" + std::to_string(from + length) + "(" +
           std::to_string(length) + ")";
    if ((s.flags & Flags::kAck) != 0) out += " ack " + std::to_string(s.ack - kRemoteIsn);
    out += " win " + std::to_string(s.window);
    std::string options;
    for (const Option& option : s.options) options += (options.empty() ? "" : ",") + describe(option, p);
    return options.empty() ? out : out + " <" + options + ">";
  }
  static std::string describe(const Option& option, const Peer& p) {
    using Kind = Option::Kind;
    std::string out;
    switch (option.kind) {
      case Kind::mss:
        return "mss " + std::to_string(option.value);
      case Kind::wscale:
        return "wscale " + std::to_string(option.value);
      case Kind::sack_permitted:
        return "sackOK";
      case Kind::timestamps:
        return "TS val " +
               std::to_string(p.first_stamp ? option.value - p.first_stamp->live + p.first_stamp->label
                                            : option.value) +
               " ecr " + std::to_string(option.echo);
      case Kind::sack:
        out = "sack";
        for (const auto& [left, right] : option.blocks)
          out += " " + std::to_string(left - kRemoteIsn) + ":" + std::to_string(right - kRemoteIsn);
        return out;
      case Kind::nop:
        return "nop";
      case Kind::end:
        return "eol";
      case Kind::raw:
        break;
    }
    out = "raw ";
    for (const std::byte byte : option.bytes) {
      char text[4];
      std::snprintf(text, sizeof text, "%02x", std::to_integer<unsigned>(byte));
      out += text;
    }
    return out;
  }

  void expect(const Event& event, const PacketEvent& packet) {
    const bool any = event.time.kind == EventTime::Kind::any;
    const Duration latest = event.time.latest.value_or(event.time.at);
    const Instant from = any ? start_ : at(event.time, event.time.at) - tolerance(event.time.at);
    const Instant until = any ? target_.now() + kAnyTime : at(event.time, latest) + tolerance(latest);
    std::uint32_t got = 0;
    do {
      const auto sent = next_sent(until);
      if (failed()) return;
      if (!sent)
        return fail("nothing was sent by " + seconds_text(until - start_) + ", expected " + event.text);
      auto segment = read_segment(sent->bytes);
      if (!segment) return fail("a packet was sent with " + segment.error());
      const std::string why = compare(packet, *segment, got, sent->when);
      if (!why.empty())
        return fail("sent: " + describe(*segment) + "\n  but expected " + event.text + "\n  " + why);
      if (sent->when < from || sent->when > until)
        return fail("sent at " + seconds_text(sent->when - start_) + ", expected from " +
                    seconds_text(from - start_) + " to " + seconds_text(until - start_) + ": " + event.text);
      got += static_cast<std::uint32_t>(segment->payload.size());
      last_ = sent->when;
    } while (got < packet.seq.length);
  }

  // Why the segment is not the next part of the packet, of which `got` bytes have been seen; "" if it is.
  std::string compare(const PacketEvent& packet, const Segment& s, std::uint32_t got, Instant when) {
    Peer& p = peer(packet.peer);
    const auto to_port = static_cast<std::uint16_t>(net_.first_port + packet.peer - 1);
    if (s.from.address != packet.from.value_or(net_.local))
      return "it comes from " + s.from.address.to_string();
    if (s.to != Endpoint{packet.to.value_or(net_.remote), to_port}) return "it goes to " + s.to.to_string();
    if (p.port && !p.learn && s.from.port != *p.port)
      return "it comes from port " + std::to_string(s.from.port);
    if (packet.local_port && s.from.port != *packet.local_port)
      return "it comes from port " + std::to_string(s.from.port);
    if ((packet.flags & s.flags & Flags::kSyn) != 0 && p.learn) learn(p, packet, s);
    const auto length = static_cast<std::uint32_t>(s.payload.size());
    const bool last = got + length >= packet.seq.length;
    if (s.seq - p.isn != packet.seq.first + got || got + length > packet.seq.length)
      return "the sequence numbers differ";
    if (length == 0 && packet.seq.length != 0) return "it carries nothing";
    // In the midst of a packet that came in several the flags of its end are missing.
    const auto flags =
        static_cast<std::uint8_t>(last ? packet.flags : packet.flags & ~(Flags::kPsh | Flags::kFin));
    // A sender may push more often than it must (RFC 9293 MUST-60).
    const bool may_push = (flags & Flags::kPsh) == 0 && length != 0;
    if ((may_push ? s.flags & ~Flags::kPsh : s.flags) != flags) return "the flags differ";
    if (packet.ack && s.ack != *packet.ack + kRemoteIsn) return "the acknowledgment differs";
    if (packet.window && (s.window < packet.window->first || s.window > packet.window->second))
      return "the window differs";
    if (packet.ecn && (s.tos & 3) != *packet.ecn) return "the ECN bits differ";
    if (packet.ttl && s.ttl != *packet.ttl) return "the TTL is " + std::to_string(s.ttl);
    if (s.urgent != packet.urgent || s.reserved != packet.reserved)
      return "urgent pointer or reserved bits differ";
    const std::uint64_t place = std::uint64_t{s.seq - p.isn} - ((s.flags & Flags::kSyn) != 0 ? 0 : 1);
    for (std::size_t i = 0; i < s.payload.size(); ++i)
      if (s.payload[i] != stream_byte(place + i, true))
        return "byte " + std::to_string(place + i) + " of the stream is wrong";
    return compare_options(packet, s, p, when);
  }

  static void learn(Peer& p, const PacketEvent& packet, const Segment& s) {
    p.isn = s.seq - packet.seq.first;
    p.isn_known = true;
    p.learn = false;
    p.port = s.from.port;
    p.stamps.clear();
    p.first_stamp.reset();
  }

  std::string compare_options(const PacketEvent& packet, const Segment& s, Peer& p, Instant when) {
    std::vector<Option> wanted;
    for (const Option& option : packet.options)
      if (option.kind != Option::Kind::nop && option.kind != Option::Kind::end) wanted.push_back(option);
    if (!packet.any_options && wanted.size() != s.options.size()) return "the options differ";
    for (std::size_t i = 0; i < s.options.size() && !packet.any_options; ++i) {
      Option& w = wanted[i];
      const Option& o = s.options[i];
      if (w.kind == Option::Kind::timestamps && o.kind == w.kind) {
        if (w.echo != o.echo) return "TSecr differs";
        const std::string why = note_stamp(p, w.value, o.value, when);
        if (!why.empty()) return why;
        continue;
      }
      for (auto& [left, right] : w.blocks) left += kRemoteIsn, right += kRemoteIsn;
      if (w != o) return "the options differ";
    }
    return "";
  }

  // A timestamp clock runs at 1 kHz in both targets.
  std::string note_stamp(Peer& p, std::uint32_t label, std::uint32_t live, Instant when) {
    p.stamps[label] = live;
    if (!p.first_stamp) {
      p.first_stamp = Peer::Stamp{label, live, when};
      return "";
    }
    using std::chrono::milliseconds;
    const std::int64_t passed = (when - p.first_stamp->when) / milliseconds(1);
    const std::int64_t counted = static_cast<std::int32_t>(live - p.first_stamp->live);
    const std::int64_t allowed = tolerance(when - p.first_stamp->when) / milliseconds(1) + 1;
    if (std::abs(counted - passed) <= allowed) return "";
    return "TSval has advanced by " + std::to_string(counted) + " in " + std::to_string(passed) + " ms";
  }

  const Script& script_;
  const Net net_;
  Target& target_;
  const RunOptions options_;
  Calls calls_;
  const Event* event_ = nullptr;
  Instant start_, last_;
  std::deque<SentPacket> sent_;
  std::map<std::uint16_t, Peer> peers_;
  std::optional<Waiting> waiting_;
  std::string failure_, skip_, transcript_;
};

}  // namespace

Net Net::v4(std::uint32_t mtu) {
  return {.local = IpAddress::v4(10, 9, 0, 1),
          .remote = IpAddress::v4(10, 9, 0, 2),
          .router = IpAddress::v4(10, 9, 0, 3),
          .prefix = 24,
          .mtu = mtu};
}

Net Net::v6(std::uint32_t mtu) {
  return {.local = *IpAddress::parse("fd09::1"),
          .remote = *IpAddress::parse("fd09::2"),
          .router = *IpAddress::parse("fd09::3"),
          .prefix = 64,
          .mtu = mtu + 20};
}

Outcome run_script(const Script& script, const Net& net, Target& target, RunOptions options) {
  if (script.only != Whose::both && script.only != target.whose())
    return {Outcome::Kind::skipped, script.why_only};
  return Run(script, net, target, options).all();
}

}  // namespace netchannel::testkit::script
