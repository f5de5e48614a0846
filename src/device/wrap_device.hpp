// A device around another: passes every call on. What is derived from it changes only what it is about.
#pragma once

#include <memory>

#include "netchannel/device.hpp"

namespace netchannel::device {

class WrapDevice : public Device {
 public:
  explicit WrapDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override { return inner_->refill(slots); }
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override { return inner_->rx_burst(out); }
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override {
    return inner_->tx_burst(frames);
  }
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override { return inner_->reclaim(out); }
  const DeviceInfo& info() const noexcept override { return inner_->info(); }
  bool prepare_sleep() noexcept override { return inner_->prepare_sleep(); }
  Steering* steering() noexcept override { return inner_->steering(); }
  void refresh_counters() noexcept override { inner_->refresh_counters(); }

 protected:
  std::unique_ptr<Device> inner_;
};

}  // namespace netchannel::device
