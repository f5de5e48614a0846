#include "driver/driver.hpp"

#include <algorithm>

#include "netchannel/wire/packet.hpp"

namespace netchannel::driver {

Driver::Driver(Device& device, FrameRegion& region, SlotRange rx_slots, CounterPage& counters)
    : device_(device),
      region_(region),
      rx_slots_(rx_slots),
      counters_(counters),
      flows_(random_hash_key()),
      owner_(rx_slots.count, kDeviceOwns) {
  to_lend_.reserve(rx_slots.count);
  for (std::uint32_t i = rx_slots.count; i-- > 0;) to_lend_.push_back(rx_slots.first + i);
  lend_to_device();
}

Result<ChannelId> Driver::attach(DriverEnd end, SlotRange tx_slots) {
  auto place = std::find_if(ports_.begin(), ports_.end(), [](const auto& port) { return !port->attached; });
  if (place == ports_.end()) {
    if (ports_.size() == kNoChannel)
      return fail(ErrorCode::no_memory, "too many channels on one driver; close some");
    ports_.push_back(std::make_unique<Port>());
    place = ports_.end() - 1;
  }
  (*place)->end = std::move(end);
  (*place)->tx_slots = tx_slots;
  (*place)->attached = true;
  const auto id = static_cast<ChannelId>(place - ports_.begin());
  const auto attached =
      std::count_if(ports_.begin(), ports_.end(), [](const auto& port) { return port->attached; });
  only_channel_ = attached == 1 ? id : kNoChannel;
  last_channel_ = kNoChannel;
  return id;
}

void Driver::detach(ChannelId channel) {
  if (channel >= ports_.size() || !ports_[channel]->attached) return;
  std::vector<FlowKey> claimed;
  flows_.for_each_of(channel, [&](const FlowKey& flow) { claimed.push_back(flow); });
  for (const FlowKey& flow : claimed) {
    flows_.unclaim(flow, channel);
    if (device_.steering() != nullptr) (void)device_.steering()->unclaim(flow);
  }
  for (std::uint32_t i = 0; i < rx_slots_.count; ++i) {
    if (owner_[i] == channel) take_back(rx_slots_.first + i);
  }
  *ports_[channel] = Port{};
  last_channel_ = kNoChannel;
  only_channel_ = kNoChannel;
  ChannelId id = 0, attached = 0;
  for (const auto& port : ports_) {
    if (port->attached) only_channel_ = id, ++attached;
    ++id;
  }
  if (attached != 1) only_channel_ = kNoChannel;
  lend_to_device();
}

bool Driver::poll() {
  bool moved = take_completions();
  moved |= receive();
  for (ChannelId id = 0; id < ports_.size(); ++id) {
    if (!ports_[id]->attached) continue;
    moved |= run_commands(id);
    moved |= take_recycled(id);
  }
  lend_to_device();
  moved |= transmit();
  return moved;
}

bool Driver::transmit() {
  bool moved = false;
  for (const auto& port : ports_) {
    if (port->attached) moved |= transmit_from(*port);
  }
  return moved;
}

bool Driver::prepare_sleep() {
  for (const auto& port : ports_) {
    if (port->attached && (!port->end.tx.empty() || !port->end.commands.empty())) return false;
  }
  return device_.prepare_sleep();
}

bool Driver::take_completions() {
  std::array<FrameDesc, kBurst> done;
  const std::size_t n = device_.reclaim(done);
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& port : ports_) {
      // The ring is as large as the range, so there is room unless the consumer lied about what it released.
      if (port->attached && port->tx_slots.contains(done[i].slot))
        (void)port->end.reclaimed.push(done[i].slot);
    }
  }
  return n != 0;
}

bool Driver::receive() {
  std::array<FrameDesc, kBurst> burst;
  const std::size_t n = device_.rx_burst(burst);
  if (n == 0) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (!rx_slots_.contains(burst[i].slot) || !region_.holds(burst[i])) {
      counters_.drop(DropReason::device_bad_descriptor);
      if (rx_slots_.contains(burst[i].slot)) to_lend_.push_back(burst[i].slot);
      continue;
    }
    stage(channel_of(burst[i]), burst[i]);
  }
  for (ChannelId id = 0; id < ports_.size(); ++id) {
    if (ports_[id]->staged_count != 0) push_staged(id);
  }
  return true;
}

ChannelId Driver::channel_of(const FrameDesc& desc) {
  // One consumer: nothing to sort.
  if (only_channel_ != kNoChannel) return only_channel_;
  const auto info = wire::flow_of(region_.bytes_of(desc));
  if (!info) {
    counters_.drop(info.error());
    return kNoChannel;
  }
  if (info->kind != wire::PacketKind::flow && info->kind != wire::PacketKind::icmp_error) return 0;
  if (last_channel_ != kNoChannel && info->key == last_flow_) return last_channel_;
  const auto found = flows_.find(info->key);
  if (!found) {
    counters_.drop(DropReason::no_channel);
    return kNoChannel;
  }
  last_flow_ = info->key;
  last_channel_ = *found;
  return *found;
}

void Driver::stage(ChannelId id, const FrameDesc& desc) {
  if (id >= ports_.size() || !ports_[id]->attached) {
    to_lend_.push_back(desc.slot);
    return;
  }
  Port& port = *ports_[id];
  port.staged[port.staged_count++] = desc;
}

void Driver::push_staged(ChannelId id) {
  Port& port = *ports_[id];
  const std::span<const FrameDesc> staged(port.staged.data(), port.staged_count);
  const std::size_t pushed = port.end.rx.push_all(staged);
  for (const FrameDesc& desc : staged.first(pushed)) owner_[desc.slot - rx_slots_.first] = id;
  for (const FrameDesc& desc : staged.subspan(pushed)) to_lend_.push_back(desc.slot);
  port.staged_count = 0;
  if (pushed < staged.size()) counters_.drop(DropReason::channel_full, staged.size() - pushed);
  if (pushed == 0) return;
  counters_.add(Counter::channel_rx_pushed, pushed);
  counters_.add(Counter::channel_rx_batches);
  if (port.end.bell->ring()) counters_.add(Counter::channel_doorbells);
}

bool Driver::run_commands(ChannelId id) {
  Port& port = *ports_[id];
  bool any = false;
  // No room for the reply: the command waits, as the consumer has not read the earlier replies.
  while (port.end.replies.reserve(1) == 1 && port.end.commands.peek(1) == 1) {
    const FlowCommand command = port.end.commands.read(0);
    port.end.commands.release(1);
    port.end.replies.push(run_command(id, command));
    any = true;
  }
  return any;
}

FlowReply Driver::run_command(ChannelId id, const FlowCommand& command) {
  const auto refused = [&](ErrorCode code, int sys_errno) {
    return FlowReply{.tag = command.tag, .ok = false, .code = code, .sys_errno = sys_errno};
  };
  const bool claiming = command.kind == FlowCommand::Kind::claim;
  const bool changed = claiming ? flows_.claim(command.flow, id) : flows_.unclaim(command.flow, id);
  if (!changed) return refused(claiming ? ErrorCode::address_in_use : ErrorCode::invalid_argument, 0);
  last_channel_ = kNoChannel;
  if (Steering* steering = device_.steering(); steering != nullptr) {
    const auto done = claiming ? steering->claim(command.flow) : steering->unclaim(command.flow);
    if (!done) {
      if (claiming) flows_.unclaim(command.flow, id);
      return refused(done.error().code, done.error().sys_errno);
    }
  }
  return FlowReply{.tag = command.tag};
}

bool Driver::take_recycled(ChannelId id) {
  Port& port = *ports_[id];
  std::array<std::uint32_t, kBurst> slots;
  bool any = false;
  // Bounded by the number of slots: each is accepted once.
  for (std::size_t n = port.end.recycle.pop_all(slots); n != 0; n = port.end.recycle.pop_all(slots)) {
    any = true;
    for (std::size_t i = 0; i < n; ++i) {
      if (rx_slots_.contains(slots[i]) && owner_[slots[i] - rx_slots_.first] == id) {
        take_back(slots[i]);
      } else {
        counters_.add(Counter::channel_hostile);
      }
    }
    if (n < slots.size()) break;
  }
  return any;
}

void Driver::take_back(std::uint32_t slot) {
  owner_[slot - rx_slots_.first] = kDeviceOwns;
  to_lend_.push_back(slot);
}

void Driver::lend_to_device() {
  // From the back: what came home last is warm in the cache.
  while (!to_lend_.empty()) {
    const std::size_t offered = std::min(to_lend_.size(), kBurst);
    const std::size_t taken = device_.refill(std::span(to_lend_).last(offered));
    const auto first = to_lend_.end() - static_cast<std::ptrdiff_t>(offered);
    to_lend_.erase(first, first + static_cast<std::ptrdiff_t>(taken));
    if (taken < offered) return;
  }
}

std::uint32_t Driver::valid_prefix(const Port& port, std::span<const FrameDesc> frames) const {
  std::uint32_t n = 0;
  while (n < frames.size() && port.tx_slots.contains(frames[n].slot) && region_.holds(frames[n])) ++n;
  return n;
}

bool Driver::transmit_from(Port& port) {
  std::array<FrameDesc, kBurst> frames;
  const std::uint32_t n = port.end.tx.peek(kBurst);
  if (n == 0) return false;
  for (std::uint32_t i = 0; i < n; ++i) frames[i] = port.end.tx.read(i);
  const std::uint32_t valid = valid_prefix(port, std::span(frames).first(n));
  if (valid == 0) {
    counters_.add(Counter::channel_hostile);
    port.end.tx.release(1);
    return true;
  }
  const std::size_t sent = device_.tx_burst(std::span(frames).first(valid));
  port.end.tx.release(static_cast<std::uint32_t>(sent));
  return sent != 0;
}

}  // namespace netchannel::driver
