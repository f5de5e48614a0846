#include "proto/reassembly.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace netchannel::proto {
namespace {

constexpr std::uint32_t kBlock = 8;

// The bits [first, first + count) of one word of a bitmap.
constexpr std::uint64_t mask_of(std::uint32_t first, std::uint32_t count) {
  return (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
}

// Calls visit(word index, mask) for each word that has bits of [first, first + count).
template <class Visit>
void for_range(std::uint32_t first, std::uint32_t count, Visit visit) {
  while (count != 0) {
    const std::uint32_t bit = first % 64, here = std::min(count, 64 - bit);
    visit(first / 64, mask_of(bit, here));
    first += here;
    count -= here;
  }
}

template <class Map>
bool test(const Map& map, std::uint32_t bit) {
  return (map[bit / 64] >> bit % 64 & 1) != 0;
}

bool same_datagram(const auto& context, const wire::IpPacket& packet) {
  // RFC 8200 section 4.5: over IPv6 the protocol is not part of the name of a datagram; over IPv4 it is (RFC
  // 791).
  return context.id == packet.fragment->id && context.version == packet.version &&
         (packet.version == 6 || context.protocol == packet.protocol) && context.source == packet.source &&
         context.destination == packet.destination;
}

constexpr std::uint8_t bit_of(wire::Ecn ecn) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(ecn));
}

}  // namespace

Reassembler::Reassembler(FramePool& buffers, CounterPage& counters, const Options& options)
    : buffers_(buffers),
      counters_(counters),
      options_(options),
      contexts_(std::max<std::uint32_t>(options.datagrams, 1)),
      maps_(contexts_.size()),
      buckets_(std::bit_ceil(contexts_.size() * 2), kNone) {
  oldest_.fill(kNone);
  newest_.fill(kNone);
  free_.reserve(contexts_.size());
  for (std::size_t i = contexts_.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
}

std::uint32_t Reassembler::bucket_of(const wire::IpPacket& packet) const {
  const auto from = std::bit_cast<std::array<std::uint64_t, 2>>(packet.source.bytes());
  const auto to = std::bit_cast<std::array<std::uint64_t, 2>>(packet.destination.bytes());
  const std::uint64_t id = packet.fragment->id;
  const std::uint64_t hash = siphash(options_.key, std::array{from[0], from[1], to[0], to[1], id});
  return static_cast<std::uint32_t>(hash & (buckets_.size() - 1));
}

std::uint32_t Reassembler::find(const wire::IpPacket& packet, std::uint32_t bucket) const {
  for (std::uint32_t i = buckets_[bucket]; i != kNone; i = contexts_[i].next_in_bucket) {
    if (same_datagram(contexts_[i], packet)) return i;
  }
  return kNone;
}

void Reassembler::append_to_list(std::uint32_t index, List list) {
  Context& context = contexts_[index];
  context.list = list;
  context.older = newest_[list];
  context.newer = kNone;
  (newest_[list] == kNone ? oldest_[list] : contexts_[newest_[list]].newer) = index;
  newest_[list] = index;
}

void Reassembler::unlink_from_list(std::uint32_t index) {
  const Context& context = contexts_[index];
  (context.older == kNone ? oldest_[context.list] : contexts_[context.older].newer) = context.newer;
  (context.newer == kNone ? newest_[context.list] : contexts_[context.newer].older) = context.older;
}

void Reassembler::remove(std::uint32_t index) {
  Context& context = contexts_[index];
  wire::IpPacket name;
  name.source = context.source;
  name.destination = context.destination;
  name.fragment = wire::FragmentInfo{context.id, 0, false};
  std::uint32_t* link = &buckets_[bucket_of(name)];
  while (*link != index) link = &contexts_[*link].next_in_bucket;
  *link = context.next_in_bucket;
  unlink_from_list(index);
  context.buffer = {};
  free_.push_back(index);
  --used_;
}

bool Reassembler::evict_oldest() {
  const std::uint32_t v4 = oldest_[kWaitingV4], v6 = oldest_[kWaitingV6];
  if (v4 == kNone && v6 == kNone) return false;
  const bool take_v4 = v6 == kNone || (v4 != kNone && contexts_[v4].expires - kReassemblyTimeV4 <=
                                                          contexts_[v6].expires - kReassemblyTimeV6);
  remove(take_v4 ? v4 : v6);
  counters_.drop(DropReason::frag_memory);
  return true;
}

// Sees to it that there is a free context and that `source` may have one more.
void Reassembler::make_room(const IpAddress& source) {
  std::uint32_t count = 0, oldest = kNone;
  for (const List list : {kWaitingV4, kWaitingV6}) {
    for (std::uint32_t i = newest_[list]; i != kNone; i = contexts_[i].older) {
      if (contexts_[i].source == source) ++count, oldest = i;
    }
  }
  if (count >= options_.of_source && oldest != kNone) {
    remove(oldest);
    counters_.drop(DropReason::frag_memory);
  }
  if (!free_.empty()) return;
  // What is known to be bad waits for nothing: it goes first.
  if (oldest_[kBad] != kNone) {
    remove(oldest_[kBad]);
  } else {
    evict_oldest();
  }
}

std::uint32_t Reassembler::begin(const wire::IpPacket& packet, std::uint32_t bucket, Instant now) {
  make_room(packet.source);
  auto buffer = buffers_.allocate(kReassemblyHeadroom);
  if (!buffer && evict_oldest()) buffer = buffers_.allocate(kReassemblyHeadroom);
  if (!buffer) return kNone;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Context& context = contexts_[index];
  context = {};
  context.source = packet.source;
  context.destination = packet.destination;
  context.id = packet.fragment->id;
  context.protocol = packet.protocol;
  context.version = packet.version;
  context.ttl = packet.ttl;
  context.tos = packet.tos;
  context.buffer = std::move(*buffer);
  context.expires = now + (packet.version == 4 ? kReassemblyTimeV4 : kReassemblyTimeV6);
  maps_[index] = {};
  context.next_in_bucket = buckets_[bucket];
  buckets_[bucket] = index;
  append_to_list(index, packet.version == 4 ? kWaitingV4 : kWaitingV6);
  ++used_;
  return index;
}

bool Reassembler::is_duplicate(std::uint32_t index, const wire::IpPacket& packet) const {
  const Maps& maps = maps_[index];
  const auto size = static_cast<std::uint32_t>(packet.payload.size());
  const std::uint32_t first = packet.fragment->offset / kBlock, count = (size + kBlock - 1) / kBlock;
  const std::uint32_t end = packet.fragment->offset + size;
  bool whole = true, begins_inside = false;
  for_range(first, count, [&](std::uint32_t word, std::uint64_t mask) {
    whole = whole && (maps.present[word] & mask) == mask;
  });
  for_range(first + 1, count - 1, [&](std::uint32_t word, std::uint64_t mask) {
    begins_inside = begins_inside || (maps.begins[word] & mask) != 0;
  });
  if (!whole || begins_inside || !test(maps.begins, first)) return false;
  const std::uint32_t behind = first + count;
  if (behind < kWords * 64 && test(maps.present, behind) && !test(maps.begins, behind)) return false;
  const Bytes there = contexts_[index].buffer.bytes();
  if (end > there.size()) return false;
  return std::memcmp(there.data() + packet.fragment->offset, packet.payload.data(), size) == 0;
}

// Copies the fragment to its place, or says why the whole datagram must go.
std::optional<DropReason> Reassembler::place(std::uint32_t index, const wire::IpPacket& packet) {
  Context& context = contexts_[index];
  Maps& maps = maps_[index];
  const wire::FragmentInfo& fragment = *packet.fragment;
  const auto size = static_cast<std::uint32_t>(packet.payload.size());
  const std::uint32_t end = fragment.offset + size;
  if (end > kReassemblySpan - 1) return DropReason::frag_too_large;
  if (fragment.offset % kBlock != 0 || (fragment.more && size % kBlock != 0))
    return DropReason::frag_bad_length;
  if (!fragment.more) {
    if ((context.end != 0 && context.end != end) || context.extent > end) return DropReason::frag_past_end;
  } else if (context.end != 0 && end > context.end) {
    return DropReason::frag_past_end;
  }
  // RFC 3168 section 5.3: a mark on any fragment marks the datagram, but a datagram whose sender does not
  // know ECN cannot have been marked.
  context.ecn_seen |= bit_of(packet.ecn());
  constexpr std::uint8_t kImpossible = bit_of(wire::Ecn::ce) | bit_of(wire::Ecn::not_ect);
  if ((context.ecn_seen & kImpossible) == kImpossible) return DropReason::frag_bad_ecn;

  const std::uint32_t first = fragment.offset / kBlock, count = (size + kBlock - 1) / kBlock;
  bool overlaps = false;
  for_range(first, count, [&](std::uint32_t word, std::uint64_t mask) {
    overlaps = overlaps || (maps.present[word] & mask) != 0;
  });
  if (overlaps) return is_duplicate(index, packet) ? std::nullopt : std::optional(DropReason::frag_overlap);
  for_range(first, count, [&](std::uint32_t word, std::uint64_t mask) { maps.present[word] |= mask; });
  maps.begins[first / 64] |= std::uint64_t{1} << first % 64;
  context.blocks += count;
  if (end > context.extent) {
    context.buffer.append(end - context.extent);
    context.extent = end;
  }
  std::memcpy(context.buffer.mutable_bytes().data() + fragment.offset, packet.payload.data(), size);
  if (!fragment.more) context.end = end;
  if (fragment.offset == 0) {
    context.protocol = packet.protocol;
    context.ttl = packet.ttl;
    context.tos = packet.tos;
  }
  return std::nullopt;
}

void Reassembler::condemn(std::uint32_t index, DropReason reason, Instant now) {
  counters_.drop(reason);
  Context& context = contexts_[index];
  context.buffer = {};
  unlink_from_list(index);
  append_to_list(index, kBad);
  context.expires = now + kBadDatagramTime;
}

Reassembled Reassembler::finish(std::uint32_t index) {
  Context& context = contexts_[index];
  Reassembled whole{.payload = std::move(context.buffer),
                    .source = context.source,
                    .destination = context.destination,
                    .protocol = context.protocol,
                    .version = context.version,
                    .ttl = context.ttl,
                    .tos = context.tos};
  if ((context.ecn_seen & bit_of(wire::Ecn::ce)) != 0) whole.tos |= 3;
  remove(index);
  counters_.add(Counter::datagrams_reassembled);
  return whole;
}

std::optional<Reassembled> Reassembler::add(const wire::IpPacket& packet, Instant now) {
  counters_.add(Counter::fragments_received);
  if (packet.payload.empty()) {
    counters_.drop(DropReason::frag_bad_length);
    return std::nullopt;
  }
  expire(now);
  const std::uint32_t bucket = bucket_of(packet);
  std::uint32_t index = find(packet, bucket);
  if (index == kNone) index = begin(packet, bucket, now);
  if (index == kNone) {
    counters_.drop(DropReason::frag_memory);
    return std::nullopt;
  }
  const Context& context = contexts_[index];
  if (context.list == kBad) return std::nullopt;
  if (const auto reason = place(index, packet)) {
    condemn(index, *reason, now);
    return std::nullopt;
  }
  if (context.end == 0 || context.blocks != (context.end + kBlock - 1) / kBlock) return std::nullopt;
  return finish(index);
}

void Reassembler::expire(Instant now) {
  for (std::size_t list = 0; list < kLists; ++list) {
    while (oldest_[list] != kNone && contexts_[oldest_[list]].expires <= now) {
      if (list != kBad) counters_.drop(DropReason::frag_timeout);
      remove(oldest_[list]);
    }
  }
}

Instant Reassembler::next_deadline() const {
  Instant next = kForever;
  for (const std::uint32_t index : oldest_) {
    if (index != kNone) next = earlier(next, contexts_[index].expires);
  }
  return next;
}

}  // namespace netchannel::proto
