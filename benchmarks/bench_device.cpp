// What the simulated link costs for each frame, so that a benchmark of what stands on it knows its share:
// send in bursts, receive, lend and reclaim the slots, all in one thread.
#include <benchmark/benchmark.h>

#include <array>
#include <numeric>
#include <vector>

#include "device/link.hpp"

namespace netchannel::device {
namespace {

constexpr std::uint32_t kSlots = 256;

void link_transfer(benchmark::State& state) {
  const auto burst = static_cast<std::size_t>(state.range(0));
  const auto length = static_cast<std::uint32_t>(state.range(1));
  const auto region_a = *FrameRegion::open({.slot_count = kSlots});
  const auto region_b = *FrameRegion::open({.slot_count = kSlots});
  const auto counters_a = std::make_unique<CounterPage>(), counters_b = std::make_unique<CounterPage>();
  const auto link = *LinkPair::open({}, {*region_a, *counters_a}, {*region_b, *counters_b});
  std::vector<std::uint32_t> lent(kSlots);
  std::iota(lent.begin(), lent.end(), 0u);
  link->b().refill(lent);
  std::vector<FrameDesc> frames(burst);
  for (std::uint32_t i = 0; i < burst; ++i) frames[i] = {.slot = i, .length = length};
  std::array<FrameDesc, kBurst> received, reclaimed;
  std::array<std::uint32_t, kBurst> home;
  for (auto _ : state) {
    link->a().tx_burst(frames);
    const std::size_t n = link->b().rx_burst(received);
    for (std::size_t i = 0; i < n; ++i) home[i] = received[i].slot;
    link->b().refill(std::span(home).first(n));
    benchmark::DoNotOptimize(link->a().reclaim(reclaimed));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * burst));
}
BENCHMARK(link_transfer)->ArgNames({"burst", "bytes"})->Args({1, 60})->Args({32, 60})->Args({32, 1514});

}  // namespace
}  // namespace netchannel::device
