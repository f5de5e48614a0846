#include "testkit/port.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace netchannel::testkit {
namespace {

std::unique_ptr<FrameRegion> open_region(const PortOptions& options) {
  auto region =
      FrameRegion::open({.slot_size = options.slot_size, .slot_count = options.rx_slots + options.tx_slots});
  if (!region) {
    std::fprintf(stderr, "testkit: %s\n", describe(region.error()).c_str());
    std::abort();
  }
  return std::move(*region);
}

}  // namespace

Port::Port(const PortOptions& options)
    : options_(options), region_(open_region(options)), counters_(std::make_unique<CounterPage>()) {
  for (std::uint32_t i = 0; i < options.rx_slots; ++i) rx_here_.push_back(i);
  for (std::uint32_t i = 0; i < options.tx_slots; ++i) tx_here_.push_back(options.rx_slots + i);
}

void Port::attach(Device& device) {
  device_ = &device;
  lend();
}

void Port::lend() {
  const std::size_t taken = device_->refill(rx_here_);
  rx_here_.erase(rx_here_.begin(), rx_here_.begin() + static_cast<std::ptrdiff_t>(taken));
}

bool Port::send(Bytes packet, const FrameDesc& meta) {
  slots_home();
  const std::size_t slot_size = region_->slot_size();
  std::vector<FrameDesc> parts;
  do {
    if (tx_here_.empty()) return false;
    FrameDesc part = meta;
    part.slot = tx_here_.back();
    const Bytes bytes = packet.first(std::min(packet.size(), slot_size));
    part.length = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), region_->slot(part.slot).begin());
    packet = packet.subspan(bytes.size());
    if (!packet.empty()) part.flags |= kContinues;
    parts.push_back(part);
    tx_out_.insert(part.slot);
    tx_here_.pop_back();
  } while (!packet.empty());
  const std::size_t taken = device_->tx_burst(parts);
  for (std::size_t i = taken; i < parts.size(); ++i) {
    tx_out_.erase(parts[i].slot);
    tx_here_.push_back(parts[i].slot);
  }
  return taken == parts.size();
}

std::vector<Port::Received> Port::receive_all() {
  std::vector<Received> out;
  std::array<FrameDesc, kBurst> burst;
  bool open = false;  // the last packet goes on
  while (const std::size_t n = device_->rx_burst(burst)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!open) out.push_back({{}, burst[i], 0});
      const MutableBytes bytes = region_->bytes_of(burst[i]);
      out.back().bytes.insert(out.back().bytes.end(), bytes.begin(), bytes.end());
      ++out.back().parts;
      open = (burst[i].flags & kContinues) != 0;
      rx_here_.push_back(burst[i].slot);
    }
    lend();
  }
  return out;
}

std::vector<Packet> Port::receive() {
  std::vector<Packet> out;
  for (auto& received : receive_all()) out.push_back(std::move(received.bytes));
  return out;
}

bool Port::slots_home() {
  std::array<FrameDesc, kBurst> burst;
  while (const std::size_t n = device_->reclaim(burst)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (tx_out_.erase(burst[i].slot) == 0) {
        broken_ = true;
      } else {
        tx_here_.push_back(burst[i].slot);
      }
    }
  }
  return !broken_ && tx_out_.empty();
}

bool pump(device::LinkPair& link, const std::function<bool(Instant)>& turn, std::size_t most) {
  for (std::size_t i = 0; i < most; ++i) {
    if (turn(link.now())) continue;
    if (link.next_event() == kForever) return true;
    link.set_time(link.next_event());
  }
  return false;
}

}  // namespace netchannel::testkit
