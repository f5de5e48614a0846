#include "bench/byte_check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bench/message.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kWindow = 64;
constexpr std::size_t kStride = 1024;

// Byte `place` of a message's number, as write_message() lays it down.
std::uint8_t number_byte(std::uint32_t number, std::size_t place, std::size_t size) {
  const std::size_t bytes = std::min(size, kNumberBytes);
  return static_cast<std::uint8_t>(number >> (8 * (bytes - 1 - place)) & 0xff);
}

}  // namespace

ByteCheck::ByteCheck(std::uint32_t size, std::size_t connections)
    : size_(size),
      stride_(std::clamp(std::bit_ceil(std::size_t{size}), kWindow, kStride)),
      streams_(connections) {}

void ByteCheck::see(std::size_t connection, Bytes bytes) noexcept {
  Stream& stream = streams_[connection];
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min<std::size_t>(bytes.size(), size_ - stream.offset));
    stream.intact = number_intact(stream.number, stream.offset, part) &&
                    pattern_intact(stream.number, stream.offset, part) && stream.intact;
    bytes = bytes.subspan(part.size());
    stream.offset += static_cast<std::uint32_t>(part.size());
    if (stream.offset < size_) return;
    ++received_;
    if (!stream.intact) ++corrupted_;
    stream = {.number = stream.number + 1};
  }
}

bool ByteCheck::number_intact(std::uint32_t number, std::size_t offset, Bytes part) const noexcept {
  if (offset == 0 && part.size() >= kNumberBytes) return load_be32(part, 0) == number;
  const std::size_t end = std::min({offset + part.size(), kNumberBytes, std::size_t{size_}});
  for (std::size_t at = offset; at < end; ++at) {
    if (load_u8(part, at - offset) != number_byte(number, at, size_)) return false;
  }
  return true;
}

bool ByteCheck::pattern_intact(std::uint32_t number, std::size_t offset, Bytes part) const noexcept {
  const std::size_t end = offset + part.size();
  const std::size_t start = std::max(offset, pattern_start(size_));
  const std::size_t shift = number * kWindow & (stride_ - 1);
  for (std::size_t at = (start & ~(stride_ - 1)) + shift; at < end; at += stride_) {
    const std::size_t from = std::max(at, start), to = std::min(at + kWindow, end);
    if (from < to && std::memcmp(part.data() + (from - offset), pattern_at(from).data(), to - from) != 0)
      return false;
  }
  return true;
}

}  // namespace netchannel::bench
