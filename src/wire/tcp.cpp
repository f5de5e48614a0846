// TCP options in and out. Reading follows the rules in tcp.hpp; writing first plans how the options share
// their 40 bytes, so that size() and emit() cannot disagree.
#include "netchannel/wire/tcp.hpp"

namespace netchannel::wire {
namespace {

constexpr std::size_t kMssSize = 4, kWindowScaleSize = 3, kSackPermittedSize = 2, kTimestampsSize = 10;
constexpr std::size_t kSackHeaderSize = 2, kSackBlockSize = 8;
constexpr std::byte kNop{1};

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// How options share the 40 bytes: each on a 4-byte boundary behind NOPs, or packed if more SACK blocks
// fit so.
struct Layout {
  bool aligned = true;
  std::size_t sack_blocks = 0;
  std::size_t bytes = 0;
};

// The bytes before SACK.
constexpr std::size_t fixed_size(const TcpOptions& options, bool aligned) {
  std::size_t bytes = options.mss ? kMssSize : 0;
  const std::size_t stamps = options.timestamps ? kTimestampsSize : 0;
  const std::size_t permitted = options.sack_permitted ? kSackPermittedSize : 0;
  const std::size_t scale = options.window_scale ? kWindowScaleSize : 0;
  // SACK-permitted and timestamps fill three words together, so they share them.
  bytes += aligned ? round_up(stamps + permitted) + round_up(scale) : stamps + permitted + scale;
  return bytes;
}

constexpr std::size_t sack_size(std::size_t blocks, bool aligned) {
  if (blocks == 0) return 0;
  return (aligned ? kSackHeaderSize + 2 : kSackHeaderSize) + blocks * kSackBlockSize;
}

constexpr std::size_t blocks_that_fit(const TcpOptions& options, bool aligned) {
  std::size_t blocks = options.sack.size();
  while (blocks > 0 && fixed_size(options, aligned) + sack_size(blocks, aligned) > kTcpMaxOptionsSize)
    --blocks;
  return blocks;
}

constexpr Layout layout(const TcpOptions& options) {
  const std::size_t blocks = blocks_that_fit(options, false);
  const bool aligned = blocks_that_fit(options, true) == blocks;
  return {aligned, blocks, round_up(fixed_size(options, aligned) + sack_size(blocks, aligned))};
}

// Writes options one behind the other.
class OptionWriter {
 public:
  explicit OptionWriter(MutableBytes out) : out_(out) {}
  void pad(std::size_t count) {
    for (; count > 0; --count) out_[at_++] = kNop;
  }
  void begin(std::uint8_t kind, std::size_t length) {
    put8(kind);
    put8(static_cast<std::uint8_t>(length));
  }
  void put8(std::uint8_t value) { store_u8(out_, at_, value), at_ += 1; }
  void put16(std::uint16_t value) { store_be16(out_, at_, value), at_ += 2; }
  void put32(std::uint32_t value) { store_be32(out_, at_, value), at_ += 4; }
  std::size_t written() const { return at_; }

 private:
  MutableBytes out_;
  std::size_t at_ = 0;
};

void read_sack(Bytes data, TcpOptions& options) {
  const bool whole = !data.empty() && data.size() % kSackBlockSize == 0;
  if (!whole || data.size() > kMaxSackBlocks * kSackBlockSize || !options.sack.empty()) return;
  for (std::size_t at = 0; at < data.size(); at += kSackBlockSize) {
    options.sack.push_back({load_be32(data, at), load_be32(data, at + 4)});
  }
}

void read_option(const Option& option, bool syn, TcpOptions& options) {
  const Bytes data = option.data;
  switch (option.kind) {
    case TcpOptionKind::kMss:
      if (syn && data.size() == 2 && !options.mss) options.mss = load_be16(data, 0);
      break;
    case TcpOptionKind::kWindowScale:
      if (syn && data.size() == 1 && !options.window_scale) {
        options.window_scale = std::min(load_u8(data, 0), kMaxWindowScale);  // RFC 7323 section 2.3
      }
      break;
    case TcpOptionKind::kSackPermitted:
      if (syn && data.empty()) options.sack_permitted = true;
      break;
    case TcpOptionKind::kSack:
      read_sack(data, options);
      break;
    case TcpOptionKind::kTimestamps:
      if (data.size() == 8 && !options.timestamps) {
        options.timestamps = TcpTimestamps{load_be32(data, 0), load_be32(data, 4)};
      }
      break;
    default:
      break;
  }
}

}  // namespace

ParsedTcpOptions parse_options(const TcpView& view) {
  ParsedTcpOptions parsed;
  OptionCursor cursor = view.options();
  while (const auto option = cursor.next()) read_option(*option, view.flags().syn(), parsed.options);
  parsed.malformed = cursor.malformed();
  return parsed;
}

std::size_t TcpOptions::size() const { return layout(*this).bytes; }

void TcpOptions::emit(MutableBytes out) const {
  const Layout plan = layout(*this);
  assert(out.size() >= plan.bytes);
  OptionWriter writer(out);
  if (mss) {
    writer.begin(TcpOptionKind::kMss, kMssSize);
    writer.put16(*mss);
  }
  if (plan.aligned && timestamps.has_value() != sack_permitted) writer.pad(2);
  if (sack_permitted) writer.begin(TcpOptionKind::kSackPermitted, kSackPermittedSize);
  if (timestamps) {
    writer.begin(TcpOptionKind::kTimestamps, kTimestampsSize);
    writer.put32(timestamps->value);
    writer.put32(timestamps->echo);
  }
  if (window_scale) {
    if (plan.aligned) writer.pad(1);
    writer.begin(TcpOptionKind::kWindowScale, kWindowScaleSize);
    writer.put8(*window_scale);
  }
  if (plan.sack_blocks > 0) {
    if (plan.aligned) writer.pad(2);
    writer.begin(TcpOptionKind::kSack, sack_size(plan.sack_blocks, false));
    for (std::size_t i = 0; i < plan.sack_blocks; ++i) {
      writer.put32(sack[i].left);
      writer.put32(sack[i].right);
    }
  }
  writer.pad(plan.bytes - writer.written());
}

TcpRepr TcpRepr::from(const TcpView& view) {
  return {.source_port = view.source_port(),
          .destination_port = view.destination_port(),
          .sequence = view.sequence(),
          .acknowledgment = view.acknowledgment(),
          .flags = view.flags(),
          .window = view.window(),
          .urgent_pointer = view.urgent_pointer(),
          .options = parse_options(view).options};
}

void TcpRepr::emit(MutableBytes out) const {
  const std::size_t header = size();
  assert(out.size() >= header);
  store_be16(out, 0, source_port);
  store_be16(out, 2, destination_port);
  store_be32(out, 4, sequence);
  store_be32(out, 8, acknowledgment);
  store_u8(out, 12, static_cast<std::uint8_t>(header / 4 << 4));
  store_u8(out, 13, flags.bits);
  store_be16(out, 14, window);
  store_be16(out, 16, 0);
  store_be16(out, 18, urgent_pointer);
  options.emit(out.subspan(kTcpMinHeaderSize, header - kTcpMinHeaderSize));
}

void TcpRepr::emit(MutableBytes out, PartialSum rest_of_sum) const {
  emit(out);
  rest_of_sum.add(checksum_fast(out.first(size())));
  store_be16(out, 16, checksum(rest_of_sum));
}

}  // namespace netchannel::wire
