#include "tests/packets/stack_wire.hpp"

#include <algorithm>
#include <cstdlib>

#include "testkit/frames.hpp"

namespace netchannel::packets {
namespace {

using testkit::script::Net;
using testkit::script::SentPacket;

constexpr std::uint32_t kSlots = 1024;  // receive, and as many transmit slots
constexpr std::size_t kEthernet = 14;
constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x0a}};
constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x0b}};

stack::StackOptions options_for(const Net& net) {
  stack::StackOptions out;
  out.link.mac = kOurMac;
  out.link.mtu = net.mtu;
  out.link.max_tx_frame = net.mtu + kEthernet;
  out.rx = {0, kSlots};
  out.tx = {kSlots, kSlots};
  out.addresses = {{net.local, net.prefix}};
  out.routes = {{.destination = {net.local, net.prefix}}};
  for (std::size_t i = 0; i < out.secret.size(); ++i) out.secret[i] = static_cast<std::uint8_t>(11 * i + 3);
  return out;
}

}  // namespace

StackWire::StackWire(const Net& net) {
  const std::uint32_t slot_size = net.mtu <= 1900 ? 2048 : 16384;
  region_ = *FrameRegion::open({.slot_size = slot_size, .slot_count = 2 * kSlots});
  channel_ = *Channel::open({.rx_ring = kSlots, .tx_ring = kSlots, .rx_slots = kSlots, .tx_slots = kSlots});
  driver_ = channel_->take_driver();
  auto opened = stack::Stack::open(channel_->take_consumer(), *region_, options_for(net));
  if (!opened) std::abort();  // the options above are right for every script
  stack_ = std::move(*opened);
  for (std::uint32_t i = 0; i < kSlots; ++i) lent_.push_back(i);
  stack_->on_neighbour(net.remote, kPeerMac);
  stack_->on_neighbour(net.router, kPeerMac);
  poll();
}

std::optional<SentPacket> StackWire::next_sent(Instant until) {
  while (sent_.empty()) {
    const Instant next = std::max(stack_->next_deadline(), now_);
    const bool last = next > until;
    now_ = last ? std::max(until, now_) : next;
    poll();
    if (last) break;
  }
  if (sent_.empty()) return std::nullopt;
  SentPacket packet = std::move(sent_.front());
  sent_.pop_front();
  return packet;
}

void StackWire::arrive(Bytes packet) {
  const bool v4 = load_u8(packet, 0) >> 4 == 4;
  const testkit::Packet frame =
      testkit::ethernet({kOurMac, kPeerMac}, v4 ? testkit::kIpv4 : testkit::kIpv6, packet);
  // What is too long for a slot comes in several.
  const std::size_t slot_size = region_->slot_size();
  for (std::size_t at = 0; at < frame.size(); at += slot_size) {
    if (lent_.empty()) std::abort();  // no script holds this many frames
    const Bytes part = Bytes(frame).subspan(at, std::min(slot_size, frame.size() - at));
    FrameDesc desc;
    desc.slot = lent_.front();
    desc.length = static_cast<std::uint32_t>(part.size());
    desc.flags = at + slot_size < frame.size() ? kContinues : 0;
    lent_.pop_front();
    std::copy(part.begin(), part.end(), region_->slot(desc.slot).begin());
    (void)driver_.rx.push(desc);
  }
  poll();
}

void StackWire::flush() {
  stack_->tcp().flush();
  collect();
}

void StackWire::poll() {
  stack_->poll(now_);
  collect();
  std::uint32_t slot = 0;
  while (driver_.recycle.pop_all({&slot, 1}) == 1) lent_.push_back(slot);
}

void StackWire::collect() {
  while (driver_.tx.peek(1) != 0) {
    const FrameDesc desc = driver_.tx.read(0);
    driver_.tx.release(1);
    const Bytes frame = region_->bytes_of(desc);
    sent_.push_back({now_, {frame.begin() + kEthernet, frame.end()}});
    (void)driver_.reclaimed.push(desc.slot);
  }
}

}  // namespace netchannel::packets
