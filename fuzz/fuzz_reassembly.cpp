// Reassembly: fragments with chosen names, places and bytes, in any order, with time steps. Whatever comes, a
// datagram that comes out consists of bytes that came in under its name, at their places, and ends where a
// last fragment ended; the bounds hold; and after two minutes all memory is home.
//
// Input: records of six bytes: name | offset in units of 8 (two) | length | flags | time and ECN.
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "fuzz/fuzz_wire.hpp"
#include "proto/reassembly.hpp"

using namespace netchannel;

namespace {

constexpr std::uint32_t kDatagrams = 5, kBuffers = 6;

struct Piece {
  std::uint32_t offset = 0;
  bool more = false;
  std::vector<std::byte> bytes;
};

// The pieces that have come under a name since it last became whole.
using Pieces = std::vector<Piece>;

void check_against(const Pieces& pieces, Bytes whole) {
  std::vector<bool> explained(whole.size());
  bool ends = false;
  for (const Piece& piece : pieces) {
    const std::size_t end = piece.offset + piece.bytes.size();
    ends = ends || (!piece.more && end == whole.size());
    for (std::size_t i = piece.offset; i < std::min(end, whole.size()); ++i) {
      if (piece.bytes[i - piece.offset] == whole[i]) explained[i] = true;
    }
  }
  fuzz::require(ends);
  for (const bool byte : explained) fuzz::require(byte);
}

struct Record {
  std::uint32_t source, id;
  Piece piece;
  bool v6;
  std::uint8_t ecn;
  Duration wait;

  explicit Record(const std::uint8_t* r)
      : source(r[0] & 3u), id(r[0] >> 2 & 7u), v6((r[4] & 8) != 0), ecn(r[5] & 3), wait(0) {
    piece.offset = (static_cast<std::uint32_t>(r[1] & 0x1f) << 8 | r[2]) * 8;
    piece.more = (r[4] & 1) != 0;
    // In units of eight mostly, any length now and then.
    piece.bytes.resize((r[4] & 2) != 0 ? r[3] : r[3] * 8u);
    const std::uint8_t seed = (r[4] & 4) != 0 ? r[4] : 0;
    for (std::size_t i = 0; i < piece.bytes.size(); ++i) {
      piece.bytes[i] = static_cast<std::byte>((piece.offset + i) * 7 + seed);
    }
    const int step = r[5] >> 2;
    wait = std::chrono::milliseconds(step * step);
  }
  wire::IpPacket packet() const {
    wire::IpPacket packet;
    packet.version = v6 ? 6 : 4;
    const auto last = static_cast<std::uint8_t>(source);
    packet.source = v6 ? IpAddress::v6({0x20, 1, last}) : IpAddress::v4(10, 0, 0, last);
    packet.destination = v6 ? IpAddress::v6({0x20, 1, 99}) : IpAddress::v4(10, 0, 0, 99);
    packet.tos = ecn;
    packet.payload = piece.bytes;
    packet.fragment = wire::FragmentInfo{id, piece.offset, piece.more};
    return packet;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto region =
      *FrameRegion::open({.slot_size = proto::kReassemblySlot, .slot_count = kBuffers});
  FramePool pool(*region, 0, kBuffers, FramePool::Start::all_free);
  CounterPage counters;
  proto::Reassembler reassembler(pool, counters, {.datagrams = kDatagrams, .of_source = 3, .key = {1, 2}});
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, Pieces> came;
  Instant now{1};
  for (std::size_t at = 0; at + 6 <= size; at += 6) {
    const Record record(data + at);
    now = now + record.wait;
    Pieces& pieces = came[{record.v6, record.source, record.id}];
    pieces.push_back(record.piece);
    const auto whole = reassembler.add(record.packet(), now);
    fuzz::require(reassembler.size() <= kDatagrams);
    if (!whole) continue;
    check_against(pieces, whole->payload.bytes());
    pieces.clear();
  }
  now = now + std::chrono::seconds(120);
  reassembler.expire(now);
  fuzz::require(reassembler.size() == 0 && pool.free_count() == kBuffers);
  fuzz::require(reassembler.next_deadline() == kForever);
  return 0;
}
