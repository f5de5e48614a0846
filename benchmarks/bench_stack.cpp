// What the stack costs for a datagram, through the real rings of a channel, with the benchmark in the
// driver's place in the same thread. The driver's share (a loop over the rings) is in every figure; BM_Rings
// alone shows how large it is.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "channel/channel.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/udp.hpp"
#include "stack/stack.hpp"

namespace {

using namespace netchannel;

constexpr std::uint32_t kSlots = 1024;
const MacAddress kOurMac{{2, 0, 0, 0, 0, 1}}, kPeerMac{{2, 0, 0, 0, 0, 2}};
const IpAddress kOur4 = IpAddress::v4(10, 0, 0, 1);
const IpAddress kOur6 = *IpAddress::parse("2001:db8::1");

IpAddress peer_address(bool v6, std::uint32_t i) {
  if (!v6) return IpAddress::v4(0x0a000100 + i);
  auto bytes = kOur6.bytes();
  bytes[15] = static_cast<std::uint8_t>(i & 0xff), bytes[14] = 1;
  return IpAddress::v6(bytes);
}

struct Frames {
  std::vector<std::vector<std::byte>> all;
  Frames(bool v6, std::uint32_t flows, std::size_t size) {
    for (std::uint32_t i = 0; i < flows; ++i) all.push_back(make(v6, peer_address(v6, i), size));
  }
  static std::vector<std::byte> make(bool v6, const IpAddress& peer, std::size_t size) {
    const IpAddress us = v6 ? kOur6 : kOur4;
    const std::size_t l3 = v6 ? 40 : 20;
    std::vector<std::byte> frame(14 + l3 + 8 + size, std::byte{0x5a});
    const MutableBytes out(frame);
    wire::EthernetRepr{kOurMac, kPeerMac, v6 ? wire::EtherType::ipv6 : wire::EtherType::ipv4, {}}.emit(out);
    const auto length = static_cast<std::uint16_t>(8 + size);
    if (v6) {
      wire::Ipv6Repr{.source = peer, .destination = us, .payload_length = length}.emit(out.subspan(14));
    } else {
      wire::Ipv4Repr{
          .source = peer, .destination = us, .dont_fragment = true, .payload_length = length, .options = {}}
          .emit(out.subspan(14));
    }
    wire::PartialSum sum = wire::pseudo_header(peer, us, Protocol::udp, length);
    sum.add(wire::checksum_fast(Bytes(frame).subspan(14 + l3 + 8)));
    wire::UdpRepr{4000, 7, static_cast<std::uint16_t>(size)}.emit(out.subspan(14 + l3), sum);
    return frame;
  }
};

struct Bench {
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kSlots});
  std::unique_ptr<Channel> channel =
      *Channel::open({.rx_ring = kSlots, .tx_ring = kSlots, .rx_slots = kSlots, .tx_slots = kSlots});
  DriverEnd driver = channel->take_driver();
  std::unique_ptr<stack::Stack> stack;
  stack::UdpHandle socket;
  std::vector<std::uint32_t> lent;
  std::uint32_t next_frame = 0;
  Instant now{1};

  explicit Bench(bool v6, std::uint32_t flows) {
    stack::StackOptions options;
    options.link.mac = kOurMac;
    options.rx = {0, kSlots};
    options.tx = {kSlots, kSlots};
    options.addresses = {{kOur4, 8}, {kOur6, 64}};
    options.routes = {{.destination = {kOur4, 8}}, {.destination = {kOur6, 64}}};
    options.secret.fill(7);
    stack = *stack::Stack::open(channel->take_consumer(), *region, options);
    for (std::uint32_t i = kSlots; i-- > 0;) lent.push_back(i);
    for (std::uint32_t i = 0; i < flows; ++i) stack->on_neighbour(peer_address(v6, i), kPeerMac);
    stack::UdpBind bind;
    bind.local = {v6 ? IpAddress::any_v6() : IpAddress::any_v4(), 7};
    socket = *stack->open_udp(bind);
  }

  // The device's share: the frames are in memory already.
  void fill(const Frames& frames) {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const auto& frame = frames.all[slot % frames.all.size()];
      std::copy(frame.begin(), frame.end(), region->slot(slot).begin() + 64);
    }
  }
  void receive_burst(std::uint32_t n, std::uint32_t length) {
    const std::uint32_t room = driver.rx.reserve(n);
    for (std::uint32_t i = 0; i < room; ++i) {
      FrameDesc desc;
      desc.slot = lent.back();
      desc.offset = 64;
      desc.length = length;
      lent.pop_back();
      driver.rx.write(i, desc);
    }
    driver.rx.submit(room);
  }
  void take_home() {
    std::array<std::uint32_t, 64> slots;
    while (const std::size_t n = driver.recycle.pop_all(slots))
      lent.insert(lent.end(), slots.begin(), slots.begin() + n);
  }
  void transmit() {
    std::array<FrameDesc, 64> frames;
    std::array<std::uint32_t, 64> slots;
    while (const std::size_t n = driver.tx.pop_all(frames)) {
      for (std::size_t i = 0; i < n; ++i) slots[i] = frames[i].slot;
      driver.reclaimed.push_all(std::span(slots).first(n));
    }
  }
};

// Arguments of all: burst, payload bytes, flows, IPv6.
void BM_Receive(benchmark::State& state) {
  const auto burst = static_cast<std::uint32_t>(state.range(0)),
             flows = static_cast<std::uint32_t>(state.range(2));
  const bool v6 = state.range(3) != 0;
  Bench bench(v6, flows);
  const Frames frames(v6, flows, static_cast<std::size_t>(state.range(1)));
  bench.fill(frames);
  const auto length = static_cast<std::uint32_t>(frames.all[0].size());
  std::array<Datagram, 64> got;
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    bench.receive_burst(burst, length);
    bench.stack->poll(bench.now);
    const std::size_t n = bench.stack->receive(bench.socket, got);
    for (std::size_t i = 0; i < n; ++i) bytes += got[i].payload.size(), got[i].frame = {};
    bench.take_home();
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(static_cast<std::int64_t>(bench.stack->counters().read(Counter::udp_received)));
}

void BM_Send(benchmark::State& state) {
  const auto burst = static_cast<std::uint32_t>(state.range(0)),
             flows = static_cast<std::uint32_t>(state.range(2));
  const bool v6 = state.range(3) != 0;
  Bench bench(v6, flows);
  std::vector<std::byte> payload(static_cast<std::size_t>(state.range(1)));
  std::array<OutDatagram, 64> out;
  std::array<SendStatus, 64> told;
  std::uint32_t flow = 0;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < burst; ++i) {
      out[i] = {payload, {peer_address(v6, flow), 4000}, false};
      if (++flow == flows) flow = 0;
    }
    bench.stack->send(bench.socket, std::span(out).first(burst), told);
    bench.transmit();
    bench.stack->poll(bench.now);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(bench.stack->counters().read(Counter::udp_sent)));
}

// One datagram in, one out: what a server adds to the device's cost.
void BM_Echo(benchmark::State& state) {
  const auto burst = static_cast<std::uint32_t>(state.range(0)),
             flows = static_cast<std::uint32_t>(state.range(2));
  const bool v6 = state.range(3) != 0;
  Bench bench(v6, flows);
  const Frames frames(v6, flows, static_cast<std::size_t>(state.range(1)));
  bench.fill(frames);
  const auto length = static_cast<std::uint32_t>(frames.all[0].size());
  std::array<Datagram, 64> got;
  std::array<OutDatagram, 64> out;
  for (auto _ : state) {
    bench.receive_burst(burst, length);
    bench.stack->poll(bench.now);
    const std::size_t n = bench.stack->receive(bench.socket, got);
    for (std::size_t i = 0; i < n; ++i) out[i] = {got[i].payload, got[i].peer, false};
    bench.stack->send(bench.socket, std::span(out).first(n));
    for (std::size_t i = 0; i < n; ++i) got[i].frame = {};
    bench.transmit();
    bench.take_home();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(bench.stack->counters().read(Counter::udp_sent)));
}

void BM_EmptyPoll(benchmark::State& state) {
  Bench bench(false, 1);
  for (auto _ : state) benchmark::DoNotOptimize(bench.stack->poll(bench.now));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"burst", "bytes", "flows", "v6"});
  for (const int burst : {1, 32}) {
    bench->Args({burst, 1, 1, 0})
        ->Args({burst, 100, 64, 0})
        ->Args({burst, 1400, 1, 0})
        ->Args({burst, 1, 1, 1});
  }
}

BENCHMARK(BM_Receive)->Apply(shapes);
BENCHMARK(BM_Send)->Apply(shapes);
BENCHMARK(BM_Echo)->Apply(shapes);
BENCHMARK(BM_EmptyPoll);

}  // namespace
