#include "device/wrap_fault.hpp"

#include <algorithm>
#include <array>

namespace netchannel::device {
namespace {

constexpr std::size_t kReserve = 16;  // receive slots kept back for copies, if there are to be any

}  // namespace

Result<std::unique_ptr<FaultDevice>> FaultDevice::open(const FaultOptions& options,
                                                       std::unique_ptr<Device> inner, FrameRegion& region) {
  for (const double p : {options.loss, options.duplicate, options.corrupt, options.reorder, options.tx_loss,
                         options.short_burst}) {
    if (!is_probability(p)) return fail(ErrorCode::invalid_argument, "faults have probabilities, 0 to 1");
  }
  return std::unique_ptr<FaultDevice>(new FaultDevice(options, std::move(inner), region));
}

FaultDevice::FaultDevice(const FaultOptions& options, std::unique_ptr<Device> inner, FrameRegion& region)
    : WrapDevice(std::move(inner)), options_(options), region_(region), dice_(options.seed) {}

std::size_t FaultDevice::refill(std::span<const std::uint32_t> slots) noexcept {
  return_slots();
  std::size_t kept = 0;
  if (options_.duplicate > 0) {
    for (; kept < slots.size() && reserve_.size() < kReserve; ++kept) reserve_.push_back(slots[kept]);
  }
  return kept + inner_->refill(slots.subspan(kept));
}

std::size_t FaultDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  return_slots();
  if (ready_.size() < out.size()) fetch();
  std::size_t n = 0;
  while (!ready_.empty() && ready_.front().size() <= out.size() - n) {
    std::ranges::copy(ready_.front(), out.subspan(n).begin());
    n += ready_.front().size();
    ready_.pop_front();
  }
  return n;
}

void FaultDevice::fetch() noexcept {
  std::array<FrameDesc, kBurst> burst;
  const std::size_t n = inner_->rx_burst(burst);
  for (std::size_t i = 0; i < n; ++i) {
    incoming_.push_back(burst[i]);
    if ((burst[i].flags & kContinues) == 0) befall(std::exchange(incoming_, {}));
  }
  if (n != 0) return;
  // Nothing comes that could overtake those held back.
  while (!held_.empty()) {
    deliver(std::move(held_.front().packet));
    held_.pop_front();
  }
}

void FaultDevice::befall(Packet packet) noexcept {
  if (dice_.chance(options_.loss)) {
    ++stats_.lost;
    give_back(packet);
    return;
  }
  if (dice_.chance(options_.corrupt)) corrupt(packet);
  if (dice_.chance(options_.reorder)) {
    ++stats_.reordered;
    held_.push_back({std::move(packet), options_.reorder_behind});
    return;
  }
  deliver(std::move(packet));
  overtake();
}

void FaultDevice::overtake() noexcept {
  for (Held& held : held_) held.behind -= std::min(held.behind, 1u);
  while (!held_.empty() && held_.front().behind == 0) {
    deliver(std::move(held_.front().packet));
    held_.pop_front();
  }
}

void FaultDevice::deliver(Packet packet) noexcept {
  ready_.push_back(std::move(packet));
  const Packet& original = ready_.back();
  if (original.size() != 1 || reserve_.empty() || !dice_.chance(options_.duplicate)) return;
  ++stats_.duplicated;
  FrameDesc copy = original.front();
  copy.slot = reserve_.back();
  reserve_.pop_back();
  std::ranges::copy(region_.bytes_of(original.front()), region_.bytes_of(copy).begin());
  ready_.push_back({copy});
}

void FaultDevice::corrupt(const Packet& packet) noexcept {
  const MutableBytes bytes = region_.bytes_of(packet.front());
  if (bytes.empty()) return;
  ++stats_.corrupted;
  const std::uint64_t bit = dice_.below(bytes.size() * 8);
  bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

void FaultDevice::give_back(const Packet& packet) noexcept {
  for (const FrameDesc& part : packet) returning_.push_back(part.slot);
  return_slots();
}

void FaultDevice::return_slots() noexcept {
  const std::size_t taken = inner_->refill(returning_);
  returning_.erase(returning_.begin(), returning_.begin() + static_cast<std::ptrdiff_t>(taken));
}

std::size_t FaultDevice::tx_burst(std::span<const FrameDesc> frames) noexcept {
  std::span<const FrameDesc> front = frames;
  if (!frames.empty() && dice_.chance(options_.short_burst)) {
    ++stats_.short_bursts;
    front = frames.first(dice_.below(frames.size()));
  }
  if (options_.tx_loss == 0) return inner_->tx_burst(front);
  // Packet by packet, so that what the inner device does not take is not lost instead.
  std::size_t taken = 0;
  while (taken < front.size()) {
    const auto last = std::find_if(front.begin() + static_cast<std::ptrdiff_t>(taken), front.end(),
                                   [](const FrameDesc& part) { return (part.flags & kContinues) == 0; });
    if (last == front.end()) return taken + inner_->tx_burst(front.subspan(taken));
    const auto packet = front.subspan(taken, static_cast<std::size_t>(last - front.begin()) + 1 - taken);
    if (dice_.chance(options_.tx_loss)) {
      ++stats_.tx_lost;
      for (const FrameDesc& part : packet) tx_lost_.push_back(part.slot);
    } else if (inner_->tx_burst(packet) != packet.size()) {
      break;
    }
    taken += packet.size();
  }
  return taken;
}

std::size_t FaultDevice::reclaim(std::span<FrameDesc> out) noexcept {
  std::size_t n = 0;
  for (; n < out.size() && !tx_lost_.empty(); ++n) {
    out[n] = FrameDesc{.slot = tx_lost_.back()};
    tx_lost_.pop_back();
  }
  return n + inner_->reclaim(out.subspan(n));
}

}  // namespace netchannel::device
