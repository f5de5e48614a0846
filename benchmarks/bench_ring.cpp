// What it costs to move a frame descriptor through a ring, one at a time and in batches: by one thread (the
// instructions) and between two (the cache lines). Time is for each item.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/mapping.hpp"
#include "netchannel/frame.hpp"
#include "ring/spsc.hpp"

namespace netchannel::ring {
namespace {

constexpr std::uint32_t kCapacity = 1024;

struct Ends {
  Ends() {
    (void)format<FrameDesc>(mapping.bytes(), kCapacity);
    producer = Producer<FrameDesc>(mapping.bytes(), kCapacity);
    consumer = Consumer<FrameDesc>(mapping.bytes(), kCapacity);
  }
  Mapping mapping = *Mapping::anonymous(memory_size<FrameDesc>(kCapacity));
  Producer<FrameDesc> producer;
  Consumer<FrameDesc> consumer;
};

std::uint32_t send(Producer<FrameDesc>& producer, std::uint32_t wanted, std::uint32_t number) {
  const std::uint32_t n = producer.reserve(wanted);
  for (std::uint32_t i = 0; i < n; ++i) producer.write(i, {.slot = number + i, .length = 60});
  if (n != 0) producer.submit(n);
  return n;
}

std::uint32_t receive(Consumer<FrameDesc>& consumer, std::uint32_t wanted, std::uint64_t& sum) {
  const std::uint32_t n = consumer.peek(wanted);
  for (std::uint32_t i = 0; i < n; ++i) sum += consumer.read(i).slot;
  if (n != 0) consumer.release(n);
  return n;
}

void one_thread(benchmark::State& state) {
  const auto batch = static_cast<std::uint32_t>(state.range(0));
  Ends ends;
  std::uint64_t sum = 0;
  std::uint32_t number = 0;
  for (auto _ : state) {
    number += send(ends.producer, batch, number);
    receive(ends.consumer, batch, sum);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * batch);
}
BENCHMARK(one_thread)->ArgName("batch")->Arg(1)->Arg(32);

// The consumer's thread runs beside; an iteration is a batch that the producer has put in.
void two_threads(benchmark::State& state) {
  const auto batch = static_cast<std::uint32_t>(state.range(0));
  Ends ends;
  std::atomic<bool> stop{false};
  std::uint64_t sum = 0;
  std::thread consumer([&] {
    while (!stop.load(std::memory_order_relaxed)) receive(ends.consumer, batch, sum);
  });
  std::uint32_t number = 0;
  for (auto _ : state) {
    for (std::uint32_t sent = 0; sent < batch;) sent += send(ends.producer, batch - sent, number + sent);
    number += batch;
  }
  stop.store(true);
  consumer.join();
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * batch);
}
BENCHMARK(two_threads)->ArgName("batch")->Arg(1)->Arg(32)->UseRealTime();

// One item there and one back: the latency of a handover, twice.
void round_trip(benchmark::State& state) {
  Ends there, back;
  std::atomic<bool> stop{false};
  std::thread echo([&] {
    std::uint64_t sum = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      if (receive(there.consumer, 1, sum) == 1) send(back.producer, 1, 0);
    }
  });
  std::uint64_t sum = 0;
  for (auto _ : state) {
    send(there.producer, 1, 1);
    while (receive(back.consumer, 1, sum) == 0) {
    }
  }
  stop.store(true);
  echo.join();
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(round_trip)->UseRealTime();

}  // namespace
}  // namespace netchannel::ring
