// A device whose other side is the test: what it receives is put in by hand, what it sends is kept.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <vector>

#include "netchannel/device.hpp"

namespace netchannel {

class FakeDevice : public Device, public Steering {
 public:
  explicit FakeDevice(FrameRegion& region) : region_(region) {}

  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override {
    const std::size_t n = std::min(slots.size(), capacity - lent.size());
    lent.insert(lent.end(), slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override {
    std::size_t n = 0;
    for (; n < out.size() && !arrived.empty(); ++n) {
      out[n] = arrived.front();
      arrived.pop_front();
    }
    return n;
  }
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override {
    ++tx_calls;
    const std::size_t n = std::min(frames.size(), tx_room);
    sent.insert(sent.end(), frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override {
    std::size_t n = 0;
    for (; n < out.size() && !done.empty(); ++n) {
      out[n] = done.front();
      done.pop_front();
    }
    return n;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  Steering* steering() noexcept override { return steers ? this : nullptr; }
  Result<void> claim(const FlowKey& flow) override {
    if (refuse_claims) return fail(ErrorCode::no_memory, "full", 12);
    claimed.insert(flow);
    return {};
  }
  Result<void> unclaim(const FlowKey& flow) override {
    claimed.erase(flow);
    return {};
  }

  // A frame with these bytes arrives in a slot that was lent. False if none is.
  bool deliver(Bytes frame) {
    if (lent.empty()) return false;
    FrameDesc desc;
    desc.slot = lent.back();
    lent.pop_back();
    desc.offset = 256;
    desc.length = static_cast<std::uint32_t>(frame.size());
    std::memcpy(region_.bytes_of(desc).data(), frame.data(), frame.size());
    arrived.push_back(desc);
    return true;
  }

  std::size_t capacity = 1024;
  std::size_t tx_room = 1024;
  int tx_calls = 0;
  bool steers = false;
  bool refuse_claims = false;
  std::vector<std::uint32_t> lent;
  std::deque<FrameDesc> arrived, done;
  std::vector<FrameDesc> sent;
  std::set<FlowKey> claimed;

 private:
  FrameRegion& region_;
  DeviceInfo info_;
};

}  // namespace netchannel
