// What the driver does for each packet: parse the flow out of the frame and look its channel up, among 1,
// 1,000 and 1,000,000 exact flows and one wildcard.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "driver/flow_table.hpp"
#include "netchannel/wire/packet.hpp"

namespace netchannel::driver {
namespace {

FlowKey flow(std::uint32_t i) {
  return {Protocol::udp,
          {IpAddress::v4(10, 0, 0, 1), 53},
          {IpAddress::v4(0x0b000000u + i / 50'000), static_cast<std::uint16_t>(1024 + i % 50'000)}};
}

std::vector<std::byte> frame_of(const FlowKey& key) {
  std::vector<std::byte> frame(14 + 20 + 8 + 22);
  const MutableBytes bytes(frame);
  store_be16(bytes, 12, 0x0800);
  store_u8(bytes, 14, 0x45);
  store_be16(bytes, 16, 50);
  store_u8(bytes, 22, 64);
  store_u8(bytes, 23, 17);
  store_be32(bytes, 26, key.peer.address.v4_value());
  store_be32(bytes, 30, key.local.address.v4_value());
  store_be16(bytes, 34, key.peer.port);
  store_be16(bytes, 36, key.local.port);
  store_be16(bytes, 38, 30);
  return frame;
}

// Frames of 4096 of the flows, chosen at random, so that a large table does not sit in the cache by accident.
void classify(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  FlowTable table(random_hash_key());
  table.claim(flow(0).wildcard(), 1);
  for (std::uint32_t i = 0; i < flows; ++i) table.claim(flow(i), 2);
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> frames;
  for (int i = 0; i < 4096; ++i)
    frames.push_back(frame_of(flow(static_cast<std::uint32_t>(random()) % flows)));
  std::size_t at = 0;
  for (auto _ : state) {
    const auto info = wire::flow_of(frames[at]);
    benchmark::DoNotOptimize(table.find(info->key));
    at = (at + 1) % frames.size();
  }
}
BENCHMARK(classify)->Arg(1)->Arg(1'000)->Arg(1'000'000);

// No exact flow at all: a server's wildcard.
void classify_wildcard(benchmark::State& state) {
  FlowTable table(random_hash_key());
  table.claim(flow(0).wildcard(), 1);
  const auto frame = frame_of(flow(7));
  for (auto _ : state) {
    const auto info = wire::flow_of(frame);
    benchmark::DoNotOptimize(table.find(info->key));
  }
}
BENCHMARK(classify_wildcard);

}  // namespace
}  // namespace netchannel::driver
