#include "sim.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace netchannel::tcp::sim {
namespace {

constexpr std::uint32_t kFrames = 16384;
constexpr std::uint16_t kHeadroom = 128;

std::unique_ptr<FrameRegion> region_of() {
  return *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kFrames});
}

const FlowKey kFlow{Protocol::tcp, {IpAddress::v4(10, 0, 0, 2), 80}, {IpAddress::v4(10, 0, 0, 1), 4000}};
const FlowKey kFlowOfA{Protocol::tcp, kFlow.peer, kFlow.local};

}  // namespace

Side::Side(const SideOptions& side_options, CounterPage& page)
    : options(side_options),
      region(region_of()),
      tx(*region, 0, kFrames, FramePool::Start::all_free),
      rx(*region, kFrames, kFrames, FramePool::Start::all_free),
      shared({}, page),
      c(shared) {}

void Side::note(Events events) {
  seen |= events;
  if (events & kConnected) connected = true;
  if (events & kPeerClosed) peer_closed = true;
  if (events & kClosed) closed = true;
}

void Side::on_packet(Packet& packet, Instant now) {
  ++packets_in;
  const SegmentOut& out = packet.segment;
  SegmentIn in;
  in.seq = out.seq;
  in.ack = out.ack;
  in.flags = out.flags;
  in.window = out.window;
  in.options = out.options;
  in.ecn = packet.ce ? Ecn::ce : out.ecn;
  in.length = out.length;
  in.segments = out.segment_size == 0
                    ? std::uint16_t{1}
                    : static_cast<std::uint16_t>((out.length + out.segment_size - 1) / out.segment_size);
  std::array<Frame, 64> frames;
  std::size_t used = 0;
  for (std::size_t at = 0; at < packet.payload.size();) {
    auto frame = rx.allocate(0);
    if (!frame) return;  // no receive frame: lost
    const std::size_t part = std::min<std::size_t>(1600, packet.payload.size() - at);
    std::memcpy(frame->append(part).data(), packet.payload.data() + at, part);
    frames[used++] = std::move(*frame);
    at += part;
  }
  in.payload = std::span(frames).first(used);
  note(on_segment(c, in, now));
}

void Side::application(Instant now) {
  if (connected && !c.state.fin_queued && c.state.state != State::closed) {
    std::array<std::byte, 65536> buffer;
    while (written < options.to_send) {
      const auto room = std::min<std::uint64_t>(
          {writable(c), buffer.size(), options.to_send - written, options.write_size});
      if (room == 0) break;
      for (std::uint64_t i = 0; i < room; ++i) buffer[i] = pattern(written + i);
      const std::size_t took = write(c, Bytes(buffer).first(room), tx, kHeadroom);
      written += took;
      if (took == 0) break;
    }
    if (written == options.to_send && options.close_when_done) shutdown_write(c);
  }
  if (now < next_read || c.receive.readable() == 0) return;
  std::uint64_t left = options.read_size;
  while (left > 0 && c.receive.readable() > 0) {
    std::array<Bytes, 8> spans;
    std::size_t bytes = 0;
    const std::size_t filled = c.receive.spans(spans);
    for (const Bytes& span : std::span(spans).first(filled)) {
      const std::size_t part = std::min<std::size_t>(span.size(), left - bytes);
      for (std::size_t i = 0; i < part; ++i) corrupt |= span[i] != pattern(read + bytes + i);
      bytes += part;
      if (bytes == left) break;
    }
    consume(c, bytes, now);
    read += bytes;
    left -= bytes;
  }
  if (options.read_every > Duration{0}) next_read = now + options.read_every;
}

std::vector<Packet> Side::poll(Instant now) {
  std::vector<Packet> out;
  for (bool more = true; more;) {
    TxBatch batch;
    more = poll_tx(c, batch, {.super_frame = options.super_frame}, now);
    for (const SegmentOut& segment : batch) {
      Packet packet{.segment = segment, .payload = {}};
      std::array<SendQueue::Slice, 64> slices;
      if (segment.length != 0) {
        for (const auto& slice :
             std::span(slices).first(c.send.slices(segment.seq, segment.length, slices))) {
          packet.payload.insert(packet.payload.end(), slice.bytes.begin(), slice.bytes.end());
        }
      }
      ++segments_sent;
      bytes_sent += segment.length;
      out.push_back(std::move(packet));
    }
    more = more && !batch.empty();
  }
  return out;
}

Instant Side::deadline() const {
  Instant out = next_deadline(c.state);
  if (options.read_every > Duration{0} && c.receive.readable() > 0) out = std::min(out, next_read);
  return out;
}

Simulation::Simulation(const SideOptions& side_a, const SideOptions& side_b, const LinkOptions& link,
                       std::uint64_t seed)
    : a(side_a, counters_a),
      b(side_b, counters_b),
      link_(link),
      random_(seed),
      listener_({.settings = side_b.settings, .syn_queue = 4, .secrets = {}, .table_key = {}}, counters_b) {}

void Simulation::transmit(int from, std::vector<Packet> packets, Instant now) {
  for (Packet& packet : packets) {
    if (trace) trace(now, from == 0 ? "a -> b" : "b -> a", packet);
    if (chance() < link_.loss) {
      ++lost;
      continue;
    }
    const std::uint64_t bytes = packet.payload.size() + 66;
    Instant leaves = now;
    if (link_.bits_per_second != 0) {
      const Instant start = std::max(now, free_at_[from]);
      const std::uint64_t waiting =
          static_cast<std::uint64_t>((start - now).count()) * link_.bits_per_second / 8'000'000'000ULL;
      if (waiting > link_.queue) {
        ++queue_drops;
        continue;
      }
      leaves = start + Duration(static_cast<std::int64_t>(bytes * 8'000'000'000ULL / link_.bits_per_second));
      free_at_[from] = leaves;
    }
    Instant arrives = leaves + link_.delay;
    const Instant spike{link_.spike_at.count()};
    if (link_.spike > Duration{0} && now >= spike && now < spike + std::chrono::seconds(1))
      arrives = arrives + link_.spike;
    if (chance() < link_.reorder) arrives = arrives + link_.reorder_by;
    if (packet.segment.ecn == Ecn::ect0 && chance() < link_.mark_ce) packet.ce = true;
    auto shared = std::make_shared<Packet>(std::move(packet));
    flying_.push({arrives, order_++, 1 - from, shared});
    if (chance() < link_.duplicate) flying_.push({arrives + Duration(1000), order_++, 1 - from, shared});
  }
}

void Simulation::through_listener(Packet& packet, Instant now) {
  SegmentIn in;
  in.seq = packet.segment.seq;
  in.ack = packet.segment.ack;
  in.flags = packet.segment.flags;
  in.window = packet.segment.window;
  in.options = packet.segment.options;
  const ListenResult result = listener_.on_segment({.flow = kFlow, .after = {}}, in, now);
  if (result.action == ListenAction::reply)
    transmit(1, {Packet{.segment = result.reply, .payload = {}}}, now);
  if (result.action != ListenAction::accept) return;
  accepted_ = true;
  accept(b.c, result.handshake, b.options.settings, now);
  b.on_packet(packet, now);
}

void Simulation::deliver(Instant now) {
  while (!flying_.empty() && flying_.top().at <= now) {
    const InFlight flight = flying_.top();
    flying_.pop();
    ++delivered;
    Packet packet = *flight.packet;
    if (flight.to == 0) {
      a.on_packet(packet, now);
    } else if (!accepted_) {
      through_listener(packet, now);
    } else {
      b.on_packet(packet, now);
    }
  }
}

void Simulation::serve(Side& side, int index, Instant now) {
  if (side.deadline() <= now) side.note(on_timer(side.c, now));
  side.application(now);
  transmit(index, side.poll(now), now);
}

Result Simulation::run(Duration limit) {
  Instant now{1'000'000'000};
  const Instant end = now + limit;
  connect(a.c, {.settings = a.options.settings, .iss = initial_sequence({}, kFlowOfA, now), .ts_offset = 77},
          now);
  serve(a, 0, now);
  Result out;
  const auto done = [](const Side& me, const Side& peer) {
    return me.read == peer.options.to_send && !me.corrupt;
  };
  const auto over = [](const Side& s) { return s.closed || s.c.state.state == State::time_wait; };
  std::uint64_t idle_turns = 0;
  Instant before = now;
  while (now < end) {
    Instant next = std::min(a.deadline(), accepted_ ? b.deadline() : listener_.next_deadline());
    if (!flying_.empty()) next = std::min(next, flying_.top().at);
    if (next == kForever) break;
    now = std::max(now, next);
    idle_turns = now == before ? idle_turns + 1 : 0;
    before = now;
    if (idle_turns > 10000) {
      out.why = "time stands still";
      return out;
    }
    deliver(now);
    if (!accepted_) {
      std::array<Listener::Retry, 4> retries;
      const std::size_t count = listener_.on_timer(retries, now);
      for (std::size_t i = 0; i < count; ++i)
        transmit(1, {Packet{.segment = retries[i].segment, .payload = {}}}, now);
    }
    const std::uint64_t had = a.read + b.read;
    serve(a, 0, now);
    if (accepted_) serve(b, 1, now);
    if (a.read + b.read != had) out.end = now;
    const bool closing = a.options.close_when_done && b.options.close_when_done;
    if (done(a, b) && done(b, a) && (!closing || (over(a) && over(b)))) {
      out.finished = true;
      return out;
    }
  }
  out.why = "a " + to_string(a.c.state) + " read " + std::to_string(a.read) + (a.corrupt ? " CORRUPT" : "") +
            "\nb " + to_string(b.c.state) + " read " + std::to_string(b.read) + (b.corrupt ? " CORRUPT" : "");
  return out;
}

}  // namespace netchannel::tcp::sim
