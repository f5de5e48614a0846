// What TCP costs in the stack, headers, checksums and tables included: two stacks, the benchmark in the place
// of their drivers and of the wire (it copies each frame once, as a wire does). Every figure is for both
// ends.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "channel/channel.hpp"
#include "netchannel/frame.hpp"
#include "stack/stack.hpp"

namespace {

using namespace netchannel;
using stack::TcpHandle;

constexpr std::uint32_t kSlots = 1024;
constexpr std::uint16_t kFirstPort = 1000;
constexpr std::uint32_t kOfPort = 20'000;  // connections to one listener

struct Node {
  IpAddress address;
  MacAddress mac;
  std::unique_ptr<FrameRegion> region = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kSlots});
  std::unique_ptr<Channel> channel =
      *Channel::open({.rx_ring = kSlots, .tx_ring = kSlots, .rx_slots = kSlots, .tx_slots = kSlots});
  DriverEnd driver = channel->take_driver();
  std::vector<std::uint32_t> lent;
  std::unique_ptr<stack::Stack> stack;

  Node(std::uint8_t number, std::uint32_t connections)
      : address(IpAddress::v4(10, 0, 0, number)), mac{{2, 0, 0, 0, 0, number}} {
    stack::StackOptions options;
    options.link.mac = mac;
    options.rx = {0, kSlots};
    options.tx = {kSlots, kSlots};
    options.addresses = {{address, 24}};
    options.routes = {{.destination = {address, 24}}};
    options.secret.fill(number);
    options.limits.tcp.connections = connections + 1024;
    stack = *stack::Stack::open(channel->take_consumer(), *region, options);
    for (std::uint32_t i = kSlots; i-- > 0;) lent.push_back(i);
  }
  stack::Tcp& tcp() { return stack->tcp(); }
};

struct Pair {
  std::uint32_t most;
  Node a, b;
  Instant now{1'000'000'000};
  std::vector<stack::TcpListenerHandle> listeners;

  explicit Pair(std::uint32_t connections) : most(connections), a(1, connections), b(2, connections) {
    a.stack->on_neighbour(b.address, b.mac);
    b.stack->on_neighbour(a.address, a.mac);
  }
  static void carry(Node& from, Node& to) {
    std::array<std::uint32_t, 64> home;
    while (const std::size_t n = to.driver.recycle.pop_all(home))
      to.lent.insert(to.lent.end(), home.begin(), home.begin() + n);
    std::array<FrameDesc, 64> frames;
    while (const std::size_t n = from.driver.tx.pop_all(frames)) {
      for (FrameDesc& desc : std::span(frames).first(n)) {
        const Bytes bytes = from.region->bytes_of(desc);
        FrameDesc arrived;
        arrived.slot = to.lent.back();
        arrived.offset = 64;
        arrived.length = desc.length;
        to.lent.pop_back();
        std::copy(bytes.begin(), bytes.end(), to.region->bytes_of(arrived).begin());
        to.driver.rx.push(arrived);
        from.driver.reclaimed.push(desc.slot);
      }
    }
  }
  void turn(Node& from, Node& to) {
    carry(from, to);
    now = now + std::chrono::microseconds(2);
    to.stack->poll(now);
  }
  struct Both {
    TcpHandle a, b;
  };
  Both connect(std::uint32_t number) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + number / kOfPort);
    if (number / kOfPort >= listeners.size())
      listeners.push_back(*b.tcp().listen({.local = {IpAddress::any_v4(), port}}));
    tcp::Settings settings;
    settings.no_delay = true;
    Both both{*a.tcp().connect({.local = {}, .peer = {b.address, port}, .settings = settings}), {}};
    a.tcp().flush();
    turn(a, b), turn(b, a), turn(a, b);
    both.b = *b.tcp().accept(listeners.back());
    b.tcp().settings(both.b)->no_delay = true;
    turn(b, a);
    return both;
  }
};

std::size_t drain(Node& node, TcpHandle handle) {
  std::array<Bytes, 16> views;
  std::size_t bytes = 0;
  const std::size_t n = node.tcp().spans(handle, views);
  for (const Bytes view : std::span(views).first(n)) bytes += view.size();
  node.tcp().consume(handle, bytes);
  return bytes;
}

// A byte there and back: two segments, each written, cut, checked, found, read.
void BM_RequestResponse(benchmark::State& state) {
  Pair pair(16);
  const Pair::Both both = pair.connect(0);
  const std::array<std::byte, 1> byte{};
  for (auto _ : state) {
    pair.a.tcp().write(both.a, byte);
    pair.a.tcp().flush();
    pair.turn(pair.a, pair.b);
    if (drain(pair.b, both.b) != 1) state.SkipWithError("nothing came");
    pair.b.tcp().write(both.b, byte);
    pair.b.tcp().flush();
    pair.turn(pair.b, pair.a);
    if (drain(pair.a, both.a) != 1) state.SkipWithError("nothing came back");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_RequestResponse);

// Full segments one way, acknowledgements back; the figure is for a segment.
void BM_Bulk(benchmark::State& state) {
  Pair pair(16);
  const Pair::Both both = pair.connect(0);
  std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) {
    for (std::size_t written = 0; written < 65536; written += data.size()) pair.a.tcp().write(both.a, data);
    pair.a.tcp().flush();
    pair.turn(pair.a, pair.b);
    bytes += drain(pair.b, both.b);
    pair.b.tcp().flush();
    pair.turn(pair.b, pair.a);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(static_cast<std::int64_t>(bytes / 1448));
}
BENCHMARK(BM_Bulk)->Arg(65536)->Arg(1448)->Arg(128);

std::size_t resident() {
  std::size_t pages = 0, rest = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &rest, &pages) != 2) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// A byte one way and its acknowledgement, over a hundred connections in turn among many idle ones.
void BM_AmongIdle(benchmark::State& state) {
  constexpr std::uint32_t kActive = 100;
  const auto count = static_cast<std::uint32_t>(state.range(0));
  auto pair = std::make_unique<Pair>(count);
  const std::size_t before = resident();
  std::vector<Pair::Both> active;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Pair::Both both = pair->connect(i);
    // Spread among the idle ones.
    if (active.size() * count < std::size_t{i + 1} * std::min(kActive, count)) active.push_back(both);
  }
  const double each = static_cast<double>(resident() - before) / count / 2;
  const std::array<std::byte, 1> byte{};
  std::size_t next = 0;
  for (auto _ : state) {
    const Pair::Both& both = active[next++ % active.size()];
    pair->a.tcp().write(both.a, byte);
    pair->a.tcp().flush();
    pair->turn(pair->a, pair->b);
    if (drain(pair->b, both.b) != 1) state.SkipWithError("nothing came");
    pair->b.tcp().flush();
    pair->turn(pair->b, pair->a);
  }
  state.SetItemsProcessed(state.iterations());
  if (count >= 10'000) state.counters["bytes_each"] = each;
  pair.reset();
  malloc_trim(0);
}
BENCHMARK(BM_AmongIdle)->Arg(1)->Arg(100)->Arg(10'000)->Arg(1'000'000);

}  // namespace
