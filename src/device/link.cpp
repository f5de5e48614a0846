#include "device/link.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "device/dice.hpp"

namespace netchannel::device {
namespace {

struct Flight {
  std::vector<std::byte> bytes;
  FrameDesc meta;  // flags, segment size and l4 offset, if the link passes them on
};

Result<void> check(const LinkDirection& d) {
  if (!is_probability(d.loss) || !is_probability(d.duplicate) || !is_probability(d.corrupt) ||
      !is_probability(d.reorder)) {
    return fail(ErrorCode::invalid_argument,
                "a link's loss, duplicate, corrupt and reorder are probabilities, 0 to 1");
  }
  if (d.delay.count() < 0 || d.jitter.count() < 0 || d.reorder_by.count() < 0) {
    return fail(ErrorCode::invalid_argument, "a link's delay, jitter and reorder_by cannot be negative");
  }
  return {};
}

// One direction.
class Wire {
 public:
  Wire(const LinkDirection& options, std::uint64_t seed) : options_(options), dice_(seed) {}

  void change(const LinkDirection& options) { options_ = options; }
  const LinkStats& stats() const { return stats_; }
  LinkStats& stats() { return stats_; }
  Instant next_event() const {
    return in_flight_.empty() ? kForever : Instant{in_flight_.begin()->first.first};
  }

  void send(Flight flight, Instant now) {
    ++stats_.sent;
    if (dice_.chance(options_.loss)) {
      ++stats_.lost;
      return;
    }
    const auto leaves = enqueue(flight.bytes.size(), now);
    if (!leaves) {
      ++stats_.queue_drops;
      return;
    }
    if (!flight.bytes.empty() && dice_.chance(options_.corrupt)) corrupt(flight.bytes);
    const Instant arrives = arrival(*leaves);
    if (dice_.chance(options_.duplicate)) {
      ++stats_.duplicated;
      fly(flight, arrives);
    }
    fly(std::move(flight), arrives);
    advance(now);
  }

  void advance(Instant now) {
    while (!in_flight_.empty() && in_flight_.begin()->first.first <= now.ns) {
      auto node = in_flight_.extract(in_flight_.begin());
      if (arrived_.size() < options_.rx_frames) {
        arrived_.push_back(std::move(node.mapped()));
      } else {
        ++stats_.receive_drops;
        ++overflows_;
      }
    }
  }

  std::deque<Flight>& arrived() { return arrived_; }
  // Frames that found the receive queue full since the last call; the receiving end counts them.
  std::uint64_t take_overflows() { return std::exchange(overflows_, 0); }

 private:
  // When the last bit leaves the sender; no value if the queue has no room.
  std::optional<Instant> enqueue(std::size_t bytes, Instant now) {
    while (!queue_.empty() && queue_.front().leaves <= now) {
      queued_bytes_ -= queue_.front().bytes;
      queue_.pop_front();
    }
    if (options_.rate == 0) return now;
    if (options_.queue_bytes != 0 && queued_bytes_ + bytes > options_.queue_bytes) return std::nullopt;
    if (busy_until_ < now || queue_.empty()) {
      busy_until_ = now;
      carry_ = 0;
    }
    // The remainder is carried on, so that a busy line has exactly its rate.
    const std::uint64_t work = std::uint64_t{bytes} * 8 * 1'000'000'000 + carry_;
    busy_until_ = busy_until_ + Duration(static_cast<std::int64_t>(work / options_.rate));
    carry_ = work % options_.rate;
    queued_bytes_ += bytes;
    queue_.push_back({busy_until_, bytes});
    return busy_until_;
  }

  Instant arrival(Instant leaves) {
    Instant arrives = leaves + options_.delay;
    if (options_.jitter.count() > 0) {
      const auto spread = static_cast<std::uint64_t>(options_.jitter.count());
      arrives = arrives + Duration(static_cast<std::int64_t>(dice_.below(spread + 1)));
    }
    arrives = std::max(arrives, last_arrival_);
    if (dice_.chance(options_.reorder)) {
      ++stats_.reordered;
      return arrives + options_.reorder_by;
    }
    last_arrival_ = arrives;
    return arrives;
  }

  void corrupt(std::vector<std::byte>& bytes) {
    ++stats_.corrupted;
    for (std::uint32_t i = 0; i < options_.corrupt_bits; ++i) {
      const std::uint64_t bit = dice_.below(bytes.size() * 8);
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }

  void fly(Flight flight, Instant arrives) {
    in_flight_.emplace(std::pair(arrives.ns, next_++), std::move(flight));
  }

  struct Queued {
    Instant leaves;
    std::size_t bytes;
  };
  LinkDirection options_;
  Dice dice_;
  LinkStats stats_;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  Instant busy_until_;
  std::uint64_t carry_ = 0;  // of a nanosecond, in units of 1 / rate
  Instant last_arrival_;
  std::map<std::pair<std::int64_t, std::uint64_t>, Flight> in_flight_;  // by arrival, then by age
  std::uint64_t next_ = 0;
  std::deque<Flight> arrived_;
  std::uint64_t overflows_ = 0;
};

DeviceInfo describe_end(const LinkOptions& options, const MacAddress& mac) {
  DeviceInfo info;
  info.name = "link";
  info.mode = "link";
  info.mac = mac;
  info.mtu = options.mtu;
  info.max_tx_frame = options.max_tx_frame != 0 ? options.max_tx_frame
                                                : options.mtu + static_cast<std::uint32_t>(kEthernetHeader);
  info.bare = true;
  info.virtual_link = true;
  info.tx_checksum = options.offloads;
  return info;
}

}  // namespace

struct LinkPair::State {
  State(const LinkOptions& given)
      : options(given), a_to_b(given.a_to_b, given.seed * 2), b_to_a(given.b_to_a, given.seed * 2 + 1) {}
  LinkOptions options;
  Wire a_to_b;
  Wire b_to_a;
  Instant now;
};

namespace {

class LinkDevice final : public CopyingDevice {
 public:
  // `state` keeps the wires alive.
  LinkDevice(DeviceInfo info, DeviceHome home, std::shared_ptr<void> state, const LinkOptions& options)
      : CopyingDevice(std::move(info), home, options.rx_headroom),
        state_(std::move(state)),
        options_(options) {}
  void connect(Wire& out, Wire& in, const Instant& now) { out_ = &out, in_ = &in, now_ = &now; }

  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override {
    if (const auto missed = in_->take_overflows(); missed != 0)
      home_.counters.drop(DropReason::no_frames, missed);
    std::size_t filled = 0;
    while (!in_->arrived().empty()) {
      const Flight& flight = in_->arrived().front();
      if (too_large(flight.bytes.size())) {
        home_.counters.drop(DropReason::device_frame_too_large);
        ++in_->stats().receive_drops;
        in_->arrived().pop_front();
        continue;
      }
      const std::size_t parts = deliver(flight.bytes, out.subspan(filled));
      if (parts == 0) break;
      pass_on(flight.meta, out.subspan(filled, parts));
      filled += parts;
      ++in_->stats().delivered;
      in_->stats().bytes_delivered += flight.bytes.size();
      in_->arrived().pop_front();
    }
    return filled;
  }

 private:
  bool too_large(std::size_t bytes) const {
    return parts_for(bytes) > (options_.multi_buffer ? kMaxParts : 1);
  }

  void pass_on(const FrameDesc& meta, std::span<FrameDesc> parts) const {
    for (FrameDesc& part : parts) part.flags |= meta.flags;
    parts.front().segment_size = meta.segment_size;
    parts.front().l4_offset = meta.l4_offset;
  }

  Sent send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept override {
    Flight flight;
    flight.bytes.reserve(bytes);
    for (const FrameDesc& part : parts) {
      const Bytes from = home_.region.bytes_of(part);
      flight.bytes.insert(flight.bytes.end(), from.begin(), from.end());
    }
    if (options_.offloads) {
      flight.meta.flags = parts.front().flags & (kChecksumVerified | kChecksumPartial);
      flight.meta.segment_size = parts.front().segment_size;
      flight.meta.l4_offset = parts.front().l4_offset;
    }
    out_->send(std::move(flight), *now_);
    return Sent::yes;
  }

  std::shared_ptr<void> state_;
  const LinkOptions& options_;
  Wire* out_ = nullptr;
  Wire* in_ = nullptr;
  const Instant* now_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LinkPair>> LinkPair::open(const LinkOptions& options, DeviceHome a, DeviceHome b) {
  for (const LinkDirection* direction : {&options.a_to_b, &options.b_to_a}) {
    if (auto ok = check(*direction); !ok) return tl::unexpected(ok.error());
  }
  if (options.rx_headroom >= std::min(a.region.slot_size(), b.region.slot_size())) {
    return fail(ErrorCode::invalid_argument,
                "a link's rx_headroom must be less than the size of a frame slot");
  }
  auto state = std::make_shared<State>(options);
  std::unique_ptr<LinkPair> pair(new LinkPair(state));
  const auto make = [&](const MacAddress& mac, DeviceHome home, Wire& out, Wire& in) {
    auto end = std::make_unique<LinkDevice>(describe_end(options, mac), home, state, state->options);
    end->connect(out, in, state->now);
    return end;
  };
  pair->a_ = make(options.mac_a, a, state->a_to_b, state->b_to_a);
  pair->b_ = make(options.mac_b, b, state->b_to_a, state->a_to_b);
  pair->a_view_ = pair->a_.get();
  pair->b_view_ = pair->b_.get();
  return pair;
}

LinkPair::LinkPair(std::shared_ptr<State> state) : state_(std::move(state)) {}
LinkPair::~LinkPair() = default;
Device& LinkPair::a() { return *a_view_; }
Device& LinkPair::b() { return *b_view_; }
std::unique_ptr<Device> LinkPair::take_a() { return std::move(a_); }
std::unique_ptr<Device> LinkPair::take_b() { return std::move(b_); }

void LinkPair::set_time(Instant now) {
  if (now < state_->now) return;
  state_->now = now;
  state_->a_to_b.advance(now);
  state_->b_to_a.advance(now);
}

Instant LinkPair::now() const { return state_->now; }
Instant LinkPair::next_event() const {
  return earlier(state_->a_to_b.next_event(), state_->b_to_a.next_event());
}
const LinkStats& LinkPair::a_to_b() const { return state_->a_to_b.stats(); }
const LinkStats& LinkPair::b_to_a() const { return state_->b_to_a.stats(); }

Result<void> LinkPair::change(const LinkDirection& a_to_b, const LinkDirection& b_to_a) {
  for (const LinkDirection* direction : {&a_to_b, &b_to_a}) {
    if (auto ok = check(*direction); !ok) return ok;
  }
  state_->a_to_b.change(a_to_b);
  state_->b_to_a.change(b_to_a);
  return {};
}

}  // namespace netchannel::device
