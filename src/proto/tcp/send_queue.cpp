#include "proto/tcp/send_queue.hpp"

#include <algorithm>
#include <cstring>

namespace netchannel::tcp {

void SendQueue::start(Seq first) { begin_ = end_ = first; }

std::size_t SendQueue::write(Bytes data, FramePool& pool, const WriteLayout& layout) {
  std::size_t done = 0;
  const auto put = [&](FrameNode& node) {
    const std::size_t used = node.frame.size();
    const std::size_t room =
        std::min(layout.fill - std::min<std::size_t>(used, layout.fill), node.frame.tailroom());
    const std::size_t part = std::min(room, data.size() - done);
    if (part == 0) return;
    std::memcpy(node.frame.append(part).data(), data.data() + done, part);
    done += part;
    end_ += static_cast<std::uint32_t>(part);
  };
  const bool append_first = !layout.new_frame || layout.most_frames == 0;
  if (last_ != kNoNode && nodes_[last_].growable && append_first) put(nodes_[last_]);
  for (std::uint32_t taken = 0; done < data.size() && taken < layout.most_frames; ++taken) {
    auto frame = pool.allocate(layout.headroom);
    if (!frame) break;
    if (!append(std::move(*frame))) break;
    nodes_[last_].growable = true;
    put(nodes_[last_]);
  }
  return done;
}

bool SendQueue::append(Frame&& frame) {
  const std::uint32_t index = nodes_.take();
  if (index == kNoNode) return false;
  FrameNode& node = nodes_[index];
  node.frame = std::move(frame);
  node.begin = end_;
  node.next = kNoNode;
  node.growable = false;
  (last_ == kNoNode ? first_ : nodes_[last_].next) = index;
  last_ = index;
  ++frames_;
  end_ += static_cast<std::uint32_t>(node.frame.size());
  return true;
}

void SendQueue::release(Seq una) {
  while (first_ != kNoNode && end_of(nodes_[first_]) <= una) {
    const std::uint32_t gone = first_;
    nodes_[gone].frame = Frame();
    first_ = nodes_[gone].next;
    if (first_ == kNoNode) last_ = kNoNode;
    if (new_hint_ == gone) new_hint_ = kNoNode;
    if (retry_hint_ == gone) retry_hint_ = kNoNode;
    nodes_.give_back(gone);
    --frames_;
  }
  begin_ = later(begin_, una);
}

std::uint32_t SendQueue::find(Seq at) {
  const bool by_new = new_hint_ != kNoNode && nodes_[new_hint_].begin <= at;
  const bool by_retry = !by_new && retry_hint_ != kNoNode && nodes_[retry_hint_].begin <= at;
  std::uint32_t index = by_new ? new_hint_ : by_retry ? retry_hint_ : first_;
  while (end_of(nodes_[index]) <= at) index = nodes_[index].next;
  (by_new || new_hint_ == kNoNode ? new_hint_ : retry_hint_) = index;
  return index;
}

std::size_t SendQueue::slices(Seq from, std::uint32_t length, std::span<Slice> out) {
  std::size_t filled = 0;
  if (length == 0) return 0;
  std::uint32_t index = find(from);
  while (length > 0 && filled < out.size()) {
    const FrameNode& node = nodes_[index];
    const std::uint32_t skip = distance(node.begin, from);
    const std::uint32_t part = std::min(length, static_cast<std::uint32_t>(node.frame.size()) - skip);
    out[filled++] = {node.frame.bytes().subspan(skip, part), &node.frame};
    from += part;
    length -= part;
    index = node.next;
  }
  return filled;
}

void SendQueue::clear() {
  release(end_);
  begin_ = end_;
}

}  // namespace netchannel::tcp
