#include "bench/message.hpp"

#include <algorithm>
#include <cstring>

namespace netchannel::bench {
namespace {

// A prime step and a prime period, so that a shift by any power of two shows. Longer than one period, so that
// a run of it can be had from anywhere.
constexpr std::size_t kPeriod = 65521;
constexpr auto kPattern = [] {
  std::array<std::byte, kPeriod + 4096> bytes{};
  std::uint32_t value = 13;
  for (auto& byte : bytes) {
    byte = static_cast<std::byte>(value & 0xff);
    value += 167;
    if (value > kPeriod) value -= static_cast<std::uint32_t>(kPeriod);
  }
  return bytes;
}();

}  // namespace

std::size_t pattern_start(std::size_t size) {
  return size >= kStampedBytes ? kStampedBytes : std::min(size, kNumberBytes);
}

Bytes pattern_at(std::size_t place) { return std::span(kPattern).subspan(place % kPeriod); }

void write_pattern(MutableBytes message) {
  for (std::size_t at = pattern_start(message.size()); at < message.size();) {
    const Bytes run = pattern_at(at);
    const std::size_t n = std::min(run.size(), message.size() - at);
    std::copy_n(run.begin(), n, message.begin() + static_cast<std::ptrdiff_t>(at));
    at += n;
  }
}

void write_message(MutableBytes message, std::uint32_t number, std::int64_t stamp_ns) {
  if (message.size() < kNumberBytes) {
    for (std::size_t i = 0; i < message.size(); ++i) {
      store_u8(message, i, static_cast<std::uint8_t>(number >> (8 * (message.size() - 1 - i)) & 0xff));
    }
    return;
  }
  store_be32(message, 0, number);
  if (message.size() < kStampedBytes) return;
  store_be32(message, 4, static_cast<std::uint32_t>(static_cast<std::uint64_t>(stamp_ns) >> 32));
  store_be32(message, 8, static_cast<std::uint32_t>(static_cast<std::uint64_t>(stamp_ns) & 0xffffffff));
}

std::uint32_t read_number(Bytes message) {
  if (message.size() >= kNumberBytes) return load_be32(message, 0);
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < message.size(); ++i) number = number << 8 | load_u8(message, i);
  return number;
}

std::int64_t read_stamp(Bytes message) {
  if (message.size() < kStampedBytes) return 0;
  return static_cast<std::int64_t>(std::uint64_t{load_be32(message, 4)} << 32 | load_be32(message, 8));
}

bool pattern_intact(Bytes message) {
  for (std::size_t at = pattern_start(message.size()); at < message.size();) {
    const Bytes run = pattern_at(at);
    const std::size_t n = std::min(run.size(), message.size() - at);
    if (std::memcmp(message.data() + at, run.data(), n) != 0) return false;
    at += n;
  }
  return true;
}

Json to_json(const StreamCounts& counts) {
  return {{"received", counts.received},
          {"duplicates", counts.duplicates},
          {"reordered", counts.reordered},
          {"corrupted", counts.corrupted},
          {"strangers", counts.strangers}};
}

StreamCounts counts_from_json(const Json& json) {
  return {.received = get_count(json, "received"),
          .duplicates = get_count(json, "duplicates"),
          .reordered = get_count(json, "reordered"),
          .corrupted = get_count(json, "corrupted"),
          .strangers = get_count(json, "strangers")};
}

StreamCheck::StreamCheck(std::uint32_t size, std::uint32_t flows)
    : size_(size), most_flows_(flows), index_of_port_(65536, 0) {
  flows_.reserve(flows);
}

void StreamCheck::reset() {
  ++epoch_;
  counts_ = {};
}

StreamCheck::Flow* StreamCheck::flow_of(std::uint16_t peer_port) noexcept {
  std::uint16_t& index = index_of_port_[peer_port];
  if (index == 0) {
    if (flows_.size() >= most_flows_) return nullptr;
    flows_.emplace_back();
    index = static_cast<std::uint16_t>(flows_.size());
  }
  return &flows_[index - 1u];
}

bool StreamCheck::see(Bytes message, std::uint16_t peer_port) noexcept {
  Flow* flow = flow_of(peer_port);
  if (flow == nullptr) {
    ++counts_.strangers;
    return false;
  }
  if (message.size() != size_ || !pattern_intact(message)) {
    ++counts_.corrupted;
    return false;
  }
  ++counts_.received;
  if (size_ >= kNumberBytes) see_number(*flow, read_number(message));
  return true;
}

void StreamCheck::see_number(Flow& flow, std::uint32_t number) noexcept {
  const auto bit = [](std::uint32_t n) { return std::uint64_t{1} << (n % 64); };
  const auto word = [](std::uint32_t n) { return n % kWindow / 64; };
  if (flow.epoch != epoch_) {
    flow = Flow{.epoch = epoch_, .highest = number};
    flow.seen[word(number)] = bit(number);
    return;
  }
  const auto ahead = static_cast<std::int32_t>(number - flow.highest);
  if (ahead > 0) {
    const std::uint32_t skipped = static_cast<std::uint32_t>(ahead) - 1;
    if (skipped >= kWindow) {
      flow.seen.fill(0);
    } else {
      for (std::uint32_t n = flow.highest + 1; n != number; ++n) flow.seen[word(n)] &= ~bit(n);
    }
    flow.seen[word(number)] |= bit(number);
    flow.highest = number;
    return;
  }
  const bool in_window = -std::int64_t{ahead} < kWindow;
  if (in_window && (flow.seen[word(number)] & bit(number)) != 0) {
    ++counts_.duplicates;
    return;
  }
  ++counts_.reordered;
  if (in_window) flow.seen[word(number)] |= bit(number);
}

}  // namespace netchannel::bench
