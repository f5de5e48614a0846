#include "testkit/packet_script_run.hpp"

#include <algorithm>
#include <compare>
#include <cstdio>
#include <deque>
#include <map>

#include "testkit/packet_script_calls.hpp"
#include "testkit/packet_script_peer.hpp"
#include "testkit/packet_script_segment.hpp"

namespace netchannel::testkit::script {
namespace {

constexpr Duration kAnyTime = std::chrono::seconds(10);       // how long "*" waits
constexpr Duration kPollStep = std::chrono::milliseconds(1);  // how often a waiting call is tried

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
    const auto* packet = std::get_if<PacketEvent>(&event.what);
    const bool silence = packet != nullptr && packet->nothing;
    if (packet != nullptr && packet->sent && !silence) return expect(event, *packet);
    const Instant due = at(event.time, event.time.at);
    wait_until(due);
    refuse_unexpected(silence ? due : due - slack());
    if (failed()) return;
    last_ = std::max(due, target_.now());
    note(last_, event.text);
    if (packet != nullptr && !silence) arrive(*packet);
    if (const auto* call = std::get_if<CallEvent>(&event.what)) begin(event, *call);
    if (const auto* command = std::get_if<CommandEvent>(&event.what)) change_settings(*command);
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
    if (call.name == "connect") peer(1).begin_anew();
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

  void change_settings(const CommandEvent& command) {
    for (const auto& [name, value] : command.settings)
      if (const auto why = target_.sysctl(name, value)) skip_ = name + ": " + *why;
  }

  void check(const AssertEvent& assertion) {
    const auto left = calls_.evaluate(assertion.left), right = calls_.evaluate(assertion.right);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    const std::string& op = assertion.op;
    const std::strong_ordering order = *left <=> *right;
    const bool holds = (order < 0 && (op == "<" || op == "<=" || op == "!=")) ||
                       (order > 0 && (op == ">" || op == ">=" || op == "!=")) ||
                       (order == 0 && (op == "==" || op == "<=" || op == ">="));
    if (!holds) fail(assertion.left + " is " + std::to_string(*left));
  }

  // --- packets ---

  Peer& peer(std::uint16_t number) { return peers_.try_emplace(number, net_, number).first->second; }

  void arrive(const PacketEvent& packet) {
    if (const auto bytes = peer(packet.peer).arriving(packet)) target_.arrive(*bytes);
  }

  std::string describe(const Segment& segment) {
    return peer(static_cast<std::uint16_t>(segment.to.port - net_.first_port + 1)).describe(segment);
  }
  std::string describe(Bytes bytes) {
    const auto segment = read_segment(bytes);
    return segment ? describe(*segment) : "a packet with " + segment.error();
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
      const std::string why =
          peer(packet.peer)
              .compare(packet, *segment,
                       {.bytes = got, .when = sent->when, .tolerance = tolerance(sent->when - start_)});
      if (!why.empty())
        return fail("sent: " + describe(*segment) + "\n  but expected " + event.text + "\n  " + why);
      if (sent->when < from || sent->when > until)
        return fail("sent at " + seconds_text(sent->when - start_) + ", expected from " +
                    seconds_text(from - start_) + " to " + seconds_text(until - start_) + ": " + event.text);
      got += static_cast<std::uint32_t>(segment->payload.size());
      last_ = sent->when;
    } while (got < packet.seq.length);
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
