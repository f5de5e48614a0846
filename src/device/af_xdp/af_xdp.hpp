// The AF_XDP device: the driver's rings of a real interface in user space, beside the kernel. Frames of
// claimed flows come here, everything else stays the kernel's (bpf/steer.bpf.c). The whole frame region is
// the device's UMEM.
//
//            refill()              rx_burst()                  tx_burst()               reclaim()
//               |                      ^                           |                        ^
//         fill ring q0..qn       RX ring q0..qn                TX ring q0           completion ring q0
//               v                      |                           v                        |
//   kernel:  slots to put in      claimed frames              frames to send          frames sent
//
// There is one socket for each receive queue, each with rings of its own over the one UMEM; sending is
// through the first. Invariants: no slot is in two rings; a queue is lent no more slots than its fill ring
// holds, so a slot that is not used can always be given back; no more descriptors are out for sending than
// the completion ring holds, so the kernel never stops for want of room there.
//
// An interface whose frames do not fit a chunk (at most a page) is served with multi-buffer packets: a slot
// is then several chunks, of which the kernel fills the first (rx_chain.hpp), and a sent frame is cut at
// chunk boundaries in place (tx_ledger.hpp). Frames that come out and go in are linear either way.
//
// One thread uses it, the driver's; claims may come from any. Left out on purpose: sending on more than one
// queue, transmit checksum offload (metadata needs Linux 6.8 and drivers that have it), following a change of
// the number of queues or of the MTU while open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/af_xdp/program.hpp"
#include "netchannel/device.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"

namespace netchannel::device {

class XskSockets;
class TxPath;
struct XskQueue;

enum class XdpCopy : std::uint8_t { automatic, copy, zero_copy };

struct AfXdpOptions {
  std::string interface{};
  XdpMode mode = XdpMode::automatic;  // native, else generic
  XdpCopy copy = XdpCopy::automatic;  // zero-copy, else copy
  // Descriptors of each ring of each queue; powers of two. Eight to sixteen bytes each.
  std::uint32_t rx_ring = 2048;
  std::uint32_t fill_ring = 2048;  // also the number of slots that one queue can be lent
  std::uint32_t tx_ring = 2048;
  std::uint32_t completion_ring = 2048;  // also the number of descriptors that can be out for sending
  std::uint32_t max_claims = 65536;
  bool need_wakeup = true;
  bool busy_poll =
      false;             // SO_PREFER_BUSY_POLL: receive in our own system calls; wants the interface's
                         // napi_defer_hard_irqs and gro_flush_timeout set, which the kernel's traffic shares
  bool verbose = false;  // let libbpf and libxdp print to stderr
};

class AfXdpDevice final : public Device, public Steering {
 public:
  // `region` and `counters` must outlive the device; the region's memory is pinned by it.
  // Errors: no_such_device, device_down, not_permitted, device_busy (a foreign XDP program, or another user
  // of a receive queue), memlock_too_small, invalid_argument (slots that do not fit the MTU), not_supported,
  // system.
  static Result<std::unique_ptr<AfXdpDevice>> open(const AfXdpOptions& options, FrameRegion& region,
                                                   CounterPage& counters);
  // The slot size that a region needs for an interface of this MTU; 0 if there is none.
  static std::uint32_t slot_size_for(std::uint32_t mtu);
  ~AfXdpDevice() override;

  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override;
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override;
  const DeviceInfo& info() const noexcept override { return info_; }
  bool prepare_sleep() noexcept override;
  Steering* steering() noexcept override { return this; }
  void refresh_counters() noexcept override;

  Result<void> claim(const FlowKey& flow) override { return program_->claims().claim(flow); }
  Result<void> unclaim(const FlowKey& flow) override { return program_->claims().unclaim(flow); }

 private:
  AfXdpDevice(FrameRegion& region, CounterPage& counters);
  void describe(const XdpCapabilities& interface);
  std::size_t lend(XskQueue& queue, std::span<const std::uint32_t> slots) noexcept;
  std::size_t receive(XskQueue& queue, std::span<FrameDesc> out) noexcept;
  void wake(XskQueue& queue) noexcept;

  FrameRegion& region_;
  CounterPage& counters_;
  std::unique_ptr<XdpProgram> program_;
  std::unique_ptr<XskSockets> sockets_;
  std::unique_ptr<TxPath> tx_;
  std::size_t next_queue_ = 0;  // that rx_burst looks at first
  DeviceInfo info_;
};

}  // namespace netchannel::device
