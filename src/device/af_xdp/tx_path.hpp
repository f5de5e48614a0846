// The sending half of the device: one TX ring, its completion ring, and the system calls that make the kernel
// send. In copy mode the kernel sends nothing by itself, at most so many frames a call, and stops at the
// first that the interface drops; so a kick is a loop that ends when the ring is empty, when the kernel stops
// making progress, or after a number of calls that the ring's content bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/af_xdp/sockets.hpp"
#include "device/af_xdp/tx_ledger.hpp"

namespace netchannel::device {

class TxPath {
 public:
  TxPath(XskSockets& sockets, FrameRegion& region, CounterPage& counters, std::uint32_t max_frame);

  std::size_t burst(std::span<const FrameDesc> frames) noexcept;
  std::size_t reclaim(std::span<FrameDesc> out) noexcept;
  // Sends what an earlier call had to leave in the ring. False: it may go on at once, do not sleep.
  bool settle() noexcept;
  bool has_completions() const noexcept;

 private:
  enum class Verdict : std::uint8_t { good, bad_descriptor, too_large };
  Verdict judge(const FrameDesc& frame) const;
  void refuse(const FrameDesc& frame, Verdict verdict);
  std::uint32_t descriptors_of(const FrameDesc& frame) const;
  void enqueue(const FrameDesc& frame, std::uint32_t at, std::uint32_t descriptors);
  std::uint32_t room() noexcept;
  std::uint32_t pending() const noexcept;
  void kick() noexcept;
  bool send_some() noexcept;

  XskQueue& queue_;
  const FrameRegion& region_;
  CounterPage& counters_;
  std::uint32_t chunk_size_;
  int chunk_shift_;
  int slot_shift_;
  std::uint32_t max_frame_;
  bool zero_copy_;
  bool need_wakeup_;
  bool stuck_on_link_ = false;  // the last system call said ENETDOWN or ENXIO: only the link's return helps
  std::uint32_t out_ = 0;       // descriptors in the TX ring, in the kernel's hands or in the completion ring
  std::optional<TxLedger> ledger_;      // only if a frame can take several descriptors
  std::vector<std::uint32_t> refused_;  // slots of frames that cannot be sent, on their way home
};

}  // namespace netchannel::device
