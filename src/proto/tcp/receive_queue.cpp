#include "proto/tcp/receive_queue.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace netchannel::tcp {

namespace {

constexpr std::size_t kFew = 4;

// What is ahead of its turn may be an attacker's, and nobody can read it yet: a queue that holds as much of
// it as it leaves free takes no more, so that many of them share and none starves what is in its turn.
std::uint32_t fair_share(std::size_t free) { return static_cast<std::uint32_t>(std::max(free, kFew)); }

}  // namespace

ReceiveQueue::Inserted ReceiveQueue::insert(Seq seq, Frame&& frame) {
  const bool in_turn = seq == next_;
  // What is in its turn goes before what is ahead of it.
  while (in_turn && has_islands() && (frames_ >= frame_limit_ || shared_.frames.free_count() == 0)) {
    give_up_last();
    shared_.counters.add(Counter::tcp_reneged);
  }
  allowed_ = in_turn ? frame_limit_ : std::min(frame_limit_, fair_share(shared_.frames.free_count()));
  const auto size = static_cast<std::uint32_t>(frame.size());
  if (!in_turn || has_islands()) {
    const Seq before = next_;
    Inserted out = insert_island(seq, std::move(frame));
    island_to_ready();
    out.advanced = distance(before, next_);
    return out;
  }
  Inserted out;
  if (!append(ready_, seq, std::move(frame), true)) {
    out.lost = true;
    return out;
  }
  next_ += size;
  readable_ += size;
  out.advanced = out.kept = size;
  return out;
}

// `growable`: the slot's bytes behind the frame belong to nobody else.
bool ReceiveQueue::append(Chain& chain, Seq begin, Frame&& frame, bool growable) {
  if (chain.last != kNoNode && shared_.frames[chain.last].growable) {
    FrameNode& last = shared_.frames[chain.last];
    const bool crowded = frames_ >= frame_limit_ / 2;
    const std::size_t end = last.frame.headroom() + last.frame.size() + frame.size();
    const bool room = frame.size() <= last.frame.tailroom() && end <= kFrameReach;
    if ((crowded || frame.size() <= kCopyLimit) && room) {
      std::memcpy(last.frame.append(frame.size()).data(), frame.bytes().data(), frame.size());
      return true;
    }
  }
  const std::uint32_t index = frames_ < allowed_ ? shared_.frames.take() : kNoNode;
  if (index == kNoNode) return false;
  FrameNode& node = shared_.frames[index];
  node.frame = std::move(frame);
  node.begin = begin;
  node.next = kNoNode;
  node.growable = growable;
  (chain.last == kNoNode ? chain.first : shared_.frames[chain.last].next) = index;
  chain.last = index;
  ++frames_;
  return true;
}

// `frame` begins at `seq`; a piece that is not the whole of it shares the slot with the others.
bool ReceiveQueue::append_piece(Chain& chain, Piece piece, Seq seq, Frame& frame) {
  const Seq end = seq + static_cast<std::uint32_t>(frame.size());
  if (piece.begin == seq && piece.end == end) return append(chain, seq, std::move(frame), true);
  Frame part = frame.share();
  part.drop_back(distance(piece.end, end));
  part.drop_front(distance(seq, piece.begin));
  return append(chain, piece.begin, std::move(part), false);
}

// Where an insertion at `seq` belongs: the first island that ends at or beyond it, and the one before.
// Segments come in runs, so the islands touched last are good places to start from.
ReceiveQueue::Place ReceiveQueue::find(Seq seq) const {
  Place place{kNoNode, first_island_};
  for (const std::uint32_t index : recent_) {
    if (index == kNoNode) break;
    const Island& island = shared_.islands[index];
    if (island.left <= seq && island.right >= seq) return {kNoNode, index};  // `before` is not asked for then
    const bool closer = place.before == kNoNode || shared_.islands[place.before].left < island.left;
    if (island.right < seq && closer) place = {index, island.next};
  }
  while (place.at != kNoNode && shared_.islands[place.at].right < seq) {
    place.before = std::exchange(place.at, shared_.islands[place.at].next);
  }
  return place;
}

void ReceiveQueue::touch(std::uint32_t index) {
  forget(index);
  std::move_backward(recent_.begin(), recent_.end() - 1, recent_.end());
  recent_[0] = index;
}

void ReceiveQueue::forget(std::uint32_t index) {
  const auto end = std::remove(recent_.begin(), recent_.end(), index);
  std::fill(end, recent_.end(), kNoNode);
}

ReceiveQueue::Inserted ReceiveQueue::insert_island(Seq seq, Frame&& frame) {
  Inserted out;
  const Seq end = seq + static_cast<std::uint32_t>(frame.size());
  const Place place = find(seq);
  if (place.at == kNoNode || shared_.islands[place.at].left > end) {
    out.lost = !new_island(place.before, seq, std::move(frame));
    out.kept = out.lost ? 0 : distance(seq, end);
  } else {
    touch(place.at);
    widen(shared_.islands[place.at], seq, std::move(frame), out);
  }
  out_of_order_ += out.kept;
  return out;
}

bool ReceiveQueue::new_island(std::uint32_t before, Seq seq, Frame&& frame) {
  const Seq end = seq + static_cast<std::uint32_t>(frame.size());
  // In its turn it is an island for a moment only.
  const std::uint32_t share = seq == next_ ? kMaxIslands : fair_share(shared_.islands.free_count());
  const std::uint32_t most = std::min(kMaxIslands, share);
  std::uint32_t index = islands_ < most ? shared_.islands.take() : kNoNode;
  if (index == kNoNode) {
    // Only for data that is nearer than what is given up, and never the island that this one is linked
    // behind.
    const bool nearest = before == kNoNode ? has_islands() : shared_.islands[before].next != kNoNode;
    if (!nearest) return false;
    give_up_last();
    shared_.counters.add(Counter::tcp_reneged);
    index = shared_.islands.take();
    if (index == kNoNode) return false;
  }
  Chain chain;
  if (!append(chain, seq, std::move(frame), true)) {
    shared_.islands.give_back(index);
    return false;
  }
  std::uint32_t& link = before == kNoNode ? first_island_ : shared_.islands[before].next;
  shared_.islands[index] = {seq, end, chain.first, chain.last, link};
  link = index;
  touch(index);
  ++islands_;
  return true;
}

// The new bytes touch or overlap the island, and perhaps the ones behind it, which then become part of it.
void ReceiveQueue::widen(Island& island, Seq seq, Frame&& frame, Inserted& out) {
  const Seq end = seq + static_cast<std::uint32_t>(frame.size());
  const auto duplicate = [&out](Seq left, Seq right) {
    if (left >= right) return;
    if (!out.duplicate) out.duplicates = {left.value, right.value};
    out.duplicate = true;
  };
  // The frame may be moved from by the last piece: it is taken by whichever piece is the whole of it.
  duplicate(later(seq, island.left), earlier(end, island.right));
  if (seq < island.left) {
    Chain front;
    if (append_piece(front, {seq, island.left}, seq, frame)) {
      shared_.frames[front.last].next = island.first;
      island.first = front.first;
      out.kept += distance(seq, island.left);
      island.left = seq;
    } else {
      out.lost = true;
    }
  }
  Chain chain{island.first, island.last};
  while (island.right < end) {
    const std::uint32_t next = island.next;
    const bool reaches = next != kNoNode && shared_.islands[next].left <= end;
    const Seq gap_end = reaches ? shared_.islands[next].left : end;
    if (!append_piece(chain, {island.right, gap_end}, seq, frame)) {
      out.lost = true;
      break;
    }
    island.last = chain.last;
    out.kept += distance(island.right, gap_end);
    island.right = gap_end;
    if (!reaches) break;
    const Island& absorbed = shared_.islands[next];
    duplicate(absorbed.left, earlier(end, absorbed.right));
    shared_.frames[island.last].next = absorbed.first;
    island.last = chain.last = absorbed.last;
    island.right = absorbed.right;
    island.next = absorbed.next;
    forget(next);
    shared_.islands.give_back(next);
    --islands_;
  }
}

void ReceiveQueue::island_to_ready() {
  if (first_island_ == kNoNode || shared_.islands[first_island_].left != next_) return;
  const std::uint32_t gone = first_island_;
  const Island& island = shared_.islands[gone];
  (ready_.last == kNoNode ? ready_.first : shared_.frames[ready_.last].next) = island.first;
  ready_.last = island.last;
  const std::uint32_t bytes = distance(island.left, island.right);
  readable_ += bytes;
  out_of_order_ -= bytes;
  next_ = island.right;
  first_island_ = island.next;
  forget(gone);
  shared_.islands.give_back(gone);
  --islands_;
}

void ReceiveQueue::give_up_last() {
  std::uint32_t* link = &first_island_;
  while (shared_.islands[*link].next != kNoNode) link = &shared_.islands[*link].next;
  const std::uint32_t gone = *link;
  const Island& island = shared_.islands[gone];
  free_chain(island.first);
  out_of_order_ -= distance(island.left, island.right);
  *link = kNoNode;
  forget(gone);
  shared_.islands.give_back(gone);
  --islands_;
}

void ReceiveQueue::free_chain(std::uint32_t first) {
  while (first != kNoNode) {
    FrameNode& node = shared_.frames[first];
    const std::uint32_t gone = std::exchange(first, node.next);
    node.frame = Frame();
    shared_.frames.give_back(gone);
    --frames_;
  }
}

std::size_t ReceiveQueue::spans(std::span<Bytes> out) const {
  std::size_t filled = 0;
  for (std::uint32_t at = ready_.first; at != kNoNode && filled < out.size(); at = shared_.frames[at].next) {
    out[filled++] = shared_.frames[at].frame.bytes();
  }
  return filled;
}

void ReceiveQueue::consume(std::size_t bytes) {
  readable_ -= static_cast<std::uint32_t>(bytes);
  while (bytes > 0) {
    FrameNode& node = shared_.frames[ready_.first];
    const std::size_t part = std::min(bytes, node.frame.size());
    bytes -= part;
    node.frame.drop_front(part);
    node.begin += static_cast<std::uint32_t>(part);
    if (node.frame.size() == 0) unlink_ready();
  }
}

Frame ReceiveQueue::take() {
  if (ready_.first == kNoNode) return {};
  Frame out = std::move(shared_.frames[ready_.first].frame);
  readable_ -= static_cast<std::uint32_t>(out.size());
  unlink_ready();
  return out;
}

void ReceiveQueue::unlink_ready() {
  const std::uint32_t gone = ready_.first;
  FrameNode& node = shared_.frames[gone];
  node.frame = Frame();
  ready_.first = node.next;
  if (ready_.first == kNoNode) ready_.last = kNoNode;
  shared_.frames.give_back(gone);
  --frames_;
}

void ReceiveQueue::sack_blocks(wire::FixedList<wire::SackBlock, wire::kMaxSackBlocks>& out,
                               std::size_t room) const {
  const auto report = [&](std::uint32_t index) {
    out.push_back({shared_.islands[index].left.value, shared_.islands[index].right.value});
    --room;
  };
  for (const std::uint32_t index : recent_) {
    if (index != kNoNode && room > 0) report(index);
  }
  // Islands that were not touched for long: the leftmost are what the peer misses most.
  for (std::uint32_t at = first_island_; at != kNoNode && room > 0; at = shared_.islands[at].next) {
    if (std::find(recent_.begin(), recent_.end(), at) == recent_.end()) report(at);
  }
}

void ReceiveQueue::drop_islands() {
  while (has_islands()) give_up_last();
}

void ReceiveQueue::clear() {
  drop_islands();
  free_chain(ready_.first);
  ready_ = {};
  readable_ = 0;
}

}  // namespace netchannel::tcp
