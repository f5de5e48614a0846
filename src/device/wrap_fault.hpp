// A device that misbehaves, around one that does not: packets received are lost, doubled, corrupted or come
// out of order; packets to send are lost; bursts are taken only in part. For finding out what stands on it;
// `link` has the same faults in its wire, this works over any device, real ones included.
//
//   rx:  inner -> lose | corrupt | hold back for reorder_behind packets | double -> caller
//   tx:  caller -> take only the front of the burst -> lose -> inner
//
// Invariant: every slot goes home, whatever became of its packet. Copies are made into receive slots that
// refill() keeps back, so a copy is made only if there is such a slot. A packet held back comes at the latest
// when the inner device has nothing more.
#pragma once

#include <deque>
#include <vector>

#include "device/dice.hpp"
#include "device/wrap_device.hpp"
#include "netchannel/frame.hpp"

namespace netchannel::device {

// Probabilities are 0 to 1 for each packet, short_burst for each call.
struct FaultOptions {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;  // one bit flipped, anywhere in the packet's first part
  double reorder = 0;
  std::uint32_t reorder_behind = 3;  // packets that overtake a reordered one
  double tx_loss = 0;
  double short_burst = 0;  // tx_burst takes fewer than given, or none
  std::uint64_t seed = 1;
};

struct FaultStats {
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
  std::uint64_t tx_lost = 0;
  std::uint64_t short_bursts = 0;
};

class FaultDevice final : public WrapDevice {
 public:
  // Errors: invalid_argument. The region is the inner device's and must outlive this.
  static Result<std::unique_ptr<FaultDevice>> open(const FaultOptions& options, std::unique_ptr<Device> inner,
                                                   FrameRegion& region);
  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override;
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override;
  bool prepare_sleep() noexcept override {
    return ready_.empty() && held_.empty() && inner_->prepare_sleep();
  }
  const FaultStats& stats() const { return stats_; }

 private:
  using Packet = std::vector<FrameDesc>;
  struct Held {
    Packet packet;
    std::uint32_t behind;  // packets that still overtake it
  };
  FaultDevice(const FaultOptions& options, std::unique_ptr<Device> inner, FrameRegion& region);
  void fetch() noexcept;
  void befall(Packet packet) noexcept;
  void deliver(Packet packet) noexcept;
  void overtake() noexcept;
  void corrupt(const Packet& packet) noexcept;
  void give_back(const Packet& packet) noexcept;
  void return_slots() noexcept;

  FaultOptions options_;
  FrameRegion& region_;
  Dice dice_;
  FaultStats stats_;
  Packet incoming_;                       // of a packet whose rest has not come yet
  std::deque<Held> held_;                 // oldest first
  std::deque<Packet> ready_;              // for the caller
  std::vector<std::uint32_t> reserve_;    // for copies
  std::vector<std::uint32_t> returning_;  // to be lent to the inner device again
  std::vector<std::uint32_t> tx_lost_;    // to be reclaimed by the caller
};

}  // namespace netchannel::device
