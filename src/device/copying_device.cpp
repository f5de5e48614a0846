#include "device/copying_device.hpp"

#include <algorithm>

namespace netchannel::device {

CopyingDevice::CopyingDevice(DeviceInfo info, DeviceHome home, std::uint16_t rx_headroom)
    : info_(std::move(info)), home_(home), rx_headroom_(rx_headroom) {
  lent_.reserve(home.region.slot_count());
  done_.reserve(home.region.slot_count());
}

std::size_t CopyingDevice::refill(std::span<const std::uint32_t> slots) noexcept {
  std::size_t taken = 0;
  for (; taken < slots.size() && lent_.size() < home_.region.slot_count(); ++taken) {
    if (slots[taken] < home_.region.slot_count()) {
      lent_.push_back(slots[taken]);
    } else {
      home_.counters.drop(DropReason::device_bad_descriptor);
    }
  }
  return taken;
}

CopyingDevice::Packet CopyingDevice::first_packet(std::span<const FrameDesc> frames) const {
  Packet packet;
  std::size_t parts = 0;
  while (parts < frames.size() && !packet.whole) {
    const FrameDesc& part = frames[parts++];
    packet.bytes += part.length;
    packet.within = packet.within && home_.region.holds(part);
    packet.whole = (part.flags & kContinues) == 0;
  }
  packet.parts = frames.first(parts);
  return packet;
}

bool CopyingDevice::acceptable(const Packet& packet) noexcept {
  if (!packet.within) {
    home_.counters.drop(DropReason::device_bad_descriptor);
  } else if (packet.parts.size() > kMaxParts) {
    home_.counters.drop(DropReason::device_chain_too_long);
  } else if (packet.bytes > info_.max_tx_frame) {
    home_.counters.drop(DropReason::device_frame_too_large);
  } else {
    return true;
  }
  return false;
}

std::size_t CopyingDevice::tx_burst(std::span<const FrameDesc> frames) noexcept {
  std::size_t taken = 0;
  while (taken < frames.size()) {
    const Packet packet = first_packet(frames.subspan(taken));
    if (done_.size() + packet.parts.size() > home_.region.slot_count()) break;
    // The rest of a packet may come with the next burst, unless there is too much of it already.
    if (!packet.whole && packet.parts.size() <= kMaxParts && !skipping_) break;
    if (!skipping_ && acceptable(packet)) {
      const Sent sent = send(packet.parts, packet.bytes);
      if (sent == Sent::busy) break;
      if (sent == Sent::yes) home_.counters.add(Counter::device_tx_frames);
    }
    skipping_ = !packet.whole;
    finish(packet.parts);
    taken += packet.parts.size();
  }
  if (taken < frames.size()) home_.counters.add(Counter::device_tx_busy);
  return taken;
}

void CopyingDevice::finish(std::span<const FrameDesc> parts) noexcept {
  for (const FrameDesc& part : parts) {
    // A slot that does not exist has no home to go to.
    if (part.slot < home_.region.slot_count()) done_.push_back(part.slot);
  }
}

std::size_t CopyingDevice::reclaim(std::span<FrameDesc> out) noexcept {
  const std::size_t n = std::min(out.size(), done_.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = FrameDesc{.slot = done_.back()};
    done_.pop_back();
  }
  return n;
}

std::size_t CopyingDevice::deliver(Bytes packet, std::span<FrameDesc> out) noexcept {
  const std::size_t parts = parts_for(packet.size());
  if (parts > out.size() || parts > lent_.size()) return 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const Bytes part = packet.subspan(i * room(), std::min(room(), packet.size() - i * room()));
    out[i] = FrameDesc{
        .slot = lent_.back(), .length = static_cast<std::uint32_t>(part.size()), .offset = rx_headroom_};
    if (i + 1 < parts) out[i].flags = kContinues;
    lent_.pop_back();
    std::copy(part.begin(), part.end(), home_.region.bytes_of(out[i]).begin());
  }
  home_.counters.add(Counter::device_rx_frames);
  return parts;
}

}  // namespace netchannel::device
