#include "sim.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace netchannel::tcp::sim {
namespace {

constexpr std::uint32_t kFrames = 16384;
constexpr std::uint16_t kHeadroom = 128;
constexpr std::size_t kHeaders = 66;
constexpr std::uint32_t kNobody = 0xffffffff;

FlowKey key_of(std::uint32_t flow) {
  return {Protocol::tcp,
          {IpAddress::v4(10, 0, 0, 2), 80},
          {IpAddress::v4(10, 0, 0, 1), static_cast<std::uint16_t>(4000 + flow)}};
}

std::uint16_t segments_of(const SegmentOut& out) {
  if (out.segment_size == 0) return 1;
  return static_cast<std::uint16_t>((out.length + out.segment_size - 1) / out.segment_size);
}

SegmentIn arriving(const SegmentOut& out) {
  SegmentIn in;
  in.seq = out.seq;
  in.ack = out.ack;
  in.flags = out.flags;
  in.window = out.window;
  in.options = out.options;
  in.length = out.length;
  in.segments = segments_of(out);
  return in;
}

}  // namespace

Memory::Memory(CounterPage& page)
    : region(*FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kFrames})),
      tx(*region, 0, kFrames, FramePool::Start::all_free),
      rx(*region, kFrames, kFrames, FramePool::Start::all_free),
      shared({}, page) {}

std::size_t room_to_write(const Memory& memory, const Connection& c) {
  const std::size_t reserve = memory.tx.count() / 8, free = memory.tx.free_count();
  std::size_t frames = free - std::min(free, reserve + c.send.frames());
  const std::uint32_t mss = std::max(effective_mss(c.state), 1U);
  if (free <= memory.tx.count() / 4) {
    const std::size_t soon = (useful_to_hold(c) + mss - 1) / mss;
    frames = std::min(frames, soon - std::min<std::size_t>(soon, c.send.frames()));
  }
  return std::min<std::size_t>(writable(c), frames * mss);
}

Side::Side(const SideOptions& side_options, Memory& of_host)
    : options(side_options), memory(of_host), c(of_host.shared) {}

void Side::note(Events events) {
  seen |= events;
  if (events & kConnected) connected = true;
  if (events & kPeerClosed) peer_closed = true;
  if (events & kClosed) closed = true;
}

void Side::on_packet(const Packet& packet, Instant now) {
  ++packets_in;
  touched = true;
  SegmentIn in = arriving(packet.segment);
  in.ecn = packet.ce ? Ecn::ce : packet.segment.ecn;
  std::array<Frame, 64> frames;
  std::size_t used = 0;
  for (std::size_t at = 0; at < packet.payload.size();) {
    auto frame = memory.rx.allocate(0);
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
          {room_to_write(memory, c), buffer.size(), options.to_send - written, options.write_size});
      if (room == 0) break;
      for (std::uint64_t i = 0; i < room; ++i) buffer[i] = pattern(written + i);
      const std::size_t took = write(c, Bytes(buffer).first(room), memory.tx, kHeadroom);
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
      Packet packet{.segment = segment, .payload = {}, .wire = {}};
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

Simulation::Simulation(const std::vector<FlowOptions>& wanted, const LinkOptions& link, std::uint64_t seed)
    : memory_a(counters_a),
      memory_b(counters_b),
      flows([&] {
        std::deque<Flow> out;
        for (const FlowOptions& options : wanted) out.emplace_back(options, memory_a, memory_b);
        for (std::uint32_t i = 0; i < out.size(); ++i) out[i].key = key_of(i);
        return out;
      }()),
      a(flows.front().a),
      b(flows.front().b),
      listener({.settings = wanted.front().b.settings, .syn_queue = 64, .secrets = {}, .table_key = {}},
               counters_b),
      link_(link),
      random_(seed) {}

// When a packet that is sent now has left, or nothing if the queue is full.
std::optional<Instant> Simulation::through_the_queue(int from, std::size_t bytes, Instant now) {
  if (link_.bits_per_second == 0) return now;
  const Instant start = std::max(now, free_at_[from]);
  const std::uint64_t waiting =
      static_cast<std::uint64_t>((start - now).count()) * link_.bits_per_second / 8'000'000'000ULL;
  if (waiting > link_.queue) {
    ++queue_drops;
    return std::nullopt;
  }
  free_at_[from] =
      start + Duration(static_cast<std::int64_t>(bytes * 8'000'000'000ULL / link_.bits_per_second));
  return free_at_[from];
}

void Simulation::transmit(int from, std::uint32_t flow, std::vector<Packet> packets, Instant now) {
  for (Packet& packet : packets) {
    if (trace) trace(now, from == 0 ? "a -> b" : "b -> a", packet);
    if (chance() < link_.loss) {
      ++lost;
      continue;
    }
    const std::optional<Instant> leaves = through_the_queue(from, packet.payload.size() + kHeaders, now);
    if (!leaves || flow == kNobody) continue;
    Instant arrives = *leaves + link_.delay;
    Duration since_spike = now - Instant{link_.spike_at.count()};
    if (link_.spike_every > Duration{0} && since_spike >= Duration{0}) since_spike %= link_.spike_every;
    if (link_.spike > Duration{0} && since_spike >= Duration{0} && since_spike < std::chrono::seconds(1))
      arrives = arrives + link_.spike;
    if (chance() < link_.reorder) arrives = arrives + link_.reorder_by;
    if (packet.segment.ecn == Ecn::ect0 && chance() < link_.mark_ce) packet.ce = true;
    if (link_.corrupt > 0) corrupt(from, flow, packet);
    auto shared = std::make_shared<Packet>(std::move(packet));
    flying_.push({arrives, order_++, 1 - from, flow, shared});
    if (chance() < link_.duplicate)
      flying_.push({arrives + Duration(1000), order_++, 1 - from, flow, shared});
  }
}

// Makes bytes of the packet, and damages some of them.
void Simulation::corrupt(int from, std::uint32_t flow, Packet& packet) {
  const FlowKey& key = flows[flow].key;
  const Endpoint source = from == 0 ? key.peer : key.local, destination = from == 0 ? key.local : key.peer;
  const wire::TcpRepr repr{.source_port = source.port,
                           .destination_port = destination.port,
                           .sequence = packet.segment.seq.value,
                           .acknowledgment = packet.segment.ack.value,
                           .flags = packet.segment.flags,
                           .window = packet.segment.window,
                           .options = packet.segment.options};
  packet.wire.resize(repr.size());
  packet.wire.insert(packet.wire.end(), packet.payload.begin(), packet.payload.end());
  wire::PartialSum sum =
      wire::pseudo_header(source.address, destination.address, Protocol::tcp, packet.wire.size());
  sum.add(wire::checksum_fast(packet.payload), repr.size());
  repr.emit(MutableBytes(packet.wire).first(repr.size()), sum);
  if (chance() >= link_.corrupt) return;
  const std::size_t at = random_() % packet.wire.size();
  packet.wire[at] ^= static_cast<std::byte>(1 + random_() % 255);
}

// As a stack does: what does not parse or does not sum up is dropped.
bool Simulation::read_wire(int to, std::uint32_t flow, Packet& packet) {
  const FlowKey& key = flows[flow].key;
  const Endpoint source = to == 0 ? key.local : key.peer, destination = to == 0 ? key.peer : key.local;
  const auto view = wire::TcpView::parse(packet.wire);
  if (!view || !wire::verify_checksum(*view, source.address, destination.address)) {
    ++found_corrupt;
    return false;
  }
  const SegmentIn in = segment_from(*view);
  packet.segment.seq = in.seq;
  packet.segment.ack = in.ack;
  packet.segment.flags = in.flags;
  packet.segment.window = in.window;
  packet.segment.options = in.options;
  const Bytes payload = view->payload();
  packet.payload.assign(payload.begin(), payload.end());
  packet.segment.length = static_cast<std::uint32_t>(payload.size());
  return true;
}

void Simulation::through_listener(std::uint32_t number, const Packet& packet, Instant now) {
  Flow& flow = flows[number];
  const ListenResult result =
      listener.on_segment({.flow = flow.key, .after = {}}, arriving(packet.segment), now);
  if (result.action == ListenAction::reply)
    transmit(1, number, {Packet{.segment = result.reply, .payload = {}, .wire = {}}}, now);
  if (result.action != ListenAction::accept) return;
  flow.accepted = true;
  accept(flow.b.c, result.handshake, flow.b.options.settings, now);
  flow.b.on_packet(packet, now);
}

void Simulation::send_to_listener(const FlowKey& flow, const SegmentIn& segment, Instant now) {
  if (!through_the_queue(0, kHeaders, now)) return;
  const ListenResult result = listener.on_segment({.flow = flow, .after = {}}, segment, now);
  if (result.action == ListenAction::reply)
    transmit(1, kNobody, {Packet{.segment = result.reply, .payload = {}, .wire = {}}}, now);
}

void Simulation::deliver(Instant now) {
  while (!flying_.empty() && flying_.top().at <= now) {
    const InFlight flight = flying_.top();
    flying_.pop();
    ++delivered;
    Packet packet = *flight.packet;
    if (!packet.wire.empty() && !read_wire(flight.to, flight.flow, packet)) continue;
    Flow& flow = flows[flight.flow];
    if (flight.to == 0) {
      flow.a.on_packet(packet, now);
    } else if (!flow.accepted) {
      through_listener(flight.flow, packet, now);
    } else {
      flow.b.on_packet(packet, now);
    }
  }
}

void Simulation::serve(std::uint32_t flow, Side& side, int index, Instant now) {
  const bool due = side.deadline() <= now;
  if (!due && !side.touched) return;
  side.touched = false;
  if (due) side.note(on_timer(side.c, now));
  const std::uint64_t had = side.read;
  side.application(now);
  if (side.read != had) flows[flow].end = now;
  transmit(index, flow, side.poll(now), now);
}

void Simulation::retry_handshakes(Instant now) {
  std::array<Listener::Retry, 64> retries;
  const std::size_t count = listener.on_timer(retries, now);
  for (const Listener::Retry& retry : std::span(retries).first(count)) {
    const std::uint32_t flow = retry.flow.peer.port - 4000U;
    const bool ours = flow < flows.size() && flows[flow].key == retry.flow;
    transmit(1, ours ? flow : kNobody, {Packet{.segment = retry.segment, .payload = {}, .wire = {}}}, now);
  }
}

Instant Simulation::next_event() const {
  Instant next = std::min(listener.next_deadline(), hook_at_);
  if (!flying_.empty()) next = std::min(next, flying_.top().at);
  for (const Flow& flow : flows) {
    next = std::min({next, flow.start, flow.a.deadline()});
    if (flow.accepted) next = std::min(next, flow.b.deadline());
  }
  return next;
}

bool Simulation::finished() const {
  const auto over = [](const Side& s) { return s.closed || s.c.state.state == State::time_wait; };
  const auto done = [](const Side& me, const Side& peer) {
    return me.read == peer.options.to_send && !me.corrupt;
  };
  return std::all_of(flows.begin(), flows.end(), [&](const Flow& flow) {
    const bool closing = flow.a.options.close_when_done && flow.b.options.close_when_done;
    return done(flow.a, flow.b) && done(flow.b, flow.a) && (!closing || (over(flow.a) && over(flow.b)));
  });
}

void Simulation::begin(std::uint32_t number, Instant now) {
  Flow& flow = flows[number];
  flow.start = kForever;
  const FlowKey of_a{Protocol::tcp, flow.key.peer, flow.key.local};
  connect(flow.a.c,
          {.settings = flow.a.options.settings, .iss = initial_sequence({}, of_a, now), .ts_offset = 77},
          now);
  flow.a.touched = true;
}

Result Simulation::run(Duration limit) {
  Instant now = kBegin;
  const Instant end = now + limit;
  if (hook) hook_at_ = now;
  Result out;
  std::uint64_t idle_turns = 0;
  Instant before = now;
  while (now < end) {
    const Instant next = next_event();
    if (next == kForever) break;
    now = std::max(now, next);
    idle_turns = now == before ? idle_turns + 1 : 0;
    before = now;
    if (idle_turns > 10000) {
      out.why = "time stands still";
      return out;
    }
    if (hook_at_ <= now) {
      hook(now);
      hook_at_ = now + hook_every;
    }
    deliver(now);
    if (listener.next_deadline() <= now) retry_handshakes(now);
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      if (flows[i].start <= now) begin(i, now);
      serve(i, flows[i].a, 0, now);
      if (flows[i].accepted) serve(i, flows[i].b, 1, now);
      out.end = std::max(out.end, flows[i].end);
    }
    if (finished()) {
      out.finished = true;
      return out;
    }
  }
  for (const Flow& flow : flows) {
    out.why += "a " + to_string(flow.a.c.state) + " read " + std::to_string(flow.a.read) +
               (flow.a.corrupt ? " CORRUPT" : "") + "\nb " + to_string(flow.b.c.state) + " read " +
               std::to_string(flow.b.read) + (flow.b.corrupt ? " CORRUPT" : "") + "\n";
  }
  return out;
}

}  // namespace netchannel::tcp::sim
