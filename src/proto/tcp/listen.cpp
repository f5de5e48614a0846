#include "proto/tcp/listen.hpp"

#include <algorithm>

#include "proto/tcp/closed.hpp"
#include "proto/tcp/scoreboard.hpp"
#include "proto/tcp/syn_cookie.hpp"

namespace netchannel::tcp {
namespace {

using wire::TcpFlags;

constexpr Duration kFirstWait = std::chrono::seconds(1);  // RFC 6298 (2.1)
constexpr Duration kChallengeInterval = std::chrono::milliseconds(500);
constexpr Duration kCookieLife = std::chrono::seconds(128);

std::uint32_t offered_window(const Settings& settings) {
  return std::min<std::uint32_t>(settings.receive_buffer, 0xffff);
}

// RFC 9293 section 3.10.7.2; options as RFC 7323, RFC 2018 and RFC 3168 section 6.1.1 have them.
SegmentOut syn_ack(const Handshake& h, std::uint32_t tsval) {
  SegmentOut out;
  out.seq = h.iss;
  out.ack = h.irs + 1;
  out.flags = {static_cast<std::uint8_t>(TcpFlags::kSyn | TcpFlags::kAck | (h.ecn ? TcpFlags::kEce : 0))};
  out.window = h.window;
  out.options.mss = h.offered_mss;
  if (h.window_scaling) out.options.window_scale = h.our_wscale;
  out.options.sack_permitted = h.sack;
  if (h.timestamps) out.options.timestamps = {tsval, h.ts_recent};
  out.retransmission = h.retransmissions > 0;
  return out;
}

SegmentOut plain_ack(const Handshake& h, Instant now) {
  SegmentOut out;
  out.seq = h.iss + 1;
  out.ack = h.irs + 1;
  out.flags = {TcpFlags::kAck};
  out.window = static_cast<std::uint16_t>(h.window >> h.our_wscale);
  if (h.timestamps) out.options.timestamps = {timestamp_ms(now) + h.ts_offset, h.ts_recent};
  return out;
}

ListenResult reply(const SegmentOut& segment) {
  return {.action = ListenAction::reply, .reply = segment, .handshake = {}};
}

ListenResult reset(const SegmentIn& segment) {
  const auto answer = answer_of_closed(segment);
  return answer ? reply(*answer) : ListenResult{};
}

}  // namespace

Listener::Listener(const ListenOptions& options, CounterPage& counters)
    : options_(options),
      counters_(counters),
      entries_(options.syn_queue),
      table_(options.table_key, options.syn_queue + 1) {
  options_.syn_ack_retries = std::min<std::uint8_t>(options.syn_ack_retries, kMaxRetries);
  for (std::uint32_t i = options.syn_queue; i-- > 0;) {
    entries_[i].next = first_free_;
    first_free_ = i;
  }
}

ListenResult Listener::on_segment(const Arrival& arrival, const SegmentIn& segment, Instant now) {
  if (const std::uint32_t* index = table_.find(arrival.flow)) return on_entry(*index, arrival, segment, now);
  // Section 3.10.7.2, in its order: RST, ACK, SYN.
  if (segment.flags.rst()) return {};
  if (segment.flags.ack()) return on_ack(arrival, segment, now);
  if (!segment.flags.syn() || segment.flags.fin()) {
    counters_.add(Counter::tcp_bad_flags);
    return {};
  }
  return on_syn(arrival, segment, now);
}

Handshake Listener::negotiate(const Arrival& arrival, const SegmentIn& syn) const {
  const Settings& settings = options_.settings;
  const wire::TcpOptions& options = syn.options;
  Handshake h;
  h.irs = syn.seq;
  h.peer_mss = options.mss ? wire::usable_mss(*options.mss) : arrival.default_mss;
  h.path_mss = arrival.path_mss;
  h.default_mss = arrival.default_mss;
  h.offered_mss = settings.mss_limit == 0 ? arrival.path_mss : std::min(settings.mss_limit, arrival.path_mss);
  h.window = static_cast<std::uint16_t>(offered_window(settings));
  h.window_scaling = settings.window_scaling && options.window_scale.has_value();
  if (h.window_scaling) {
    h.peer_wscale = *options.window_scale;
    h.our_wscale = window_scale_for(settings);
  }
  h.timestamps = settings.timestamps && options.timestamps.has_value();
  if (h.timestamps) h.ts_recent = options.timestamps->value;
  h.sack = settings.sack && options.sack_permitted;
  h.ecn = settings.ecn != EcnMode::off && syn.flags.ece() && syn.flags.cwr();
  h.ts_offset = timestamp_offset(options_.secrets.timestamps, arrival.flow);
  return h;
}

ListenResult Listener::on_syn(const Arrival& arrival, const SegmentIn& segment, Instant now) {
  if (arrival.accept_queue_full) {
    counters_.add(Counter::tcp_accept_queue_full);
    return {};
  }
  Handshake h = negotiate(arrival, segment);
  const std::uint32_t tsval = timestamp_ms(now) + h.ts_offset;
  if (first_free_ == kNoNode) {
    if (!options_.cookies) {
      counters_.add(Counter::tcp_syn_queue_full);
      return {};
    }
    h.iss = make_cookie(options_.secrets.cookies, arrival.flow, h.irs, h.peer_mss, now);
    // The number cannot be chosen: it is beyond those of the TIME-WAIT by chance, or the peer asks again.
    if (arrival.after && h.iss <= *arrival.after) {
      counters_.add(Counter::tcp_syn_queue_full);
      return {};
    }
    const std::optional<std::uint8_t> scale = h.window_scaling ? std::optional(h.peer_wscale) : std::nullopt;
    if (!h.timestamps) h.window_scaling = h.sack = h.ecn = false;
    last_cookie_ = now;
    cookies_out_ = true;
    counters_.add(Counter::tcp_cookies_sent);
    return reply(syn_ack(h, hide_in_timestamp(tsval, {.window_scale = scale, .sack = h.sack, .ecn = h.ecn})));
  }
  h.iss = initial_sequence(options_.secrets.isn, arrival.flow, now);
  if (arrival.after && h.iss <= *arrival.after) h.iss = *arrival.after + 0x10000;
  h.syn_ack_at = now;
  const std::uint32_t index = first_free_;
  first_free_ = entries_[index].next;
  entries_[index].flow = arrival.flow;
  entries_[index].handshake = h;
  entries_[index].next_challenge = now;
  table_.insert(arrival.flow, index);
  link(index, now);
  return reply(syn_ack(h, tsval));
}

// An acknowledgement without a handshake: of a cookie, or of nothing (RFC 9293: RST).
ListenResult Listener::on_ack(const Arrival& arrival, const SegmentIn& segment, Instant now) {
  if (cookies_out_ && now - last_cookie_ > kCookieLife) cookies_out_ = false;
  if (!cookies_out_ || segment.flags.syn()) return reset(segment);
  const Seq irs = segment.seq - 1;
  const Seq cookie = segment.ack - 1;
  const auto mss = open_cookie(options_.secrets.cookies, arrival.flow, irs, cookie, now);
  if (!mss) {
    counters_.add(Counter::tcp_cookies_wrong);
    return reset(segment);
  }
  if (arrival.accept_queue_full) {
    counters_.add(Counter::tcp_accept_queue_full);
    return {};
  }
  // The SYN as it must have been.
  SegmentIn syn;
  syn.seq = irs;
  syn.options.mss = *mss;
  if (segment.options.timestamps) {
    const CookieOptions hidden = read_from_timestamp(segment.options.timestamps->echo);
    syn.options.timestamps = segment.options.timestamps;
    syn.options.window_scale = hidden.window_scale;
    syn.options.sack_permitted = hidden.sack;
    if (hidden.ecn) syn.flags.bits = TcpFlags::kEce | TcpFlags::kCwr;
  }
  ListenResult out{.action = ListenAction::accept, .reply = {}, .handshake = negotiate(arrival, syn)};
  out.handshake.iss = cookie;
  counters_.add(Counter::tcp_cookies_accepted);
  return out;
}

// RFC 5961 section 7: what an attacker could provoke has its limit.
ListenResult Listener::challenge(Entry& entry, Instant now) {
  if (now < entry.next_challenge) {
    counters_.add(Counter::tcp_challenges_limited);
    return {};
  }
  entry.next_challenge = now + kChallengeInterval;
  return reply(plain_ack(entry.handshake, now));
}

// SYN-RECEIVED (section 3.10.7.4), for an entry that came from LISTEN (MUST-11).
ListenResult Listener::on_entry(std::uint32_t index, const Arrival& arrival, const SegmentIn& segment,
                                Instant now) {
  Entry& entry = entries_[index];
  const Handshake& h = entry.handshake;
  const Seq rcv_nxt = h.irs + 1;
  const bool in_order = segment.seq == rcv_nxt;
  const bool inside = in_order || in_window(segment.seq, rcv_nxt, h.window);
  if (segment.flags.rst()) {
    if (in_order) {
      remove(index);  // back to LISTEN
    } else if (inside) {
      return challenge(entry, now);  // RFC 5961 section 3.2
    }
    return {};
  }
  if (segment.flags.syn() && !segment.flags.ack() && segment.seq == h.irs) {
    return reply(syn_ack(h, timestamp_ms(now) + h.ts_offset));  // the same SYN again: ours was lost
  }
  if (segment.flags.syn()) return challenge(entry, now);  // RFC 5961 section 4.2
  const bool old = h.timestamps && segment.options.timestamps &&
                   static_cast<std::int32_t>(segment.options.timestamps->value - h.ts_recent) < 0;
  if (!inside || old) return challenge(entry, now);
  if (!segment.flags.ack()) {
    counters_.add(Counter::tcp_bad_flags);
    return {};
  }
  if (segment.ack != h.iss + 1) return reset(segment);
  if (h.timestamps && !segment.options.timestamps) {
    counters_.add(Counter::tcp_no_timestamp);
    return {};
  }
  if (arrival.accept_queue_full) {
    counters_.add(Counter::tcp_accept_queue_full);  // the SYN-ACK will be sent again, and so will this
    return {};
  }
  ListenResult out{.action = ListenAction::accept, .reply = {}, .handshake = h};
  remove(index);
  return out;
}

void Listener::link(std::uint32_t index, Instant now) {
  Entry& entry = entries_[index];
  const std::uint8_t retries = entry.handshake.retransmissions;
  entry.deadline = now + kFirstWait * (1U << retries);
  List& list = waiting_[retries];
  entry.previous = list.last;
  entry.next = kNoNode;
  (list.last == kNoNode ? list.first : entries_[list.last].next) = index;
  list.last = index;
}

void Listener::unlink(std::uint32_t index) {
  const Entry& entry = entries_[index];
  List& list = waiting_[entry.handshake.retransmissions];
  (entry.previous == kNoNode ? list.first : entries_[entry.previous].next) = entry.next;
  (entry.next == kNoNode ? list.last : entries_[entry.next].previous) = entry.previous;
}

void Listener::remove(std::uint32_t index) {
  unlink(index);
  table_.erase(entries_[index].flow);
  entries_[index].next = first_free_;
  first_free_ = index;
}

bool Listener::forget(const FlowKey& flow) {
  const std::uint32_t* index = table_.find(flow);
  if (index == nullptr) return false;
  remove(*index);
  return true;
}

std::size_t Listener::on_timer(std::span<Retry> out, Instant now) {
  std::size_t filled = 0;
  // From the most retries down, so that an entry moves once.
  for (std::size_t retries = waiting_.size(); retries-- > 0;) {
    while (waiting_[retries].first != kNoNode && filled < out.size()) {
      const std::uint32_t index = waiting_[retries].first;
      Entry& entry = entries_[index];
      if (entry.deadline > now) break;
      if (retries >= options_.syn_ack_retries) {
        counters_.add(Counter::tcp_handshakes_timed_out);
        remove(index);
        continue;
      }
      unlink(index);
      ++entry.handshake.retransmissions;
      link(index, now);
      out[filled++] = {entry.flow, syn_ack(entry.handshake, timestamp_ms(now) + entry.handshake.ts_offset)};
    }
  }
  return filled;
}

Instant Listener::next_deadline() const {
  Instant out = kForever;
  for (const List& list : waiting_) {
    if (list.first != kNoNode) out = std::min(out, entries_[list.first].deadline);
  }
  return out;
}

}  // namespace netchannel::tcp
